//! The endpoint: all connections of one UDP socket, as a client, a server or both.

use crate::client::HelloPhase;
use crate::congestion::Algorithm;
use crate::connection::{CloseReason, Connection, ConnectionName, Stage};
use crate::cookie::Capabilities;
use crate::hashing::{KeyedHash, Table};
use crate::keys::erasing_stack;
use crate::layer::{MessageLayer, Role};
use crate::nonce::LongTermNonces;
use crate::packet::COOKIE;
use crate::refusals::Refusals;
use crate::server::Acceptor;
use crate::slots::{ConnectionId, Slots};
use crate::stream::Read;
use crate::transmit::TransmitBuffer;
use crate::{ClientConfig, Error, Extension, PublicKey, ServerConfig};
use rand_core::CryptoRng;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Cookies that wait to be sent, at most; while as many wait, Hellos are dropped.
pub(crate) const COOKIES: usize = 256;

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client has opened a connection to this server.
    NewConnection {
        /// The connection.
        id: ConnectionId,
        /// The client's long-term public key, which it has proved to own.
        client: PublicKey,
        /// The client's short-term public key, which its packets carry.
        short_term: PublicKey,
        /// The address of the client.
        address: SocketAddr,
        /// The capabilities that the client's Hello announced; zeros from clients that announce nothing.
        capabilities: Capabilities,
    },
    /// The server has answered this client's connection.
    Connected(ConnectionId),
    /// [`Endpoint::read`] returned [`Read::Blocked`] before and would not now.
    Readable(ConnectionId),
    /// [`Endpoint::write`] took less than it was given before and would take more now.
    Writable(ConnectionId),
    /// The client has moved to another address.
    Moved(ConnectionId, SocketAddr),
    /// The connection is over. It can be read until [`Endpoint::forget`] frees it.
    Closed(ConnectionId, CloseReason),
}

/// All connections of one UDP socket.
///
/// A driver repeats this: hand over received datagrams ([`handle_datagrams`](Self::handle_datagrams)), call
/// [`handle_timeout`](Self::handle_timeout) where [`next_deadline`](Self::next_deadline) has come, send what
/// [`poll_transmit`](Self::poll_transmit) gives until it gives nothing, deliver [`poll_event`](Self::poll_event), and wait
/// for the next deadline or datagram. After the application has read, written or ended a stream, it transmits again.
pub struct Endpoint {
    pub(crate) server: Option<Acceptor>,
    pub(crate) slots: Slots,
    pub(crate) by_client: Table<PublicKey, ConnectionId>,
    /// The clients of a server by [`Connection::listed`], which is never after they were last heard.
    pub(crate) silence: BTreeSet<(Duration, ConnectionId)>,
    pub(crate) by_extension: Table<Extension, ConnectionId>,
    pub(crate) cookies: VecDeque<(SocketAddr, [u8; COOKIE])>,
    /// Connections that may have something to send.
    ready: VecDeque<ConnectionId>,
    /// One entry at most per connection; it may be too early, never too late.
    deadlines: BTreeSet<(Duration, ConnectionId)>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) rng: Box<dyn CryptoRng + Send>,
    pub(crate) nonces: Box<dyn LongTermNonces + Send>,
}

impl Endpoint {
    /// An endpoint that begins at `now`, and is a server if there is a configuration for it.
    ///
    /// `nonces` serves the long-term keys of the server and of this endpoint's clients, so it must never repeat a nonce
    /// under any of them.
    pub fn new(
        now: Duration,
        server: Option<ServerConfig>,
        mut rng: Box<dyn CryptoRng + Send>,
        nonces: Box<dyn LongTermNonces + Send>,
    ) -> Self {
        let server = erasing_stack(|| server.map(|config| Acceptor::new(now, config, &mut *rng)));
        Self {
            server,
            slots: Slots::default(),
            by_client: Table::with_hasher(KeyedHash::new(&mut *rng)),
            silence: BTreeSet::new(),
            by_extension: Table::with_hasher(KeyedHash::new(&mut *rng)),
            cookies: VecDeque::new(),
            ready: VecDeque::new(),
            deadlines: BTreeSet::new(),
            events: VecDeque::new(),
            rng,
            nonces,
        }
    }

