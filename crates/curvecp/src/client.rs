//! The client's handshake: Hellos until a server answers with a Cookie, then Initiates until its first Message.

use crate::keys::{BoxKey, erasing_stack, nonce};
use crate::layer::{MessageLayer, Role};
use crate::message::MAX_MESSAGE_BYTES;
use crate::nonce::{LongTermNonces, SendCounter};
use crate::packet::{
    CookieHeader, HELLO, HelloHeader, INITIATE_BEFORE_MESSAGE, InitiateHeader, MAX_INITIATE_MESSAGE, prefix,
};
use crate::session::{Ends, Filled, Session};
use crate::transmit::TransmitBuffer;
use crate::{ClientConfig, DomainName, Error, Extension, PublicKey, SecretKey, TAG};
use rand_core::CryptoRng;
use std::net::SocketAddr;
use std::time::Duration;

/// Hellos before a client gives up, where the server has one address; each further address gets one more.
const HELLOS: usize = 8;
/// Addresses of a server, at most.
const ADDRESSES: usize = 8;
/// How long the first Hello to each address but the last waits for a Cookie before the next address gets one: the
/// connection attempt delay of RFC 8305, section 5.
const FAIL_OVER: Duration = Duration::from_millis(250);
/// How long after the first Cookie a client gives up. Each address that the handshake has not failed with gets an equal part of
/// the time left for its Initiates.
const INITIATE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that waits for a Cookie.
pub(crate) struct HelloPhase {
    identity: SecretKey,
    server: PublicKey,
    name: DomainName,
    addresses: Vec<SocketAddr>,
    theirs: Extension,
    ours: Extension,
    capabilities: crate::Capabilities,
    /// The public and secret short-term key, C' and c'.
    client: PublicKey,
    short: SecretKey,
    /// The key shared by C' and S: seals Hellos, opens Cookies.
    hello_key: BoxKey,
    counter: SendCounter,
    hellos: usize,
    /// When the first Hello left to each address that was tried.
    tried: Vec<Duration>,
    /// The instant at which the next Hello leaves.
    next: Duration,
    /// When to give up, after a Cookie of an address that answered no Initiate.
    end: Option<Duration>,
}

/// A client that waits for the server's first Message: what its Initiates are made of.
pub(crate) struct InitiatePhase {
    cookie: [u8; 96],
    identity: PublicKey,
    vouch: [u8; 64],
    name: DomainName,
    deadline: Duration,
    /// What to go on with at the deadline: Hellos to the other addresses, if there are any.
    others: Option<Box<HelloPhase>>,
    /// From Hello to Cookie, where one Hello only went to that address.
    pub(crate) round_trip: Option<Duration>,
}

/// What the time asks of a client that waits for a Cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelloDue {
    Later,
    Now,
    /// The last Hello was not answered.
    Never,
}

