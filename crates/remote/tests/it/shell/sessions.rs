//! Sessions that outlive their clients: detach, list, attach, take over, limits, the server's end.

use std::time::Duration;

use kendall_remote::shell::protocol::{Claim, Exit, SessionId, Window};
use kendall_remote::shell::{Outcome, ServerSettings, Start, end, list};
use kendall_testbed::{LIMIT, tempdir};

use super::harness::{Client, Server, WINDOW, connect, pipes, terminal, test};

fn attach(session: u32, claim: Claim) -> Start {
    Start::Attach { session: SessionId(session), window: WINDOW, claim }
}

#[test]
fn a_session_is_detached_listed_attached_and_ended() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server.terminal("stty -echo; echo first; read a; echo got $a; cat");
        client.expect("first").await;
        client.type_in("~d").await;
        let (outcome, ..) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Detached(SessionId(1)));

        let sessions = list(connect(server.address, 2), LIMIT, "").await.unwrap();
        assert_eq!((sessions.len(), sessions[0].attached, sessions[0].terminal), (1, false, true));
        assert!(sessions[0].command.starts_with("stty"));
        // Another key sees and gets nothing.
        assert!(list(connect(server.address, 3), LIMIT, "").await.unwrap().is_empty());
        let (outcome, ..) = Client::start(server.address, 3, attach(1, Claim::TakeOver)).wait().await;
        assert!(outcome.unwrap_err().to_string().contains("no session 1"));

        let mut client = server.client(attach(1, Claim::IfFree));
        client.expect("first").await;
        client.type_in("again\n").await;
        client.expect("got again").await;
        end(connect(server.address, 2), SessionId(1), LIMIT, "").await.unwrap();
        let (outcome, ..) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Signal(1)));
        assert!(end(connect(server.address, 2), SessionId(1), LIMIT, "").await.is_err());
        server.stop().await;
    });
}

#[test]
fn a_second_client_gets_a_session_only_by_taking_it_over() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut first = server.terminal("stty -echo; echo ready; cat");
        first.expect("ready").await;
        let (outcome, ..) = server.client(attach(1, Claim::IfFree)).wait().await;
        assert!(outcome.unwrap_err().to_string().contains("--take-over"));
        let mut second = server.client(attach(1, Claim::TakeOver));
        second.expect("ready").await;
        let (outcome, ..) = first.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::TakenOver(SessionId(1)));
        second.type_in("mine\n").await;
        second.expect("mine").await;
        server.stop().await;
        assert_eq!(second.wait().await.0.unwrap(), Outcome::ServerStops);
    });
}

#[test]
fn ten_sessions_at_once_have_their_own_input_output_signals_and_status() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let program = |i: usize| {
            // A second shell reports, so that Control-C finds a process to end: a shell that gets it just before it starts `cat`
            // would wait for `cat` first.
            format!(
                "stty -echo; trap 'echo {i} interrupted; exit {i}' INT; echo ready {i}.; read a
                 sh -c 'echo {i} got $0.; exec cat' \"$a\""
            )
        };
        let mut clients: Vec<Client> = (0..10).map(|i| server.terminal(&program(i))).collect();
        for (i, client) in clients.iter_mut().enumerate() {
            client.expect(&format!("ready {i}.")).await;
            client.type_in(&format!("line-{i}\n")).await;
        }
        for (i, client) in clients.iter_mut().enumerate() {
            client.expect(&format!("{i} got line-{i}.")).await;
        }
        // Control-C reaches every second one, and no other.
        for client in clients.iter_mut().step_by(2) {
            client.type_in("\x03").await;
        }
        for (i, mut client) in clients.into_iter().enumerate() {
            if i % 2 == 1 {
                client.type_in(&format!("still {i}.\n")).await;
                client.expect(&format!("still {i}.")).await;
                assert!(!client.seen().contains("interrupted"), "session {i}");
                client.type_in("\x04").await;
            }
            let status = if i % 2 == 0 { i } else { 0 };
            assert_eq!(
                client.wait().await.0.unwrap(),
                Outcome::Exited(Exit::Status(status as u8)),
                "session {i}"
            );
        }
        server.stop().await;
    });
}

