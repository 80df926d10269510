//! `kendall link run`: real programs over an emulated link, as root and as an ordinary user, each where the kernel lets
//! them. Times are compared with those of a link without delay, measured beside.

mod server_url;

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use kendall_archive::series::Series;
use kendall_testbed::{left_out, missing, unless_disturbed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes, so that a test that hangs fails instead.
const LIMIT: Duration = Duration::from_secs(60);

/// The user who runs kendall.
#[derive(Clone, Copy, Debug, PartialEq)]
enum User {
    /// The user who runs the tests.
    Own,
    /// An ordinary user, which root can become.
    Nobody,
}

impl User {
    fn run(self, words: &[&str]) -> Command {
        let become_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let before: &[&str] = if self == Self::Nobody { &become_nobody } else { &[] };
        let all = [before, words].concat();
        let mut command = Command::new(all[0]);
        command.args(&all[1..]);
        command
    }

    fn kendall(self) -> Command {
        self.run(&[env!("CARGO_BIN_EXE_kendall")])
    }

    /// `kendall link run` with these options.
    fn link(self, options: &[&str], command: &[&str]) -> Command {
        let mut kendall = self.kendall();
        kendall.args(["link", "run", "--seed", "7"]).args(options).arg("--").args(command);
        kendall
    }
}

/// The users who can emulate a link here: those that get namespaces from `unshare`, and that root can become. Where it does, kendall
/// must emulate a link, too.
fn users() -> &'static [User] {
    static USERS: OnceLock<Vec<User>> = OnceLock::new();
    USERS.get_or_init(|| {
        let can = |user: &User| {
            let unshare = ["unshare", "--user", "--map-root-user", "--net", "true"];
            let probe = user.run(&unshare).output();
            if !probe.as_ref().is_ok_and(|output| output.status.success()) {
                left_out(&format!("no namespaces for {user:?}: {probe:?}"));
                return false;
            }
            // A checkout in a private folder, for example.
            if !user.kendall().arg("--version").output().is_ok_and(|output| output.status.success()) {
                left_out(&format!("{user:?} may not run kendall where it was built"));
                return false;
            }
            succeeded(user.link(&["--quiet"], &["true"]));
            true
        };
        let users: Vec<User> = [User::Own, User::Nobody].into_iter().filter(can).collect();
        if users.is_empty() {
            missing("a user who may make network namespaces");
        }
        users
    })
}

/// A folder in which every user may write.
fn folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn succeeded(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn has_ping() -> bool {
    kendall_testbed::has_peer("ping", "-V")
}

/// The shortest of ten pings, in ms.
fn ping_ms(user: User, options: &[&str]) -> f64 {
    let output = succeeded(user.link(options, &["ping", "-c", "10", "-i", "0.02", "-q", "10.0.0.2"]));
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers = text.lines().find_map(|line| line.split_once(" = ")).unwrap_or_else(|| panic!("{text}")).1;
    numbers.split('/').next().unwrap().parse().unwrap()
}

/// Whether anybody may make TUN devices, or only the owner of the device file.
fn whoever_may_make_tun() -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata("/dev/net/tun").is_ok_and(|device| device.permissions().mode() & 0o006 == 0o006)
}

fn record(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("link.json")).unwrap()).unwrap()
}

#[test]
fn a_ping_takes_the_delay_there_and_back_over_one_link_and_over_two() {
    if !has_ping() {
        return;
    }
    for &user in users() {
        for (options, delay_ms) in [
            (&["--delay", "20ms"][..], 40.0),
            (&["--hop", "delay=3ms", "--hop", "delay=5ms rate=50mbit / delay=9ms"], 20.0),
            (&["--delay", "20ms", "--back-end", "tun"], 40.0),
        ] {
            if options.contains(&"tun") && user == User::Nobody && !whoever_may_make_tun() {
                left_out(&format!("only the owner of /dev/net/tun may open it, and {user:?} is not"));
                continue;
            }
            unless_disturbed(|| {
                let excess_ms = ping_ms(user, options) - ping_ms(user, &[]) - delay_ms;
                // What the machine adds varies by some tenths of a millisecond; the shortest of ten by less.
                let is_right = (-0.5..2.0).contains(&excess_ms);
                is_right.then_some(()).ok_or_else(|| format!("{user:?} {options:?}: {excess_ms} ms too long"))
            });
        }
    }
}

