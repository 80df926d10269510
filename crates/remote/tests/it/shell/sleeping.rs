//! Clients whose machine sleeps longer than the server keeps the session for them.

use std::path::Path;
use std::time::Duration;

use kendall_remote::shell::protocol::{Claim, Exit, SessionId};
use kendall_remote::shell::{Outcome, ServerSettings, Start, list};
use kendall_testbed::{LIMIT, tempdir};

use super::harness::{Client, Log, Relay, Server, WINDOW, connect, pipes, terminal, test_with_log, until};

/// After how long a client or a server notices that the other is silent, and how long the server waits then.
const SILENCE: Duration = Duration::from_millis(600);
const RESUME_FOR: Duration = Duration::from_millis(500);

/// A client, and the relay by which its machine falls asleep: nothing passes any more.
async fn sleeper(start: Start) -> (Server, Relay, Client) {
    let settings = ServerSettings { resume_for: RESUME_FOR, ..ServerSettings::default() };
    let server = Server::start_noticing(settings, SILENCE);
    let relay = Relay::start(server.address).await;
    let client = Client::with(relay.address, 2, start, SILENCE / 4);
    (server, relay, client)
}

/// A terminal's program that writes more than the server holds once a file is there, and then another file.
fn writer(folder: &Path) -> Start {
    let [go, mark] = ["go", "mark"].map(|name| folder.join(name).display().to_string());
    terminal(&format!(
        "stty -echo; echo ready; until [ -e {go} ]; do sleep 0.01; done; seq 1 400000; echo > {mark}; echo written; \
         read a; echo got $a"
    ))
}

/// Sleeps until the server has given the client up and the program has gone on without it.
async fn sleep_for_long(log: &Log, relay: &Relay, folder: &Path) {
    relay.set_silent(true);
    log.expect("the connection is lost; its client may resume").await;
    std::fs::write(folder.join("go"), "").unwrap();
    log.expect("session 1: its client did not resume within 500ms; it is detached, and continues").await;
    // Until then the program had to wait, because the server holds less than it writes.
    until(|| folder.join("mark").exists()).await;
}

#[test]
fn a_client_that_wakes_up_late_goes_on_and_says_what_it_missed() {
    test_with_log(async |log| {
        let folder = tempdir().unwrap();
        let (server, relay, mut client) = sleeper(writer(folder.path())).await;
        client.expect("ready").await;
        sleep_for_long(&log, &relay, folder.path()).await;
        let sessions = list(connect(server.address, 2), LIMIT, "").await.unwrap();
        assert_eq!((sessions.len(), sessions[0].attached), (1, false));
        relay.set_silent(false);
        client.expect_error("bytes of output were dropped meanwhile").await;
        client.type_in("good morning\n").await;
        client.expect("written").await;
        client.expect("got good morning").await;
        assert_eq!(client.wait().await.0.unwrap(), Outcome::Exited(Exit::Status(0)));
        log.expect("session 1 resumed by").await;
        server.stop().await;
    });
}

#[test]
fn a_session_whose_client_sleeps_is_attached_to_from_elsewhere_and_the_sleeper_is_refused() {
    test_with_log(async |log| {
        let folder = tempdir().unwrap();
        let (server, relay, mut client) = sleeper(writer(folder.path())).await;
        client.expect("ready").await;
        sleep_for_long(&log, &relay, folder.path()).await;
        let attach = Start::Attach { session: SessionId(1), window: WINDOW, claim: Claim::IfFree };
        let mut other = Client::with(server.address, 2, attach, SILENCE / 4);
        other.expect("written").await;
        log.expect("session 1 attached to by").await;
        relay.set_silent(false);
        let error = client.wait().await.0.unwrap_err().to_string();
        assert!(
            error.contains("the session cannot go on") && error.contains("another client has attached"),
            "{error}"
        );
        other.type_in("it is me\n").await;
        other.expect("got it is me").await;
        assert_eq!(other.wait().await.0.unwrap(), Outcome::Exited(Exit::Status(0)));
        server.stop().await;
    });
}

#[test]
fn a_command_on_pipes_is_hung_up_when_its_client_sleeps_too_long() {
    test_with_log(async |log| {
        let folder = tempdir().unwrap();
        let mark = folder.path().join("hung-up");
        let line =
            format!("trap 'echo > {}; exit' HUP; echo ready; while :; do sleep 0.01; done", mark.display());
        let (server, relay, mut client) = sleeper(pipes(&line)).await;
        client.expect("ready").await;
        relay.set_silent(true);
        log.expect("session 1: its client did not resume within 500ms; its command gets SIGHUP").await;
        until(|| mark.exists()).await;
        log.expect("session 1 ended after").await;
        relay.set_silent(false);
        let error = client.wait().await.0.unwrap_err().to_string();
        assert!(
            error.contains("the session cannot go on") && error.contains("there is no session 1"),
            "{error}"
        );
        server.stop().await;
    });
}

#[test]
fn a_detached_session_that_no_client_attaches_to_ends() {
    test_with_log(async |log| {
        let settings =
            ServerSettings { detached_for: Duration::from_millis(200), ..ServerSettings::default() };
        let server = Server::start(settings);
        let mut client = server.terminal("echo ready; cat");
        client.expect("ready").await;
        client.type_in("~d").await;
        client.wait().await.0.unwrap();
        log.expect("session 1: no client attached within 200ms; its program gets SIGHUP").await;
        log.expect("session 1 ended after").await;
        server.stop().await;
    });
}
