//! What the machine itself allows a directory server: flushes of the disk, new connections, and computations of passwords. A
//! short calibration measures each alone; the one of which a load uses the largest share binds.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kendall_accounts::fdatasyncs_per_second;

use crate::name::Name;
use crate::password::client::Registration;
use crate::password::record::Record;
use crate::password::scram::Verifier;
use crate::password::server::Passwords;
use crate::password::{AuthMethod, PasswordError, REGISTER_3, Stretch};

/// Clients that connect at a time. From five on, more clients make no more connections a second.
const CLIENTS: usize = 8;
/// A request and an answer of the size of a registration's.
const ASKED: [u8; 217] = [1; 217];
const ANSWERED: [u8; 16] = [2; 16];
/// Below this share, nothing that was calibrated binds.
const BINDS: f64 = 0.5;

/// The limits of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineLimits {
    /// `fdatasync` of one block, a second, in the folder of the store.
    pub fdatasyncs_per_s: f64,
    /// Connections that are accepted, asked and answered once, and closed, a second.
    pub accepts_per_s: f64,
    /// What the server computes for a registration, in seconds of a core.
    pub registration_s: f64,
    /// Cores, which the server shares with its clients.
    pub cores: usize,
}

/// What a load does to these limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Registrations a second.
    pub registrations_per_s: f64,
    /// New connections a second.
    pub connections_per_s: f64,
    /// Transactions of the store a second, of which each is a flush.
    pub transactions_per_s: f64,
}

/// Which limit binds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binding {
    /// The shares of flushes, of new connections and of the cores for computation of passwords; 1 is all of it.
    pub shares: [f64; 3],
}

impl MachineLimits {
    /// Measures each limit for a while, one after the other.
    ///
    /// # Errors
    /// Fails where the folder cannot be written to, and where the loopback takes no connections.
    pub fn measure(folder: &Path, method: AuthMethod, during: Duration) -> io::Result<Self> {
        Ok(Self {
            fdatasyncs_per_s: fdatasyncs_per_second(folder, during)?,
            accepts_per_s: accepts_per_second(during)?,
            registration_s: registration_s(method, during).map_err(io::Error::other)?,
            cores: thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// Which limit a load comes nearest to.
    pub fn binding(&self, load: Load) -> Binding {
        let Load { registrations_per_s, connections_per_s, transactions_per_s } = load;
        Binding {
            shares: [
                transactions_per_s / self.fdatasyncs_per_s,
                connections_per_s / self.accepts_per_s,
                registrations_per_s * self.registration_s / self.cores as f64,
            ],
        }
    }
}

impl fmt::Display for MachineLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fdatasyncs_per_s, accepts_per_s, registration_s, cores } = self;
        write!(
            f,
            "{fdatasyncs_per_s:.0} fdatasync/s, {accepts_per_s:.0} accepts/s, {:.1} µs of a core for a registration's password, \
             {cores} cores",
            registration_s * 1e6
        )
    }
}

/// The sentence for a report.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [flushes, connections, passwords] = self.shares.map(|share| share * 100.0);
        let named = [
            (self.shares[0], "The disk binds"),
            (self.shares[1], "New connections bind"),
            (self.shares[2], "The computation of passwords binds"),
        ];
        let largest =
            named.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(share, _)| *share >= BINDS);
        let binds = largest.map_or(
            "None of these binds; processor time for protocol, client and store does",
            |(_, name)| name,
        );
        write!(
            f,
            "{binds}: {flushes:.0} % of the flushes, {connections:.0} % of the new connections and {passwords:.0} % of the \
             cores for passwords that this machine allows."
        )
    }
}

