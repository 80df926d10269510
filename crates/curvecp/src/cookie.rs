//! Cookies: how a server keeps the state of a handshake at the client, and how it knows a replayed one.
//!
//! The 96 bytes are opaque to clients, so their content is this server's choice: 16 bytes of nonce and a secret box of
//! the server's short-term secret key, the address that asked, the capabilities that the client announced, and the
//! milliseconds at which it asked. The key of the box is derived from the minute key *and* C', so a cookie opens only for the short-term key that it was made for.
//!
//! Minute keys change every 60 s and the previous one stays valid, so a cookie lives for one to two minutes. Each minute
//! also has the set of the C' that opened connections in it or were refused one, which lives as long as the key: an Initiate is
//! decided once.

use crate::hashing::{KeyedHash, Set};
use crate::keys::{BoxKey, hsalsa20, nonce};
use crate::packet::prefix;
use crate::{PublicKey, SecretKey, TAG};
use rand_core::CryptoRng;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use zeroize::Zeroizing;

/// How long a minute key makes cookies.
const MINUTE: Duration = Duration::from_secs(60);
/// C' remembered per minute, at most. When a minute is full, the next begins early: cookies of the minute before last
/// then expire before their time and their clients must ask again, but memory stays bounded and no replay gets through.
const USED: usize = 1 << 16;
/// How long Hellos share a short-term key of the server. Each connection still has its own key, because C' is its own and
/// opens one connection; and a cookie would give the secret key away to one who has the minute key for longer than this.
const SHARED: Duration = Duration::from_secs(1);

/// The capabilities that a client of our own announces in the Hello: the first bytes of the box that other clients fill with zeros.
pub type Capabilities = [u8; 12];

/// The keys by which a server makes and opens cookies.
#[derive(Debug)]
pub(crate) struct CookieJar {
    current: Minute,
    previous: Minute,
    next_minute: Duration,
    /// S' of the Hellos until an instant, at which it is erased.
    short_term: Option<Box<ShortTerm>>,
}

#[derive(Debug)]
struct ShortTerm {
    secret: SecretKey,
    public: PublicKey,
    until: Duration,
}

struct Minute {
    /// In its own place, because the owner of the endpoint may move it and each move would leave a copy.
    key: Box<Zeroizing<[u8; 32]>>,
    used: Set<PublicKey>,
}

/// What a cookie held.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CookieContents {
    pub(crate) secret: SecretKey,
    pub(crate) address: SocketAddr,
    pub(crate) capabilities: Capabilities,
    /// When the cookie was made, in milliseconds modulo 2^16.
    pub(crate) made_ms: u16,
}

/// An instant as cookies carry it.
pub(crate) fn milliseconds(now: Duration) -> u16 {
    now.as_millis() as u16
}

impl CookieJar {
    pub(crate) fn new(now: Duration, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let (current, previous) = (Minute::new(rng), Minute::new(rng));
        Self { current, previous, next_minute: now + MINUTE, short_term: None }
    }

    /// When [`rotate`](Self::rotate) has work.
    pub(crate) fn deadline(&self) -> Duration {
        self.short_term.as_ref().map_or(self.next_minute, |key| key.until.min(self.next_minute))
    }

    /// Erases the keys whose time is over.
    pub(crate) fn rotate(&mut self, now: Duration, rng: &mut (impl CryptoRng + ?Sized)) {
        self.short_term.take_if(|key| now >= key.until);
        if now >= self.next_minute {
            if now >= self.next_minute + MINUTE {
                self.begin_minute(now, rng);
            }
            self.begin_minute(now, rng);
        }
    }

    fn begin_minute(&mut self, now: Duration, rng: &mut (impl CryptoRng + ?Sized)) {
        self.previous = std::mem::replace(&mut self.current, Minute::new(rng));
        self.next_minute = now + MINUTE;
    }

