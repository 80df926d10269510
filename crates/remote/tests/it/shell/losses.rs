//! Connections that change their address, go silent and come back.

use std::time::Duration;

use kendall_remote::shell::protocol::Exit;
use kendall_remote::shell::{Outcome, ServerSettings};
use tokio::io::AsyncWriteExt;

use super::harness::{Client, Relay, Server, pipes, terminal, test};

const SOON: Duration = Duration::from_millis(200);

#[test]
fn a_session_goes_on_at_another_address() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let relay = Relay::start(server.address).await;
        let mut client = Client::with(relay.address, 2, terminal("stty -echo; echo ready; cat"), SOON);
        client.expect("ready").await;
        for round in 0..3 {
            relay.change_addresses();
            client.type_in(&format!("round {round}\n")).await;
            client.expect(&format!("round {round}\r\n")).await;
        }
        server.stop().await;
    });
}

#[test]
fn after_a_silence_the_client_connects_again_and_output_is_neither_lost_nor_doubled() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let relay = Relay::start(server.address).await;
        let line = "stty -echo; i=0; while [ $i -lt 1500 ]; do echo line $i; i=$((i+1)); sleep 0.001; done; read a; echo $a";
        let mut client = Client::with(relay.address, 2, terminal(line), SOON);
        client.expect("line 30\r").await;
        relay.set_silent(true);
        client.expect_error("the server does not answer").await;
        client.expect_error("the connection is lost").await;
        relay.set_silent(false);
        client.type_in("typed meanwhile\n").await;
        client.expect_error("connected again").await;
        let (outcome, output, _) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(0)));
        let expected: String = (0..1500).map(|i| format!("line {i}\r\n")).collect();
        let text = String::from_utf8(output).unwrap();
        assert!(text == expected + "typed meanwhile\r\n", "{text}");
        server.stop().await;
    });
}

#[test]
fn a_transfer_through_pipes_survives_losses_both_ways() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let relay = Relay::start(server.address).await;
        let mut client = Client::with(relay.address, 2, pipes("cat"), Duration::from_millis(60));
        let sent: Vec<u8> = (0..4_000_000_u32).map(|i| (i.wrapping_mul(i) >> 9) as u8).collect();
        let (mut input, copy) = (client.input.take().unwrap(), sent.clone());
        let writer = tokio::spawn(async move {
            for (number, piece) in copy.chunks(500_000).enumerate() {
                if number % 2 == 1 {
                    relay.set_silent(true);
                    tokio::time::sleep(Duration::from_millis(400)).await;
                    relay.set_silent(false);
                }
                input.write_all(piece).await.unwrap();
            }
        });
        let (outcome, output, errors) = client.wait().await;
        assert_eq!(
            outcome.unwrap(),
            Outcome::Exited(Exit::Status(0)),
            "{}",
            String::from_utf8_lossy(&errors)
        );
        writer.await.unwrap();
        assert!(output == sent, "{} of {} bytes", output.len(), sent.len());
        server.stop().await;
    });
}

#[test]
fn a_client_whose_session_is_gone_is_told_so() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let relay = Relay::start(server.address).await;
        let mut client =
            Client::with(relay.address, 2, terminal("echo ready; cat"), Duration::from_millis(60));
        client.expect("ready").await;
        relay.set_silent(true);
        client.expect_error("the connection is lost").await;
        let session = kendall_remote::shell::protocol::SessionId(1);
        kendall_remote::shell::end(
            super::harness::connect(server.address, 2),
            session,
            Duration::from_secs(30),
            "",
        )
        .await
        .unwrap();
        // Its place is free once the program is gone and the lost client has had its time; a new client takes it at once.
        let start = kendall_remote::shell::Start::Attach {
            session,
            window: super::harness::WINDOW,
            claim: kendall_remote::shell::protocol::Claim::TakeOver,
        };
        _ = Client::start(server.address, 2, start).wait().await;
        relay.set_silent(false);
        let (outcome, ..) = client.wait().await;
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("the session cannot go on"), "{error}");
        server.stop().await;
    });
}
