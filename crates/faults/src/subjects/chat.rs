//! The directory server of a chat, with each of its stores. An account that was acknowledged must let its user log in.

use kendall_testbed::DatabaseKind;

use super::loaded::{HOLD, server, url};
use super::remote::by_status;
use super::scene::complaint;
use super::{Peer, Requests, Scene, Subject, within};

pub(super) const SQLITE: Subject = Subject {
    name: "chat",
    system: "chat, SQLite",
    prepare: |scene| {
        std::fs::write(scene.path("password"), "correct horse\n").map_err(|error| error.to_string())
    },
    parts: |scene| {
        let store = if scene.peer.is_empty() { "sqlite:disk/accounts.db" } else { &scene.peer };
        vec![server(scene, &["chat", "--store", store, "--keys", "keys", "--limits", "off"])]
    },
    requests: Requests::Url(|scene| url(format!("chat://{}?client-stretch=off", scene.address))),
    probe: |scene, n| {
        let name = format!("user{n}");
        let account = ["--profile", &name, "--password-file", "password"];
        let mut command = scene.kendall(["chat"]);
        command.args(account).args(["register", &name, "--server", &scene.address]);
        command
    },
    // Pages of the database, which grows (crates/accounts/src/sqlite.rs).
    cache_bytes: 64 << 20,
    judge: |_, _, output| by_status(output),
    is_kept: Some(logs_in),
    ..HOLD
};

pub(super) const POSTGRES: Subject = Subject {
    name: "chat-postgres",
    system: "chat, PostgreSQL",
    peer: Some(Peer::Database(DatabaseKind::Postgres)),
    cache_bytes: 0,
    ..SQLITE
};

pub(super) const MARIADB: Subject = Subject {
    name: "chat-mariadb",
    system: "chat, MariaDB",
    peer: Some(Peer::Database(DatabaseKind::Mariadb)),
    cache_bytes: 0,
    ..SQLITE
};

pub(super) const REDIS: Subject = Subject {
    name: "chat-redis",
    system: "chat, Redis",
    peer: Some(Peer::Database(DatabaseKind::Redis)),
    cache_bytes: 0,
    ..SQLITE
};

fn logs_in(scene: &Scene, n: u64) -> Result<(), String> {
    let name = format!("user{n}");
    let command = scene.kendall(["chat", "--profile", &name, "--password-file", "password", "who"]);
    let output = within(&command, super::PROBE_LIMIT).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{name} cannot log in: {}", complaint(&output)))
    }
}
