//! What must hold for any bytes that a peer or a relay receives.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use kendall_testbed::fuzz::Target;

use crate::protocol::{FileFrame, Frame, VERSION};
use crate::relay::{DatagramAction, Limits, Pairs, Token, announced, announcement};
use crate::{Conversation, Outcome, TalkId};

/// The parsers and state machines of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "talk-frames", seeds: frame_seeds, run: frames },
    Target { name: "talk-conversation", seeds: frame_seeds, run: conversation },
    Target { name: "talk-relay", seeds: relay_seeds, run: relay },
];

const TALK: TalkId = TalkId([9; 16]);

/// Bytes are a frame in one way, and none that is incomplete is taken for one.
fn frames(input: &[u8]) {
    let Ok(Some((frame, used))) = Frame::decode(input) else { return };
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    assert_eq!(bytes, input[..used]);
    assert_eq!(Frame::decode(&bytes[..used - 1]), Ok(None));
}

/// A peer may send any frames, over connections that break: the side that gets them never panics, answers with frames that can be
/// encoded, and has a bound for what it keeps.
fn conversation(mut input: &[u8]) {
    let mut own = Conversation::new(TALK);
    for text in ["one", "two", "three"] {
        own.send(0, text.to_owned()).expect("the first messages have room");
    }
    own.connected();
    let mut last_heard = 0;
    while let Ok(Some((frame, used))) = Frame::decode(input) {
        input = &input[used..];
        let number = if let Frame::Message { number, .. } = &frame { Some(*number) } else { None };
        match own.handle(frame) {
            Ok(Some(crate::Event::Message { .. })) => {
                let number = number.expect("a message comes from a frame of one");
                assert_eq!(number, last_heard + 1, "in order, none lost or doubled");
                last_heard = number;
            }
            Ok(_) => {}
            Err(_) => {
                own.disconnected();
                own.connected();
            }
        }
        // As many answers as the stream may take at a time.
        let answers = std::iter::from_fn(|| own.outgoing()).take(100);
        let mut bytes = Vec::new();
        for answer in answers {
            bytes.clear();
            answer.encode(&mut bytes);
            assert_eq!(Frame::decode(&bytes), Ok(Some((answer, bytes.len()))));
        }
        assert!(own.waiting() <= 3);
    }
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let file = |frame| Frame::File { file: 1, frame };
    let hello = |received| Frame::Hello { version: VERSION, talk: TALK, received };
    let message = |number| Frame::Message { number, sent_ms: 5, text: "hello ✓".to_owned() };
    let bytes = |frames: &[Frame]| {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        bytes
    };
    vec![
        bytes(&[hello(0), message(1), Frame::Received(2), Frame::Read(2), Frame::Typing, Frame::Bye]),
        bytes(&[hello(3), message(1), hello(3), message(1), message(2)]),
        bytes(&[
            hello(0),
            file(FileFrame::Offer { size: 3, name: "plan.txt".to_owned() }),
            file(FileFrame::Piece { offset: 0, bytes: vec![1, 2, 3] }),
            file(FileFrame::Sum([4; 32])),
            file(FileFrame::Withdraw),
        ]),
        bytes(&[
            hello(0),
            file(FileFrame::Want { from: 0, through: 3 }),
            file(FileFrame::Settle(Outcome::Whole)),
            file(FileFrame::Settle(Outcome::Refused)),
        ]),
    ]
}

/// A script of what happens at a relay, three bytes each, or of bytes as they come: a packet goes to the other peer of its
/// sender's pair only, and an announcement is read in one way.
fn relay(input: &[u8]) {
    if let Some(token) = announced(input) {
        assert_eq!(announcement(&token), input);
    }
    let limits = Limits { pairs: 3, bytes_per_s: 1e3, burst: 2e3, idle: Duration::from_secs(5) };
    let mut pairs = Pairs::new(limits);
    let mut now = Duration::ZERO;
    let mut open = Vec::new();
    let mut tokens: HashMap<Token, Token> = HashMap::new();
    let mut owner: HashMap<SocketAddr, Token> = HashMap::new();
    for act in input.chunks_exact(3) {
        let [act, operand, port] = [act[0], act[1], act[2]];
        let from = SocketAddr::from(([192, 0, 2, 1], u16::from(port % 8) + 1));
        let token = [operand % 8; 16];
        match act % 5 {
            0 => {
                // Tokens are drawn, so no two pairs have the same.
                let number = open.len() as u8;
                let drawn = [[number * 2; 16], [number * 2 + 1; 16]];
                if number < 4
                    && let Ok(id) = pairs.open(now, drawn)
                {
                    open.push(id);
                    tokens.extend([(drawn[0], drawn[1]), (drawn[1], drawn[0])]);
                }
            }
            1 => {
                if let Some(id) = open.get(usize::from(operand)) {
                    pairs.close(*id);
                }
            }
            2 => {
                if let DatagramAction::Seen { side, .. } = pairs.handle(now, from, &announcement(&token)) {
                    assert_eq!(side, usize::from(token[0] % 2));
                    owner.retain(|_, held| *held != token);
                    owner.insert(from, token);
                }
            }
            3 => {
                now += Duration::from_millis(u64::from(operand) * 20);
                pairs.expire(now);
            }
            _ => {
                let datagram = vec![operand; usize::from(operand) * 6];
                if let DatagramAction::Forward(to) = pairs.handle(now, from, &datagram) {
                    assert_eq!(owner[&to], tokens[&owner[&from]], "it stays in its pair");
                }
            }
        }
        assert!(pairs.len() <= 3);
    }
}

fn relay_seeds() -> Vec<Vec<u8>> {
    // A pair is opened, both peers announce themselves, and packets go both ways until it is closed.
    let talk = [0, 0, 0, 2, 0, 1, 2, 1, 2, 4, 9, 1, 4, 9, 2, 3, 255, 0, 4, 9, 1, 1, 0, 0, 4, 9, 1];
    vec![talk.to_vec(), [talk, talk].concat(), announcement(&[7; 16]).to_vec()]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
