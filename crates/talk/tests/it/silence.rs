//! A path that falls silent: packets are dropped and no stream is closed, as when a cable is pulled.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kendall_talk::{End, Meeting, PeerTransport, Side};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::peers::{PATIENCE, TALK, User, keys};
use crate::talks::any;

/// Which peers' packets get through.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Open {
    Both,
    /// Those of the first peer, which hears nothing.
    OfFirst,
    Neither,
}

/// A socket between two peers, each of which takes it for the other one.
async fn forward(between: UdpSocket, peers: [SocketAddr; 2], open: Arc<AtomicU8>) {
    let mut datagram = [0; 2048];
    loop {
        let Ok((length, from)) = between.recv_from(&mut datagram).await else { continue };
        let Some(side) = peers.iter().position(|peer| *peer == from) else { continue };
        let open = open.load(Ordering::Relaxed);
        let is_open = open == Open::Both as u8 || (open == Open::OfFirst as u8 && side == 0);
        if is_open {
            _ = between.send_to(&datagram[..length], peers[1 - side]).await;
        }
    }
}

#[tokio::test]
async fn a_peer_behind_a_silent_path_is_noticed_within_seconds() {
    // The waits are the same for all.
    tokio::join!(
        fall_silent(PeerTransport::CurveCp, Open::Neither),
        fall_silent(PeerTransport::CurveCp, Open::OfFirst),
        fall_silent(PeerTransport::Quic, Open::Neither),
        fall_silent(PeerTransport::Quic, Open::OfFirst),
    );
}

async fn fall_silent(transport: PeerTransport, then: Open) {
    let meetings = keys().map(|key| Meeting::bind(any(), key).unwrap());
    let addresses = [meetings[0].address(), meetings[1].address()];
    let between = UdpSocket::bind(any()).await.unwrap();
    let (_known, there) = watch::channel(vec![between.local_addr().unwrap()]);
    let open = Arc::new(AtomicU8::new(Open::Both as u8));
    let forwarding = tokio::spawn(forward(between, addresses, open.clone()));
    let [first, second] = meetings;
    let [first_key, second_key] = keys().map(|key| key.public_key());
    let (first, second) = tokio::join!(
        first.join(transport, second_key, there.clone(), None, PATIENCE),
        second.join(transport, first_key, there, None, PATIENCE)
    );
    let mut first = User::new(Side::new(TALK), first.unwrap().0);
    let second = User::new(Side::new(TALK), second.unwrap().0);
    second.say("still here").await;
    assert_eq!(first.hear(1).await, ["still here"]);
    open.store(then as u8, Ordering::Relaxed);
    let ended = timeout(PATIENCE, first.end()).await;
    let (_, _, end) = ended.unwrap_or_else(|_| panic!("{transport}, {then:?}: the silence is not noticed"));
    assert!(matches!(end, End::Lost(_)), "{transport}, {then:?}: {end}");
    // The other peer gets no packets any more, and its user learns so, too.
    let ended = timeout(PATIENCE, second.end()).await;
    let (_, _, end) =
        ended.unwrap_or_else(|_| panic!("{transport}, {then:?}: the second peer does not notice"));
    assert!(matches!(end, End::Lost(_)), "{transport}, {then:?}: {end}");
    forwarding.abort();
}
