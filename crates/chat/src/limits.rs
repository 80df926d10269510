//! The limits that the machine sets for a directory server: flushes of the disk, new connections, and computations of passwords,
//! each measured alone. The analysis decides which of them binds a load.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kendall_accounts::{StoreUrl, fdatasyncs_per_second};
use kendall_system::{Demand, MachineLimit};
use rustix::time::{ClockId, clock_gettime};

use crate::name::Name;
use crate::password::client::{LogIn, Registration};
use crate::password::record::Record;
use crate::password::scram::{HalfLogIn, KEY_BYTES, NONCE_BYTES, Verifier};
use crate::password::server::Passwords;
use crate::password::{AuthMethod, PasswordError, REGISTER_3, Stretch};

/// Clients that connect at a time. From five on, more clients make no more connections a second.
const CLIENTS: usize = 8;
/// A request and an answer of the size of a registration's.
const ASKED: [u8; 217] = [1; 217];
const ANSWERED: [u8; 16] = [2; 16];
const PASSWORD: &str = "a password";

/// The passwords among requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PasswordShares {
    /// How passwords are proved.
    pub(crate) method: AuthMethod,
    /// The share of the requests that are registrations.
    pub(crate) registrations: f64,
    /// The share of the requests that are log-ins.
    pub(crate) log_ins: f64,
}

/// The limits of a server that keeps accounts in this store, if it outlives the server, under requests of this kind. The disk of a
/// database server is not known; of SQLite it is that of the file. `transactions` is the name under which the server counts those
/// of its store.
pub(crate) fn limits(
    store: Option<&StoreUrl>,
    transactions: &'static str,
    passwords: PasswordShares,
) -> Vec<MachineLimit> {
    let folder = store.and_then(StoreUrl::folder).filter(|_| passwords.registrations > 0.0);
    let disk = folder.map(|folder| {
        let folder = folder.to_owned();
        MachineLimit {
            name: format!("fdatasync in {}", folder.display()),
            demand: Demand::Counted(transactions),
            measure: Box::new(move |during| {
                fdatasyncs_per_second(&folder, during).map_err(in_words(&folder))
            }),
        }
    });
    let connections = MachineLimit {
        name: "new connections over the loopback".to_owned(),
        demand: Demand::Connections,
        measure: Box::new(|during| accepts_per_second(during).map_err(|error| error.to_string())),
    };
    let passwords = passwords.name().map(|name| MachineLimit {
        name,
        demand: Demand::Processors,
        measure: Box::new(move |during| passwords.mean_s(during).map_err(|error| error.to_string())),
    });
    disk.into_iter().chain([connections]).chain(passwords).collect()
}

fn in_words(folder: &Path) -> impl FnOnce(io::Error) -> String + '_ {
    move |error| format!("{}: {error}", folder.display())
}

impl PasswordShares {
    /// What is computed, in words; `None` where nothing is.
    fn name(&self) -> Option<String> {
        let Self { method, registrations, log_ins } = self;
        let percent = |share: &f64| format!("{:.0} %", share * 100.0);
        match (*registrations > 0.0, *log_ins > 0.0) {
            (false, false) => None,
            (true, false) if *registrations >= 1.0 => Some(format!("passwords of registrations, {method}")),
            (false, true) if *log_ins >= 1.0 => Some(format!("passwords of log-ins, {method}")),
            _ => Some(format!(
                "passwords of {} registrations and {} log-ins, {method}",
                percent(registrations),
                percent(log_ins)
            )),
        }
    }

    /// What the server computes for the password of the mean request, in seconds of a core.
    fn mean_s(&self, during: Duration) -> Result<f64, PasswordError> {
        let Self { method, registrations, log_ins } = *self;
        let of = |share: f64, cost: fn(AuthMethod, Duration) -> Result<f64, PasswordError>| match share > 0.0
        {
            true => Ok(share * cost(method, during)?),
            false => Ok(0.0),
        };
        Ok(of(registrations, registration_s)? + of(log_ins, log_in_s)?)
    }
}