impl HelloPhase {
    pub(crate) fn new(
        now: Duration,
        config: &ClientConfig,
        ours: Extension,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Result<Self, Error> {
        let mut addresses = config.addresses.clone();
        if addresses.is_empty() || addresses.len() > ADDRESSES {
            return Err(Error::AddressCount(addresses.len()));
        }
        // Fisher and Yates: clients spread over the server's addresses.
        for i in (1..addresses.len()).rev() {
            addresses.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
        }
        let short = SecretKey::generate(rng);
        Ok(Self {
            identity: config.identity.clone(),
            server: config.server,
            name: config.name.clone(),
            addresses,
            theirs: config.server_extension,
            ours,
            capabilities: config.capabilities,
            client: short.public_key(),
            hello_key: short.box_key(&config.server).ok_or(Error::WeakServerKey)?,
            short,
            counter: SendCounter::new(rng),
            hellos: 0,
            tried: vec![],
            next: now,
            end: None,
        })
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.end.map_or(self.next, |end| end.min(self.next))
    }

    pub(crate) fn due(&self, now: Duration) -> HelloDue {
        match self.hellos {
            _ if self.end.is_some_and(|end| end <= now) => HelloDue::Never,
            _ if now < self.next => HelloDue::Later,
            hellos if hellos == HELLOS - 1 + self.addresses.len() => HelloDue::Never,
            _ => HelloDue::Now,
        }
    }

    /// Sends the next Hello, to the next address; false where the buffer is full.
    ///
    /// A silent address costs a quarter of a second while others were not tried yet. After that the k-th Hello waits 1.5^k s
    /// and up to as much again, as in the reference.
    pub(crate) fn fill(
        &mut self,
        now: Duration,
        buffer: &mut TransmitBuffer,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> bool {
        let Some(packet) = buffer.next_packet() else { return false };
        let counter = self.counter.next().expect("a counter lasts longer than eight packets");
        HelloHeader { to: self.theirs, from: self.ours, client: self.client, counter }.write(packet);
        let sealed = &mut packet[HelloHeader::LENGTH..HELLO];
        sealed[TAG..].fill(0);
        sealed[TAG..TAG + self.capabilities.len()].copy_from_slice(&self.capabilities);
        erasing_stack(|| self.hello_key.seal(&nonce(prefix::HELLO, &counter.to_le_bytes()), sealed));
        let wait = match (self.hellos + 1).checked_sub(self.addresses.len()) {
            None => FAIL_OVER,
            Some(repeats) => {
                let jitter = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                Duration::from_secs_f64(1.5_f64.powi(repeats as i32) * (1.0 + jitter))
            }
        };
        self.next = now + wait;
        if self.tried.len() < self.addresses.len() {
            self.tried.push(now);
        }
        buffer.push(self.addresses[self.hellos % self.addresses.len()], HELLO);
        self.hellos += 1;
        true
    }

    /// Takes a Cookie, the first that is authentic. `None` where it is not, from an address that got no Hello, or where there is no
    /// nonce for the vouch: a later Cookie may then do.
    pub(crate) fn cookie(
        &mut self,
        now: Duration,
        from: SocketAddr,
        header: &CookieHeader,
        sealed: &mut [u8],
        rng: &mut (impl CryptoRng + ?Sized),
        nonces: &mut dyn LongTermNonces,
    ) -> Option<(InitiatePhase, Box<Session>)> {
        let (_, sent) = self.addresses.iter().zip(&self.tried).find(|(address, _)| **address == from)?;
        if (header.to, header.from) != (self.ours, self.theirs) {
            return None;
        }
        let round_trip = (self.hellos <= self.addresses.len()).then(|| now.saturating_sub(*sent));
        let left = self.end.unwrap_or(now + INITIATE_TIMEOUT).saturating_sub(now);
        let others = self.addresses.iter().filter(|address| **address != from).count();
        let part = left / (1 + others) as u32;
        let (cookie, session) = erasing_stack(|| self.session(from, header, sealed, rng))?;
        let vouch = erasing_stack(|| self.vouch(nonces.next()?))?;
        self.end = Some(now + left);
        let phase = InitiatePhase {
            cookie,
            identity: self.identity.public_key(),
            vouch,
            name: self.name.clone(),
            deadline: now + part,
            others: None,
            round_trip,
        };
        Some((phase, session))
    }

    /// Whether a Cookie of another address came before.
    pub(crate) fn is_fail_over(&self) -> bool {
        self.end.is_some()
    }

    /// Begins again without an address whose Cookie led nowhere. The short-term key stays, so a server that has several of the
    /// addresses still opens one connection.
    fn without(mut self: Box<Self>, silent: SocketAddr) -> Option<Box<Self>> {
        self.addresses.retain(|address| *address != silent);
        (self.hellos, self.next) = (0, Duration::ZERO);
        self.tried.clear();
        (!self.addresses.is_empty()).then_some(self)
    }

    /// The cookie in a Cookie packet, and the session with the server's short-term key in it.
    fn session(
        &mut self,
        from: SocketAddr,
        header: &CookieHeader,
        sealed: &mut [u8],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Option<([u8; 96], Box<Session>)> {
        let text = self.hello_key.open(&nonce(prefix::COOKIE, &header.nonce), sealed)?;
        let (server_short, cookie) = text.split_first_chunk()?;
        let shared = self.short.box_key(&PublicKey(*server_short))?;
        let counter = std::mem::replace(&mut self.counter, SendCounter::new(rng));
        let ends = Ends { role: Role::Client, client: self.client, ours: self.ours, theirs: self.theirs };
        let session = Session::new(ends, shared, (from, true), counter, rng);
        Some((*cookie.first_chunk()?, Box::new(session)))
    }

    /// C' in a box under both long-term keys, after what is unique of its nonce.
    fn vouch(&self, unique: [u8; 16]) -> Option<[u8; 64]> {
        let mut vouch = [0; 64];
        vouch[..16].copy_from_slice(&unique);
        vouch[16 + TAG..].copy_from_slice(&self.client.0);
        self.identity.box_key(&self.server)?.seal(&nonce(prefix::VOUCH, &unique), &mut vouch[16..]);
        Some(vouch)
    }
}

impl InitiatePhase {
    /// Keeps what is needed to go on with other addresses than the one that sent the Cookie.
    pub(crate) fn or_else(self, hello: Box<HelloPhase>, address: SocketAddr) -> Self {
        Self { others: hello.without(address), ..self }
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// How to go on after the deadline.
    pub(crate) fn fail_over(&mut self) -> Option<Box<HelloPhase>> {
        self.others.take()
    }

    /// Writes Initiates with all that `layer` wants to send: until the server has answered, each message goes in one, so
    /// that any of them opens the connection.
    pub(crate) fn fill(
        &self,
        now: Duration,
        layer: &mut MessageLayer,
        session: &mut Session,
        buffer: &mut TransmitBuffer,
    ) -> Filled {
        const MESSAGE: usize = InitiateHeader::LENGTH + INITIATE_BEFORE_MESSAGE;
        // The message layer asks for more space than an Initiate has; its answer is within the limit.
        let mut message = [0; MAX_MESSAGE_BYTES];
        loop {
            let Some(packet) = buffer.next_packet() else { return Filled::Buffer };
            let Some(length) = layer.poll_transmit(now, MAX_INITIATE_MESSAGE, &mut message) else {
                return Filled::Everything;
            };
            let Some(counter) = session.next_counter() else { return Filled::Counters };
            let Ends { client, ours: from, theirs: to, .. } = *session.ends();
            InitiateHeader { to, from, client, cookie: self.cookie, counter }.write(packet);
            let sealed = &mut packet[InitiateHeader::LENGTH..MESSAGE + length];
            sealed[TAG..TAG + 32].copy_from_slice(&self.identity.0);
            sealed[TAG + 32..TAG + 96].copy_from_slice(&self.vouch);
            sealed[TAG + 96..INITIATE_BEFORE_MESSAGE].copy_from_slice(self.name.as_bytes());
            sealed[INITIATE_BEFORE_MESSAGE..].copy_from_slice(&message[..length]);
            session.seal_initiate(counter, sealed);
            buffer.push(session.address(), MESSAGE + length);
        }
    }
}
