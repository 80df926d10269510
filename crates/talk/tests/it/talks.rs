//! Talks on the loopback interface.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kendall_curve::Stream;
use kendall_curve::curvecp::SecretKey;
use kendall_talk::{Command, Conversation, End, Event, MeetError, Meeting, Path};
use tokio::sync::watch;

use crate::peers::{Introduction, PATIENCE, TALK, User, introduce, keys, meet};

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Both ends of a stream, the path of each, and what introduced them.
async fn met() -> ([(Stream, Path); 2], Introduction) {
    let introduction = introduce(any()).await;
    let [to_first, to_second] = introduction.peers.clone();
    let (first, second) = tokio::join!(
        meet(0, any(), to_first, introduction.address),
        meet(1, any(), to_second, introduction.address)
    );
    ([first.unwrap(), second.unwrap()], introduction)
}

#[tokio::test]
async fn two_peers_meet_talk_and_part() {
    let ([(first, path), (second, other_path)], _) = met().await;
    assert!(matches!([path, other_path], [Path::Direct(_), Path::Direct(_)]));
    let mut first = User::new(Conversation::new(TALK), first);
    let mut second = User::new(Conversation::new(TALK), second);
    for number in 0..200 {
        first.say(format!("{number} ✓\nsecond line")).await;
        if number % 50 == 0 {
            second.say("yes").await;
        }
        if number % 10 == 9 {
            assert_eq!(second.hear(10).await[9], format!("{number} ✓\nsecond line"));
        }
    }
    assert_eq!(first.hear(4).await, ["yes"; 4]);
    second.commands.send(Command::Read(200)).await.unwrap();
    first.see(Event::Read(200)).await;
    first.commands.send(Command::Leave).await.unwrap();
    second.see(Event::Bye).await;
    assert!(matches!(second.end().await.2, End::Over));
    assert!(matches!(first.end().await.2, End::Over));
}

#[tokio::test]
async fn without_a_direct_way_the_relay_forwards_and_nothing_is_lost_over_a_reconnection() {
    let introduction = introduce(any()).await;
    // Neither side learns the other's address.
    let (unknown, nothing) = watch::channel(Vec::new());
    let mut conversations = [(); 2].map(|()| Conversation::new(TALK));
    let mut heard = Vec::new();
    for connection in 0..2 {
        let (first, second) = tokio::join!(
            meet(0, any(), nothing.clone(), introduction.address),
            meet(1, any(), nothing.clone(), introduction.address)
        );
        let ((first, path), (second, _)) = (first.unwrap(), second.unwrap());
        assert_eq!(path, Path::Relayed(introduction.address));
        let [one, other] = conversations;
        let (first, mut second) = (User::new(one, first), User::new(other, second));
        for number in 0..100 {
            first.say(format!("{connection}.{number}")).await;
        }
        heard.extend(second.hear(50).await);
        // Now the way breaks, whatever of the rest has arrived.
        introduction.handle.close(introduction.pair.replace(None).unwrap());
        let (one, _, end) = first.end().await;
        assert!(matches!(end, End::Lost(_)), "{end}");
        let (other, rest, _) = second.end().await;
        heard.extend(rest);
        conversations = [one, other];
        introduction.open();
    }
    let said = (0..2).flat_map(|connection| (0..100).map(move |number| format!("{connection}.{number}")));
    assert!(heard.len() >= 150, "{}", heard.len());
    assert!(heard.iter().eq(said.collect::<Vec<_>>()[..heard.len()].iter()));
    // What arrived without its acknowledgment still waits.
    assert!(heard.len() + conversations[0].waiting() >= 200);
    drop(unknown);
}

#[tokio::test]
async fn a_peer_that_vanishes_is_noticed_within_seconds() {
    let ([(first, _), (second, _)], introduction) = met().await;
    drop(introduction);
    let mut first = User::new(Conversation::new(TALK), first);
    let second = User::new(Conversation::new(TALK), second);
    second.say("still here").await;
    first.hear(1).await;
    let begin = Instant::now();
    // The peer's program ends without a word: its stream ends in failure.
    drop(second);
    let (_, _, end) = first.end().await;
    assert!(matches!(end, End::Lost(_)), "{end}");
    assert!(begin.elapsed() < PATIENCE);
}

#[tokio::test]
async fn others_are_not_let_in_and_a_peer_that_is_not_there_is_an_error() {
    let [first, second] = keys();
    let stranger = SecretKey::from_bytes([3; 32]);
    let meeting = Meeting::bind(any(), second.clone()).unwrap();
    let at = meeting.address();
    let (_known, addresses) = watch::channel(vec![at]);
    let patience = Duration::from_secs(2);
    let expected = meeting.join(first.public_key(), addresses.clone(), None, patience);
    // The stranger dials, whatever the order of the keys is.
    let endpoint = kendall_curve::Endpoint::client(any(), kendall_curve::RandomNonces).unwrap();
    let stream = endpoint.connect(kendall_curve::curvecp::ClientConfig {
        identity: stranger,
        server: second.public_key(),
        server_extension: Default::default(),
        name: kendall_curve::curvecp::DomainName::new("peer.kendall").unwrap(),
        addresses: vec![at],
        extension: None,
        capabilities: Default::default(),
        message: Default::default(),
    });
    let knocking = stream.unwrap().connection().clone();
    let (met, answered) = tokio::join!(expected, tokio::time::timeout(patience, knocking.established()));
    assert!(matches!(met, Err(MeetError::Unreachable(_))));
    assert!(answered.is_err() || answered == Ok(false));

    let meeting = Meeting::bind(any(), second.clone()).unwrap();
    let itself = meeting.join(second.public_key(), addresses, None, patience).await;
    assert!(matches!(itself, Err(MeetError::Oneself)));
}
