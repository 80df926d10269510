//! Two sides of a conversation over connections that break.

use proptest::prelude::*;

use super::*;

const TALK: TalkId = TalkId([7; 16]);

/// Two peers, and a connection that carries frames in order until it breaks.
#[derive(Default)]
struct World {
    sides: [Option<Conversation>; 2],
    /// Frames on their way to each side.
    way: [VecDeque<Frame>; 2],
    written: [u64; 2],
    arrived: [Vec<u64>; 2],
    delivered: [u64; 2],
}

#[derive(Clone, Debug)]
enum Act {
    Write(usize),
    Read(usize),
    Emit(usize),
    Arrive(usize),
    Break,
    Connect,
    Leave(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let side = || 0_usize..2;
    let act = prop_oneof![
        6 => side().prop_map(Act::Write),
        1 => side().prop_map(Act::Read),
        12 => side().prop_map(Act::Emit),
        12 => side().prop_map(Act::Arrive),
        1 => Just(Act::Break),
        1 => Just(Act::Connect),
        1 => side().prop_map(Act::Leave),
    ];
    proptest::collection::vec(act, 0..300)
}

impl World {
    fn new() -> Self {
        Self { sides: [(); 2].map(|()| Some(Conversation::new(TALK))), ..Self::default() }
    }

    fn side(&mut self, side: usize) -> &mut Conversation {
        self.sides[side].as_mut().unwrap()
    }

    fn connect(&mut self) {
        self.way = Default::default();
        (0..2).for_each(|side| self.side(side).connected());
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Write(side) => {
                if let Ok(number) = self.side(side).send(0, String::new()) {
                    self.written[side] += 1;
                    assert_eq!(number, self.written[side]);
                }
            }
            Act::Read(side) => {
                let through = self.arrived[side].len() as u64;
                self.side(side).read(through);
            }
            Act::Emit(side) => {
                let frame = self.side(side).outgoing();
                self.way[1 - side].extend(frame);
            }
            Act::Arrive(side) => {
                if let Some(frame) = self.way[side].pop_front() {
                    self.arrive(side, frame);
                }
            }
            Act::Break => {
                self.way = Default::default();
                (0..2).for_each(|side| self.side(side).disconnected());
            }
            Act::Connect => self.connect(),
            Act::Leave(side) => drop(self.side(side).leave()),
        }
    }

    fn arrive(&mut self, side: usize, frame: Frame) {
        match self.side(side).handle(frame).expect("both keep to the protocol") {
            Some(Event::Message { number, .. }) => self.arrived[side].push(number),
            Some(Event::Delivered(through) | Event::Connected { delivered: through }) => {
                assert!(through >= self.delivered[side]);
                assert!(through <= self.arrived[1 - side].len() as u64);
                self.delivered[side] = through;
            }
            _ => {}
        }
    }

    /// Frames flow until both sides have nothing more to say.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for side in 0..2 {
                while let Some(frame) = self.side(side).outgoing() {
                    self.way[1 - side].push_back(frame);
                }
                while let Some(frame) = self.way[1 - side].pop_front() {
                    moved = true;
                    self.arrive(1 - side, frame);
                }
            }
            if !moved {
                return;
            }
        }
    }
}

proptest! {
    #[test]
    fn messages_arrive_once_and_in_order_over_connections_that_break(acts in acts()) {
        let mut world = World::new();
        world.connect();
        for act in &acts {
            world.act(act);
            for arrived in &world.arrived {
                prop_assert!(arrived.iter().copied().eq(1..=arrived.len() as u64));
            }
        }
        let over = world.side(0).is_over() || world.side(1).is_over();
        if !over {
            world.connect();
            world.settle();
            for side in 0..2 {
                prop_assert_eq!(world.arrived[1 - side].len() as u64, world.written[side]);
                prop_assert_eq!(world.delivered[side], world.written[side]);
            }
        }
    }

    #[test]
    fn frames_in_any_order_are_a_violation_or_change_little(frames in proptest::collection::vec(crate::protocol::tests::frames(), 0..40)) {
        let mut conversation = Conversation::new(TALK);
        conversation.connected();
        conversation.handle(Frame::Hello { version: VERSION, talk: TALK, received: 0 }).unwrap();
        let mut last = 0;
        for frame in frames {
            let Ok(event) = conversation.handle(frame) else { break };
            if let Some(Event::Message { number, .. }) = event {
                prop_assert_eq!(number, last + 1);
                last = number;
            }
        }
    }
}

#[test]
fn a_goodbye_comes_after_what_was_written_and_ends_both_sides() {
    let mut world = World::new();
    world.connect();
    world.act(&Act::Write(0));
    world.side(0).leave();
    assert_eq!(world.side(0).send(0, String::new()), Err(SendError::Over));
    world.settle();
    assert_eq!(world.arrived[1], [1]);
    assert!(world.side(0).is_over() && world.side(1).is_over());
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut conversation = Conversation::new(TALK);
    assert_eq!(conversation.send(0, "x".repeat(MOST_TEXT + 1)), Err(SendError::TooLong(MOST_TEXT + 1)));
    for number in 1..=MOST_WAITING as u64 {
        assert_eq!(conversation.send(0, String::new()), Ok(number));
    }
    assert_eq!(conversation.send(0, String::new()), Err(SendError::Full));
}

#[test]
fn a_peer_that_breaks_the_protocol_is_found_out() {
    let hello = |talk, version, received| Frame::Hello { version, talk, received };
    let after = |frames: &[Frame]| {
        let mut conversation = Conversation::new(TALK);
        conversation.connected();
        frames.iter().find_map(|frame| conversation.handle(frame.clone()).err())
    };
    let begun = hello(TALK, VERSION, 0);
    let message = |number| Frame::Message { number, sent_ms: 0, text: String::new() };
    assert_eq!(after(&[hello(TALK, 9, 0)]), Some(Violation::Version(9)));
    assert_eq!(after(&[hello(TalkId([0; 16]), VERSION, 0)]), Some(Violation::OtherTalk));
    assert_eq!(after(&[hello(TALK, VERSION, 1)]), Some(Violation::NeverSent(1)));
    assert_eq!(after(&[message(1)]), Some(Violation::OutOfTurn));
    assert_eq!(after(&[begun.clone(), begun.clone()]), Some(Violation::OutOfTurn));
    assert_eq!(after(&[begun.clone(), message(2)]), Some(Violation::Number { found: 2, expected: 1 }));
    assert_eq!(after(&[begun.clone(), Frame::Received(1)]), Some(Violation::NeverSent(1)));
    assert_eq!(after(&[begun, Frame::Read(1)]), Some(Violation::NeverSent(1)));
}
