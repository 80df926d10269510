//! Every request, over a real server.

use std::net::UdpSocket;
use std::time::Duration;

use kendall_chat::directory::Limits;
use kendall_chat::password::Stretch;
use kendall_chat::protocol::{Addresses, Blame, Contact, EndOfCall, EndOfSession, Presence, Push};
use kendall_talk::PeerTransport;
use kendall_talk::relay::announcement;

use crate::serving::{PASSWORD, TALK, blame, clients, connect, contact, enter, new_user, pushed, serve};

/// Whether a watched user is there.
fn changed(push: &Push) -> Option<(String, Presence)> {
    match push {
        Push::Changed { name, presence } => Some((name.clone(), *presence)),
        _ => None,
    }
}

#[test]
fn accounts_are_registered_once_and_entered_with_their_password() {
    let server = serve(Limits::default());
    clients(async {
        let mut client = connect(&server).await;
        client.register("Alice", PASSWORD, Stretch::Argon2id).await.unwrap();
        assert_eq!(blame(client.register("a1ice", "other", Stretch::Off).await), Blame::NameTaken);
        assert_eq!(blame(client.register("a lice", "other", Stretch::Off).await), Blame::InvalidName);
        assert_eq!(blame(client.stay_alive().await), Blame::NoSession);
        let wrong = client.log_in("alice", "other", Stretch::Argon2id).await;
        assert_eq!(blame(wrong), Blame::WrongNameOrPassword);
        // A name that looks the same enters the same account.
        let entered = client.log_in("ALICE", PASSWORD, Stretch::Argon2id).await.unwrap();
        assert_eq!(entered.name, "alice");
        assert_eq!(blame(client.log_in("bob", PASSWORD, Stretch::Off).await), Blame::OtherSession);
        client.stay_alive().await.unwrap();
        assert_eq!(client.who_is_there().await.unwrap(), ["alice"]);
        client.log_out().await.unwrap();
        assert_eq!(blame(client.who_is_there().await), Blame::NoSession);
        assert_eq!(blame(client.resume(entered.token).await), Blame::NoSession);
    });
    server.stop();
}

#[test]
fn watchers_learn_who_comes_and_goes() {
    let server = serve(Limits { linger: Duration::from_millis(20), ..Limits::default() });
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        alice.watch("Bob").await.unwrap();
        let bob = |presence| ("Bob".to_owned(), presence);
        assert_eq!(pushed(&mut alice, changed).await, bob(Presence::Away));
        let mut first = new_user(&server, "bob").await;
        assert_eq!(pushed(&mut alice, changed).await, bob(Presence::There));
        assert_eq!(alice.who_is_there().await.unwrap(), ["alice", "bob"]);
        // A second session changes nothing, nor does its end.
        let mut second = connect(&server).await;
        enter(&mut second, "bob").await;
        second.log_out().await.unwrap();
        first.log_out().await.unwrap();
        assert_eq!(pushed(&mut alice, changed).await, bob(Presence::Away));
        // A client that closes its connection without logging out.
        enter(&mut second, "bob").await;
        assert_eq!(pushed(&mut alice, changed).await, bob(Presence::There));
        drop(second);
        assert_eq!(pushed(&mut alice, changed).await, bob(Presence::Away));
        alice.unwatch("bob").await.unwrap();
        enter(&mut first, "bob").await;
        assert_eq!(alice.who_is_there().await.unwrap(), ["alice", "bob"]);
    });
    server.stop();
}

#[test]
fn pages_of_users_are_complete_and_in_order() {
    let server = serve(Limits { attempts: None, ..Limits::default() });
    clients(async {
        let mut names: Vec<String> = (0..70).map(|i| format!("user{i}")).collect();
        let mut all = Vec::new();
        for name in &names {
            all.push(new_user(&server, name).await);
        }
        names.sort();
        assert_eq!(all[0].who_is_there().await.unwrap(), names);
    });
    server.stop();
}