    /// The short-term key for the answer to a Hello.
    pub(crate) fn short_term(
        &mut self,
        now: Duration,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> (&SecretKey, PublicKey) {
        self.short_term.take_if(|key| now >= key.until);
        let key = self.short_term.get_or_insert_with(|| {
            let secret = SecretKey::generate(rng);
            Box::new(ShortTerm { public: secret.public_key(), secret, until: now + SHARED })
        });
        (&key.secret, key.public)
    }

    /// Makes the cookie that brings `contents` back from the owner of the short-term key `client`.
    pub(crate) fn make(&self, unique: [u8; 16], client: &PublicKey, contents: &CookieContents) -> [u8; 96] {
        let mut cookie = [0; 96];
        let text = &mut cookie[16 + TAG..];
        text[..32].copy_from_slice(contents.secret.as_bytes());
        text[32..48].copy_from_slice(&ipv6(contents.address).octets());
        text[48..50].copy_from_slice(&contents.address.port().to_le_bytes());
        text[50..62].copy_from_slice(&contents.capabilities);
        text[62..].copy_from_slice(&contents.made_ms.to_le_bytes());
        cookie[..16].copy_from_slice(&unique);
        self.current.box_key(client).seal(&nonce(prefix::MINUTE, &unique), &mut cookie[16..]);
        cookie
    }

    /// Opens a cookie that a client with the short-term key `client` returned.
    pub(crate) fn open(&self, cookie: &[u8; 96], client: &PublicKey) -> Option<CookieContents> {
        [&self.current, &self.previous].into_iter().find_map(|minute| minute.open(cookie, client))
    }

    /// Whether a connection was opened or refused with this C' and a cookie that may still be valid.
    pub(crate) fn is_used(&self, client: &PublicKey) -> bool {
        self.current.used.contains(client) || self.previous.used.contains(client)
    }

    /// Records that a connection was opened with this C', or that its owner was refused.
    pub(crate) fn mark_used(
        &mut self,
        now: Duration,
        client: PublicKey,
        rng: &mut (impl CryptoRng + ?Sized),
    ) {
        if self.current.used.len() >= USED {
            self.begin_minute(now, rng);
        }
        self.current.used.insert(client);
    }
}

impl Minute {
    fn new(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let mut key = Box::new(Zeroizing::new([0; 32]));
        rng.fill_bytes(&mut **key);
        Self { key, used: Set::with_hasher(KeyedHash::new(rng)) }
    }

    /// HSalsa20 over both halves of C' in turn: a pseudorandom function of all of it.
    fn box_key(&self, client: &PublicKey) -> BoxKey {
        let (halves, _) = client.0.as_chunks::<16>();
        let first = Zeroizing::new(hsalsa20(&self.key, &halves[0]));
        BoxKey(hsalsa20(&first, &halves[1]))
    }

    fn open(&self, cookie: &[u8; 96], client: &PublicKey) -> Option<CookieContents> {
        let mut cookie = Zeroizing::new(*cookie);
        let (unique, sealed) = cookie.split_first_chunk_mut::<16>().expect("a cookie has 96 bytes");
        let text = self.box_key(client).open(&nonce(prefix::MINUTE, unique), sealed)?;
        let (secret, rest) = text.split_first_chunk().expect("the text has 64 bytes");
        let (ip, rest) = rest.split_first_chunk::<16>().expect("the text has 64 bytes");
        let (port, rest) = rest.split_first_chunk().expect("the text has 64 bytes");
        Some(CookieContents {
            secret: SecretKey::from_bytes(*secret),
            address: SocketAddr::new(Ipv6Addr::from(*ip).to_canonical(), u16::from_le_bytes(*port)),
            capabilities: *rest.first_chunk().expect("the text has 64 bytes"),
            made_ms: u16::from_le_bytes(*rest.last_chunk().expect("the text has 64 bytes")),
        })
    }
}

impl std::fmt::Debug for Minute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Minute").field("used", &self.used.len()).finish_non_exhaustive()
    }
}

/// Whether two addresses are the same, IPv4 addresses in their IPv6 form too.
pub(crate) fn same_address(a: SocketAddr, b: SocketAddr) -> bool {
    (ipv6(a), a.port()) == (ipv6(b), b.port())
}

