//! Little servers that are each limited by one thing, and which the analysis says.
//!
//! This program starts itself again as each of them, so that they are processes of their own. The machine may be busy: what
//! is asserted is what limits, never how fast.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use kendall_analysis::{Bottleneck, bottleneck};
use kendall_probe::{Children, Config, Place, Role, Summary, Target, Watch};
use kendall_testbed::Again;

kendall_testbed::main!(
    serve,
    busy_loops_are_limited_by_the_cores_or_by_who_else_has_them,
    a_single_busy_loop_is_limited_by_its_thread,
    threads_that_queue_for_a_mutex_are_limited_by_it,
    writers_that_wait_for_each_write_are_limited_by_the_disk,
    a_server_that_asks_another_one_is_limited_by_it,
    a_server_whose_client_does_not_read_is_limited_by_the_network,
    a_server_at_rest_has_no_bottleneck,
);

const WATCHED: Duration = Duration::from_millis(1200);

/// Starts this program again as a server, which gets an address or a folder.
fn start(what: &str, with: &str) -> (Again, String) {
    Again::start(&format!("{what}|{with}"))
}

/// What the probe sees of a server.
fn watched(server: &Again) -> Summary {
    let target = Target { role: Role::Server, pid: server.pid(), children: Children::Watched };
    let watch = Watch::start(&Config::default(), &[target]).unwrap();
    thread::sleep(WATCHED);
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
        _ => {
            ready("");
            rest()
        }
    }
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
    // Where other programs have the cores, it may be for these that the writers wait most; and of a few looks at a fast disk,
    // some find all of them between two writes.
    let most = match &found {
        Bottleneck::None { busiest, .. } => busiest == "the disk",
        found => matches!(found, Bottleneck::Disk { .. } | Bottleneck::RunQueue { .. }),
    };
    assert!(most, "{found} {places:#?}");
    assert!(places.at(Place::Disk).1 > 1.0, "{places:#?}");
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

fn a_server_at_rest_has_no_bottleneck() {
    let (found, summary) = limit("rest", "");
    assert!(matches!(found, Bottleneck::None { .. }), "{found}");
    assert!(summary.server.unwrap().cpu_cores < 0.2);
}
