//! What must hold for any bytes that a server or a client receives, and for any order of requests.

use std::time::Duration;

use crate::directory::{AttemptLimits, ConnectionId, Directory, Introduction, Limits};
use crate::name::{KEY_BYTES, NAME_BYTES, Name};
use crate::password::record::Record;
use crate::protocol::{
    ClearPassword, Contact, Frame, Request, Secret, decode_greeting, decode_request, decode_said,
    encode_request, encode_said,
};
use kendall_talk::relay::{Limits as RelayLimits, PairId, Pairs};
use kendall_testbed::fuzz::Target;

/// The parsers and state machines of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "chat-frames", seeds: frame_seeds, run: frames },
    Target { name: "chat-names", seeds: name_seeds, run: names },
    Target { name: "chat-directory", seeds: directory_seeds, run: directory },
];

/// Bytes are a message in one way, and a record in one way.
fn frames(input: &[u8]) {
    let _ = decode_greeting(input);
    if let Ok((frame, used)) = decode_request(input) {
        let mut bytes = Vec::new();
        encode_request(&frame, &mut bytes);
        assert_eq!(bytes, input[..used]);
    }
    if let Ok((frame, used)) = decode_said(input) {
        let mut bytes = Vec::new();
        encode_said(&frame, &mut bytes);
        assert_eq!(bytes, input[..used]);
    }
    if let Ok(record) = Record::decode(input) {
        assert_eq!(record.encode(), input);
    }
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let name = || "alice".to_owned();
    let contact = || Contact::unlisted([7; 32]);
    let requests = [
        Request::RegisterStart { name: name(), message: [1; 32] },
        Request::RegisterFinish { record: Box::new([2; 192]) },
        Request::LogInStart { name: name(), message: [3; 96] },
        Request::LogInFinish { message: [4; 64] },
        Request::Resume { token: Secret([5; 32]) },
        Request::WhoIsThere { after: name() },
        Request::Call { name: name(), talk: [7; 16], contact: contact() },
        Request::Accept { call: 1, contact: contact() },
        Request::LogOut,
        Request::LogInPassword { name: name(), password: ClearPassword::new("x").expect("it is short") },
        Request::RegisterScram { name: name(), salt: [1; 16], stored_key: [2; 32], server_key: [3; 32] },
        Request::ScramStart { name: name(), nonce: [4; 18] },
        Request::ScramFinish { proof: [5; 32] },
    ];
    let encoded = |message| {
        let mut bytes = Vec::new();
        encode_request(&Frame { number: 9, message }, &mut bytes);
        bytes
    };
    requests.into_iter().map(encoded).chain([b"KCHAT\x01\0\0".to_vec()]).collect()
}

/// A name has its bounds, and is its own name.
fn names(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(name) = Name::new(text) {
        assert!(name.shown().len() <= NAME_BYTES && name.key().as_str().len() <= KEY_BYTES);
        assert_eq!(Name::new(name.shown()), Ok(name));
    }
}

fn name_seeds() -> Vec<Vec<u8>> {
    ["alice", "Ａlice", "раура", "山田タロ", "p\u{430}ul", "a\u{301}"]
        .map(|name| name.as_bytes().to_vec())
        .into()
}

/// A script of requests, two bytes each: the directory never panics, and its tables keep their bounds.
fn directory(input: &[u8]) {
    let attempts = AttemptLimits { counts: 5, ..AttemptLimits::default() };
    let limits = Limits {
        sessions: 4,
        sessions_of_account: 2,
        log_ins: 2,
        watches: 2,
        calls: 2,
        meetings: 2,
        attempts: Some(attempts),
        ..Limits::default()
    };
    let mut script = Script {
        directory: Directory::new(limits),
        now: Duration::ZERO,
        pairs: Pairs::new(RelayLimits::default()),
        met: Vec::new(),
    };
    for (number, pair) in input.chunks_exact(2).enumerate() {
        let [act, operand] = [pair[0], pair[1]];
        match act % 22 {
            act @ 0..8 => script.happens(act, operand, number),
            20 => script.accepts_over_relay(operand),
            21 => script.is_seen(operand),
            act => script.asks(act, operand),
        }
        let sizes = script.directory.sizes();
        assert!(sizes.sessions <= 4 && sizes.log_ins <= 2 && sizes.counts <= 5 && sizes.meetings <= 2);
        assert!(sizes.watches <= 8 && sizes.calls <= 8 && sizes.connections <= 8);
        script.directory.take_pushes();
    }
}

