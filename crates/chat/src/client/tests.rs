//! The client against servers that break the rules, as no real one does.

use std::net::SocketAddr;

use kendall_curve::curvecp::SecretKey;
use kendall_talk::{PeerTransport, TalkId};
use tokio::net::TcpListener;

use super::*;
use crate::peer::{self, PeerError};
use crate::protocol::{EndOfCall, Names, decode_request, encode_said};

/// Serves one client: greets, and answers each request with these messages until there are no more.
async fn serve(
    listener: TcpListener,
    mut script: impl Iterator<Item = Vec<DirectoryMessage>>,
) -> io::Result<()> {
    let (mut stream, _) = listener.accept().await?;
    stream.read_exact(&mut [0; GREETING_BYTES]).await?;
    stream.write_all(&encode_greeting(VERSION)).await?;
    let mut buffer = Vec::new();
    while stream.read_buf(&mut buffer).await? > 0 {
        let Ok((Frame { number, .. }, used)) = decode_request(&buffer) else { continue };
        buffer.drain(..used);
        let Some(messages) = script.next() else { break };
        let mut bytes = Vec::new();
        messages.into_iter().for_each(|message| encode_said(&Frame { number, message }, &mut bytes));
        stream.write_all(&bytes).await?;
    }
    Ok(())
}

/// Runs a client against a server with this script.
fn against<T>(
    script: impl Iterator<Item = Vec<DirectoryMessage>>,
    act: impl AsyncFnOnce(&mut Client) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async {
            let mut client = Client::connect(address, &Security::Plain).await.unwrap();
            act(&mut client).await
        };
        // The server may notice that the client is gone.
        tokio::join!(client, serve(listener, script)).0
    })
}

fn page(names: &[&str]) -> Vec<DirectoryMessage> {
    let names = Names::new(names.iter().map(ToString::to_string).collect());
    vec![DirectoryMessage::Answer(Answer::Users { names, more: 1 })]
}

#[test]
fn a_list_of_users_without_an_order_ends() {
    for second in [["bob", "carol"], ["carol", "bob"]] {
        let pages = [page(&["alice", "bob"]), page(&second), page(&["dave"])];
        let listed = against(pages.into_iter(), async |client| client.who_is_there().await);
        assert!(matches!(listed, Err(ClientError::Protocol)), "{listed:?}");
    }
}

#[test]
fn a_silent_server_is_an_error() {
    let silent = against([Vec::new()].into_iter(), async |client| {
        client.patience = Duration::from_millis(10);
        client.stay_alive().await
    });
    assert!(matches!(silent, Err(ClientError::Silent)), "{silent:?}");
}

#[test]
fn what_arrives_while_a_call_rings_has_a_bound() {
    let flood = |pushes: usize| {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let other = DirectoryMessage::Push(Push::PeerSeen { call: 2, address });
        let mut messages = vec![DirectoryMessage::Answer(Answer::Ringing { call: 1 })];
        messages.extend(vec![other; pushes]);
        messages.push(DirectoryMessage::Push(Push::CallEnded { call: 1, why: EndOfCall::Refused }));
        against([messages].into_iter(), async |client| {
            let (local, key) = ("127.0.0.1:0".parse().unwrap(), SecretKey::from_bytes([1; 32]));
            let transport = PeerTransport::default();
            let called = peer::call(client, local, key, "bob", TalkId([1; 16]), transport).await;
            (called.unwrap_err(), client.pushes.len())
        })
    };
    assert!(matches!(flood(PUSHES - 1), (PeerError::Ended { .. }, kept) if kept == PUSHES - 1));
    assert!(matches!(flood(PUSHES), (PeerError::Client(ClientError::Overrun), PUSHES)));
}
