//! Little servers that are each limited by one thing, and which the analysis says.
//!
//! This program starts itself again as each of them, so that they are separate processes. The machine may be busy: what is asserted is
//! what limits, never how fast.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use kendall_analysis::generator::GeneratorVerdict;
use kendall_analysis::{AnswersSeen, Bottleneck, LoadSeen, RequestSplit, SplitPlace, bottleneck};
use kendall_evidence::AnswerPauses;
use kendall_probe::{Children, Config, Role, Summary, Target, ThreadState, Watch};
use kendall_record::{Outcome, RequestRow};
use kendall_testbed::Again;

kendall_testbed::main!(
    serve,
    busy_loops_are_limited_by_the_cores_or_by_who_else_has_them,
    a_single_busy_loop_is_limited_by_its_thread,
    threads_that_queue_for_a_mutex_are_limited_by_it,
    writers_that_wait_for_each_write_are_limited_by_the_disk,
    a_server_that_asks_another_one_is_limited_by_it,
    a_server_whose_client_does_not_read_is_limited_by_the_network,
    bytes_that_wait_for_a_delayed_acknowledgement_are_no_fault_of_the_network,
    a_server_that_writes_its_answer_at_once_is_not_held_back,
    a_server_at_rest_has_no_bottleneck,
);

const WATCHED: Duration = Duration::from_millis(1200);
/// The readings of the threads' states that decide; on a slow machine they are rare, so that they cost little.
const ENOUGH_LOOKS: u64 = 4;
/// Sockets are looked at less often than threads.
const ASKED: Duration = Duration::from_millis(2500);

/// Starts this program again as a server, which gets an address or a folder.
fn start(what: &str, with: &str) -> (Again, String) {
    Again::start(&format!("{what}|{with}"))
}

/// What the probe sees of a server, in a time in which it looks often enough.
fn watched(server: &Again) -> Summary {
    let looks = |summary: &Summary| summary.server.as_ref()?.places.as_ref().map(|places| places.looks);
    let mut length = WATCHED;
    loop {
        let summary = watched_for(server, length);
        if looks(&summary).is_none_or(|looks| looks >= ENOUGH_LOOKS) || length > 16 * WATCHED {
            return summary;
        }
        length *= 4;
    }
}

fn watched_for(server: &Again, length: Duration) -> Summary {
    let target = Target { role: Role::Server, pid: server.pid(), children: Children::Watched };
    let watch = Watch::start(&Config::default(), &[target]).unwrap();
    thread::sleep(length);
    watch.end(0).unwrap().summary
}

fn limit(what: &str, with: &str) -> (Bottleneck, Summary) {
    let (server, _) = start(what, with);
    let summary = watched(&server);
    (bottleneck(&summary, None).unwrap(), summary)
}

fn serve(role: &str) {
    let (what, with) = role.split_once('|').unwrap();
    let ready = Again::ready;
    let cores = thread::available_parallelism().unwrap().get();
    match what {
        "cpu" => {
            (1..cores).for_each(|_| drop(thread::spawn(spin)));
            ready("");
            spin()
        }
        "one thread" => {
            ready("");
            spin()
        }
        "lock" => {
            let lock: &Mutex<()> = Box::leak(Box::default());
            (0..6).for_each(|_| drop(thread::spawn(|| hold(lock))));
            ready("");
            hold(lock)
        }
        "disk" => {
            let write = |name: String| {
                let mut file = File::create(name).unwrap();
                loop {
                    file.write_all(&[7; 4096]).unwrap();
                    file.sync_all().unwrap();
                }
            };
            for at in 0..8 {
                let name = format!("{with}/file-{at}");
                thread::spawn(move || write(name));
            }
            ready("");
            rest()
        }
        "back end" => {
            let mut connection = TcpStream::connect(with).unwrap();
            ready("");
            loop {
                connection.write_all(b"?").unwrap();
                connection.read_exact(&mut [0]).unwrap();
            }
        }
        "network" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            ready(&listener.local_addr().unwrap().to_string());
            let (mut connection, _) = listener.accept().unwrap();
            while connection.write_all(&[7; 1 << 16]).is_ok() {}
            rest()
        }
        "answers" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            ready(&listener.local_addr().unwrap().to_string());
            for connection in listener.incoming() {
                let (connection, apart) = (connection.unwrap(), with == "apart");
                thread::spawn(move || answer(connection, apart));
            }
        }
        _ => {
            ready("");
            rest()
        }
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
const BODY: &[u8] = b"hello";