/// Connections that one thread accepts, answers once and closes, a second.
fn accepts_per_second(during: Duration) -> io::Result<f64> {
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
fn registration_s(method: AuthMethod, during: Duration) -> Result<f64, PasswordError> {
    let passwords = Passwords::new().by(method);
    let name = Name::new("calibration").expect("it is a valid name");
    let (client, first) = Registration::start(PASSWORD);
    let credential = Passwords::draw_credential();
    let third: Box<[u8; REGISTER_3]> =
        client.finish(&passwords.register(&credential, &first)?, Stretch::Off)?;
    let verifier = Verifier::new(PASSWORD, Stretch::Off);
    mean_s(during, || {
        let record = match method {
            AuthMethod::Opaque => {
                passwords.register(&credential, &first)?;
                Record::new(credential, &name, &third)?
            }
            AuthMethod::Argon2id => Record::argon2id(&name, passwords.hashers().hash(PASSWORD)),
            AuthMethod::Scram => Record::scram(&name, verifier.clone()),
        };
        std::hint::black_box(record.encode());
        Ok(())
    })
}

/// What a server computes for one log-in by a method, in seconds of a core: the mean over a while. The name has no account, which
/// takes the same.
fn log_in_s(method: AuthMethod, during: Duration) -> Result<f64, PasswordError> {
    let passwords = Passwords::new().by(method);
    let name = Name::new("calibration").expect("it is a valid name");
    let (_, first) = LogIn::start(PASSWORD);
    let hash = passwords.hashers().hash(PASSWORD);
    let verifier = Verifier::new(PASSWORD, Stretch::Off);
    mean_s(during, || {
        match method {
            AuthMethod::Opaque => {
                std::hint::black_box(passwords.log_in(name.key(), None, &first)?);
            }
            AuthMethod::Argon2id => {
                std::hint::black_box(passwords.hashers().verify(&hash, PASSWORD));
            }
            AuthMethod::Scram => {
                let (half, _) = HalfLogIn::new(name.shown(), &[0; NONCE_BYTES], verifier.clone());
                // It is wrong, which the server knows after the same computation but for its own proof.
                let _ = std::hint::black_box(half.finish(&[0; KEY_BYTES]));
            }
        }
        Ok(())
    })
}

/// The mean processor time of a computation that is repeated for a while, in seconds. What other programs take does not count.
fn mean_s(
    during: Duration,
    mut compute: impl FnMut() -> Result<(), PasswordError>,
) -> Result<f64, PasswordError> {
    let (begun, begun_s, mut times) = (Instant::now(), own_cpu_s(), 0_u32);
    loop {
        compute()?;
        times += 1;
        if begun.elapsed() >= during {
            return Ok((own_cpu_s() - begun_s) / f64::from(times));
        }
    }
}

/// What this thread has used of a processor.
fn own_cpu_s() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURING: Duration = Duration::from_millis(30);

    fn names(store: &str, registrations: f64, log_ins: f64) -> Vec<String> {
        let store = store.parse().ok();
        let passwords = PasswordShares { method: AuthMethod::Opaque, registrations, log_ins };
        limits(store.as_ref(), "transactions", passwords).into_iter().map(|limit| limit.name).collect()
    }

    #[test]
    fn a_server_has_the_limits_of_what_its_requests_use() {
        let accepts = "new connections over the loopback";
        assert_eq!(
            names("sqlite:/var/tmp/a.db", 1.0, 0.0),
            ["fdatasync in /var/tmp", accepts, "passwords of registrations, opaque"]
        );
        assert_eq!(names("postgres://a@b/c", 0.0, 1.0), [accepts, "passwords of log-ins, opaque"]);
        assert_eq!(
            names("memory:", 0.25, 0.5),
            [accepts, "passwords of 25 % registrations and 50 % log-ins, opaque"]
        );
        assert_eq!(names("sqlite:a.db", 0.0, 0.0), [accepts]);
    }

    #[test]
    fn every_limit_is_measured_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let measured = |folder: &Path| {
            let store = format!("sqlite:{}/a.db", folder.display()).parse().unwrap();
            let passwords = PasswordShares { method: AuthMethod::Scram, registrations: 1.0, log_ins: 0.0 };
            let all = limits(Some(&store), "transactions", passwords);
            all.iter().map(|limit| (limit.measure)(DURING)).collect::<Vec<_>>()
        };
        let there = measured(folder.path());
        assert!(there.iter().all(|value| value.as_ref().is_ok_and(|value| *value > 0.0)), "{there:?}");
        let missing = measured(&folder.path().join("missing"));
        assert!(missing[0].as_ref().is_err_and(|why| why.contains("missing: No such file")), "{missing:?}");
        assert!(missing[1..].iter().all(Result::is_ok), "{missing:?}");
    }

    #[test]
    fn passwords_cost_what_their_method_does() {
        let costs = AuthMethod::ALL
            .map(|method| [registration_s(method, DURING).unwrap(), log_in_s(method, DURING).unwrap()]);
        let [opaque, argon2id, scram] = costs;
        for at in [0, 1] {
            assert!(argon2id[at] > opaque[at] && opaque[at] > scram[at], "{costs:?}");
        }
        let both = PasswordShares { method: AuthMethod::Argon2id, registrations: 0.5, log_ins: 0.5 };
        assert!(both.mean_s(DURING).unwrap() > opaque[0], "{costs:?}");
    }
}
