//! The addresses of a server's clients: each key keeps its own, over connections and restarts of the server.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::{fmt, iter};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use kendall_curve::curvecp::PublicKey;
use kendall_files::Replacement;

use crate::error::TunnelError;

/// Clients that a pool has addresses for, at most.
const MOST_CLIENTS: u32 = 65_536;

/// The longest file of addresses.
const MOST_BYTES: u64 = 16 << 20;

/// The networks of a tunnel. The server has the first address of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    v4: Ipv4Net,
    v6: Option<Ipv6Net>,
}

/// The addresses of one client, and of the server at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The client's IPv4 address, in its network.
    pub v4: Ipv4Net,
    /// The server's IPv4 address.
    pub server_v4: Ipv4Addr,
    /// The client's IPv6 address, in its network.
    pub v6: Option<Ipv6Net>,
    /// The server's IPv6 address.
    pub server_v6: Option<Ipv6Addr>,
}

impl Assigned {
    /// The client's addresses.
    pub(crate) fn client_addresses(self) -> impl Iterator<Item = IpAddr> {
        let v6 = self.v6.map(|v6| v6.addr().into());
        iter::once(self.v4.addr().into()).chain(v6)
    }

    /// The networks of the tunnel.
    pub(crate) fn networks(self) -> impl Iterator<Item = IpNet> {
        iter::once(self.v4.trunc().into()).chain(self.v6.map(|v6| v6.trunc().into()))
    }
}

impl fmt::Display for Assigned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.v4)?;
        self.v6.map_or(Ok(()), |v6| write!(formatter, " and {v6}"))
    }
}

impl Pool {
    /// A pool of these networks.
    ///
    /// # Errors
    /// [`TunnelError::Pool`] where a network has no room for a server and a client.
    pub fn new(v4: Ipv4Net, v6: Option<Ipv6Net>) -> Result<Self, TunnelError> {
        let too_small = |pool: String, longest, example| Err(TunnelError::Pool { pool, longest, example });
        if v4.prefix_len() > 29 {
            return too_small(v4.to_string(), 29, "10.77.0.0/24");
        }
        match v6 {
            Some(v6) if v6.prefix_len() > 120 => too_small(v6.to_string(), 120, "fd77:1:2::/64"),
            _ => Ok(Self { v4: v4.trunc(), v6: v6.map(|v6| v6.trunc()) }),
        }
    }

    /// How many clients there are addresses for.
    pub fn clients(&self) -> u32 {
        // The network, the server and broadcasts have an address each.
        let v4 = (1_u64 << (32 - self.v4.prefix_len())) - 3;
        let v6 = self.v6.map_or(u64::MAX, |v6| 1 << (128 - v6.prefix_len()).min(32));
        u32::try_from(v4.min(v6 - 2)).unwrap_or(u32::MAX).min(MOST_CLIENTS)
    }

    /// The addresses of a client by its number, from 0.
    pub(crate) fn client(&self, number: u32) -> Assigned {
        Assigned {
            v4: self.v4_at(number + 2),
            server_v4: self.v4_at(1).addr(),
            v6: self.v6_at(number + 2),
            server_v6: self.v6_at(1).map(|v6| v6.addr()),
        }
    }

    /// The addresses of the server.
    pub(crate) fn server(&self) -> Assigned {
        let first = self.client(0);
        Assigned { v4: self.v4_at(1), v6: self.v6_at(1), ..first }
    }

    fn v4_at(&self, place: u32) -> Ipv4Net {
        let address = Ipv4Addr::from(u32::from(self.v4.network()) + place);
        Ipv4Net::new(address, self.v4.prefix_len()).expect("the prefix is that of a network")
    }

    fn v6_at(&self, place: u32) -> Option<Ipv6Net> {
        let network = self.v6?;
        let address = Ipv6Addr::from(u128::from(network.network()) + u128::from(place));
        Some(Ipv6Net::new(address, network.prefix_len()).expect("the prefix is that of a network"))
    }
}

/// The file of assigned addresses: a line for each client with its public key and its number.
#[derive(Debug)]
pub(crate) struct Addresses {
    path: PathBuf,
    pool: Pool,
    numbers: HashMap<PublicKey, u32>,
}

