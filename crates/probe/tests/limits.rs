//! Little servers that are each limited by one thing, and the probe's word on which.
//!
//! This test starts itself again as each of them, so that they are processes of their own. The machine may be busy: what
//! is asserted is what limits, never how fast.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kendall_archive::series::Series;
use kendall_probe::{Bottleneck, Children, Config, Place, Role, Summary, Target, Watch, Watched, bottleneck};
use kendall_record::clock::now_ns;

/// Names the server that a child is to be, and gives it an address or a folder.
const SERVER: &str = "KENDALL_PROBE_TEST_SERVER";
const WATCHED: Duration = Duration::from_millis(1200);

/// One server at a time: two that compute would be limited by each other.
static ALONE: Mutex<()> = Mutex::new(());

/// A child, alone while it is there; it is killed when it is let go of.
struct Server(Child, #[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

impl Server {
    /// Starts this test again as a server, and waits until it works.
    fn start(what: &str, with: &str) -> (Self, String) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let child = Command::new(env::current_exe().unwrap())
            .args(["be_a_server_if_asked_to", "--exact", "--nocapture"])
            .env(SERVER, format!("{what}|{with}"))
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let said = lines.map_while(Some).find_map(|line| Some(line.split_once("ready")?.1.trim().to_owned()));
        (Self(child, alone), said.expect("the server says when it is ready"))
    }

    fn watched(&self) -> Summary {
        let target = Target { role: Role::Server, pid: self.0.id(), children: Children::Watched };
        let config = Config::default();
        let watch = Watch::start(&config, &[target]).unwrap();
        thread::sleep(WATCHED);
        watch.end(0).unwrap().summary
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn limit(what: &str, with: &str) -> (Bottleneck, Summary) {
    let (server, _) = Server::start(what, with);
    let summary = server.watched();
    (bottleneck(&summary, None).unwrap(), summary)
}

#[test]
fn be_a_server_if_asked_to() {
    let Ok(asked) = env::var(SERVER) else { return };
    let (what, with) = asked.split_once('|').unwrap();
    let ready = |said: &str| println!("\nready {said}");
    let cores = thread::available_parallelism().unwrap().get();
    match what {
        "cpu" => {
            (1..cores).for_each(|_| drop(thread::spawn(spin)));
            ready("");
            spin()
        }
        "two functions" => {
            ready("");
            loop {
                std::hint::black_box(long(std::hint::black_box(3_000_000)));
                std::hint::black_box(short(std::hint::black_box(1_000_000)));
            }
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

/// Three times the work of [`short`].
#[inline(never)]
fn long(steps: u64) -> u64 {
    (0..steps).fold(1, |state, step| std::hint::black_box(state ^ step).rotate_left(7))
}

#[inline(never)]
fn short(steps: u64) -> u64 {
    (0..steps).fold(2, |state, step| std::hint::black_box(state ^ step).rotate_left(9))
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

/// A host that takes the machine's cores away is seen by no thread: of several looks one is undisturbed.
fn in_one_look_of_five(server: &str, is_so: impl Fn(&Bottleneck, &Summary) -> bool) {
    let mut looks = Vec::new();
    let mut looking = (0..5).map(|_| limit(server, ""));
    let seen = looking.any(|(found, summary)| {
        let is_so = is_so(&found, &summary);
        looks.push((found, summary));
        is_so
    });
    assert!(seen, "{looks:#?}");
}

#[test]
fn busy_loops_are_limited_by_the_cores_or_by_who_else_has_them() {
    in_one_look_of_five("cpu", |found, summary| {
        // On a machine on which other programs take more than the server, it is they who limit.
        let limits = matches!(found, Bottleneck::Cpu { .. } | Bottleneck::RunQueue { .. });
        let server = summary.server.as_ref().expect("it was watched");
        limits && server.cpu_cores + server.waiting_threads > 0.8 * summary.cores
    });
}

#[test]
fn a_single_busy_loop_is_limited_by_its_thread() {
    in_one_look_of_five("one thread", |found, summary| {
        let limits = summary.cores <= 1.0 || matches!(found, Bottleneck::OneThread { .. });
        // The time on cores and the time ready without one make up all time.
        let server = summary.server.as_ref().expect("it was watched");
        limits && (0.85..1.1).contains(&(server.cpu_cores + server.waiting_threads))
    });
}

#[test]
fn threads_that_queue_for_a_mutex_are_limited_by_it() {
    let (found, summary) = limit("lock", "");
    let Some(places) = summary.server.as_ref().unwrap().places.as_ref() else {
        return eprintln!("skipped: this kernel does not tell where threads wait");
    };
    assert!(matches!(found, Bottleneck::Lock { .. }), "{found} {places:#?}");
    // One holds it, and the others wait.
    assert!(places.lock.unwrap().waiters > 3.0, "{places:#?}");
}

#[test]
fn writers_that_wait_for_each_write_are_limited_by_the_disk() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (found, summary) = limit("disk", folder.path().to_str().unwrap());
    let server = summary.server.as_ref().unwrap();
    let Some(places) = server.places.as_ref() else {
        return eprintln!("skipped: this kernel does not tell where threads wait");
    };
    if server.disk_per_s.is_none_or(|(_, written)| written == 0.0) {
        return eprintln!("skipped: {} is on no disk", folder.path().display());
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

#[test]
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

#[test]
fn a_server_whose_client_does_not_read_is_limited_by_the_network() {
    let (server, address) = Server::start("network", "");
    let _client = TcpStream::connect(address).unwrap();
    thread::sleep(Duration::from_millis(100));
    let summary = server.watched();
    let found = bottleneck(&summary, None).unwrap();
    assert!(matches!(found, Bottleneck::Network { .. }), "{found} {summary:#?}");
}

#[test]
fn a_server_at_rest_has_no_bottleneck() {
    let (found, summary) = limit("rest", "");
    assert!(matches!(found, Bottleneck::None { .. }), "{found}");
    assert!(summary.server.unwrap().cpu_cores < 0.2);
}

#[test]
fn readings_are_written_relative_to_the_trial_and_agree_with_the_summary() {
    let (server, _) = Server::start("one thread", "");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resources.parquet");
    let target = Target { role: Role::Server, pid: server.0.id(), children: Children::Watched };
    let config = Config { record: Some(&path), ..Config::default() };
    let began_ns = now_ns();
    let watch = Watch::start(&config, &[target]).unwrap();
    thread::sleep(WATCHED);
    let summary = watch.end(began_ns).unwrap().summary;
    let series = Series::read(&path).unwrap();
    assert!(series.time_ns.windows(2).all(|pair| pair[0] <= pair[1]));
    let spinning = &summary.server.as_ref().unwrap().threads[0].thread;
    let rows = series.label("thread").zip(series.values("cpu_s")).zip(&series.time_ns);
    let rows: Vec<(f64, i64)> = rows
        .filter(|((thread, _), _)| thread == spinning)
        .filter_map(|((_, cpu_s), at_ns)| Some(((*cpu_s)?, *at_ns)))
        .collect();
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    assert!(first.1 >= 0 && last.1 <= now_ns() - began_ns);
    let cores = (last.0 - first.0) / summary.length_s;
    let told = summary.server.as_ref().unwrap().threads[0].cpu_cores;
    assert!((cores / told - 1.0).abs() < 0.02, "{cores} {told}");
    // A line over time is the same CPU time, in bins.
    let line = summary.timeline.lines.iter().find(|line| &line.thread == spinning).unwrap();
    let binned_s = line.cpu_cores.iter().sum::<f64>() * summary.timeline.bin_s;
    assert!((binned_s / (last.0 - first.0) - 1.0).abs() < 0.02, "{binned_s}");
}

#[test]
fn a_profile_tells_which_function_uses_the_cpu() {
    let looks: Vec<Option<f64>> = (0..5).map(|_| work_of_long_to_short()).collect();
    if looks.contains(&None) {
        return eprintln!("skipped: this kernel allows no profile");
    }
    // One has three times the work of the other. Of 100 samples or more, a ratio beyond 2 to 5 is less than one chance in
    // 100; but a host that takes the core away during one of the two counts as that one's work.
    assert!(looks.iter().flatten().any(|ratio| (2.0..5.0).contains(ratio)), "{looks:?}");
}

/// The samples in [`long`] for each in [`short`], of a server that calls both in turn; none where nothing can be sampled.
fn work_of_long_to_short() -> Option<f64> {
    let (server, _) = Server::start("two functions", "");
    let target = Target { role: Role::Server, pid: server.0.id(), children: Children::Watched };
    let watch = Watch::start(&Config { profile_hz: Some(499), ..Config::default() }, &[target]).unwrap();
    thread::sleep(WATCHED);
    let Watched { summary, profile } = watch.end(0).unwrap();
    let profile = profile.unwrap();
    if profile.samples == 0 {
        eprintln!("{}", profile.notes.join(" "));
        return None;
    }
    let within = |function: &str| {
        let name = format!("limits::{function}");
        let stacks = profile.folded.iter().filter(|(stack, _)| stack.split(';').any(|frame| frame == name));
        stacks.map(|(_, count)| *count as f64).sum::<f64>()
    };
    // The stack goes from the thread's start through this test to the function.
    let whole = |stack: &str| stack.contains("be_a_server_if_asked_to") && stack.contains(";limits::long");
    assert!(profile.folded.iter().any(|(stack, _)| whole(stack)), "{}", profile.to_text());
    // 499 samples a second of CPU time: at half as many, a third of the machine's time would be missing.
    let expected = 499.0 * summary.server.unwrap().cpu_cores * summary.length_s;
    assert!(profile.samples as f64 > 0.5 * expected, "{} of {expected}", profile.samples);
    Some(within("long") / within("short"))
}

#[test]
fn watching_costs_little_and_says_how_much() {
    let (server, _) = Server::start("rest", "");
    let cost = server.watched().cost;
    let asked = WATCHED.as_secs_f64() / cost.every_s;
    let came = (cost.samples + cost.skipped) as f64;
    // Where a reading is dear, there are fewer; and where the machine is busy, some come too late.
    assert!((0.2..1.5).contains(&(came / asked)), "{cost:?}");
    // A hundredth of a core is kept by reading less often, whatever a reading costs here; the opening comes on top.
    assert!(cost.cpu_s > 0.0 && cost.cpu_s < 0.03 * WATCHED.as_secs_f64(), "{cost:?}");
}

#[test]
fn a_process_that_is_not_there_is_an_error_that_names_it() {
    let target = Target { role: Role::Server, pid: u32::MAX, children: Children::Left };
    let config = Config::default();
    let message = Watch::start(&config, &[target]).unwrap_err().to_string();
    assert!(message.contains("4294967295"), "{message}");
}
