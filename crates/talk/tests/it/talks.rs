//! Talks on the loopback interface.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kendall_curve::curvecp::SecretKey;
use kendall_talk::{Command, End, Event, MeetError, Meeting, Path, PeerStream, PeerTransport, Side};
use tokio::sync::watch;

use crate::peers::{Introduction, PATIENCE, TALK, User, introduce, keys, meet};

pub(crate) const BOTH: [PeerTransport; 2] = [PeerTransport::CurveCp, PeerTransport::Quic];

pub(crate) fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Both ends of a stream, the path of each, and what introduced them.
pub(crate) async fn met(transport: PeerTransport) -> ([(PeerStream, Path); 2], Introduction) {
    let introduction = introduce(any()).await;
    let [to_first, to_second] = introduction.peers.clone();
    let (first, second) = tokio::join!(
        meet(transport, 0, any(), to_first, introduction.address),
        meet(transport, 1, any(), to_second, introduction.address)
    );
    ([first.unwrap(), second.unwrap()], introduction)
}

#[tokio::test]
async fn two_peers_meet_talk_and_part() {
    for transport in BOTH {
        meet_talk_and_part(transport).await;
    }
}

async fn meet_talk_and_part(transport: PeerTransport) {
    let ([(first, path), (second, other_path)], _) = met(transport).await;
    assert!(matches!([path, other_path], [Path::Direct(_), Path::Direct(_)]));
    let mut first = User::new(Side::new(TALK), first);
    let mut second = User::new(Side::new(TALK), second);
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
    for transport in BOTH {
        reconnect_over_the_relay(transport).await;
    }
}

async fn reconnect_over_the_relay(transport: PeerTransport) {
    let introduction = introduce(any()).await;
    // Neither side learns the other's address.
    let (unknown, nothing) = watch::channel(Vec::new());
    let mut sides = [(); 2].map(|()| Side::new(TALK));
    let mut heard = Vec::new();
    for connection in 0..2 {
        let (first, second) = tokio::join!(
            meet(transport, 0, any(), nothing.clone(), introduction.address),
            meet(transport, 1, any(), nothing.clone(), introduction.address)
        );
        let ((first, path), (second, _)) = (first.unwrap(), second.unwrap());
        assert_eq!(path, Path::Relayed(introduction.address));
        let [one, other] = sides;
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
        sides = [one, other];
        introduction.open();
    }
    let said = (0..2).flat_map(|connection| (0..100).map(move |number| format!("{connection}.{number}")));
    assert!(heard.len() >= 150, "{}", heard.len());
    assert!(heard.iter().eq(said.collect::<Vec<_>>()[..heard.len()].iter()));
    // What arrived without its acknowledgment still waits.
    assert!(heard.len() + sides[0].waiting() >= 200);
    drop(unknown);
}

#[tokio::test]
async fn a_peer_that_vanishes_is_noticed_within_seconds() {
    for transport in BOTH {
        vanish(transport).await;
    }
}

async fn vanish(transport: PeerTransport) {
    let ([(first, _), (second, _)], introduction) = met(transport).await;
    drop(introduction);
    let mut first = User::new(Side::new(TALK), first);
    let second = User::new(Side::new(TALK), second);
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
    let expected =
        meeting.join(PeerTransport::CurveCp, first.public_key(), addresses.clone(), None, patience);
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
    let itself = meeting.join(PeerTransport::Quic, second.public_key(), addresses, None, patience).await;
    assert!(matches!(itself, Err(MeetError::Oneself)));
}

#[tokio::test]
async fn over_quic_a_peer_without_the_key_is_not_let_in() {
    let [first, second] = keys();
    // An impostor has the dialling peer's place, and not its key; of the two keys here, which dials is as the order says.
    let impostor = (3..)
        .map(|byte| SecretKey::from_bytes([byte; 32]))
        .find(|key| key.public_key().0 < second.public_key().0);
    let (expecting, knocking) =
        (Meeting::bind(any(), second.clone()).unwrap(), Meeting::bind(any(), impostor.unwrap()).unwrap());
    let patience = Duration::from_secs(3);
    let (_known, nowhere) = watch::channel(Vec::new());
    let (_known, there) = watch::channel(vec![expecting.address()]);
    let (met, let_in) = tokio::join!(
        expecting.join(PeerTransport::Quic, first.public_key(), nowhere, None, patience),
        knocking.join(PeerTransport::Quic, second.public_key(), there, None, patience)
    );
    assert!(matches!(met, Err(MeetError::Unreachable(_))));
    assert!(matches!(let_in, Err(MeetError::Unreachable(_))));
}