#[test]
fn after_the_death_of_its_client_a_session_is_attached_and_its_output_is_complete() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server
            .terminal("i=0; while [ $i -lt 400 ]; do echo line $i.; i=$((i+1)); sleep 0.002; done; cat");
        client.expect("line 20.").await;
        let before = client.seen();
        client.kill().await;
        let mut client = server.client(attach(1, Claim::IfFree));
        client.expect("line 399.").await;
        let seen = before + &client.seen();
        for i in 0..400 {
            assert!(seen.contains(&format!("line {i}.\r\n")), "line {i} is missing");
        }
        // The window got the new client's size again after its redraw.
        client.type_in("\x04").await;
        assert_eq!(client.wait().await.0.unwrap(), Outcome::Exited(Exit::Status(0)));
        server.stop().await;
    });
}

#[test]
fn a_client_that_attaches_has_the_screen_drawn_again_at_its_size() {
    test(async {
        let server = Server::start(ServerSettings::default());
        // bash loses a signal that comes while it runs the trap for the one before, so the trap is short.
        let mut client = server.terminal(
            "trap new=1 WINCH; echo ready; while :; do sleep 0.01; if [ $new ]; then new=; echo size $(stty size).; fi; done",
        );
        client.expect("ready").await;
        client.type_in("~d").await;
        client.wait().await.0.unwrap();
        let window = Window { columns: 50, rows: 20, ..WINDOW };
        let mut client = server.client(Start::Attach { session: SessionId(1), window, claim: Claim::IfFree });
        client.expect("size 20 50.").await;
        server.stop().await;
    });
}

#[test]
fn a_detached_program_goes_on_although_its_output_is_longer_than_the_log() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let folder = tempdir().unwrap();
        let (go, mark) = (folder.path().join("go"), folder.path().join("mark"));
        let line = format!(
            "echo ready; until [ -e {} ]; do sleep 0.01; done; seq 1 400000; echo > {}; echo 'last line'; sleep 1000",
            go.display(),
            mark.display()
        );
        let mut client = server.terminal(&line);
        client.expect("ready").await;
        client.type_in("~d").await;
        client.wait().await.0.unwrap();
        std::fs::write(go, "").unwrap();
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut client = server.client(attach(1, Claim::IfFree));
        client.expect("last line").await;
        assert!(client.seen().contains("400000"));
        server.stop().await;
    });
}

#[test]
fn detached_sessions_end_after_their_time_and_places_come_back() {
    test(async {
        let settings = ServerSettings {
            sessions: 3,
            sessions_per_key: 2,
            detached_for: Duration::from_millis(100),
            ..ServerSettings::default()
        };
        let server = Server::start(settings);
        let mut first = server.terminal("echo ready; cat");
        first.expect("ready").await;
        let mut second = server.client(pipes("echo ready; cat"));
        second.expect("ready").await;
        let (outcome, ..) = server.client(pipes("true")).wait().await;
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("your key has 2 sessions"), "{error}");
        let mut third = Client::start(server.address, 3, terminal("echo ready; cat"));
        third.expect("ready").await;
        let (outcome, ..) = Client::start(server.address, 3, pipes("true")).wait().await;
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("all 3 sessions"), "{error}");
        first.type_in("~d").await;
        first.wait().await.0.unwrap();
        loop {
            let (outcome, ..) = server.client(pipes("true")).finish().await;
            match outcome {
                Ok(outcome) => break assert_eq!(outcome, Outcome::Exited(Exit::Status(0))),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        server.stop().await;
    });
}

#[test]
fn a_server_that_stops_leaves_no_program_behind() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let folder = tempdir().unwrap();
        let mut clients = Vec::new();
        for (number, start) in [terminal, pipes].into_iter().enumerate() {
            let file = folder.path().join(number.to_string());
            // It does not want to end.
            let line = format!(
                "trap '' HUP; echo $$ > {}; echo ready; while :; do sleep 0.05; done",
                file.display()
            );
            let mut client = server.client(start(&line));
            client.expect("ready").await;
            clients.push((client, file));
        }
        server.stop().await;
        for (client, file) in clients {
            assert_eq!(client.wait().await.0.unwrap(), Outcome::ServerStops);
            let id = std::fs::read_to_string(file).unwrap();
            assert!(!std::path::Path::new("/proc").join(id.trim()).exists());
        }
    });
}
