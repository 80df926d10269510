//! State that the driver of an endpoint and the holders of its connections share: the protocol, and for each connection the
//! tasks that wait for it.
//!
//! The one lock guards memory only: it is never held across a system call on the socket or an await.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use curvecp::{CloseReason, ConnectionId, Event, PublicKey, TransmitBuffer};
use tokio::sync::{Notify, watch};

use crate::clock::now;
use crate::member::Member;
use crate::socket::Inbox;

/// Connections that wait to be accepted, at most; a client beyond is turned away.
const INCOMING: usize = 1024;

/// Datagrams of the owner that wait to be sent, at most; the oldest makes room.
const FOREIGN: usize = 64;

/// The phase of a connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A client that the server has not answered yet.
    Opening,
    /// The peer has proved its key.
    Open,
    /// Over.
    Closed(CloseReason),
}

/// An endpoint's part that its driver, its streams and its owner hold.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// There is something for the driver to do.
    pub(crate) work: Notify,
    /// A connection can be accepted, or none ever will.
    pub(crate) accepted: Arc<Notify>,
    /// A connection is over.
    pub(crate) ended: Notify,
    pub(crate) address: SocketAddr,
    /// The endpoint's place among others at the same address.
    member: Option<Member>,
}

pub(crate) struct State {
    pub(crate) protocol: curvecp::Endpoint,
    pub(crate) connections: HashMap<ConnectionId, Entry>,
    pub(crate) incoming: VecDeque<Incoming>,
    /// Datagrams of the owner, which are not CurveCP's.
    pub(crate) foreign: VecDeque<(SocketAddr, Box<[u8]>)>,
    /// The owner of the endpoint exists and accepts connections.
    pub(crate) owned: bool,
    /// The driver has ended.
    pub(crate) stopped: bool,
}

/// A connection that a client opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) id: ConnectionId,
    pub(crate) client: PublicKey,
    pub(crate) address: SocketAddr,
}

/// The tasks that wait for a connection.
pub(crate) struct Entry {
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    pub(crate) stage: watch::Sender<Stage>,
    /// A stream or a handle of the connection exists.
    pub(crate) held: bool,
}

impl Entry {
    pub(crate) fn new(stage: Stage) -> Self {
        Self { reader: None, writer: None, stage: watch::Sender::new(stage), held: true }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Closed(_))
    }

    fn wake(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Send the buffer and go on.
    Busy,
    /// Wait for datagrams, for work, or for this instant.
    Wait(Option<Duration>),
    /// The endpoint has no owner and no connection left.
    Stop,
}

impl Shared {
    pub(crate) fn new(protocol: curvecp::Endpoint, address: SocketAddr, member: Option<Member>) -> Self {
        Self {
            state: Mutex::new(State {
                protocol,
                connections: HashMap::new(),
                incoming: VecDeque::new(),
                foreign: VecDeque::new(),
                owned: true,
                stopped: false,
            }),
            work: Notify::new(),
            accepted: member.as_ref().map_or_else(Arc::default, Member::accepted),
            ended: Notify::new(),
            address,
            member,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic of the driver, which stops the endpoint, the others still get their answers.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the driver send a datagram that is not CurveCP's.
    pub(crate) fn send_foreign(&self, to: SocketAddr, datagram: &[u8]) {
        let mut state = self.lock();
        if state.foreign.len() >= FOREIGN {
            state.foreign.pop_front();
        }
        state.foreign.push_back((to, datagram.into()));
        drop(state);
        self.work.notify_one();
    }

    /// Hands received datagrams to the protocol, does what is due, and fills the buffer with datagrams to send.
    pub(crate) fn step(&self, inbox: &mut Inbox, outbox: &mut TransmitBuffer) -> Next {
        let mut state = self.lock();
        let now = now();
        if let Some(member) = &self.member {
            for (from, mut datagram) in member.handed_over() {
                state.protocol.handle_datagram(now, from, &mut datagram);
            }
        }
        for (from, segment, datagrams) in inbox.messages() {
            if let Some(member) = &self.member {
                member.hand_over(&state.protocol, from, datagrams, segment);
            }
            state.protocol.handle_datagrams(now, from, datagrams, segment);
        }
        state.protocol.handle_timeout(now);
        let sends = state.protocol.poll_transmit(now, outbox);
        while let Some(event) = state.protocol.poll_event() {
            self.handle(&mut state, event);
        }
        if sends {
            Next::Busy
        } else if !state.owned && state.connections.is_empty() {
            Next::Stop
        } else {
            Next::Wait(state.protocol.next_deadline())
        }
    }

    /// Waits until another endpoint of the group has handed a datagram over.
    pub(crate) async fn handed_over(&self) {
        match &self.member {
            Some(member) => member.arrived().await,
            None => std::future::pending().await,
        }
    }

    fn handle(&self, state: &mut State, event: Event) {
        match event {
            Event::NewConnection { id, client, short_term, address, .. } => {
                if !state.owned || state.incoming.len() >= INCOMING {
                    _ = state.protocol.forget(id);
                    return;
                }
                if let Some(member) = &self.member {
                    member.register(id, short_term);
                }
                state.connections.insert(id, Entry::new(Stage::Open));
                state.incoming.push_back(Incoming { id, client, address });
                self.accepted.notify_one();
            }
            Event::Connected(id) => {
                if let Some(entry) = state.connections.get(&id) {
                    entry.stage.send_replace(Stage::Open);
                }
            }
            Event::Readable(id) => {
                let reader = state.connections.get_mut(&id).and_then(|entry| entry.reader.take());
                reader.into_iter().for_each(Waker::wake);
            }
            Event::Writable(id) => {
                let writer = state.connections.get_mut(&id).and_then(|entry| entry.writer.take());
                writer.into_iter().for_each(Waker::wake);
            }
            Event::Moved(..) => {}
            Event::Closed(id, reason) => {
                if let Some(member) = &self.member {
                    member.unregister(id);
                }
                let Some(entry) = state.connections.get_mut(&id) else { return };
                entry.stage.send_replace(Stage::Closed(reason));
                entry.wake();
                if !entry.held {
                    state.forget(id);
                }
                self.ended.notify_waiters();
            }
        }
    }

    /// Ends everything that waits for the endpoint, because its driver ends.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.incoming.clear();
        // Without the sender of its stages a connection counts as over.
        state.connections.drain().for_each(|(_, mut entry)| entry.wake());
        self.accepted.notify_waiters();
        self.accepted.notify_one();
        self.ended.notify_waiters();
    }

    /// The last holder of a connection is gone.
    pub(crate) fn release(&self, id: ConnectionId) {
        let mut state = self.lock();
        let Some(entry) = state.connections.get_mut(&id) else { return };
        entry.held = false;
        if entry.is_over() {
            state.forget(id);
        }
        self.work.notify_one();
    }
}

impl State {
    fn forget(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        _ = self.protocol.forget(id);
    }
}
