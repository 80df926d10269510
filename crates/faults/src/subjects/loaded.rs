//! Systems that `kendall load` loads: it knows the right answers, and counts the wrong ones.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use super::scene::{complaint, text};
use super::{Outcome, Part, Peer, Requests, Scene, Subject};

pub(super) const REVERSE: Subject = Subject {
    name: "reverse",
    system: "reverse",
    peer: None,
    datagrams: false,
    prepare: |_| Ok(()),
    parts: |scene| vec![server(scene, &["reverse", "--workers", "2", "--cache-entries", "4096"])],
    requests: Requests::Url(|scene| url(format!("reverse://{}?difficulty=20000", scene.address))),
    probe: |scene, n| probe(scene, &format!("reverse://{}?difficulty=20000", scene.address), n),
    cache_bytes: 0,
    judge,
    is_kept: None,
};

pub(super) const RECOVER: Subject = Subject {
    name: "recover",
    system: "recover",
    parts: |scene| {
        let spool = ["--spool-folder", "disk", "--spool-memory", "1"];
        vec![server(scene, &[&["recover", "--workers", "2"][..], &spool].concat())]
    },
    requests: Requests::Url(|scene| url(recover(scene))),
    probe: |scene, n| probe(scene, &recover(scene), n),
    ..REVERSE
};

fn recover(scene: &Scene) -> String {
    format!("recover://{}?length=2&passwords=8&file-bytes=200000", scene.address)
}

pub(super) const TEXTSEARCH: Subject = Subject {
    name: "textsearch",
    system: "textsearch",
    prepare: |scene| {
        let generate = ["textsearch", "generate", "sentences.txt", "--rows", "20000"];
        scene.run(&generate).map(drop)
    },
    parts: |scene| {
        let bounded = ["--cache", "1", "--pattern-memory", "4"];
        let serve = ["textsearch", "--data", "sentences.txt", "--workers", "2"];
        vec![server(scene, &[&serve[..], &bounded].concat())]
    },
    requests: Requests::Url(|scene| url(format!("textsearch://{}", scene.address))),
    probe: |scene, n| probe(scene, &format!("textsearch://{}", scene.address), n),
    ..REVERSE
};

pub(super) const HOLD: Subject = Subject {
    name: "hold",
    system: "hold",
    parts: |scene| vec![server(scene, &["hold", "--mean", "2ms", "--workers", "4"])],
    requests: Requests::Url(|scene| url(format!("hold://{}", scene.address))),
    probe: |scene, n| probe(scene, &format!("hold://{}", scene.address), n),
    ..REVERSE
};

pub(super) const TRANSPORT: Subject = Subject {
    name: "transport",
    system: "CurveCP transport",
    datagrams: true,
    parts: |scene| vec![server(scene, &["transport", "--kind", "curve"])],
    requests: Requests::Url(|scene| url(format!("transport://{}?kind=curve", scene.address))),
    probe: |scene, n| probe(scene, &format!("transport://{}?kind=curve", scene.address), n),
    ..REVERSE
};

pub(super) const WEB: Subject = Subject {
    name: "web",
    system: "web page",
    prepare: |scene| fs::create_dir_all(scene.path("disk/results")).map_err(|error| error.to_string()),
    parts: |scene| {
        let command = scene.kendall(["web", "disk/results", "--listen", &scene.address]);
        vec![Part { role: "server", command, ready: "Watch at" }]
    },
    requests: Requests::Url(|scene| page(&format!("http://{}/", scene.address))),
    probe: |scene, n| {
        let mut command = probe(scene, &format!("http://{}/", scene.address), n);
        command.args(["--expect-text", "kendall"]);
        command
    },
    ..REVERSE
};

fn page(address: &str) -> Vec<String> {
    [address, "--expect-text", "kendall"].map(str::to_owned).into()
}