    /// Opens a connection to a server. Its first packet is given by the next [`poll_transmit`](Self::poll_transmit).
    ///
    /// # Errors
    /// Where the configuration has no address or more than eight, a server key that no box can be made for, or a client
    /// extension that another connection of this endpoint uses.
    pub fn connect(&mut self, now: Duration, config: ClientConfig) -> Result<ConnectionId, Error> {
        let ours = config.extension.unwrap_or_else(|| {
            let mut random = Extension::default();
            self.rng.fill_bytes(&mut random.0);
            random
        });
        if self.by_extension.contains_key(&ours) {
            return Err(Error::ExtensionInUse);
        }
        let phase = erasing_stack(|| HelloPhase::new(now, &config, ours, &mut *self.rng).map(Box::new))?;
        let layer = MessageLayer::new(config.message, Role::Client, self.rng.next_u64(), now);
        let id = self.slots.insert(Connection::new(
            now,
            ConnectionName::Extension(ours),
            layer,
            Stage::Hello(phase),
        ));
        self.by_extension.insert(ours, id);
        self.enqueue(id);
        Ok(id)
    }

    /// Replaces the content of the buffer by datagrams that are due; false if none is due.
    pub fn poll_transmit(&mut self, now: Duration, buffer: &mut TransmitBuffer) -> bool {
        buffer.clear();
        while let Some((to, cookie)) = self.cookies.front() {
            let Some(packet) = buffer.next_packet() else { return true };
            packet[..COOKIE].copy_from_slice(cookie);
            buffer.push(*to, COOKIE);
            self.cookies.pop_front();
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(connection) = self.slots.get_mut(id) else { continue };
            if !connection.fill(now, buffer, &mut *self.rng) {
                // The application writes more before the rest leaves, and the others have their turn first.
                report(connection, id, &mut self.events);
                self.ready.push_back(id);
                break;
            }
            connection.queued = false;
            self.settle(now, id);
        }
        !buffer.is_empty()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) if no datagram comes before; zero where there is something
    /// to transmit.
    pub fn next_deadline(&self) -> Option<Duration> {
        if !self.ready.is_empty() || !self.cookies.is_empty() {
            return Some(Duration::ZERO);
        }
        let server = self.server.as_ref().map(|server| server.jar.deadline());
        let connection = self.deadlines.first().map(|(at, _)| *at);
        server.into_iter().chain(connection).min()
    }

