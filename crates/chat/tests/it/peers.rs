//! Clients that the directory brings together, and what they say to each other.

use kendall_chat::client::Client;
use kendall_chat::directory::Limits;
use kendall_chat::peer::{self, Met, PeerError};
use kendall_chat::protocol::{Blame, EndOfCall, Push};
use kendall_curve::curvecp::SecretKey;
use kendall_talk::{Command, End, Event, Path, PeerTransport, SendError, Side, TalkId, converse};
use tokio::sync::mpsc;

use crate::serving::{clients, new_user, serve};

const TALK: TalkId = TalkId([5; 16]);

fn key(of: u8) -> SecretKey {
    SecretKey::from_bytes([of; 32])
}

/// What the called user's client does: takes the next call.
async fn answer(client: &mut Client) -> (Met, TalkId) {
    let Push::Incoming { call, name, talk } = client.next_push().await.unwrap() else { panic!("no call") };
    assert_eq!(name, "alice");
    let met = peer::answer(client, "127.0.0.1:0".parse().unwrap(), key(2), call).await.unwrap();
    (met, TalkId(talk))
}

/// Says these texts and hears as many, and then leaves or waits for the other side's goodbye.
async fn talk(side: &mut Side, met: Met, texts: &[&str], leaves: bool) -> Vec<String> {
    let (commands, mut wanted) = mpsc::channel(16);
    let (happened, mut events) = mpsc::channel::<Result<Event, SendError>>(16);
    let user = async {
        for text in texts {
            let text = (*text).to_owned();
            commands.send(Command::Send { sent_ms: 0, text }).await.unwrap();
        }
        let mut heard = Vec::new();
        while heard.len() < texts.len() {
            if let Event::Message { text, .. } = events.recv().await.unwrap().unwrap() {
                heard.push(text);
            }
        }
        if leaves {
            commands.send(Command::Leave).await.unwrap();
        }
        while events.recv().await.is_some() {}
        heard
    };
    let running = async {
        let end = converse(side, met.stream, &mut wanted, &happened).await;
        drop(happened);
        end
    };
    let (heard, end) = tokio::join!(user, running);
    assert!(matches!(end, End::Over), "{end}");
    heard
}

#[test]
fn a_call_becomes_a_talk_between_the_two() {
    for transport in [PeerTransport::CurveCp, PeerTransport::Quic] {
        call_and_talk(transport);
    }
}

fn call_and_talk(transport: PeerTransport) {
    let server = serve(Limits::default());
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        let mut bob = new_user(&server, "bob").await;
        bob.wait_for_calls().await.unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let (called, answered) =
            tokio::join!(peer::call(&mut alice, local, key(1), "bob", TALK, transport), answer(&mut bob));
        let (called, (answered, talk_id)) = (called.unwrap(), answered);
        assert!(matches!(called.path, Path::Direct(_)), "{:?}", called.path);
        assert_eq!(talk_id, TALK);
        assert_eq!([called.name.as_str(), &answered.name], ["bob", "alice"]);
        assert_eq!([called.key, answered.key], [key(2).public_key(), key(1).public_key()]);
        let mut sides = [Side::new(TALK), Side::new(talk_id)];
        let [first, second] = &mut sides;
        let (at_alice, at_bob) = tokio::join!(
            talk(first, called, &["hello", "how are you?"], true),
            talk(second, answered, &["hi", "well"], false)
        );
        assert_eq!(at_bob, ["hello", "how are you?"]);
        assert_eq!(at_alice, ["hi", "well"]);
    });
    server.stop();
}

#[test]
fn a_call_that_is_refused_or_cannot_ring_is_an_error_with_the_reason() {
    let server = serve(Limits::default());
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        let mut bob = new_user(&server, "bob").await;
        let local = "127.0.0.1:0".parse().unwrap();
        let away = peer::call(&mut alice, local, key(1), "bob", TALK, PeerTransport::Quic).await.unwrap_err();
        assert!(
            matches!(&away, PeerError::Client(error) if error.blame() == Some(Blame::Unreachable)),
            "{away}"
        );
        bob.wait_for_calls().await.unwrap();
        let refuse = async {
            let Push::Incoming { call, .. } = bob.next_push().await.unwrap() else { panic!("no call") };
            bob.refuse(call).await.unwrap();
        };
        let (called, ()) =
            tokio::join!(peer::call(&mut alice, local, key(1), "bob", TALK, PeerTransport::Quic), refuse);
        let refused = called.unwrap_err();
        assert!(matches!(refused, PeerError::Ended { why: EndOfCall::Refused, .. }));
        assert_eq!(refused.to_string(), "bob refused the call");
    });
    server.stop();
}
