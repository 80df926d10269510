//! Servers of CurveCP for programs, files and shells. What comes back must be what was sent, and a copied file must stay.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::scene::complaint;
use super::{Outcome, Part, Requests, Scene, Subject};

/// The name that clients give.
pub(super) const NAME: &str = "server.example";

pub(super) const CURVE: Subject = Subject {
    name: "curve",
    system: "`curve`",
    peer: None,
    datagrams: true,
    prepare: keys,
    parts: |scene| {
        let mut command = scene.kendall(["curve", "serve", NAME, "server-key", &scene.address]);
        command.args(["--", "cat"]);
        vec![Part { role: "server", command, ready: "listens on" }]
    },
    requests: Requests::Probes,
    probe: |scene, n| {
        let cat = scene.kendall(["curve", "cat", NAME, &key(scene), &scene.address]);
        with_input(scene, &cat, n)
    },
    cache_bytes: 0,
    judge: |_, n, output| {
        if output.status.success() && output.stdout != content(n) {
            return Outcome::Wrong(format!("{} bytes came back", output.stdout.len()));
        }
        by_status(output)
    },
    is_kept: None,
};

pub(super) const SHELL: Subject = Subject {
    name: "shell",
    system: "remote shell",
    parts: |scene| vec![authorized(scene, "serve-shell", &scene.address, &[])],
    probe: |scene, n| with_input(scene, &client(scene, "shell", &[NAME, "cat"]), n),
    ..CURVE
};

pub(super) const COPY: Subject = Subject {
    name: "copy",
    system: "remote copy",
    prepare: |scene| {
        fs::create_dir_all(scene.path("disk/served")).map_err(|error| error.to_string())?;
        keys(scene)
    },
    parts: |scene| vec![authorized(scene, "serve-files", &scene.address, &["disk/served", "--read-write"])],
    probe: |scene, n| {
        let source = input(scene, n).to_string_lossy().into_owned();
        client(scene, "copy", &["--sync", "--quiet", &source, &format!("{NAME}:")])
    },
    judge: |scene, n, output| match (output.status.success(), is_whole(scene, n)) {
        (true, Err(why)) => Outcome::Wrong(why),
        _ => by_status(output),
    },
    is_kept: Some(is_whole),
    ..CURVE
};

pub(super) fn by_status(output: &Output) -> Outcome {
    if output.status.success() { Outcome::Right } else { Outcome::Failed(complaint(output)) }
}

/// Makes the keys of a server and of a client that it admits.
pub(super) fn keys(scene: &Scene) -> Result<(), String> {
    let write =
        |name: &str, text: String| fs::write(scene.path(name), text).map_err(|error| error.to_string());
    write("server-public", scene.run(&["curve", "keygen", "server-key"])?)?;
    let client = scene.run(&["curve", "keygen", "client-key"])?;
    write("authorized", format!("{client} Ann\n"))
}

/// The server's public key.
pub(super) fn key(scene: &Scene) -> String {
    fs::read_to_string(scene.path("server-public")).unwrap_or_default()
}

/// A server that admits one client.
pub(super) fn authorized(scene: &Scene, kind: &str, listen: &str, options: &[&str]) -> Part {
    let mut command = scene.kendall(["curve", kind, NAME, "server-key", listen]);
    command.args(options).args(["--authorized-keys", "authorized"]);
    Part { role: "server", command, ready: "listens on" }
}

/// A command of that client.
fn client(scene: &Scene, kind: &str, arguments: &[&str]) -> Command {
    let mut command = scene.kendall(["curve", kind, "--server", NAME, &key(scene), &scene.address]);
    command.args(["--key-directory", "client-key"]).args(arguments);
    command
}

/// What a client sends: 300,000 bytes that depend on its number.
fn content(n: u64) -> Vec<u8> {
    (0..37_500_u64).flat_map(|at| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at).to_le_bytes()).collect()
}

/// The file with that.
fn input(scene: &Scene, n: u64) -> PathBuf {
    let path = scene.path(&format!("input{n}"));
    fs::write(&path, content(n)).expect("the folder of a case can be written");
    path
}

/// A command of kendall that reads that file as its standard input.
fn with_input(scene: &Scene, kendall: &Command, n: u64) -> Command {
    let mut command = scene.command("sh");
    command.args(["-c", r#"input=$1; shift; exec "$@" < "$input""#, "sh"]).arg(input(scene, n));
    command.arg(kendall.get_program()).args(kendall.get_args());
    command
}

fn is_whole(scene: &Scene, n: u64) -> Result<(), String> {
    let path = scene.path(&format!("disk/served/input{n}"));
    match fs::read(&path) {
        Ok(bytes) if bytes == content(n) => Ok(()),
        Ok(bytes) => Err(format!("{} has {} other bytes", path.display(), bytes.len())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}
