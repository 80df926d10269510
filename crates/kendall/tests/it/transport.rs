//! `kendall transport`: real flows over an emulated link, compared with each other, never with a clock on the wall.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kendall_testbed::has_peer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Two runs at a time, which mostly wait for their slow links: more would take each other's processors.
fn one_of_two() -> MutexGuard<'static, ()> {
    static PLACES: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let place = NEXT.fetch_add(1, Ordering::Relaxed) % PLACES.len();
    PLACES[place].lock().unwrap_or_else(PoisonError::into_inner)
}

fn kendall(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).args(arguments).output().unwrap()
}

/// Whether links can be emulated here.
fn has_links() -> bool {
    let tried = kendall(&["link", "run", "--quiet", "true"]);
    let refusal = String::from_utf8_lossy(&tried.stderr);
    if !tried.status.success() {
        kendall_testbed::missing(&format!("a way to emulate links ({refusal})"));
    }
    tried.status.success()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(arguments: &[&str]) -> Value {
    let output = kendall(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn number(value: &Value, place: &str) -> f64 {
    value.pointer(place).and_then(Value::as_f64).unwrap_or_else(|| panic!("{place} is missing in {value:#}"))
}

#[test]
fn flows_share_the_link_and_fill_its_queue() {
    let _place = one_of_two();
    if !has_links() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let link = "delay=5ms rate=20mbit queue=64k";
    let options = [
        "--duration",
        "3s",
        "--warmup",
        "2s",
        "--json",
        "--link",
        link,
        "--record",
        record.to_str().unwrap(),
    ];
    let seen = json(&[&["transport", "flows", "2xtcp,quic"], &options[..]].concat());
    let all = number(&seen, "/goodput_bytes_per_s") * 8.0 / 20e6;
    assert!((0.6..0.97).contains(&all), "of the link: {all}");
    let shares: f64 = (0..3).map(|flow| number(&seen, &format!("/flows/{flow}/share"))).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    assert!((1.0 / 3.0..=1.0).contains(&number(&seen, "/jain")));
    // A full segment of TCP is 1,448 bytes of data in 1,514 on the link; acknowledgements come on top.
    let wire = number(&seen, "/wire_bytes_per_byte");
    assert!((1.02..1.4).contains(&wire), "{wire}");
    assert!(number(&seen, "/loaded/p50_s") > 1.3 * number(&seen, "/idle/p50_s"), "{seen:#}");
    let [idle, loaded] =
        ["idle", "loaded"].map(|when| number(&seen, &format!("/{when}/round_trips_per_min")));
    assert!(idle > loaded && loaded > 0.0, "{seen:#}");
    assert!(number(&seen, "/hops/0/queue_delay_max_s") > 0.0);
    for place in ["/sender_cpu_s_per_gb", "/receiver_cpu_s_per_gb"] {
        assert!(number(&seen, place) > 0.0, "{place}");
    }
    let near: Value = serde_json::from_slice(&fs::read(record.join("near.json")).unwrap()).unwrap();
    assert!(near["ticks"].as_array().unwrap().len() > 50);
    assert!(record.join("link/link.parquet").exists());
    let page = fs::read_to_string(record.join("report.html")).unwrap();
    assert!(page.contains("Goodput along time") && page.contains("Queue delay along time"));
    for head in ["round trips per minute", "bytes on the wire per byte", "processor per GB"] {
        assert!(page.contains(head), "{head}");
    }
}

#[test]
fn a_link_in_a_row_has_its_queue_at_its_bottleneck() {
    let _place = one_of_two();
    if !has_links() {
        return;
    }
    // From server to client the hop beside the client comes last.
    let link = "delay=2ms rate=10mbit queue=64k > delay=2ms rate=100mbit queue=64k";
    let seen =
        json(&["transport", "flows", "tcp", "--duration", "2s", "--warmup", "2s", "--json", "--link", link]);
    let delay = |hop: usize| number(&seen, &format!("/hops/{hop}/queue_delay_mean_s"));
    assert!(delay(1) > 5.0 * delay(0), "{seen:#}");
}

#[test]
fn a_flow_that_never_begins_has_failed() {
    let _place = one_of_two();
    if !has_links() {
        return;
    }
    let times = ["--duration", "1s", "--warmup", "0s", "--json"];
    // Connecting takes two seconds.
    let options = [&["transport", "flows", "tcp", "--link", "delay=1s"][..], &times].concat();
    let output = kendall(&options);
    assert!(!output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("no byte arrived in its 1.0 s"), "{}", text(&output.stdout));
}

#[test]
fn handshakes_take_the_round_trips_of_their_protocol() {
    let _place = one_of_two();
    if !has_links() {
        return;
    }
    let seen = json(&["transport", "handshake", "tcp,tls,quic,curve", "--count", "5", "--json"]);
    let p50 = |row: usize| number(&seen, &format!("/{row}/p50_s"));
    for (row, round_trips) in [(0, 2.0), (1, 3.0), (2, 2.0), (3, 2.0)] {
        let ratio = p50(row) / p50(0) * 2.0;
        assert!((round_trips - 0.45..round_trips + 0.9).contains(&ratio), "{}: {ratio}", seen[row]["source"]);
        assert_eq!(number(&seen, &format!("/{row}/connections")), 5.0);
    }
    let bytes = |row: usize| {
        number(&seen, &format!("/{row}/bytes_to_server")) + number(&seen, &format!("/{row}/bytes_to_client"))
    };
    // A certificate is larger than nothing, and QUIC's first packets are filled up to 1,200 bytes.
    assert!(bytes(1) > 2.0 * bytes(0) && bytes(2) > bytes(1), "{seen:#}");
}

#[test]
fn a_client_that_moves_keeps_its_flow_of_curvecp_and_loses_that_of_tcp() {
    let _place = one_of_two();
    if !has_links() {
        return;
    }
    let options = [
        "--duration",
        "8s",
        "--warmup",
        "1s",
        "--move-after",
        "4s",
        "--json",
        "--link",
        "delay=2ms rate=10mbit",
    ];
    let seen = json(&[&["transport", "flows", "curve,quic,tcp"], &options[..]].concat());
    let pause = |flow: usize| number(&seen, &format!("/flows/{flow}/longest_pause_s"));
    assert!(pause(2) > 3.0, "TCP belongs to an address: {seen:#}");
    for flow in 0..2 {
        assert!(pause(flow) < pause(2) / 2.0, "{seen:#}");
    }
}

#[test]
fn programs_that_others_wrote_send_as_flows() {
    let _place = one_of_two();
    if !has_peer("/usr/sbin/sshd", "-V") || !has_peer("curvecpserver", "-h") || !has_links() {
        return;
    }
    let options =
        ["--duration", "3s", "--warmup", "3s", "--json", "--link", "delay=2ms rate=50mbit queue=64k"];
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let kept = ["--record", record.to_str().unwrap()];
    let seen = json(&[&["transport", "flows", "ssh,scp,nacl"], &options[..], &kept].concat());
    for flow in 0..3 {
        assert!(number(&seen, &format!("/flows/{flow}/goodput_bytes_per_s")) > 10_000.0, "{seen:#}");
    }
    for end in ["sender", "receiver"] {
        assert!(number(&seen, &format!("/{end}_cpu_s_per_gb")) > 0.0, "of the programs, too: {seen:#}");
    }
    let found = Command::new("grep").args(["-rlE", "PRIVATE KEY"]).arg(&record).output().unwrap();
    assert_eq!(text(&found.stdout), "", "a record holds no keys");
}

#[test]
fn tcp_goes_through_tunnels_as_flows_and_no_key_stays() {
    let _place = one_of_two();
    let peers = [("wg", "--version"), ("wireguard-go", "--version"), ("ip", "-V")];
    if !peers.into_iter().all(|(program, with)| has_peer(program, with)) || !has_links() {
        return;
    }
    let link = ["--link", "delay=2ms rate=20mbit queue=64k", "--json"];
    let times = ["--duration", "3s", "--warmup", "2s"];
    let flows = json(&[&["transport", "flows", "tunnel,up:wireguard"][..], &link, &times].concat());
    for flow in 0..2 {
        let mbit = number(&flows, &format!("/flows/{flow}/goodput_bytes_per_s")) * 8.0 / 1e6;
        assert!((1.0..20.0).contains(&mbit), "{flows:#}");
    }
    // Each goes one way, so both queues fill.
    assert!(number(&flows, "/hops/0/queue_delay_max_s") > 0.0, "{flows:#}");
    assert!(number(&flows, "/hops_up/0/queue_delay_max_s") > 0.0, "{flows:#}");
}

/// At a loss of 5 %, CUBIC gets 2 of 100 Mbit/s, and BBR, which may be the machine's own, nearly all.
#[test]
fn tcp_within_a_tunnel_has_the_congestion_control_that_was_asked_for() {
    let _place = one_of_two();
    let peers = [("wg", "--version"), ("wireguard-go", "--version"), ("ip", "-V")];
    if !peers.into_iter().all(|(program, with)| has_peer(program, with)) || !has_links() {
        return;
    }
    let link = ["--link", "delay=10ms rate=100mbit loss=5%", "--json", "--duration", "3s", "--warmup", "2s"];
    let flows = json(&[&["transport", "flows", "wireguard", "--congestion", "cubic"][..], &link].concat());
    assert!(number(&flows, "/flows/0/goodput_bytes_per_s") * 8.0 < 20e6, "{flows:#}");
}

#[test]
fn a_tunnel_is_set_up_anew_for_each_handshake() {
    let _place = one_of_two();
    let peers = [("wg", "--version"), ("wireguard-go", "--version"), ("ip", "-V")];
    if !peers.into_iter().all(|(program, with)| has_peer(program, with)) || !has_links() {
        eprintln!("skipped: wireguard-go or wireguard-tools is not installed, or no link can be emulated");
        return;
    }
    let seen = json(&["transport", "handshake", "tcp,tunnel,wireguard", "--count", "3", "--json"]);
    let value = |row: usize, place: &str| number(&seen, &format!("/{row}/{place}"));
    for row in 1..3 {
        assert_eq!(value(row, "connections"), 3.0, "{seen:#}");
        // Of the tunnel, and of the connection in it.
        assert!(
            value(row, "p50_s") > value(0, "p50_s") && value(row, "packets") > value(0, "packets"),
            "{seen:#}"
        );
    }
}

#[test]
fn a_kind_is_sent_through_every_condition_of_a_link() {
    let _place = one_of_two();
    if !has_links() {
        return;
    }
    let options =
        ["--duration", "2s", "--warmup", "1s", "--json", "--link", "delay=2ms rate=10mbit queue=64k"];
    let seen = json(&[&["transport", "impaired", "tcp"][..], &options].concat());
    let condition = |name: &str| {
        let all = seen.as_array().unwrap();
        all.iter().find(|one| one["condition"] == name).unwrap_or_else(|| panic!("{name}: {seen:#}"))
    };
    let goodput = |name| number(condition(name), "/value/goodput_bytes_per_s");
    assert!(goodput("no loss") > goodput("5 % lost") && goodput("5 % reordered") > 0.0, "{seen:#}");
    // A flow that never came would have paused for all of the two seconds.
    assert!(number(condition("1 s of 5 silent"), "/value/longest_pause_s") < 1.8, "{seen:#}");
    // TCP belongs to an address.
    assert_eq!(condition("new address")["value"], "never_goes_on", "{seen:#}");
}

#[test]
fn programs_that_others_wrote_and_tunnels_answer_echoes() {
    let _place = one_of_two();
    let peers = [
        ("wg", "--version"),
        ("wireguard-go", "--version"),
        ("curvecpserver", "-h"),
        ("/usr/sbin/sshd", "-V"),
    ];
    if !peers.into_iter().all(|(program, with)| has_peer(program, with)) || !has_links() {
        return;
    }
    let link = ["--link", "delay=2ms rate=20mbit queue=64k", "--duration", "1s", "--warmup", "1s", "--json"];
    for echo in ["ssh", "nacl", "tunnel", "wireguard"] {
        let seen = json(&[&["transport", "flows", "tcp", "--echo", echo][..], &link].concat());
        assert!(number(&seen, "/loaded/echoes") > 0.0, "{echo}: {seen:#}");
        // A round trip of the link takes 4 ms.
        assert!(number(&seen, "/loaded/p50_s") > 0.004, "{echo}: {seen:#}");
    }
    let refused = kendall(&["transport", "flows", "tcp", "--echo", "scp"]);
    assert!(text(&refused.stderr).contains("does not answer"), "{}", text(&refused.stderr));
}

#[test]
fn kinds_compete_whichever_way_they_go() {
    let _place = one_of_two();
    if !has_links() {
        return;
    }
    let link = ["--link", "delay=2ms rate=20mbit queue=64k", "--duration", "1s", "--warmup", "1s", "--json"];
    let pairs = json(&[&["transport", "compete", "up:curve,tcp"][..], &link].concat());
    let names: Vec<_> = pairs
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair["first"].as_str().unwrap(), pair["second"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("up:curve", "up:curve"), ("up:curve", "tcp"), ("tcp", "tcp")]);
    // Opposite ways share no queue: each has nearly the whole link.
    assert!(number(&pairs[1]["result"], "/jain") > 0.8, "{pairs:#}");
}

#[test]
fn a_server_is_loaded_by_its_url_and_ends_cleanly_on_a_signal() {
    for kind in ["curve", "https"] {
        let mut server = Command::new(env!("CARGO_BIN_EXE_kendall"))
            .args(["serve", "transport", "--kind", kind, "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().last().unwrap().to_owned();
        let url = format!("transport://{address}?kind={kind}&op=echo&size=1000");
        let seen = json(&["load", &url, "--rate", "100", "--duration", "1s", "--json"]);
        kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
        assert!(server.wait().unwrap().success(), "{kind}");
        assert!(number(&seen, "/run/ended/0") > 50.0, "{kind}: {seen:#}");
    }
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    for (arguments, word) in [
        (&["transport", "flows", "udp"][..], "write one of curve"),
        (&["transport", "flows", "tcp", "--link", "rate=10parsecs"], "cannot be used"),
        (&["transport", "handshake", "tcp", "--count", "0"], "from 1 to"),
        (&["transport", "near", "/nowhere"], "plan.json"),
    ] {
        let output = kendall(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(word), "{arguments:?}: {said}");
    }
}