#[test]
fn what_is_lost_is_what_does_not_arrive() {
    if !has_ping() {
        return;
    }
    for &user in users() {
        let folder = folder();
        let kept = folder.path().join("kept");
        let options = ["--loss", "10%", "--record", kept.to_str().unwrap()];
        let output = user.link(&options, &["ping", "-c", "300", "-i", "0.002", "-W", "1", "-q", "10.0.0.2"]);
        let text = String::from_utf8({ output }.output().unwrap().stdout).unwrap();
        let received: u64 =
            text.split(", ").find_map(|part| part.strip_suffix(" received")).unwrap().parse().unwrap();
        let kept = record(&kept);
        let count = |way: &str, name: &str| kept["outcome"][way]["hops"][0][name].as_u64().unwrap();
        assert_eq!(count("up", "offered"), 300);
        assert_eq!(count("down", "offered"), 300 - count("up", "dropped_lost"));
        // On a busy machine the last answers come after ping has ended.
        let arrived = count("down", "offered") - count("down", "dropped_lost");
        assert!((arrived - 3..=arrived).contains(&received), "{received} of {arrived}");
        // Binomial (300, 0.1): outside of this once in 10,000 seeds; the seed is fixed.
        assert!((12..=52).contains(&count("up", "dropped_lost")), "{kept}");
    }
}

/// A server outside of the link that takes the given number of bytes from its only client, closes, and says how many came, and in what
/// time the second half of them did: by then TCP has found out the rate.
fn sink(wanted: usize) -> (u16, std::thread::JoinHandle<(usize, Duration)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let taking = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let (mut bytes, mut buffer, mut half) = (0, vec![0; 1 << 14], None);
        loop {
            let length = match stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
            bytes += length;
            if bytes >= wanted / 2 {
                half.get_or_insert_with(Instant::now);
            }
            if length == 0 || bytes >= wanted {
                return (bytes, half.map_or(Duration::ZERO, |half| half.elapsed()));
            }
        }
    });
    (port, taking)
}

#[test]
fn tcp_fills_the_rate_and_no_more_and_the_log_accounts_for_every_packet() {
    const BYTES: usize = 2_000_000;
    for &user in users() {
        let folder = folder();
        let kept = folder.path().join("kept");
        let (port, taking) = sink(BYTES);
        // The link goes with its command, which therefore waits until all has come.
        let script =
            format!("exec 3<>/dev/tcp/$KENDALL_SERVER/{port} && head -c {BYTES} /dev/zero >&3 && cat <&3");
        let port = port.to_string();
        let options = ["--rate", "10mbit", "--queue", "50k", "--forward", &port, "--record"];
        let options = [&options[..], &[kept.to_str().unwrap(), "--congestion", "reno"]].concat();
        succeeded(user.link(&options, &["bash", "-c", &script]));
        let (bytes, took) = taking.join().unwrap();
        assert_eq!(bytes, BYTES);
        // Of 1514 bytes on the link 1448 are the program's.
        let goodput = bytes as f64 / 2.0 * 8.0 / took.as_secs_f64() / (10e6 * 1448.0 / 1514.0);
        // An emulator that others keep from the processors says so itself, and holds TCP up.
        let late_ns = record(&kept)["outcome"]["up"]["late"]["p99_ns"].as_u64().unwrap();
        let low = if late_ns < 2_000_000 { 0.7 } else { 0.0 };
        assert!((low..1.05).contains(&goodput), "{user:?}: {goodput} of the rate");
        let counts = record(&kept)["outcome"]["up"]["hops"][0].clone();
        let count = |name: &str| counts[name].as_u64().unwrap();
        let dropped = count("dropped_overflow") + count("dropped_aqm") + count("dropped_lost");
        assert_eq!(count("offered"), count("delivered") + dropped + count("inside"), "{counts}");
        let log = Series::read(&kept.join("link.parquet")).unwrap();
        let up: Vec<bool> = log.label("direction").map(|direction| direction == "up").collect();
        let sum = |name: &str| {
            let of_up = log.values(name).iter().zip(&up).filter(|(_, up)| **up);
            of_up.filter_map(|(value, _)| *value).sum::<f64>() as u64
        };
        assert_eq!(sum("offered_packets"), count("offered"));
        assert_eq!(sum("delivered_bytes"), count("delivered_bytes"));
        assert!(log.label("flow").any(|flow| flow.starts_with("tcp 10.0.0.1:")));
        // No queue of 50 kB at 10 Mbit/s makes anyone wait for longer than 40 ms.
        let waits = log.values("queue_delay_max_s").iter().flatten().copied();
        assert!((0.02..=0.0405).contains(&waits.fold(0.0, f64::max)));
    }
}