#[test]
fn a_call_joins_caller_and_called_and_the_others_stop_ringing() {
    let server = serve(Limits::default());
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        let (mut bob, mut bobs_other) = (new_user(&server, "bob").await, connect(&server).await);
        enter(&mut bobs_other, "bob").await;
        assert_eq!(blame(alice.call("bob", TALK, contact(1)).await), Blame::Unreachable, "bob does not wait");
        assert_eq!(
            blame(alice.call("carol", TALK, contact(1)).await),
            Blame::Unreachable,
            "there is no carol"
        );
        bob.wait_for_calls().await.unwrap();
        bobs_other.wait_for_calls().await.unwrap();
        let addresses =
            Addresses::new(vec!["192.0.2.1:7".parse().unwrap(), "[2001:db8::1]:8".parse().unwrap()]);
        let own = Contact { key: [1; 32], transport: PeerTransport::Quic, addresses };
        let call = alice.call("bob", TALK, own.clone()).await.unwrap();
        for client in [&mut bob, &mut bobs_other] {
            assert_eq!(
                client.next_push().await.unwrap(),
                Push::Incoming { call, name: "alice".into(), talk: TALK }
            );
        }
        let (peer, called_token) = bob.accept(call, contact(2)).await.unwrap();
        assert_eq!((peer.name.as_str(), &peer.contact), ("alice", &own));
        assert_eq!(peer.seen_from, alice.local_addr());
        let Push::Accepted { call: accepted, peer, token } = alice.next_push().await.unwrap() else {
            panic!()
        };
        assert_ne!(token, called_token);
        assert_eq!((accepted, peer.name.as_str(), peer.contact), (call, "bob", contact(2)));
        assert_eq!(peer.seen_from, bob.local_addr());
        let ended = bobs_other.next_push().await.unwrap();
        assert_eq!(ended, Push::CallEnded { call, why: EndOfCall::Elsewhere });
        assert_eq!(blame(bobs_other.accept(call, contact(3)).await), Blame::NoSuchCall);

        // Each learns where the other one announced itself.
        let [caller, called] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        caller.send_to(&announcement(&token), server.address).unwrap();
        let address = caller.local_addr().unwrap();
        assert_eq!(bob.next_push().await.unwrap(), Push::PeerSeen { call, address });
        called.send_to(&announcement(&called_token), server.address).unwrap();
        let address = called.local_addr().unwrap();
        assert_eq!(alice.next_push().await.unwrap(), Push::PeerSeen { call, address });
    });
    server.stop();
}

#[test]
fn a_call_can_be_refused_given_up_missed_and_lost() {
    let limits = Limits { ring: Duration::from_millis(50), ..Limits::default() };
    let server = serve(limits);
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        let mut bob = new_user(&server, "bob").await;
        let mut carol = new_user(&server, "carol").await;
        bob.wait_for_calls().await.unwrap();
        let ended = |push: &Push| match push {
            Push::CallEnded { call, why } => Some((*call, *why)),
            _ => None,
        };
        let rings = |push: &Push| matches!(push, Push::Incoming { .. }).then_some(());
        let call = alice.call("bob", TALK, contact(1)).await.unwrap();
        pushed(&mut bob, rings).await;
        assert_eq!(blame(carol.refuse(call).await), Blame::NoSuchCall, "it is not carol's");
        bob.refuse(call).await.unwrap();
        assert_eq!(pushed(&mut alice, ended).await, (call, EndOfCall::Refused));
        let call = alice.call("bob", TALK, contact(1)).await.unwrap();
        alice.cancel(call).await.unwrap();
        pushed(&mut bob, rings).await;
        assert_eq!(pushed(&mut bob, ended).await, (call, EndOfCall::Cancelled));
        let call = alice.call("bob", TALK, contact(1)).await.unwrap();
        pushed(&mut bob, rings).await;
        assert_eq!(pushed(&mut alice, ended).await, (call, EndOfCall::Unanswered));
        assert_eq!(pushed(&mut bob, ended).await, (call, EndOfCall::Unanswered));
        bob.stop_waiting().await.unwrap();
        assert_eq!(blame(alice.call("bob", TALK, contact(1)).await), Blame::Unreachable);
    });
    server.stop();
    let server = serve(Limits::default());
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        let mut bob = new_user(&server, "bob").await;
        bob.wait_for_calls().await.unwrap();
        let call = alice.call("bob", TALK, contact(1)).await.unwrap();
        drop(bob);
        let ended = alice.next_push().await.unwrap();
        assert_eq!(ended, Push::CallEnded { call, why: EndOfCall::Gone });
    });
    server.stop();
}