    /// Runs all timers that are due by `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        if let Some(server) = &mut self.server
            && now >= server.jar.deadline()
        {
            erasing_stack(|| server.jar.rotate(now, &mut *self.rng));
        }
        while let Some(&(at, id)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, id));
            if let Some(connection) = self.slots.get_mut(id) {
                connection.armed = None;
                connection.layer.handle_timeout(now);
                self.enqueue(id);
            }
        }
    }

    /// The next event, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes bytes to send and returns how many; fewer than given are followed by [`Event::Writable`].
    ///
    /// # Errors
    /// [`Error::UnknownConnection`], as the other functions with a connection.
    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<usize, Error> {
        let connection = self.connection(id)?;
        let taken = if connection.over().is_some() { 0 } else { connection.layer.write(bytes) };
        connection.waits_to_write = taken < bytes.len();
        self.enqueue(id);
        Ok(taken)
    }

    /// Reads from the peer's stream; [`Read::Blocked`] is followed by [`Event::Readable`].
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn read(&mut self, id: ConnectionId, into: &mut [u8]) -> Result<Read, Error> {
        let read = self.connection(id)?.read(into);
        if matches!(read, Read::Bytes(_)) {
            self.enqueue(id);
        }
        Ok(read)
    }

    /// Ends our stream in success after the written bytes.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn finish(&mut self, id: ConnectionId) -> Result<(), Error> {
        self.connection(id)?.layer.finish();
        self.enqueue(id);
        Ok(())
    }

    /// Ends our stream in failure.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn abort(&mut self, id: ConnectionId) -> Result<(), Error> {
        self.connection(id)?.layer.abort();
        self.enqueue(id);
        Ok(())
    }

    /// Throws away what the peer has sent and will send, so that its stream can end although no one reads it.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn stop_reading(&mut self, id: ConnectionId) -> Result<(), Error> {
        self.connection(id)?.layer.stop_reading();
        self.enqueue(id);
        Ok(())
    }

    /// Changes the congestion control of what this side sends, which begins in its first state.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn set_congestion(
        &mut self,
        now: Duration,
        id: ConnectionId,
        algorithm: Algorithm,
    ) -> Result<(), Error> {
        self.connection(id)?.layer.set_congestion(algorithm, now);
        self.enqueue(id);
        Ok(())
    }

    /// Informs the servers of all client connections where this endpoint is, at once, after its socket was bound anew or its
    /// network changed. Without it a client that only receives is not found before its next keep-alive.
    pub fn rebound(&mut self) {
        let clients: Vec<ConnectionId> = self.by_extension.values().copied().collect();
        for id in clients {
            if let Some(connection) = self.slots.get_mut(id) {
                connection.layer.path_changed();
                connection.layer.ping();
            }
            self.enqueue(id);
        }
    }

    /// Frees a connection in any state, without a message to the peer. Its keys are erased.
    ///
    /// # Errors
    /// [`Error::UnknownConnection`].
    pub fn forget(&mut self, id: ConnectionId) -> Result<(), Error> {
        self.connection(id)?;
        self.detach(id);
        self.slots.remove(id);
        Ok(())
    }

    /// The peer's present address; `None` before a server has answered, and after the end.
    pub fn address(&self, id: ConnectionId) -> Option<SocketAddr> {
        match &self.slots.get(id)?.stage {
            Stage::Initiate(_, session) | Stage::Open(session) => Some(session.address()),
            Stage::Hello(_) | Stage::Closed(_) => None,
        }
    }

    /// Takes the refusals of the server role since the last call; none, if there is no server role.
    pub fn take_refusals(&mut self) -> Refusals {
        self.server.as_mut().map(|server| std::mem::take(&mut server.refusals)).unwrap_or_default()
    }

    /// Whether a client with this short-term key has a connection to this server.
    pub fn has_client(&self, short_term: &PublicKey) -> bool {
        self.by_client.contains_key(short_term)
    }

    /// The message layer of a connection, for its state and counters.
    pub fn layer(&self, id: ConnectionId) -> Option<&MessageLayer> {
        Some(&self.slots.get(id)?.layer)
    }

    fn connection(&mut self, id: ConnectionId) -> Result<&mut Connection, Error> {
        self.slots.get_mut(id).ok_or(Error::UnknownConnection)
    }

    /// Has the connection asked for packets by the next [`poll_transmit`](Self::poll_transmit).
    pub(crate) fn enqueue(&mut self, id: ConnectionId) {
        if let Some(connection) = self.slots.get_mut(id)
            && !connection.queued
        {
            connection.queued = true;
            self.ready.push_back(id);
        }
    }

    /// Reports what has changed and sets the deadline of a connection that has nothing more to send.
    fn settle(&mut self, now: Duration, id: ConnectionId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        if let Some(reason) = connection.over() {
            self.close(id, reason);
            return;
        }
        report(connection, id, &mut self.events);
        let Some(deadline) = connection.deadline(now) else { return };
        if connection.armed.is_none_or(|armed| deadline < armed) {
            if let Some(armed) = connection.armed.replace(deadline) {
                self.deadlines.remove(&(armed, id));
            }
            self.deadlines.insert((deadline, id));
        }
    }

    /// Ends a connection; its slot stays for reading.
    pub(crate) fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        self.detach(id);
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.stage = Stage::Closed(reason);
        if !std::mem::replace(&mut connection.closed, true) {
            self.events.push_back(Event::Closed(id, reason));
        }
    }

    /// Takes a connection out of all tables but the slots.
    fn detach(&mut self, id: ConnectionId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        if let Some(armed) = connection.armed.take() {
            self.deadlines.remove(&(armed, id));
        }
        // After the end the name may belong to another connection.
        match connection.name {
            _ if connection.closed => {}
            ConnectionName::Key(client) => {
                self.by_client.remove(&client);
                self.silence.remove(&(connection.listed, id));
            }
            ConnectionName::Extension(ours) => _ = self.by_extension.remove(&ours),
        }
    }
}

/// Reports that what the application waits for has come.
fn report(connection: &mut Connection, id: ConnectionId, events: &mut VecDeque<Event>) {
    if connection.waits_to_read && connection.layer.readable() {
        connection.waits_to_read = false;
        events.push_back(Event::Readable(id));
    }
    if connection.waits_to_write && connection.layer.writable() > 0 {
        connection.waits_to_write = false;
        events.push_back(Event::Writable(id));
    }
}