/// Processes whose network namespace is the given one.
fn within(namespace: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    processes
        .filter(|process| fs::read_link(process.join("ns/net")).is_ok_and(|one| one == namespace))
        .count()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "waited in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}

/// A kendall whose command runs on, in the background too, and the namespace in which it does.
fn running(user: User) -> (Child, PathBuf) {
    let folder = folder();
    let says = folder.path().join("namespace");
    let script = format!(
        "readlink /proc/self/ns/net > {0}.new; mv {0}.new {0}; sleep 600 & sleep 600",
        says.display()
    );
    let mut kendall = user.link(&["--delay", "1ms"], &["sh", "-c", &script]);
    let kendall = kendall.stderr(Stdio::null()).spawn().unwrap();
    wait_until("the command runs", || says.exists());
    let namespace = PathBuf::from(fs::read_to_string(&says).unwrap().trim());
    assert_ne!(namespace, fs::read_link("/proc/self/ns/net").unwrap());
    wait_until("the shell and what it started run", || within(&namespace) >= 3);
    (kendall, namespace)
}

/// The process that emulates the link of a kendall.
fn emulator(kendall: &Child) -> Pid {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", kendall.id())).unwrap();
    let is_emulator = |child: &&str| {
        fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.contains("emulate"))
    };
    let child = children.split_whitespace().find(is_emulator).unwrap();
    Pid::from_raw(child.parse().unwrap()).unwrap()
}

#[test]
fn nothing_is_left_when_kendall_is_killed() {
    for &user in users() {
        let (mut kendall, namespace) = running(user);
        kendall.kill().unwrap();
        kendall.wait().unwrap();
        wait_until("all that ran in the namespace is gone", || within(&namespace) == 0);
    }
}

#[test]
fn nothing_is_left_after_the_next_start_when_the_emulator_is_killed_with_it() {
    for &user in users() {
        let (mut kendall, namespace) = running(user);
        // Neither may see the other go.
        let emulator = emulator(&kendall);
        kill_process(emulator, Signal::STOP).unwrap();
        kendall.kill().unwrap();
        kill_process(emulator, Signal::KILL).unwrap();
        kendall.wait().unwrap();
        assert!(within(&namespace) > 0, "its command runs on");
        let next_start = || user.link(&["--quiet"], &["true"]).status().unwrap().success();
        wait_until("the next start has ended it", || next_start() && within(&namespace) == 0);
    }
}