/// Connections that one thread accepts, answers once and closes, a second.
///
/// # Errors
/// Fails where the loopback takes no connections, for example because all ports are in use.
pub fn accepts_per_second(during: Duration) -> io::Result<f64> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let mut stream = TcpStream::connect(address)?;
                        stream.write_all(&ASKED)?;
                        stream.read_to_end(&mut Vec::new())?;
                    }
                    io::Result::Ok(())
                })
            })
            .collect();
        let (begun, mut accepted) = (Instant::now(), 0_u32);
        let served = loop {
            let elapsed = begun.elapsed();
            if elapsed >= during {
                break Ok(f64::from(accepted) / elapsed.as_secs_f64());
            }
            match answer_once(&listener) {
                Ok(()) => accepted += 1,
                Err(error) => break Err(error),
            }
        };
        is_over.store(true, Ordering::Relaxed);
        // Each client has one connection left at most. A blocked one is answered, or fails when the listener is gone.
        listener.set_nonblocking(true)?;
        while clients.iter().any(|client| !client.is_finished()) {
            if answer_once(&listener).is_err() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        for client in clients {
            client.join().expect("a client does not panic")?;
        }
        served
    })
}

fn answer_once(listener: &TcpListener) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nonblocking(false)?;
    stream.read_exact(&mut [0; ASKED.len()])?;
    stream.write_all(&ANSWERED)
}

/// What a server computes for one registration by a method, in seconds of a core: the mean over a while.
///
/// # Errors
/// Never fails with a server's own keys.
pub fn registration_s(method: AuthMethod, during: Duration) -> Result<f64, PasswordError> {
    let passwords = Passwords::new().by(method);
    let name = Name::new("calibration").expect("it is a valid name");
    let (client, first) = Registration::start("a password");
    let credential = Passwords::draw_credential();
    let third: Box<[u8; REGISTER_3]> =
        client.finish(&passwords.register(&credential, &first)?, Stretch::Off)?;
    let verifier = Verifier::new("a password", Stretch::Off);
    let (begun, mut times) = (Instant::now(), 0_u32);
    loop {
        let record = match method {
            AuthMethod::Opaque => {
                passwords.register(&credential, &first)?;
                Record::new(credential, &name, &third)?
            }
            AuthMethod::Argon2id => Record::argon2id(&name, passwords.hashers().hash("a password")),
            AuthMethod::Scram => Record::scram(&name, verifier.clone()),
        };
        std::hint::black_box(record.encode());
        times += 1;
        let elapsed = begun.elapsed();
        if elapsed >= during {
            return Ok(elapsed.as_secs_f64() / f64::from(times));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: MachineLimits =
        MachineLimits { fdatasyncs_per_s: 10_000.0, accepts_per_s: 30_000.0, registration_s: 1e-4, cores: 2 };

    #[test]
    fn the_limit_with_the_largest_share_binds() {
        let load = |registrations_per_s, connections_per_s, transactions_per_s| Load {
            registrations_per_s,
            connections_per_s,
            transactions_per_s,
        };
        let sentence = |load| LIMITS.binding(load).to_string();
        assert!(sentence(load(9_000.0, 0.0, 9_500.0)).starts_with("The disk binds: 95 %"));
        assert!(
            sentence(load(100.0, 27_000.0, 100.0))
                .starts_with("New connections bind: 1 % of the flushes, 90 %")
        );
        assert!(sentence(load(19_000.0, 0.0, 100.0)).starts_with("The computation of passwords binds"));
        assert!(sentence(load(4_000.0, 4_000.0, 400.0)).starts_with("None of these binds"));
    }

    #[test]
    fn every_limit_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let during = Duration::from_millis(30);
        let costs = AuthMethod::ALL.map(|method| {
            let limits = MachineLimits::measure(folder.path(), method, during).unwrap();
            assert!(limits.fdatasyncs_per_s > 0.0 && limits.accepts_per_s > 0.0, "{limits}");
            limits.registration_s
        });
        let [opaque, argon2id, scram] = costs;
        assert!(argon2id > opaque && opaque > scram, "{costs:?}");
        assert!(MachineLimits::measure(Path::new("/missing"), AuthMethod::Scram, during).is_err());
    }
}
