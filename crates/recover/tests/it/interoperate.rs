//! The server with a client written from the description of the protocol, and with recorded bytes.

use std::net::Shutdown;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use crate::asking::*;
use kendall_record::stamps;
use kendall_recover::{Algorithm, Ask, Config, Dialect, Hash, RecoverOptions, RequestError, request};
use kendall_testbed::wait_until;

const PLAIN: &[u8] = b"hello world\n";

#[test]
fn a_file_comes_back_decrypted_whatever_its_size() {
    let server = run(options());
    for length in [0, 1, 15, 16, 20_480, 51_200, 1_000_003] {
        let plain = file(length);
        assert!(ask(&server, "test", &encrypt(TEST_KEY, &plain)) == Some(plain), "{length}");
    }
    assert_eq!(came_to(&server, "recovered"), 7);
}

/// The bytes of `testdata/course-request.hex`, and those that the course's server answers.
#[test]
fn recorded_traffic_of_the_course_is_answered_to_the_byte() {
    let server = run(options());
    let mut peer = Peer::connect(server.address);
    peer.send(&hex(include_str!("../testdata/course-request.hex")));
    assert_eq!(peer.rest(), hex(include_str!("../testdata/course-answer.hex")));
}

#[test]
fn it_is_answered_however_its_bytes_arrive() {
    let server = run(options());
    let (plain, encrypted) = (file(5000), encrypt(TEST_KEY, &file(5000)));
    let head = head(sha1("test"), 4, encrypted.len() as i64);
    let mut peer = Peer::connect(server.address);
    peer.0.set_nodelay(true).unwrap();
    write_as_the_course(&mut peer.0, &head, &encrypted).unwrap();
    assert_eq!(peer.answer().unwrap(), plain);
    let mut peer = Peer::connect(server.address);
    peer.send(&[&head[..], &encrypted].concat());
    peer.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(peer.answer().unwrap(), plain, "its sending half is closed, and it still waits");
    let mut peer = Peer::connect(server.address);
    peer.send(&[&head[..], &encrypted, b"and more than was announced"].concat());
    assert_eq!(peer.answer().unwrap(), plain);
}

#[test]
fn in_the_dialect_of_the_study_the_number_comes_back() {
    let server = run(RecoverOptions { dialect: Dialect::WithId, ..options() });
    let encrypted = encrypt(ABC_KEY, PLAIN);
    let mut peer = Peer::connect(server.address);
    peer.send(&[0, 0, 1, 7]);
    peer.send(&head(sha1("abc"), 3, encrypted.len() as i64));
    peer.send(&encrypted);
    assert_eq!(peer.rest(), [&[0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 12], PLAIN].concat());
}

/// A failure of the protocol: the server closes the connection without a byte.
#[test]
fn a_failed_request_ends_with_its_connection() {
    let server = run(RecoverOptions { most_file_bytes: 1 << 20, ..options() });
    let encrypted = encrypt(TEST_KEY, PLAIN);
    assert_eq!(ask(&server, "NO!", &encrypted), None, "not of the alphabet, and no word");
    let mut peer = Peer::connect(server.address);
    let refused = |characters: i32, file_bytes: i64, body: &[u8]| {
        let mut peer = Peer::connect(server.address);
        peer.send(&head(sha1("zzzzzqqzzz"), characters, file_bytes));
        let _ = std::io::Write::write_all(&mut peer.0, body);
        assert_eq!(peer.rest(), b"");
    };
    refused(12, 16, &encrypted);
    refused(0, 16, &encrypted);
    refused(5, 15, &encrypted[..15]);
    refused(5, 0, b"");
    refused(-1, 16, b"");
    refused(5, -16, b"");
    refused(5, i64::MAX, b"");
    refused(5, (1 << 20) + 16, b"");
    let other = encrypt(ABC_KEY, &file(100));
    peer.send(&head(sha1("test"), 4, other.len() as i64));
    peer.send(&other);
    assert_eq!(peer.rest(), b"", "encrypted under another password");
    let counted =
        ["not-found", "beyond-bound", "impossible-length", "wrong-length", "too-large", "wrong-padding"];
    assert_eq!(counted.map(|outcome| came_to(&server, outcome)), [1, 1, 1, 2, 2, 1]);
    assert_eq!(server.closed("malformed"), 2);
    assert_eq!(ask(&server, "test", &encrypted).unwrap(), PLAIN, "and others are served");
}

#[test]
fn requests_for_the_same_password_each_get_their_own_file() {
    let server = run(options());
    let asked: Vec<_> = (0..8)
        .map(|i| {
            let (address, plain) = (server.address, file(40_000 + i));
            thread::spawn(move || {
                let mut peer = Peer::connect(address);
                let encrypted = encrypt(TEST_KEY, &plain);
                peer.send(&head(sha1("test"), 4, encrypted.len() as i64));
                peer.send(&encrypted);
                assert!(peer.answer() == Some(plain));
            })
        })
        .collect();
    asked.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(came_to(&server, "recovered"), 8);
}

/// Each request counts, whether it joins the search of an equal one, or comes after it while the only worker is busy.
#[test]
fn requests_without_a_password_are_counted_and_the_later_ones_need_no_worker() {
    let options = options();
    let service = Config { workers: NonZeroUsize::MIN, ..options.service.clone() };
    let server = run(RecoverOptions { service, ..options });
    let ask = |digest: u8, characters| {
        let mut peer = Peer::connect(server.address);
        peer.send(&head([digest; 20], characters, 16));
        peer
    };
    let busy = || {
        let peer = ask(9, 7);
        wait_until("the worker is busy", || server.levels().1 == 1);
        peer
    };
    let first = busy();
    let equal: Vec<Peer> = (0..3).map(|_| ask(8, 3)).collect();
    wait_until("they wait", || server.levels().0 == 3);
    first.reset();
    equal.into_iter().for_each(|mut peer| assert_eq!(peer.rest(), b""));
    assert_eq!(came_to(&server, "not-found"), 3);
    let second = busy();
    assert_eq!(ask(8, 3).rest(), b"");
    assert_eq!(came_to(&server, "not-found"), 4);
    second.reset();
}