#[test]
fn a_session_is_taken_up_on_another_connection() {
    let server = serve(Limits::default());
    clients(async {
        let mut first = connect(&server).await;
        first.register("alice", PASSWORD, Stretch::Off).await.unwrap();
        let entered = enter(&mut first, "alice").await;
        let mut second = connect(&server).await;
        assert_eq!(second.resume(entered.token.clone()).await.unwrap(), entered);
        let ended = first.next_push().await.unwrap();
        assert_eq!(ended, Push::SessionEnded { why: EndOfSession::TakenUp });
        assert_eq!(blame(first.stay_alive().await), Blame::NoSession);
        drop(second);
        let mut third = connect(&server).await;
        third.resume(entered.token).await.unwrap();
        third.stay_alive().await.unwrap();
    });
    server.stop();
}

#[test]
fn a_session_without_requests_ends() {
    let limits = Limits { lease: Duration::from_millis(50), ..Limits::default() };
    let server = serve(limits);
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        let ended = alice.next_push().await.unwrap();
        assert_eq!(ended, Push::SessionEnded { why: EndOfSession::Expired });
    });
    server.stop();
}

#[test]
fn a_new_password_ends_other_sessions_and_a_deleted_account_is_gone() {
    let server = serve(Limits::default());
    clients(async {
        let (mut own, mut other) = (new_user(&server, "alice").await, connect(&server).await);
        enter(&mut other, "alice").await;
        own.change_password("new", Stretch::Off).await.unwrap();
        let ended = other.next_push().await.unwrap();
        assert_eq!(ended, Push::SessionEnded { why: EndOfSession::PasswordChanged });
        let old = other.log_in("alice", PASSWORD, Stretch::Off).await;
        assert_eq!(blame(old), Blame::WrongNameOrPassword);
        other.log_in("alice", "new", Stretch::Off).await.unwrap();
        own.stay_alive().await.unwrap();
        own.delete_account().await.unwrap();
        let ended = other.next_push().await.unwrap();
        assert_eq!(ended, Push::SessionEnded { why: EndOfSession::AccountDeleted });
        let gone = other.log_in("alice", "new", Stretch::Off).await;
        assert_eq!(blame(gone), Blame::WrongNameOrPassword);
        other.register("alice", "another", Stretch::Off).await.unwrap();
    });
    server.stop();
}

#[test]
fn changes_of_an_account_need_a_fresh_proof() {
    let server = serve(Limits { proof: Duration::ZERO, ..Limits::default() });
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(blame(alice.delete_account().await), Blame::ProofNeeded);
        assert_eq!(blame(alice.change_password("new", Stretch::Off).await), Blame::ProofNeeded);
    });
    server.stop();
}

/// As the published study did: a connection for each request.
#[test]
fn registration_and_log_in_work_on_a_connection_each() {
    let server = serve(Limits { attempts: None, ..Limits::default() });
    clients(async {
        for name in ["alice", "bob", "carol"] {
            connect(&server).await.register(name, PASSWORD, Stretch::Off).await.unwrap();
            enter(&mut connect(&server).await, name).await;
        }
    });
    server.stop();
}