/// A server that is not kendall's, for what it does to the generator. It is not one of the systems.
pub const NGINX: Subject = Subject {
    name: "nginx",
    system: "nginx",
    prepare: |scene| {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path disk/{kind};"));
        let text = format!(
            "daemon off; master_process off; pid disk/pid; error_log stderr notice;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000000; {}\n\
             server {{ listen {}; location / {{ return 200 \"ok\"; }} }} }}\n",
            temporary.concat(),
            scene.address
        );
        fs::write(scene.path("nginx.conf"), text).map_err(|error| error.to_string())
    },
    parts: |scene| {
        let mut command = scene.command("nginx");
        command.arg("-p").arg(&scene.folder).args(["-c", "nginx.conf", "-e", "stderr"]);
        vec![Part { role: "server", command, ready: "event method" }]
    },
    requests: Requests::Url(|scene| url(format!("http://{}/", scene.address))),
    probe: |scene, n| probe(scene, &format!("http://{}/", scene.address), n),
    ..REVERSE
};

/// Searches that two workers share.
pub(super) const CLUSTER: Subject = Subject {
    name: "cluster",
    system: "cluster",
    peer: Some(Peer::Nats(true)),
    parts: |scene| {
        let ledger = ["--cluster-ledger", "disk/ledger.db", "--workers", "1", "--cache", "off"];
        let options = [&["reverse", "--cluster", &scene.peer][..], &ledger].concat();
        let worker = |role| Part {
            role,
            command: scene.kendall(["worker", "--cluster", &scene.peer, "--cores", "1"]),
            ready: "",
        };
        vec![server(scene, &options), worker("worker"), worker("second worker")]
    },
    requests: Requests::Url(|scene| url(format!("reverse://{}?difficulty=500000", scene.address))),
    probe: |scene, n| probe(scene, &format!("reverse://{}?difficulty=500000", scene.address), n),
    ..REVERSE
};

/// Loads that two agents share.
pub(super) const AGENTS: Subject = Subject {
    name: "agents",
    system: "agents",
    peer: Some(Peer::Nats(false)),
    parts: |scene| {
        let agent = |role, name| Part {
            role,
            command: scene.kendall([
                "agent",
                "--nats",
                &scene.peer,
                "--name",
                name,
                "--allow",
                "127.0.0.1:*",
            ]),
            ready: "",
        };
        let hold = server(scene, &["hold", "--mean", "2ms", "--workers", "4"]);
        vec![hold, agent("agent", "ann"), agent("second agent", "bob")]
    },
    requests: Requests::Probes,
    probe: |scene, n| {
        let mut command = probe(scene, &format!("hold://{}", scene.address), n);
        command.args(["--agents", &scene.peer, "--agents-count", "2"]);
        command
    },
    ..HOLD
};

/// `kendall serve` of a system with its options, at the address of the scene.
pub(super) fn server(scene: &Scene, options: &[&str]) -> Part {
    let mut command = scene.kendall(["serve"]);
    command.args(options).args(["--listen", &scene.address]);
    Part { role: "server", command, ready: "listening on" }
}

/// The arguments of a load without further options.
pub(super) fn url(url: String) -> Vec<String> {
    vec![url]
}

/// A load of four requests at once.
pub(super) fn probe(scene: &Scene, url: &str, n: u64) -> Command {
    let seed = n.to_string();
    scene.kendall([
        "load",
        url,
        "--requests",
        "4",
        "--rate",
        "200",
        "--seed",
        &seed,
        "--timeout",
        "10s",
        "--json",
    ])
}

/// The outcome of a load: right if each request has its answer.
pub(super) fn judge(_: &Scene, _: u64, output: &Output) -> Outcome {
    match ended(output) {
        Some([answered, 0, 0, 0, 0]) if answered > 0 => Outcome::Right,
        Some([answered, 0, refused, timed_out, unanswered]) => Outcome::Failed(format!(
            "{answered} answered, {refused} refused, {timed_out} timed out, {unanswered} unanswered"
        )),
        Some([_, wrong, ..]) => Outcome::Wrong(format!("{wrong} wrong answers")),
        None => Outcome::Failed(complaint(output)),
    }
}

/// How the requests of a load ended: answered, wrong, refused, timed out, unanswered. `None` where it printed no result.
pub(super) fn ended(output: &Output) -> Option<[u64; 5]> {
    let value: Value = serde_json::from_str(&text(&output.stdout)).ok()?;
    let counts: Vec<u64> = value["run"]["ended"].as_array()?.iter().filter_map(Value::as_u64).collect();
    counts.try_into().ok()
}