/// With one worker: it serves other clients while the file of one arrives slowly, and after one has disconnected.
#[test]
fn slow_files_and_clients_that_leave_hold_no_worker() {
    let options = options();
    let service =
        Config { workers: NonZeroUsize::MIN, patience: Duration::from_secs(3), ..options.service.clone() };
    let server = run(RecoverOptions { service, ..options });
    let encrypted = encrypt(TEST_KEY, PLAIN);
    let mut slow = Peer::connect(server.address);
    slow.send(&head(sha1("test"), 4, 16));
    assert_eq!(ask(&server, "test", &encrypted).unwrap(), PLAIN);
    slow.send(&encrypted);
    assert_eq!(slow.answer().unwrap(), PLAIN);
    // Seven letters take the portable engine minutes.
    let mut leaving = Peer::connect(server.address);
    leaving.send(&head([7; 20], 7, 16));
    wait_until("its search runs", || server.levels().1 == 1);
    leaving.reset();
    wait_until("the worker is free", || server.levels().1 == 0);
    let mut truncated = Peer::connect(server.address);
    truncated.send(&head([8; 20], 7, 1600));
    truncated.send(&encrypted);
    wait_until("its search runs", || server.levels().1 == 1);
    truncated.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(truncated.rest(), b"");
    let mut stalled = Peer::connect(server.address);
    stalled.send(&head([9; 20], 7, 1600));
    stalled.send(&encrypted);
    assert_eq!(stalled.rest(), b"", "disconnected after the server's patience");
    wait_until("the worker is free again", || server.levels().1 == 0);
    assert_eq!(came_to(&server, "truncated"), 3);
    assert_eq!(ask(&server, "test", &encrypted).unwrap(), PLAIN);
}

#[test]
fn the_request_client_and_the_extension_of_other_digests() {
    let plain = file(700_000);
    let encrypted = encrypt(ABC_KEY, &plain);
    for dialect in Dialect::ALL {
        let server = run(RecoverOptions { dialect, ..options() });
        for algorithm in Algorithm::ALL {
            let ask = Ask { hash: algorithm.hash(b"abc"), lengths: 1..=3, dialect };
            let (mut back, mut stages) = (Vec::new(), 0);
            let length = encrypted.len() as u64;
            let got =
                request(server.address, &ask, (encrypted.as_slice(), length), &mut back, |_| stages += 1);
            assert_eq!(got.unwrap(), 700_000, "{algorithm:?}");
            assert!(back == plain && stages >= 6);
        }
        let ask = Ask { hash: Hash::Md5([3; 16]), lengths: 1..=2, dialect };
        let length = encrypted.len() as u64;
        let nothing = request(server.address, &ask, (encrypted.as_slice(), length), Vec::new(), |_| {});
        assert!(matches!(nothing, Err(RequestError::NoAnswer)), "{nothing:?}");
        let odd = request(server.address, &ask, (encrypted.as_slice(), 17), Vec::new(), |_| {});
        assert!(matches!(odd, Err(RequestError::Length(17))));
    }
}

#[test]
fn trace_and_stamps_separate_search_and_key_of_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    let trace = Some(path.clone());
    let stamps_path = folder.path().join("stamps");
    let service = Config { stamps: Some(stamps_path.clone()), ..options().service };
    let server = run(RecoverOptions { service, dialect: Dialect::WithId, trace, ..options() });
    let encrypted = encrypt(XQZ_KEY, PLAIN);
    for id in [5, 6] {
        let mut peer = Peer::connect(server.address);
        peer.send(&[&[0, 0, 0, id], &head(sha1("xqz"), 3, 16)[..], &encrypted].concat());
        assert!(!peer.rest().is_empty());
    }
    let mut damaged = Peer::connect(server.address);
    damaged.send(&[&[0, 0, 0, 7], &head(sha1("xqz"), 3, 16)[..], &[0; 16]].concat());
    assert_eq!(damaged.rest(), b"", "no file, so no line in the trace");
    drop(server);
    let text = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(text.lines().next(), Some(kendall_recover::trace::COLUMNS));
    assert_eq!(rows.len(), 3, "{text}");
    assert_eq!((&rows[1][1..3], rows[1][5]), (&["5", "brute-force"][..], "16"));
    let costs: Vec<u64> = rows[1][3..5].iter().map(|ns| ns.parse().unwrap()).collect();
    assert!(costs.iter().all(|ns| *ns > 0), "{text}");
    assert_eq!(rows[2][1..], ["6", "seen", "0", "0", "16"]);
    // A stamp is written after the answer was sent, and the second request may complete that first.
    let mut stamps = stamps::read(&stamps_path).unwrap();
    stamps.sort_by_key(|stamp| stamp.queued);
    let fixed: Vec<Option<i64>> = stamps.iter().map(|stamp| stamp.fixed).collect();
    assert_eq!(fixed, [Some(costs[1] as i64), None, None], "the later ones needed no worker");

    let nowhere = RecoverOptions { trace: Some("/nowhere/trace.csv".into()), ..options() };
    let error = kendall_recover::bind(nowhere).map(drop).unwrap_err().to_string();
    assert!(error.contains("/nowhere/trace.csv") && error.contains("--trace"), "{error}");
}
