//! Files between two sides, over connections that break.

use proptest::prelude::*;

use super::*;
use crate::conversation::Conversation;
use crate::protocol::{Frame, TalkId};

/// Two sides, a connection, and disks that write at once.
struct World {
    sides: [Conversation; 2],
    way: [VecDeque<Frame>; 2],
    /// The sizes of the files that each side has offered.
    offered: [Vec<u64>; 2],
    /// The bytes of the other's files that each side has; `None` once it is settled.
    have: [BTreeMap<u64, u64>; 2],
    /// What became of a side's own files, as it knows and as the other one knows.
    ends: [BTreeMap<u64, Outcome>; 2],
    decided: [BTreeMap<u64, Outcome>; 2],
    withdrawn: [Vec<u64>; 2],
}

#[derive(Clone, Debug)]
enum Act {
    Offer(usize, u64),
    Take(usize, u64),
    Refuse(usize, u64),
    Withdraw(usize, u64),
    Emit(usize),
    Arrive(usize),
    Break,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let side = || 0_usize..2;
    let file = || 1_u64..6;
    let act = prop_oneof![
        2 => (side(), 0_u64..200_000).prop_map(|(side, size)| Act::Offer(side, size)),
        3 => (side(), file()).prop_map(|(side, file)| Act::Take(side, file)),
        1 => (side(), file()).prop_map(|(side, file)| Act::Refuse(side, file)),
        1 => (side(), file()).prop_map(|(side, file)| Act::Withdraw(side, file)),
        12 => side().prop_map(Act::Emit),
        12 => side().prop_map(Act::Arrive),
        1 => Just(Act::Break),
    ];
    proptest::collection::vec(act, 0..200)
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            sides: [(); 2].map(|()| Conversation::new(TalkId([7; 16]))),
            way: Default::default(),
            offered: Default::default(),
            have: Default::default(),
            ends: Default::default(),
            decided: Default::default(),
            withdrawn: Default::default(),
        };
        world.connect();
        world
    }

    fn connect(&mut self) {
        self.way = Default::default();
        self.sides.iter_mut().for_each(Conversation::connected);
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Offer(side, size) => {
                if let Ok(file) = self.sides[side].files.offer(String::new(), size) {
                    self.offered[side].push(size);
                    assert_eq!(file, self.offered[side].len() as u64);
                }
            }
            Act::Take(side, file) => {
                if self.sides[side].files.take(file).is_some() {
                    self.have[side].insert(file, 0);
                }
            }
            Act::Refuse(side, file) => self.decide(side, file, Outcome::Refused),
            Act::Withdraw(side, file) => {
                if self.sides[side].files.withdraw(file) {
                    self.withdrawn[side].push(file);
                }
            }
            Act::Emit(side) => {
                let frame = self.emit(side);
                self.way[1 - side].extend(frame);
            }
            Act::Arrive(side) => {
                if let Some(frame) = self.way[side].pop_front() {
                    self.arrive(side, frame);
                }
            }
            Act::Break => self.connect(),
        }
    }

    fn decide(&mut self, side: usize, file: u64, outcome: Outcome) {
        if self.sides[side].files.settle(file, outcome) {
            self.decided[side].insert(file, outcome);
        }
    }

    fn emit(&mut self, side: usize) -> Option<Frame> {
        let conversation = &mut self.sides[side];
        conversation.outgoing().or_else(|| {
            let (file, frame) = match conversation.need()? {
                need @ Need::Piece { length, offset, .. } => {
                    let bytes = (offset..offset + length as u64).map(|at| at as u8).collect();
                    conversation.files.piece(need, bytes).unwrap()
                }
                Need::Sum { file } => {
                    conversation.files.summed(file);
                    (file, FileFrame::Sum([0; 32]))
                }
            };
            Some(Frame::File { file, frame })
        })
    }

    fn arrive(&mut self, side: usize, frame: Frame) {
        match self.sides[side].handle(frame).expect("both keep to the protocol") {
            Some(Event::Piece { file, bytes }) => {
                let have = self.have[side].get_mut(&file).expect("it was taken");
                for (at, byte) in (*have..).zip(&bytes) {
                    assert_eq!(at as u8, *byte, "no byte is lost or comes twice");
                }
                *have += bytes.len() as u64;
                self.sides[side].files.written(file, bytes.len() as u64);
            }
            Some(Event::Sum { file, .. }) => {
                assert_eq!(self.have[side][&file], self.offered[1 - side][file as usize - 1]);
                self.decide(side, file, Outcome::Whole);
            }
            Some(Event::Settled { file: FileId::Own(file), outcome }) => {
                assert_eq!(self.ends[side].insert(file, outcome), None, "a file ends once");
            }
            Some(Event::Settled { file: FileId::Peer(file), outcome }) => {
                assert_eq!(self.decided[side].insert(file, outcome), None);
            }
            _ => {}
        }
    }

    /// Frames flow until neither side has more to say.
    fn flow(&mut self) {
        loop {
            let mut has_moved = false;
            for side in 0..2 {
                while let Some(frame) = self.emit(side) {
                    self.way[1 - side].push_back(frame);
                }
                while let Some(frame) = self.way[1 - side].pop_front() {
                    has_moved = true;
                    self.arrive(1 - side, frame);
                }
            }
            if !has_moved {
                return;
            }
        }
    }
}