fn ipv6(address: SocketAddr) -> Ipv6Addr {
    match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::StdRng};

    const CLIENT: PublicKey = PublicKey([5; 32]);

    fn contents(address: &str) -> CookieContents {
        let address = address.parse().unwrap();
        CookieContents {
            secret: SecretKey::from_bytes([8; 32]),
            address,
            capabilities: *b"twelve bytes",
            made_ms: 54_321,
        }
    }

    fn minutes(minutes: u64) -> Duration {
        MINUTE * u32::try_from(minutes).unwrap()
    }

    #[test]
    fn a_cookie_brings_its_contents_back_to_its_own_client_only() {
        let jar = CookieJar::new(Duration::ZERO, &mut StdRng::seed_from_u64(1));
        for address in ["192.0.2.1:4711", "[2001:db8::7]:1"] {
            let cookie = jar.make([3; 16], &CLIENT, &contents(address));
            assert_eq!(jar.open(&cookie, &CLIENT), Some(contents(address)));
            for i in 0..32 {
                let mut other = CLIENT;
                other.0[i] ^= 1;
                assert_eq!(jar.open(&cookie, &other), None);
            }
            for bit in 0..96 * 8 {
                let mut forged = cookie;
                forged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(jar.open(&forged, &CLIENT), None);
            }
        }
    }

    #[test]
    fn hellos_of_a_second_share_a_short_term_key_that_is_erased_afterwards() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut jar = CookieJar::new(Duration::ZERO, &mut rng);
        let mut key = |at_ms: u64| {
            let (secret, public) = jar.short_term(Duration::from_millis(at_ms), &mut rng);
            assert_eq!(secret.public_key(), public);
            public
        };
        let (first, same, other) = (key(0), key(999), key(1000));
        assert_eq!(first, same);
        assert_ne!(first, other);
        assert_eq!(jar.deadline(), Duration::from_secs(2));
        jar.rotate(jar.deadline(), &mut rng);
        assert!(jar.short_term.is_none());
        assert_eq!(jar.deadline(), minutes(1));
    }

    #[test]
    fn a_cookie_outlives_one_rotation_and_not_two() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut jar = CookieJar::new(Duration::ZERO, &mut rng);
        let cookie = jar.make([3; 16], &CLIENT, &contents("192.0.2.1:1"));
        jar.rotate(minutes(1) - Duration::from_nanos(1), &mut rng);
        assert_eq!(jar.deadline(), minutes(1));
        jar.rotate(minutes(1), &mut rng);
        assert!(jar.open(&cookie, &CLIENT).is_some());
        jar.rotate(minutes(2), &mut rng);
        assert!(jar.open(&cookie, &CLIENT).is_none());
    }

    #[test]
    fn a_long_sleep_expires_both_keys() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut jar = CookieJar::new(Duration::ZERO, &mut rng);
        let cookie = jar.make([3; 16], &CLIENT, &contents("192.0.2.1:1"));
        jar.rotate(minutes(2), &mut rng);
        assert!(jar.open(&cookie, &CLIENT).is_none());
    }

    #[test]
    fn a_used_key_is_remembered_as_long_as_its_cookie_opens() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut jar = CookieJar::new(Duration::ZERO, &mut rng);
        let cookie = jar.make([3; 16], &CLIENT, &contents("192.0.2.1:1"));
        jar.rotate(minutes(1), &mut rng);
        jar.mark_used(minutes(1), CLIENT, &mut rng);
        for minute in 1..5 {
            jar.rotate(minutes(minute), &mut rng);
            assert!(jar.is_used(&CLIENT) || jar.open(&cookie, &CLIENT).is_none());
        }
        assert!(!jar.is_used(&CLIENT));
    }

    #[test]
    fn the_memory_of_used_keys_is_bounded_without_admitting_a_replay() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut jar = CookieJar::new(Duration::ZERO, &mut rng);
        let cookie = jar.make([3; 16], &CLIENT, &contents("192.0.2.1:1"));
        jar.mark_used(Duration::ZERO, CLIENT, &mut rng);
        for i in 0..USED as u64 * 3 {
            let mut other = CLIENT;
            other.0[..8].copy_from_slice(&i.to_le_bytes());
            jar.mark_used(Duration::ZERO, other, &mut rng);
            assert!(jar.current.used.len() <= USED && jar.previous.used.len() <= USED);
            if i % 10_000 == 0 {
                assert!(jar.is_used(&CLIENT) || jar.open(&cookie, &CLIENT).is_none());
            }
        }
        assert!(jar.open(&cookie, &CLIENT).is_none());
    }
}
