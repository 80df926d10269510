//! `kendall load --probe`: what a server of this machine used while it was loaded, beside what the kernel says it used.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::thread;

use crate::served::{Served, kendall};
use kendall_testbed::written_line;
use serde_json::Value;

fn load(server: &Served, more: &[&str]) -> Output {
    let url = format!("reverse://{}?difficulty=200000", server.address);
    let fixed = ["--rate", "40", "--duration", "1500ms", "--seed", "3", "--quiet"];
    kendall().arg("load").arg(url).args(fixed).args(more).output().unwrap()
}

/// The CPU time that the kernel says it has used, in s (proc(5), fields 14 and 15 of its stat).
fn cpu_s(server: &Served) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.child.id())).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_server_is_found_by_its_port_and_what_it_used_is_what_the_kernel_says() {
    let (server, folder) = (Served::new(&["reverse", "--workers", "1"]), tempfile::tempdir().unwrap());
    let record = folder.path().join("record");
    let before_s = cpu_s(&server);
    let found = json(&load(&server, &["--json", "--profile", "--record", record.to_str().unwrap()]));
    let used_s = cpu_s(&server) - before_s;
    let resources = &found["resources"];
    assert_eq!(resources["process"], server.child.id());
    assert!(found["again"].as_str().unwrap().contains(" --profile --seed 3"), "{}", found["again"]);
    let summary = &resources["summary"];
    let seen_s = summary["server"]["cpu_cores"].as_f64().unwrap() * summary["length_s"].as_f64().unwrap();
    // The kernel counts in ticks of 10 ms, and a last search may end after the watch.
    assert!((seen_s - used_s).abs() < 0.15 * used_s + 0.05, "{seen_s} s seen, {used_s} s used");
    assert!(resources["limit"]["limit"].is_string(), "{}", resources["limit"]);
    let profile = &resources["profile"];
    assert!(profile["folded"].as_array().is_some_and(|stacks| !stacks.is_empty()), "{profile}");

    let again = kendall().args(["report", "--json"]).arg(&record).output().unwrap();
    assert_eq!(json(&again), found);
    let page = fs::read_to_string(record.join("report.html")).unwrap();
    for part in
        ["The server meanwhile", "Functions of the server", "Threads of the server", "Cores used over time"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(fs::metadata(record.join("profile.folded")).unwrap().len() > 0);
    assert!(fs::metadata(record.join("resources.parquet")).unwrap().len() > 0);
    let shown = kendall().arg("report").arg(&record).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for part in
        [&format!("Process {} while", server.child.id()), "run queue", "with calls", "Each reading took"]
    {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
}

/// A master that only watches over its workers, as servers of others are.
#[test]
fn of_a_master_and_its_workers_all_are_watched() {
    if !kendall_testbed::has_peer("nginx", "-v") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    // Workers need not be who the master is.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let configuration = format!(
        "daemon off; worker_processes 2; pid {path}/pid; error_log stderr error;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c;\n\
           uwsgi_temp_path {path}/d; scgi_temp_path {path}/e; gzip on; gzip_comp_level 9; gzip_types *;\n\
           server {{ listen 127.0.0.1:PORT reuseport; location / {{ root {path}; }} }} }}\n"
    );
    let page: String =
        (0..20_000).map(|line| format!("{} bytes to compress\n", line * 7919 % 10_007)).collect();
    fs::write(folder.path().join("page"), page).unwrap();
    fs::write(folder.path().join("PORT.conf"), configuration).unwrap();
    let command = format!(
        "sed s/PORT/{{port}}/ {path}/PORT.conf > {path}/conf; exec nginx -p {path} -e stderr -c {path}/conf"
    );
    let server = Served::new(&["http", "--command", &command]);
    // nginx opens its port before it writes this file.
    let master: u64 = written_line(&folder.path().join("pid")).parse().unwrap();
    let url = format!("http://{}/page", server.address);
    let fixed =
        ["--rate", "60", "--duration", "1500ms", "--header", "accept-encoding: gzip", "--probe", "--json"];
    let found = json(&kendall().arg("load").arg(url).args(fixed).output().unwrap());
    assert_eq!(found["resources"]["process"], master);
    let server = &found["resources"]["summary"]["server"];
    assert!(server["cpu_cores"].as_f64().unwrap() > 0.01, "the workers are seen at work: {server}");
    assert!(server["threads"].as_array().unwrap().len() >= 2, "{server}");
}

#[test]
fn a_process_can_be_named_and_nothing_is_kept_without_a_record() {
    let server = Served::new(&["reverse", "--workers", "1"]);
    let pid = server.child.id();
    let found = json(&load(&server, &["--json", &format!("--probe={pid}")]));
    assert_eq!(found["resources"]["process"], pid);
    assert!(found["resources"]["profile"].is_null());
    assert!(found["again"].as_str().unwrap().contains(&format!(" --probe={pid} ")));
    assert!(json(&load(&server, &["--json"]))["resources"].is_null(), "unasked, nothing is watched");
}

#[test]
fn who_cannot_be_watched_is_said_before_any_load() {
    let refused = |arguments: &[&str]| {
        let output = kendall().arg("load").args(arguments).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    // An address for documentation (RFC 5737), which no machine has.
    let far = refused(&["http://192.0.2.1/", "--probe"]);
    assert!(far.contains("192.0.2.1 is not an address of this machine"), "{far}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = refused(&[&format!("http://{free}/"), "--probe"]);
    assert!(closed.contains(&format!("nothing listens at {free}")), "{closed}");
    let word = refused(&[&format!("http://{free}/"), "--probe=nginx"]);
    assert!(word.contains("the number of a process, or auto"), "{word}");
}

/// A server of this process, that writes head and body of each answer apart on a socket as it comes, or in one call without delay.
fn small_server(apart: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = move |mut connection: TcpStream| -> std::io::Result<()> {
        let (head, body) = (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b"hello");
        connection.set_nodelay(!apart)?;
        let mut read = Vec::new();
        let mut byte = [0];
        while connection.read_exact(&mut byte).is_ok() {
            read.extend(byte);
            if read.ends_with(b"\r\n\r\n") && apart {
                connection.write_all(head)?;
                connection.write_all(body)?;
            } else if read.ends_with(b"\r\n\r\n") {
                connection.write_all(&[&head[..], body].concat())?;
            }
        }
        Ok(())
    };
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || answer(connection));
        }
    });
    address
}

