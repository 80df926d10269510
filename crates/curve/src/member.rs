//! State that the endpoints of a server on several threads share: the owner of each connection, and a mailbox
//! for each endpoint.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use curvecp::packet::client_of;
use curvecp::{ConnectionId, PublicKey};
use tokio::sync::Notify;

/// Datagrams that wait for a thread, at most; more are lost, as on any link.
const MAILBOX: usize = 1024;

/// What the endpoints of a group share.
pub(crate) struct Group {
    /// Which endpoint has the connection of a client, by its short-term key.
    owners: RwLock<HashMap<PublicKey, usize>>,
    members: Vec<Mailbox>,
    accepted: Arc<Notify>,
}

#[derive(Default)]
struct Mailbox {
    waiting: Mutex<VecDeque<(SocketAddr, Vec<u8>)>>,
    arrived: Notify,
    keys: Mutex<HashMap<ConnectionId, PublicKey>>,
}

impl Group {
    pub(crate) fn new(members: usize) -> Self {
        let members = (0..members).map(|_| Mailbox::default()).collect();
        Self { owners: RwLock::default(), members, accepted: Arc::default() }
    }

    /// Reports a connection at any endpoint.
    pub(crate) fn accepted(&self) -> Arc<Notify> {
        self.accepted.clone()
    }
}

/// One endpoint's place in its group.
pub(crate) struct Member {
    group: Arc<Group>,
    own: usize,
}

impl Member {
    pub(crate) fn new(group: Arc<Group>, own: usize) -> Self {
        Self { group, own }
    }

    /// Reports a connection at any endpoint.
    pub(crate) fn accepted(&self) -> Arc<Notify> {
        self.group.accepted()
    }

    /// Makes a connection known to the other endpoints.
    pub(crate) fn register(&self, id: ConnectionId, client: PublicKey) {
        lock(&self.mailbox().keys).insert(id, client);
        self.group.owners.write().unwrap_or_else(PoisonError::into_inner).insert(client, self.own);
    }

    /// Notes that a connection is over.
    pub(crate) fn unregister(&self, id: ConnectionId) {
        if let Some(client) = lock(&self.mailbox().keys).remove(&id) {
            self.group.owners.write().unwrap_or_else(PoisonError::into_inner).remove(&client);
        }
    }

    /// Gives each datagram of another endpoint's connection to that endpoint. This one ignores it.
    pub(crate) fn hand_over(
        &self,
        protocol: &curvecp::Endpoint,
        from: SocketAddr,
        datagrams: &[u8],
        segment: usize,
    ) {
        for datagram in datagrams.chunks(segment.max(1)) {
            let Some(client) = client_of(datagram).filter(|client| !protocol.has_client(client)) else {
                continue;
            };
            let owner =
                self.group.owners.read().unwrap_or_else(PoisonError::into_inner).get(&client).copied();
            let Some(owner) = owner.filter(|owner| *owner != self.own) else { continue };
            let mailbox = &self.group.members[owner];
            let mut waiting = lock(&mailbox.waiting);
            if waiting.len() < MAILBOX {
                waiting.push_back((from, datagram.to_vec()));
                mailbox.arrived.notify_one();
            }
        }
    }

    /// Takes what other endpoints have handed over.
    pub(crate) fn handed_over(&self) -> VecDeque<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut lock(&self.mailbox().waiting))
    }

    /// Waits until another endpoint has handed something over.
    pub(crate) async fn arrived(&self) {
        self.mailbox().arrived.notified().await;
    }

    fn mailbox(&self) -> &Mailbox {
        &self.group.members[self.own]
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
