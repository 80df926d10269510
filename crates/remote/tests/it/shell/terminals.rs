//! Programs on a pseudo-terminal.

use kendall_remote::shell::protocol::{Exit, Window};
use kendall_remote::shell::{LocalEvent, Outcome, ServerSettings, Start};

use super::harness::{Server, WINDOW, test};

#[test]
fn the_window_has_the_clients_size_and_follows_it() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server.terminal(
            "trap 'stty size; got=1' WINCH; stty size; tty; echo $TERM; until [ $got ]; do sleep 0.01; done; \
             echo waiting; exec sleep 1000",
        );
        client.expect("30 100").await;
        client.expect("xterm-256color").await;
        assert!(client.seen().contains("/dev/pts/"), "{}", client.seen());
        client.event(LocalEvent::Resized(Window { columns: 132, rows: 43, ..WINDOW })).await;
        client.expect("43 132").await;
        client.expect("waiting").await;
        client.type_in("\x03").await;
        let (outcome, ..) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Signal(2)));
        server.stop().await;
    });
}

#[test]
fn control_c_interrupts_and_a_login_shell_goes_on() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server.client(Start::Open {
            terminal: Some((b"dumb".to_vec(), WINDOW)),
            command: None,
            environment: Vec::new(),
        });
        client.type_in("PS1='pr''ompt> '\n").await;
        client.expect("prompt> ").await;
        client.type_in("echo sta''rted; sleep 1000\n").await;
        client.expect("started").await;
        client.interrupt_until("prompt> ").await;
        client.type_in("echo status $((100 + $?)); echo $0 $-\n").await;
        client.expect("status 230").await;
        client.type_in("exit 5\n").await;
        let (outcome, output, _) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(5)));
        let text = String::from_utf8_lossy(&output);
        assert!(text.contains("-bash") || text.contains("-sh") || text.contains("-dash"), "{text}");
        server.stop().await;
    });
}

#[test]
fn colours_unicode_and_raw_mode_pass() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server.terminal(
            "printf '\\033[31mröd 漢字 🦀\\033[0m\\n'; stty raw -echo; echo raw; head -c 6 | od -An -tx1; stty sane",
        );
        client.expect("\x1b[31mröd 漢字 🦀\x1b[0m\r\n").await;
        client.expect("raw\n").await;
        client.type_in("\x03\x04\r\x1a").await;
        client.type_in("é").await;
        client.expect("03 04 0d 1a c3 a9").await;
        let (outcome, ..) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(0)));
        server.stop().await;
    });
}

#[test]
fn erasing_a_character_erases_all_its_bytes() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client =
            server.terminal("stty -echo; echo ready; read line; printf %s \"$line\" | od -An -tx1");
        client.expect("ready").await;
        client.type_in("aé\x7fb\n").await;
        client.expect("61 62").await;
        client.wait().await.0.unwrap();
        server.stop().await;
    });
}

#[test]
fn a_program_in_the_background_does_not_hold_up_the_end_and_all_output_comes() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let client = server.terminal("sleep 1000 & seq 1 20000; echo 'the end'");
        let (outcome, output, _) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(0)));
        let text = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 20_001, "{} … {}", lines[0], lines[lines.len() - 1]);
        assert_eq!((lines[19_999], lines[20_000]), ("20000", "the end"));
        server.stop().await;
    });
}

#[test]
fn the_end_of_a_piped_input_is_typed_on_the_terminal() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server.terminal("cat");
        client.type_in("over a terminal\n").await;
        client.expect("over a terminal\r\nover a terminal").await;
        let (outcome, ..) = client.finish().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(0)));
        server.stop().await;
    });
}

#[test]
fn escapes_help_and_end_a_session() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server.terminal("stty -echo; echo ready; cat");
        client.expect("ready").await;
        client.type_in("a~.\n~~~.\n~?").await;
        client.expect("a~.\r\n~~.\r\n").await;
        client.expect_error("~d  detach").await;
        client.type_in("~.").await;
        let (outcome, ..) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Signal(1)));
        server.stop().await;
    });
}
