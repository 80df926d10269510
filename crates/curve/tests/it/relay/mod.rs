//! A relay of UDP between clients and one server that loses, repeats and reorders datagrams, as drawn from a seed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::net::UdpSocket;

/// How long a datagram takes one way, and how much longer one that others overtake.
const DELAY: Duration = Duration::from_millis(2);

/// The shares of datagrams that a link loses, repeats and delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) loss: f64,
    pub(crate) repeats: f64,
    pub(crate) late: f64,
}

type Fates = Arc<Mutex<(Link, StdRng)>>;

/// Starts a relay in the present runtime, with which it ends, and returns its address.
pub(crate) async fn start(server: SocketAddr, link: Link, seed: u64) -> SocketAddr {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = front.local_addr().unwrap();
    let fates = Arc::new(Mutex::new((link, StdRng::seed_from_u64(seed))));
    tokio::spawn(async move {
        let mut backs = HashMap::<SocketAddr, Arc<UdpSocket>>::new();
        let mut datagram = [0; 2048];
        while let Ok((length, client)) = front.recv_from(&mut datagram).await {
            let back = match backs.entry(client) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                    tokio::spawn(answers(back.clone(), front.clone(), client, fates.clone()));
                    new.insert(back)
                }
            };
            forward(back, server, &datagram[..length], &fates);
        }
    });
    address
}

async fn answers(back: Arc<UdpSocket>, front: Arc<UdpSocket>, client: SocketAddr, fates: Fates) {
    let mut datagram = [0; 2048];
    while let Ok(length) = back.recv(&mut datagram).await {
        forward(&front, client, &datagram[..length], &fates);
    }
}

/// Draws what happens to a datagram, and has it sent then.
fn forward(through: &Arc<UdpSocket>, to: SocketAddr, datagram: &[u8], fates: &Fates) {
    let (link, rng) = &mut *fates.lock().unwrap();
    let copies = match () {
        () if rng.random_bool(link.loss) => 0,
        () if rng.random_bool(link.repeats) => 2,
        () => 1,
    };
    for _ in 0..copies {
        let delay = if rng.random_bool(link.late) { DELAY * 3 } else { DELAY };
        let (through, datagram) = (through.clone(), datagram.to_vec());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            _ = through.send_to(&datagram, to).await;
        });
    }
}