#[test]
fn a_server_runs_at_the_other_end_and_the_exit_status_is_the_commands() {
    for &user in users() {
        let server = format!("exec '{}' serve reverse --listen 10.0.0.2:5003", env!("CARGO_BIN_EXE_kendall"));
        let ask = "exec 3<>/dev/tcp/$KENDALL_SERVER/5003 && exit 7";
        let output = user.link(&["--quiet", "--server", &server], &["bash", "-c", ask]).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
        let output = user.link(&["--server", "exit 3"], &["true"]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(words.contains("ended before it listened") && words.contains("exit 3"), "{words}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    for (options, words) in [
        (vec!["--delay", "20"], "\"20\" is not a time"),
        (vec!["--rate", "10mbps"], "not a rate"),
        (vec!["--delay", "1ms", "--jitter", "5ms"], "no packet arrives before it was sent"),
        (vec!["--hop", "delay=1ms", "--loss", "1%"], "give each --hop all its settings"),
        (vec!["--hop", "dealy=1ms"], "dealy"),
        (vec!["--forward", "http"], "80=127.0.0.1:8080"),
        (vec!["--back-end", "pigeon"], "veth"),
    ] {
        let output = User::Own.link(&options, &["true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{options:?}: {said}");
    }
    if users().contains(&User::Own) {
        for (options, command, words) in [
            (vec!["--congestion", "pigeon"], "true", "pigeon"),
            (vec![], "/no/such/program", "cannot run /no/such/program"),
        ] {
            let output = User::Own.link(&options, &[command]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && said.contains(words), "{options:?}: {said}");
        }
    }
}

const EXPERIMENT: &str = r#"
name = "far"
repeats = 1
seed = 5
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "reverse"
workers = 1

[workload]
difficulty = 1000

[link]
delay = ["5ms", "25ms"]
measure = "off"

[load]
arrivals = "constant"
rate = 50
requests = 30
"#;

#[test]
fn an_experiment_crosses_its_link_and_its_record_says_so() {
    for &user in users() {
        unless_disturbed(|| crosses_its_link(user));
    }
}

/// Runs the experiment, and requires that each answer crosses the link once each way, after a connection that does so as well.
fn crosses_its_link(user: User) -> Result<(), String> {
    let folder = folder();
    fs::write(folder.path().join("far.toml"), EXPERIMENT).unwrap();
    let mut run = user.kendall();
    run.current_dir(folder.path()).args(["run", "far.toml", "--json"]);
    succeeded(run);
    let run = fs::read_dir(folder.path().join("results/far")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read_to_string(run.join("manifest.json")).unwrap().contains("user-space over"));
    let mut responses = Vec::new();
    for delay in ["delay=5ms", "delay=25ms"] {
        let mut trials = fs::read_dir(run.join("trials")).unwrap().map(|entry| entry.unwrap().path());
        let trial = trials.find(|path| path.to_string_lossy().ends_with(delay)).unwrap();
        let rows = kendall_archive::read_trial(&trial).unwrap();
        assert_eq!(rows.len(), 30);
        // The server's stamps find the client's rows, over the link as well.
        assert!(rows.iter().all(|row| row.completed.is_some() && row.queued.is_some()));
        let mut times: Vec<i64> = rows.iter().filter_map(|row| row.response_ns()).collect();
        times.sort_unstable();
        // The shortest: others may keep an emulator from the processors at times.
        responses.push(times[0] as f64 / 1e6);
        let answer = fs::read_to_string(trial.join("answer.json")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["link"]["up"][0], delay);
        let log = Series::read(&trial.join("link.parquet")).unwrap();
        assert!(log.time_ns.iter().all(|&ns| (-1_000_000_000..20_000_000_000).contains(&ns)));
    }
    let round_trips = (responses[1] - responses[0]) / 40.0;
    let nearest = round_trips.round();
    let is_right = (1.0..=2.0).contains(&nearest) && (round_trips - nearest).abs() < 0.1;
    if is_right { Ok(()) } else { Err(format!("{responses:?}")) }
}

/// kendall where the kernel makes no network namespace for anybody, root or not; `None` where this cannot be arranged.
fn without_namespaces() -> Option<Command> {
    let none = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
    let arranged = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "sh", "-c", none, "sh", command]);
        unshare
    };
    let tried = arranged("true").output();
    if tried.as_ref().is_ok_and(|output| output.status.success()) {
        return Some(arranged(env!("CARGO_BIN_EXE_kendall")));
    }
    left_out(&format!("namespaces cannot be forbidden here: {tried:?}"));
    None
}