proptest! {
    #[test]
    fn files_end_alike_on_both_sides_over_connections_that_break(acts in acts()) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
        }
        // What is yet undecided is taken.
        world.connect();
        world.flow();
        for file in 1..=200 {
            (0..2).for_each(|side| world.act(&Act::Take(side, file)));
        }
        world.flow();
        for side in 0..2 {
            for (file, size) in (1..).zip(&world.offered[side]) {
                let decided = world.decided[1 - side].get(&file).copied();
                if world.withdrawn[side].contains(&file) {
                    // The other side may have been done before.
                    prop_assert!(decided.is_some());
                } else {
                    prop_assert_eq!(world.ends[side].get(&file).copied(), decided, "file {}", file);
                    prop_assert!(matches!(decided, Some(Outcome::Whole | Outcome::Refused)));
                }
                if decided == Some(Outcome::Whole) {
                    prop_assert_eq!(world.have[1 - side][&file], *size);
                }
            }
        }
    }
}

#[test]
fn a_peer_that_breaks_the_rules_of_files_is_found_out() {
    let offer = || FileFrame::Offer { size: 100, name: String::new() };
    let piece = |offset, length| FileFrame::Piece { offset, bytes: vec![0; length] };
    // A side that was offered file 1 and takes it.
    let taking = || {
        let mut files = Files::default();
        files.handle(1, offer()).unwrap();
        files.take(1).unwrap();
        assert_eq!(files.outgoing(), Some((1, FileFrame::Want { from: 0, through: 100 })));
        files
    };
    assert_eq!(taking().handle(3, offer()), Err(Violation::NoFile(3)));
    assert_eq!(taking().handle(0, offer()), Err(Violation::NoFile(0)));
    assert_eq!(taking().handle(2, piece(0, 1)), Err(Violation::NoFile(2)));
    assert_eq!(taking().handle(1, piece(1, 1)), Err(Violation::Piece { file: 1, offset: 1 }));
    assert_eq!(taking().handle(1, piece(0, 101)), Err(Violation::Piece { file: 1, offset: 0 }));
    assert_eq!(taking().handle(1, FileFrame::Sum([0; 32])), Err(Violation::Piece { file: 1, offset: 0 }));
    assert_eq!(taking().handle(1, FileFrame::Settle(Outcome::Whole)), Err(Violation::NoFile(1)));
    let mut files = Files::default();
    for file in 1..=MOST_FILES as u64 {
        files.handle(file, offer()).unwrap();
    }
    assert_eq!(files.handle(MOST_FILES as u64 + 1, offer()), Err(Violation::TooManyFiles));
    assert_eq!(
        files.handle(1, piece(0, 1)),
        Err(Violation::Piece { file: 1, offset: 0 }),
        "it was not taken"
    );

    // A side that offers file 1.
    let mut files = Files::default();
    assert_eq!(files.offer(String::new(), 100), Ok(1));
    let want = |from, through| FileFrame::Want { from, through };
    assert_eq!(files.handle(2, want(0, 1)), Err(Violation::NoFile(2)));
    assert_eq!(files.handle(1, want(0, 101)), Err(Violation::Piece { file: 1, offset: 0 }));
    assert_eq!(
        files.handle(1, want(50, 100)),
        Err(Violation::Piece { file: 1, offset: 50 }),
        "it was not sent"
    );
    for _ in 1..MOST_FILES {
        files.offer(String::new(), 1).unwrap();
    }
    assert_eq!(files.offer(String::new(), 1), Err(SendError::TooManyFiles));
}

#[test]
fn a_peer_that_offers_and_withdraws_without_end_and_takes_nothing_fills_no_memory() {
    let mut files = Files::default();
    for file in 1..=1000 {
        files.handle(file, FileFrame::Offer { size: 1, name: String::new() }).unwrap();
        files.handle(file, FileFrame::Withdraw).unwrap();
        files.handle(file, FileFrame::Withdraw).unwrap();
        assert!(files.due.len() <= MOST_FILES, "{}", files.due.len());
    }
}