/// Answers each request of a connection, of one byte, with a head and a body: apart, or in one call on a socket without delay.
fn answer(mut connection: TcpStream, apart: bool) {
    connection.set_nodelay(!apart).unwrap();
    while connection.read_exact(&mut [0]).is_ok() {
        let sent = if apart {
            connection.write_all(HEAD).and_then(|()| connection.write_all(BODY))
        } else {
            connection.write_all(&[HEAD, BODY].concat())
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Asks one request after the other, some on each connection, and notes them.
fn ask(address: &str, until: Instant) -> Vec<RequestRow> {
    let began = Instant::now();
    let now_ns = || began.elapsed().as_nanos() as i64;
    let mut rows = Vec::new();
    while Instant::now() < until {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_nodelay(true).unwrap();
        let port = connection.local_addr().unwrap().port();
        for _ in 0..16 {
            let sent = now_ns();
            connection.write_all(b"?").unwrap();
            connection.read_exact(&mut [0; HEAD.len()]).unwrap();
            let first_byte = Some(now_ns());
            connection.read_exact(&mut [0; BODY.len()]).unwrap();
            let row = RequestRow::due(rows.len() as u64, sent).sent_at(sent, port);
            rows.push(RequestRow { first_byte, ..row.ended(Outcome::Answered, now_ns()) });
        }
    }
    rows
}

/// What is said of a server that answers, and of where the time of its requests went.
fn asked(how: &str) -> (Bottleneck, AnswerPauses, RequestSplit) {
    let (server, address) = start("answers", how);
    let until = Instant::now() + ASKED;
    let asking = thread::spawn(move || ask(&address, until));
    let summary = watched_for(&server, ASKED);
    let rows = asking.join().unwrap();
    let responses_s = rows.iter().map(|row| row.response_ns().unwrap() as f64 / 1e9);
    let (request_s, pauses) = (responses_s.sum::<f64>() / rows.len() as f64, AnswerPauses::of(&rows));
    let answers = AnswersSeen {
        response_s: Some(request_s),
        request_s: Some(request_s),
        throughput_per_s: Some(rows.len() as f64 / ASKED.as_secs_f64()),
        pauses: Some(pauses),
    };
    let verdict = GeneratorVerdict::default();
    let load = LoadSeen { answers, send_lag_p99_s: 0.0, verdict: &verdict };
    let split = RequestSplit::of(&summary, &answers).expect("requests were answered");
    (bottleneck(&summary, Some(&load)).unwrap(), pauses, split)
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Does its work while it holds a lock that all others need as well.
fn hold(lock: &Mutex<()>) -> ! {
    loop {
        let _held = lock.lock().unwrap();
        thread::sleep(Duration::from_millis(2));
    }
}

fn rest() -> ! {
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

/// A host that takes the machine's cores away disturbs.
fn unless_disturbed(server: &str, is_so: impl Fn(&Bottleneck, &Summary) -> bool) {
    kendall_testbed::unless_disturbed(|| {
        let (found, summary) = limit(server, "");
        if is_so(&found, &summary) { Ok(()) } else { Err(format!("{found:?} of {summary:#?}")) }
    });
}

fn busy_loops_are_limited_by_the_cores_or_by_who_else_has_them() {
    unless_disturbed("cpu", |found, summary| {
        // On a machine on which other programs take more than the server, it is they who limit.
        let limits = matches!(found, Bottleneck::Cpu { .. } | Bottleneck::RunQueue { .. });
        let server = summary.server.as_ref().expect("it was watched");
        limits && server.cpu_cores + server.waiting_threads > 0.8 * summary.cores
    });
}

fn a_single_busy_loop_is_limited_by_its_thread() {
    unless_disturbed("one thread", |found, summary| {
        let limits = summary.cores <= 1.0 || matches!(found, Bottleneck::OneThread { .. });
        // The time on cores and the time ready without one make up all time.
        let server = summary.server.as_ref().expect("it was watched");
        limits && (0.85..1.1).contains(&(server.cpu_cores + server.waiting_threads))
    });
}

fn threads_that_queue_for_a_mutex_are_limited_by_it() {
    let (found, summary) = limit("lock", "");
    let Some(places) = summary.server.as_ref().unwrap().places.as_ref() else {
        return kendall_testbed::left_out("this kernel does not show where threads wait");
    };
    assert!(matches!(found, Bottleneck::Lock { .. }), "{found} {places:#?}");
    // One holds it, and the others wait.
    assert!(places.lock.unwrap().waiters > 3.0, "{places:#?}");
}

fn writers_that_wait_for_each_write_are_limited_by_the_disk() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (found, summary) = limit("disk", folder.path().to_str().unwrap());
    let server = summary.server.as_ref().unwrap();
    let Some(places) = server.places.as_ref() else {
        return kendall_testbed::left_out("this kernel does not show where threads wait");
    };
    if server.disk_per_s.is_none_or(|(_, written)| written == 0.0) {
        return kendall_testbed::left_out(&format!("{} is on no disk", folder.path().display()));
    }
    // If other programs use the cores, the writers may wait mostly for these; and some samples of a fast disk find all writers between
    // two writes.
    let most = match &found {
        Bottleneck::None { busiest, .. } => busiest == "the disk",
        found => matches!(found, Bottleneck::Disk { .. } | Bottleneck::RunQueue { .. }),
    };
    assert!(most, "{found} {places:#?}");
    assert!(places.at(ThreadState::Disk).1 > 0.0, "{places:#?}");
}

fn a_server_that_asks_another_one_is_limited_by_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        while connection.read_exact(&mut [0]).is_ok() {
            thread::sleep(Duration::from_millis(40));
            if connection.write_all(b"!").is_err() {
                return;
            }
        }
    });
    let (found, summary) = limit("back end", &address);
    assert!(matches!(found, Bottleneck::BackEnd { .. }), "{found} {summary:#?}");
}

fn a_server_whose_client_does_not_read_is_limited_by_the_network() {
    let (server, address) = start("network", "");
    let _client = TcpStream::connect(address).unwrap();
    thread::sleep(Duration::from_millis(100));
    let summary = watched(&server);
    let found = bottleneck(&summary, None).unwrap();
    assert!(matches!(found, Bottleneck::Network { .. }), "{found} {summary:#?}");
}

fn bytes_that_wait_for_a_delayed_acknowledgement_are_no_fault_of_the_network() {
    kendall_testbed::unless_disturbed(|| {
        let (found, pauses, split) = asked("apart");
        let said = format!("{found} {pauses:?} {split:?}");
        let is_named =
            matches!(found, Bottleneck::HeldBack { .. }) && found.to_string().contains("TCP_NODELAY");
        // Of some twenty looks about half or more saw it.
        let largest = split.parts.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let is_most = largest.is_some_and(|part| part.at == SplitPlace::HeldBack && part.share > 0.25);
        let is_so = is_named && is_most && pauses.are_of_delayed_acknowledgements();
        if is_so { Ok(()) } else { Err(said) }
    });
}

fn a_server_that_writes_its_answer_at_once_is_not_held_back() {
    let (found, pauses, split) = asked("at once");
    assert!(!matches!(found, Bottleneck::HeldBack { .. } | Bottleneck::Network { .. }), "{found}");
    assert!(!pauses.are_of_delayed_acknowledgements(), "{pauses:?}");
    assert!(split.parts.iter().all(|part| part.at != SplitPlace::HeldBack), "{split:?}");
}

fn a_server_at_rest_has_no_bottleneck() {
    let (found, summary) = limit("rest", "");
    let is_idle = match &found {
        Bottleneck::Machine { .. } => {
            found.to_string().starts_with("The server is idle on a fully loaded machine")
        }
        found => matches!(found, Bottleneck::None { .. }),
    };
    assert!(is_idle, "{found}");
    assert!(summary.server.unwrap().cpu_cores < 0.2);
}