impl Addresses {
    /// Reads a file, which need not exist yet.
    pub(crate) fn open(path: &Path, pool: Pool) -> Result<Self, TunnelError> {
        let failed = |action, source| TunnelError::File { action, path: path.to_owned(), source };
        let text = match kendall_files::read_text(path, MOST_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed("read", error)),
        };
        let mut numbers = HashMap::new();
        for (line, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            let entry = || {
                let (key, number) = text.trim().split_once(' ')?;
                Some((kendall_remote::public_key(key)?, number.trim().parse().ok()?))
            };
            let (key, number) = entry()
                .ok_or_else(|| TunnelError::AddressesLine { path: path.to_owned(), line: line + 1 })?;
            numbers.insert(key, number);
        }
        Ok(Self { path: path.to_owned(), pool, numbers })
    }

    /// The addresses of a client. A new client gets the first free number; where all are taken, that of a key which the server
    /// no longer admits.
    ///
    /// # Errors
    /// [`TunnelError::Exhausted`], [`TunnelError::File`].
    pub(crate) fn of(
        &mut self,
        key: &PublicKey,
        is_admitted: impl Fn(&PublicKey) -> bool,
    ) -> Result<Assigned, TunnelError> {
        let clients = self.pool.clients();
        if let Some(&number) = self.numbers.get(key).filter(|&&number| number < clients) {
            return Ok(self.pool.client(number));
        }
        let mut numbers = self.numbers.clone();
        let owners: BTreeMap<u32, PublicKey> =
            self.numbers.iter().map(|(key, &number)| (number, *key)).collect();
        let free = (0..clients).find(|number| !owners.contains_key(number));
        let number = match free {
            Some(number) => number,
            None => {
                let (&number, former) = owners
                    .iter()
                    .find(|&(&number, owner)| number < clients && !is_admitted(owner))
                    .ok_or(TunnelError::Exhausted(clients))?;
                numbers.remove(former);
                number
            }
        };
        numbers.insert(*key, number);
        // A number that is not in the file would be another client's after a restart.
        self.save(&numbers)?;
        self.numbers = numbers;
        Ok(self.pool.client(number))
    }

    /// Replaces the file whole, so that a crash leaves the old one or the new one.
    fn save(&self, numbers: &HashMap<PublicKey, u32>) -> Result<(), TunnelError> {
        let lines: BTreeMap<u32, &PublicKey> = numbers.iter().map(|(key, &number)| (number, key)).collect();
        let write = || {
            let mut file = Replacement::secret(&self.path)?;
            for (number, key) in lines {
                writeln!(file, "{key:?} {number}")?;
            }
            file.commit_durably()
        };
        write().map_err(|source| TunnelError::File { action: "write", path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn pool(v4: &str, v6: Option<&str>) -> Result<Pool, TunnelError> {
        Pool::new(v4.parse().unwrap(), v6.map(|v6| v6.parse().unwrap()))
    }

    fn key(byte: u8) -> PublicKey {
        PublicKey([byte; 32])
    }

    #[test]
    fn clients_keep_their_addresses_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("addresses");
        let pool = pool("10.77.0.9/24", Some("fd77::/64")).unwrap();
        let mut addresses = Addresses::open(&path, pool).unwrap();
        let first = addresses.of(&key(1), |_| true).unwrap();
        let second = addresses.of(&key(2), |_| true).unwrap();
        assert_eq!(first.v4.to_string(), "10.77.0.2/24");
        assert_eq!(first.server_v4.to_string(), "10.77.0.1");
        assert_eq!(second.v6.unwrap().to_string(), "fd77::3/64");
        let mut again = Addresses::open(&path, pool).unwrap();
        assert_eq!(again.of(&key(2), |_| true).unwrap(), second);
        assert_eq!(again.of(&key(1), |_| true).unwrap(), first);
    }

    #[test]
    fn a_full_pool_takes_from_keys_that_were_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut addresses =
            Addresses::open(&folder.path().join("addresses"), pool("10.77.0.0/29", None).unwrap()).unwrap();
        for client in 1..=5 {
            addresses.of(&key(client), |_| true).unwrap();
        }
        let refused = addresses.of(&key(6), |_| true).unwrap_err().to_string();
        assert!(refused.starts_with("all 5 addresses of the pool are assigned"), "{refused}");
        let taken = addresses.of(&key(6), |owner| *owner != key(3)).unwrap();
        assert_eq!(taken.v4.to_string(), "10.77.0.4/29");
    }

    #[test]
    fn an_address_that_cannot_be_written_is_not_assigned() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("later");
        let mut addresses =
            Addresses::open(&folder.join("addresses"), pool("10.77.0.0/24", None).unwrap()).unwrap();
        for _ in 0..2 {
            let error = addresses.of(&key(1), |_| true).unwrap_err();
            assert!(matches!(error, TunnelError::File { action: "write", .. }), "{error}");
        }
        fs::create_dir(&folder).unwrap();
        assert_eq!(addresses.of(&key(2), |_| true).unwrap().v4.to_string(), "10.77.0.2/24");
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(pool("10.77.0.0/30", None).unwrap_err().to_string().contains("at least /29"));
        assert!(pool("10.77.0.0/24", Some("fd77::/126")).unwrap_err().to_string().contains("at least /120"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("addresses");
        fs::write(&path, format!("{} 0\nabc 1\n", "a".repeat(64))).unwrap();
        let error = Addresses::open(&path, pool("10.77.0.0/24", None).unwrap()).unwrap_err().to_string();
        assert!(error.contains("addresses, line 2: write a public key"), "{error}");
        let endless = Addresses::open(Path::new("/dev/zero"), pool("10.77.0.0/24", None).unwrap());
        let error = endless.unwrap_err().to_string();
        assert!(error.contains("longer than the limit of 17 MB"), "{error}");
    }
}