#[test]
fn an_experiment_crosses_a_relay_where_that_is_asked_for_and_where_nothing_else_works() {
    let forced = ("back-end = \"relay\"", Some(User::Own.kendall()));
    for (line, kendall) in [forced, ("", without_namespaces())] {
        let Some(mut kendall) = kendall else { continue };
        let folder = folder();
        let text = EXPERIMENT.replace("measure = \"off\"", line).replace("[\"5ms\", \"25ms\"]", "\"15ms\"");
        fs::write(folder.path().join("far.toml"), text).unwrap();
        let output = {
            kendall.current_dir(folder.path()).args(["run", "far.toml"]);
            succeeded(kendall)
        };
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("relay of TCP") && said.contains("handshakes are not delayed"), "{said}");
        let run = fs::read_dir(folder.path().join("results/far")).unwrap().next().unwrap().unwrap().path();
        let manifest = fs::read_to_string(run.join("manifest.json")).unwrap();
        assert!(manifest.contains("relay of TCP (handshakes are not delayed"), "{manifest}");
        let trial = fs::read_dir(run.join("trials")).unwrap().next().unwrap().unwrap().path();
        let rows = kendall_archive::read_trial(&trial).unwrap();
        assert_eq!(rows.len(), 30);
        // The server's stamps find the client's rows: it sees the relay at the client's port.
        assert!(rows.iter().all(|row| row.completed.is_some() && row.queued.is_some()), "{rows:?}");
        // The way there and the way back are between the instants of the client and of the server.
        let crossed = |row: &kendall_record::RequestRow| {
            let (there, back) = (row.queued? - row.sent?, row.completed? - row.finished?);
            Some(there.min(back))
        };
        assert!(rows.iter().filter_map(crossed).all(|ns| ns >= 15_000_000));
        let answer: Value =
            serde_json::from_str(&fs::read_to_string(trial.join("answer.json")).unwrap()).unwrap();
        let link = &answer["link"];
        assert_eq!((&link["emulated"], &link["up"][0]), (&"relay of TCP".into(), &"delay=15ms".into()));
        assert!(link["differs"].as_str().unwrap().contains("handshakes"));
        let hop = &link["outcome"]["up"]["hops"][0];
        assert!(hop["delivered"].as_u64().unwrap() >= 30 && hop["offered"] == hop["delivered"], "{hop}");
        let delay =
            link["measured"]["rows"].as_array().unwrap().iter().find(|row| row["quantity"] == "delay");
        assert!(delay.unwrap()["measured"]["value"].as_f64().unwrap() >= 0.0149, "{delay:?}");
    }
}

#[test]
fn what_a_relay_cannot_do_is_refused_before_the_first_trial() {
    for (line, why) in [
        ("aqm = \"codel\"", "a relay of TCP cannot do CoDel"),
        ("congestion = \"reno\"", "a relay cannot choose the congestion control"),
    ] {
        let folder = folder();
        let text = EXPERIMENT.replace("measure = \"off\"", &format!("back-end = \"relay\"\n{line}"));
        fs::write(folder.path().join("far.toml"), text).unwrap();
        let output =
            User::Own.kendall().current_dir(folder.path()).args(["run", "far.toml"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{line}: {said}");
    }
}

#[test]
fn an_experiment_with_an_impossible_link_is_refused_at_its_line() {
    let folder = folder();
    for (from, to, words) in [
        ("measure = \"off\"", "jitter = \"8ms\"", "jitter: a jitter of 8ms is more than the delay of 5ms"),
        ("measure = \"off\"", "rate = [\"1mbit\", \"2mbit\"]", "unvaried"),
        ("measure = \"off\"", "back-end = [\"veth\", \"tun\"]", "back-end cannot vary"),
        ("measure = \"off\"", "hops = \"delay=1ms\"", "cannot be set together with hops"),
    ] {
        let text = EXPERIMENT.replace(from, to);
        let text = if words == "unvaried" { text.replace("rate = 50", "rate = [50, 60]") } else { text };
        let words = if words == "unvaried" { "rate varies in [link] and in [load]" } else { words };
        fs::write(folder.path().join("far.toml"), text).unwrap();
        let output =
            User::Own.kendall().current_dir(folder.path()).args(["run", "far.toml"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words) && said.contains("line"), "{to}: {said}");
        assert!(!folder.path().join("results").exists(), "nothing is run");
    }
}