/// A directory, and what has happened to it.
struct Script {
    directory: Directory,
    now: Duration,
    /// What the meeting point gives names to, and the names that it gave.
    pairs: Pairs,
    met: Vec<PairId>,
}

impl Script {
    /// One of few connections, and one of few names of accounts.
    fn whose(operand: u8) -> (ConnectionId, &'static str) {
        const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];
        (ConnectionId(u64::from(operand >> 2) % 8), NAMES[usize::from(operand % 4)])
    }

    fn contact(operand: u8) -> Contact {
        Contact::unlisted([operand; 32])
    }

    /// What comes to the directory by other ways than a request.
    fn happens(&mut self, act: u8, operand: u8, number: usize) {
        let Self { directory, now, .. } = self;
        let (connection, name) = Self::whose(operand);
        let key = Name::new(name).expect("it is a name");
        match act {
            0 => {
                // A connection is opened once.
                directory.disconnect(*now, connection);
                directory.connect(connection, ([10, 0, 0, operand % 3], 1).into());
            }
            1 => directory.disconnect(*now, connection),
            2 => {
                let _ = directory.begin_log_in(*now, connection, key.key());
            }
            3 => {
                let token = Secret([(number % 256) as u8; 32]);
                let _ = directory.finish_log_in(*now, connection, key, [0; 32], token);
            }
            4 => {
                let _ = directory.begin_registration(*now, connection);
            }
            5 => directory.password_changed(key.key(), connection, [1; 32]),
            6 => directory.account_deleted(key.key(), connection),
            _ => {
                *now += Duration::from_millis(u64::from(operand) * 300);
                directory.advance(*now);
                assert!(directory.next_deadline().is_none_or(|next| next > *now));
            }
        }
    }

    fn asks(&mut self, act: u8, operand: u8) {
        let (connection, name) = Self::whose(operand);
        let name = name.to_owned();
        let (contact, call) = (Self::contact(operand), u64::from(operand >> 2));
        let request = match act {
            8 => Request::Resume { token: Secret([operand; 32]) },
            9 => Request::StayAlive,
            10 => Request::WhoIsThere { after: name },
            11 => Request::Watch { name },
            12 => Request::Unwatch { name },
            13 => Request::WaitForCalls,
            14 => Request::StopWaiting,
            15 => Request::Call { talk: [name.len() as u8; 16], name, contact },
            16 => Request::Accept { call, contact },
            17 => Request::Refuse { call },
            18 => Request::Cancel { call },
            _ => Request::LogOut,
        };
        let _ = self.directory.perform(self.now, connection, request);
    }

    fn accepts_over_relay(&mut self, operand: u8) {
        let Ok(pair) = self.pairs.open(self.now, [[operand; 16]; 2]) else { return };
        self.met.push(pair);
        let introduction = Introduction { pair, tokens: [[operand; 16]; 2] };
        // Calls are numbered from 1 on.
        let call = self.met.len() as u64 % 8;
        let (connection, _) = Self::whose(operand);
        let _ = self.directory.accept(self.now, connection, call, Self::contact(operand), introduction);
    }

    /// A side of a pair is seen: one that there is, or one that there is not.
    fn is_seen(&mut self, operand: u8) {
        if let Some(pair) = self.met.get(usize::from(operand >> 2)) {
            self.directory.seen(*pair, usize::from(operand % 3), ([10, 0, 0, operand], 1).into());
        }
    }
}

fn directory_seeds() -> Vec<Vec<u8>> {
    // Two clients connect and log in, one waits, the other calls, and it is accepted.
    let meet = [0, 0, 2, 0, 3, 0, 0, 5, 2, 5, 3, 5, 13, 5, 15, 1, 20, 5, 21, 0, 21, 1, 21, 2, 7, 255, 19, 0];
    vec![meet.to_vec(), [meet, meet].concat(), vec![7, 255]]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