/// On loopback, the network limits nothing.
#[test]
fn nagle_against_delayed_acknowledgements_is_named_and_a_server_that_does_it_right_is_not() {
    // The server is this process, and the work of other tests in it would count as the server's.
    const ALONE: &str = "KENDALL_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let test = std::thread::current().name().unwrap().to_owned();
        let mut alone = Command::new(std::env::current_exe().unwrap());
        assert!(alone.args(["--exact", &test, "--nocapture"]).env(ALONE, "1").status().unwrap().success());
        return;
    }
    let load = |address: SocketAddr, more: &[&str]| {
        let fixed = ["--users", "2", "--quiet", "--seed", "3", "--allow", "undecided"];
        let output = kendall().arg("load").arg(format!("http://{address}/")).args(fixed).args(more).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let (apart, right) = (small_server(true), small_server(false));
    kendall_testbed::unless_disturbed(|| {
        let said = load(apart, &["--duration", "2500ms"]);
        let is_named = said.contains("of the answers paused for") && said.contains("TCP_NODELAY");
        if is_named { Ok(()) } else { Err(said) }
    });
    // On a busy machine the probe reads seldom, so it needs longer.
    let mut length_s = 2.5;
    kendall_testbed::unless_disturbed(|| {
        let said = load(apart, &["--probe", "--duration", &format!("{length_s}s")]);
        length_s *= 2.0;
        let limit = said.contains("Nagle's algorithm with delayed acknowledgements is the bottleneck")
            && said.contains("TCP_NODELAY");
        let split = said.contains("One request's time in the server") && said.contains("held back (Nagle)");
        if limit && split && !said.contains("The network is the bottleneck") { Ok(()) } else { Err(said) }
    });
    for more in [&["--duration", "2500ms"][..], &["--duration", "2500ms", "--probe"]] {
        kendall_testbed::unless_disturbed(|| {
            let said = load(right, more);
            let is_blamed = said.contains("Nagle") || said.contains("The network is the bottleneck");
            if is_blamed { Err(said) } else { Ok(()) }
        });
    }
}
