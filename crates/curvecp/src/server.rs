//! How a server admits clients: it answers Hellos without keeping anything, and lets one Initiate per cookie through.

use crate::cookie::{Capabilities, CookieContents, CookieJar, milliseconds, same_address};
use crate::keys::nonce;
use crate::layer::Role;
use crate::limit::HandshakeLimiter;
use crate::nonce::{LongTermNonces, SendCounter};
use crate::packet::{COOKIE, CookieHeader, HelloHeader, InitiateHeader, prefix};
use crate::refusals::Refusals;
use crate::session::{Ends, Session};
use crate::{GRANULARITY, PublicKey, ServerConfig, TAG};
use rand_core::CryptoRng;
use std::net::SocketAddr;
use std::time::Duration;

/// A handshake that takes longer says nothing of the path.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(1);

/// The server role of an endpoint, without its connections.
#[derive(Debug)]
pub(crate) struct Acceptor {
    pub(crate) config: ServerConfig,
    pub(crate) jar: CookieJar,
    hellos: HandshakeLimiter,
    /// Separate from that of Hellos, so that a flood of these does not shut out clients that have a cookie.
    initiates: HandshakeLimiter,
    pub(crate) refusals: Refusals,
}

/// A valid Initiate that no connection belongs to yet.
#[derive(Debug)]
pub(crate) struct Accepted<'a> {
    pub(crate) session: Box<Session>,
    /// The client's long-term key, which the vouch proves.
    pub(crate) identity: PublicKey,
    pub(crate) capabilities: Capabilities,
    /// From Cookie to Initiate.
    pub(crate) round_trip: Duration,
    pub(crate) message: &'a mut [u8],
}

impl Acceptor {
    pub(crate) fn new(now: Duration, config: ServerConfig, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let hellos = HandshakeLimiter::new(config.hellos_per_s, config.hello_burst, rng);
        let (jar, initiates) = (CookieJar::new(now, rng), hellos.clone());
        Self { config, jar, hellos, initiates, refusals: Refusals::default() }
    }

    /// Whether a Hello may cost a Diffie-Hellman exchange. No key takes part, so no stack has to be erased after a refusal.
    pub(crate) fn admits(&mut self, now: Duration, from: SocketAddr, header: &HelloHeader) -> bool {
        !self.jar.is_used(&header.client) && self.hellos.admit(now, from)
    }

    /// Answers a Hello that was admitted with a Cookie packet. All that the server must know later is inside it. `None` where the
    /// Hello is not authentic, or there is no nonce for the answer.
    pub(crate) fn hello(
        &mut self,
        now: Duration,
        from: SocketAddr,
        header: &HelloHeader,
        sealed: &mut [u8],
        rng: &mut (impl CryptoRng + ?Sized),
        nonces: &mut dyn LongTermNonces,
    ) -> Option<[u8; COOKIE]> {
        let hello_key = self.config.secret.box_key(&header.client)?;
        let text = hello_key.open(&nonce(prefix::HELLO, &header.counter.to_le_bytes()), sealed)?;
        let capabilities = *text.first_chunk()?;

        let (secret, public) = self.jar.short_term(now, rng);
        let secret = secret.clone();
        let unique = nonces.next()?;
        let mut packet = [0; COOKIE];
        CookieHeader { to: header.from, from: header.to, nonce: unique }.write(&mut packet);
        let sealed = &mut packet[CookieHeader::LENGTH..];
        sealed[TAG..TAG + 32].copy_from_slice(&public.0);
        let contents = CookieContents { secret, address: from, capabilities, made_ms: milliseconds(now) };
        sealed[TAG + 32..].copy_from_slice(&self.jar.make(unique, &header.client, &contents));
        hello_key.seal(&nonce(prefix::COOKIE, &unique), sealed);
        Some(packet)
    }

    /// Checks an Initiate whose C' is of no connection: cookie, box, domain name, vouch, authorisation.
    ///
    /// The cheap checks come first: a Diffie-Hellman exchange is spent only on a cookie that this server made, and at a limited rate,
    /// because the owner of one cookie can make any number of Initiates with it.
    pub(crate) fn initiate<'a>(
        &mut self,
        now: Duration,
        from: SocketAddr,
        header: &InitiateHeader,
        sealed: &'a mut [u8],
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Option<Accepted<'a>> {
        if self.jar.is_used(&header.client) {
            return None;
        }
        let CookieContents { secret, address, capabilities, made_ms } =
            self.jar.open(&header.cookie, &header.client)?;
        // The address that received the cookie: the sender of the Initiate cannot choose it.
        if !self.initiates.admit(now, address) {
            return None;
        }
        let shared = secret.box_key(&header.client)?;
        let text = shared.open(&nonce(prefix::INITIATE, &header.counter.to_le_bytes()), sealed)?;
        let (identity, text) = text.split_first_chunk_mut()?;
        let (unique, text) = text.split_first_chunk_mut::<16>()?;
        let (vouch, text) = text.split_first_chunk_mut::<48>()?;
        let (name, message) = text.split_first_chunk_mut::<256>()?;
        if name != self.config.name.as_bytes() {
            return None;
        }
        let identity = PublicKey(*identity);
        let vouched = self.config.secret.box_key(&identity)?.open(&nonce(prefix::VOUCH, unique), vouch)?;
        if PublicKey(*vouched.first_chunk()?) != header.client {
            return None;
        }
        if self.config.authorise.as_mut().is_some_and(|authorise| !authorise(&identity, from)) {
            // Otherwise each further Initiate with this cookie would ask again.
            self.jar.mark_used(now, header.client, rng);
            return None;
        }
        let ends = Ends { role: Role::Server, client: header.client, ours: header.to, theirs: header.from };
        // Where the Initiate comes from another address than the cookie was sent to, either may be forged.
        let validated = same_address(address, from);
        let counter = SendCounter::new(rng);
        let session = Box::new(Session::new(ends, shared, (from, validated), counter, rng));
        let round_trip = Duration::from_millis(milliseconds(now).wrapping_sub(made_ms).into());
        // A lost Initiate makes the time longer, whole milliseconds may make it zero.
        let round_trip = round_trip.clamp(GRANULARITY, MAX_ROUND_TRIP);
        Some(Accepted { session, identity, capabilities, round_trip, message })
    }
}
