//! The endpoint: one UDP socket, the task that drives it, and the connections on it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use curvecp::{ClientConfig, LongTermNonces, ServerConfig, TransmitBuffer};

use crate::clock::{Timer, now};
use crate::flood::Judge;
use crate::member::Member;
use crate::shared::{Entry, Incoming, Next, Shared, Stage};
use crate::socket::{Inbox, Socket};
use crate::{Connection, CurveError, Stream, system_random};

/// Datagrams that are sent between two receives, at most, where they are the longest: two segmented sends.
const OUTBOX: usize = 90;

/// A UDP socket with CurveCP connections: those that it opens and, if it is a server, those that clients open.
///
/// A task of the runtime drives it. After the endpoint is dropped its connections go on, and the task ends with the last.
pub struct Endpoint {
    shared: Arc<Shared>,
}

impl Endpoint {
    /// Binds a socket for a server; port 0 takes a free one. `nonces` are of the directory of the server's key.
    ///
    /// # Errors
    /// [`CurveError::Bind`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn server(
        address: SocketAddr,
        config: ServerConfig,
        nonces: impl LongTermNonces + Send + 'static,
    ) -> Result<Self, CurveError> {
        Self::bind(address, Some(config), Box::new(nonces))
    }

    /// A server on a socket that is bound already. What arrived there meanwhile is not lost.
    ///
    /// # Errors
    /// Where the system refuses to use the socket without blocking.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn server_on(
        socket: UdpSocket,
        config: ServerConfig,
        nonces: impl LongTermNonces + Send + 'static,
    ) -> std::io::Result<Self> {
        let (endpoint, driver) = Self::new(Socket::new(socket)?, Some(config), Box::new(nonces), None)?;
        tokio::spawn(driver);
        Ok(endpoint)
    }

    /// Binds a socket for clients, which all use `nonces`: those of their key's directory, or
    /// [`RandomNonces`](crate::RandomNonces) for keys that are drawn for one connection.
    ///
    /// # Errors
    /// [`CurveError::Bind`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client(
        address: SocketAddr,
        nonces: impl LongTermNonces + Send + 'static,
    ) -> Result<Self, CurveError> {
        Self::bind(address, None, Box::new(nonces))
    }

    fn bind(
        address: SocketAddr,
        server: Option<ServerConfig>,
        nonces: Box<dyn LongTermNonces + Send>,
    ) -> Result<Self, CurveError> {
        let failed = |source| CurveError::Bind { address, source };
        let socket = Socket::bind(address).map_err(failed)?;
        let (endpoint, driver) = Self::new(socket, server, nonces, None).map_err(failed)?;
        tokio::spawn(driver);
        Ok(endpoint)
    }

    /// An endpoint and its driver, within a runtime that the driver is to run on.
    pub(crate) fn new(
        socket: Socket,
        server: Option<ServerConfig>,
        nonces: Box<dyn LongTermNonces + Send>,
        member: Option<Member>,
    ) -> std::io::Result<(Self, impl Future<Output = ()> + Send + 'static)> {
        let timer = Timer::new()?;
        let judge = server.as_ref().map(|server| Judge::new(now(), server.hellos_per_s));
        // The system's generator: a generator in this process would remember what erased keys were made of.
        let protocol = curvecp::Endpoint::new(now(), server, Box::new(system_random()), nonces);
        let shared = Arc::new(Shared::new(protocol, socket.address()?, member));
        let driver = drive(StopAtEnd(shared.clone()), socket, timer, judge);
        Ok((Self { shared }, driver))
    }

    /// The address of the socket.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Opens a connection to a server. It can be written to at once: the first bytes travel with the handshake.
    ///
    /// A socket that is bound to `[::]` reaches addresses of both families.
    ///
    /// # Errors
    /// [`CurveError::Protocol`] where the configuration is not valid, [`CurveError::EndpointClosed`].
    pub fn connect(&self, mut config: ClientConfig) -> Result<Stream, CurveError> {
        if self.shared.address.is_ipv6() {
            config.addresses.iter_mut().for_each(write_as_ipv6);
        }
        let client = config.identity.public_key();
        let server = config.server;
        let only = config.addresses.first().filter(|_| config.addresses.len() == 1).copied();
        let mut state = self.shared.lock();
        if state.stopped {
            return Err(CurveError::EndpointClosed);
        }
        let id = state.protocol.connect(now(), config)?;
        let entry = Entry::new(Stage::Opening);
        let stage = entry.stage.subscribe();
        state.connections.insert(id, entry);
        drop(state);
        self.shared.work.notify_one();
        Ok(Stream::new(Connection::new(self.shared.clone(), id, server, client, only, stage)))
    }

    /// Waits for a client. Can be cancelled without losing one.
    ///
    /// # Errors
    /// [`CurveError::EndpointClosed`].
    pub async fn accept(&self) -> Result<Stream, CurveError> {
        loop {
            if let Some(stream) = self.take_incoming()? {
                return Ok(stream);
            }
            self.shared.accepted.notified().await;
        }
    }

    /// A client that waits, if one does.
    pub(crate) fn take_incoming(&self) -> Result<Option<Stream>, CurveError> {
        let mut state = self.shared.lock();
        if state.stopped {
            return Err(CurveError::EndpointClosed);
        }
        while let Some(Incoming { id, client, address }) = state.incoming.pop_front() {
            let Some(entry) = state.connections.get(&id) else { continue };
            let stage = entry.stage.subscribe();
            if !state.incoming.is_empty() {
                self.shared.accepted.notify_one();
            }
            let shared = self.shared.clone();
            let connection = Connection::new(shared, id, client, client, Some(address), stage);
            return Ok(Some(Stream::new(connection)));
        }
        Ok(None)
    }

    /// Sends a datagram that is not of CurveCP from this socket, once: to open the way through an address translator (NAT)
    /// for a peer that will send from there, or to show a third party this socket's address. CurveCP ignores such datagrams.
    pub fn send_datagram(&self, mut to: SocketAddr, datagram: &[u8]) {
        if self.shared.address.is_ipv6() {
            write_as_ipv6(&mut to);
        }
        self.shared.send_foreign(to, datagram);
    }

    /// Announces the new address of this endpoint's connections to all servers, after the network has changed.
    pub fn network_changed(&self) {
        self.shared.lock().protocol.rebound();
        self.shared.work.notify_one();
    }

    /// Waits until all connections are over, so that nothing that was written is lost when the process ends.
    pub async fn idle(&self) {
        loop {
            let ended = self.shared.ended.notified();
            if self.shared.lock().connections.values().all(Entry::is_over) {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.owned = false;
        for waiting in std::mem::take(&mut state.incoming) {
            _ = state.protocol.forget(waiting.id);
            state.connections.remove(&waiting.id);
        }
        drop(state);
        self.shared.work.notify_one();
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

/// Writes an address as packets from it are seen at a socket of both families.
fn write_as_ipv6(address: &mut SocketAddr) {
    if let SocketAddr::V4(plain) = address {
        *address = SocketAddr::from((plain.ip().to_ipv6_mapped(), plain.port()));
    }
}

/// Reports the end of the driver, also by a panic or with the runtime.
struct StopAtEnd(Arc<Shared>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Moves datagrams between socket and protocol until there is nothing left to drive.
async fn drive(shared: StopAtEnd, socket: Socket, mut timer: Timer, mut judge: Option<Judge>) {
    let shared = &shared.0;
    let (mut inbox, mut outbox) = (Inbox::new(), TransmitBuffer::new(OUTBOX));
    loop {
        if let Err(error) = socket.receive(&mut inbox) {
            tracing::error!("UDP {}: {error}", shared.address);
            return;
        }
        let next = shared.step(&mut inbox, &mut outbox);
        loop {
            let Some((to, datagram)) = shared.lock().foreign.pop_front() else { break };
            socket.send_one(to, &datagram).await;
        }
        thin_out_floods(shared, &socket, &mut judge);
        match next {
            Next::Stop => return,
            Next::Busy => {
                socket.send(&outbox).await;
                tokio::task::yield_now().await;
            }
            Next::Wait(_) if !inbox.is_empty() => tokio::task::yield_now().await,
            Next::Wait(until) => tokio::select! {
                readable = socket.readable() => if readable.is_err() { return },
                () = shared.work.notified() => {}
                () = shared.handed_over() => {}
                () = timer.wait(earliest(until, judge.as_ref().and_then(Judge::deadline))) => {}
            },
        }
    }
}

/// Has the kernel drop the share of a flood that the judge finds. Where the kernel refuses, the protocol alone limits floods.
fn thin_out_floods(shared: &Shared, socket: &Socket, judge: &mut Option<Judge>) {
    let now = now();
    let Some(judging) = judge.as_mut().filter(|judge| judge.is_due(now)) else { return };
    let refusals = shared.lock().protocol.take_refusals();
    if !judging.judge(now, &refusals) {
        return;
    }
    tracing::debug!("UDP {}: a flood is thinned out: {:?}", shared.address, judging.thinning());
    if let Err(error) = socket.thin_out(judging.thinning()) {
        tracing::debug!("UDP {}: the kernel does not thin out floods: {error}", shared.address);
        *judge = None;
    }
}

fn earliest(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}
