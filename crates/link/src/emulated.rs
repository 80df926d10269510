//! A link between two namespaces of this machine, emulated by its own process.

use std::fs::File;
use std::io::BufReader;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::back_end::BackEnd;
use crate::end::end_of;
use crate::error::LinkError;
use crate::leftovers::{MARK, end_leftovers, name};
use crate::namespace::{self, Privilege};
use crate::outcome::Outcome;
use crate::protocol::{LinkSettings, Reply, Request, hear, say};

/// The client's address on the link.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The server's address on the link.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The arguments with which kendall becomes the process that emulates a link.
pub const EMULATE: [&str; 2] = ["link", "emulate"];

/// How long the emulator may take to end by itself.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A link that is laid. Dropping it ends everything that runs at either end of it.
#[derive(Debug)]
pub struct EmulatedLink {
    process: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    back_end: BackEnd,
    privilege: Privilege,
    /// What the emulator could not set as it should be.
    notes: Vec<String>,
    user: Option<File>,
    client: End,
    server: End,
}

/// One end of a link: the namespace in which its device is.
#[derive(Debug)]
pub struct End(File);

impl End {
    /// Moves the calling thread here, for good.
    ///
    /// # Errors
    /// Fails where this process has not [joined](EmulatedLink::join).
    pub fn enter(&self) -> Result<(), LinkError> {
        namespace::enter(&self.0).map_err(LinkError::step("enter an end of the link"))
    }

    /// Does something here, such as starting a process or opening a socket, and comes back. Ordinary users can come
    /// back only to an end of the same link.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub fn visit<T>(&self, what: impl FnOnce() -> T) -> Result<T, LinkError> {
        namespace::within(&self.0, what).map_err(LinkError::step("enter an end of the link"))
    }

    /// The same end, to be held by someone else.
    ///
    /// # Errors
    /// Fails where this process has too many files open.
    pub fn share(&self) -> Result<Self, LinkError> {
        self.0.try_clone().map(Self).map_err(LinkError::step("hold an end of the link"))
    }
}

impl EmulatedLink {
    /// Lays a link with the first back end that works here. `program` is kendall itself, which becomes the emulator
    /// when called with [`EMULATE`]. Connections at both ends use this congestion control, or else the machine's.
    ///
    /// # Errors
    /// Says of each back end why it does not work.
    pub fn lay(program: &Path, back_ends: &[BackEnd], congestion: Option<&str>) -> Result<Self, LinkError> {
        end_leftovers();
        let mut refusals = Vec::new();
        for &back_end in back_ends {
            match Self::lay_with(program, back_end, congestion) {
                Ok(link) => return Ok(link),
                Err(error) => refusals.push(format!("  {}: {error}", back_end.name())),
            }
        }
        Err(LinkError::Nowhere(refusals.join("\n")))
    }

    fn lay_with(program: &Path, back_end: BackEnd, congestion: Option<&str>) -> Result<Self, LinkError> {
        let start = |source| LinkError::step(format!("start {}", program.display()))(source);
        let mut process = Command::new(program)
            .args(EMULATE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(start)?;
        let mut asks = process.stdin.take().expect("standard input is piped");
        let mut answers = BufReader::new(process.stdout.take().expect("standard output is piped"));
        let request = Request::Lay { back_end, congestion: congestion.map(Into::into) };
        let reply = say(&mut asks, &request).and_then(|()| hear(&mut answers));
        let process_id = process.id();
        let mut ended = |how: &str| {
            drop(process.kill());
            let status = process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            LinkError::Gone { how: format!("{how}{status}") }
        };
        let (privilege, client, server, notes) = match reply {
            Ok(Some(Reply::Laid { privilege, client, server, notes })) => (privilege, client, server, notes),
            Ok(Some(Reply::Refused(why))) => {
                ended("");
                return Err(LinkError::Refused(why));
            }
            Ok(other) => return Err(ended(&format!("it said {other:?}; "))),
            Err(error) => return Err(ended(&format!("{error}; "))),
        };
        let open = |file: String| {
            let path = PathBuf::from(format!("/proc/{process_id}/{file}"));
            File::open(&path).map_err(LinkError::step(format!("open {}", path.display())))
        };
        let namespaces = open(format!("fd/{client}")).and_then(|client| {
            let user = match privilege {
                Privilege::Root => None,
                Privilege::User => Some(open("ns/user".into())?),
            };
            Ok((user, client, open(format!("fd/{server}"))?))
        });
        let (user, client, server) = match namespaces {
            Ok(namespaces) => namespaces,
            Err(error) => {
                ended("");
                return Err(error);
            }
        };
        let (asks, client, server) = (Some(asks), End(client), End(server));
        Ok(Self { process, asks, answers, back_end, privilege, notes, user, client, server })
    }

    /// How the link is emulated, in words for the record.
    pub fn described(&self) -> String {
        let how = match self.back_end {
            BackEnd::Veth => "user-space over veth",
            BackEnd::Tun => "user-space over TUN devices",
            BackEnd::Netem => "the kernel's netem",
        };
        let by = match self.privilege {
            Privilege::Root => "as root",
            Privilege::User => "of an ordinary user",
        };
        format!("{how}, namespaces {by}")
    }

    /// What could not be set as it should be.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Makes this process able to enter the two ends. It must have one thread only, and cannot undo this; it keeps
    /// its user, and the machine's network until it enters an end.
    ///
    /// # Errors
    /// Fails where the kernel refuses, as it does where there are more threads.
    pub fn join(&mut self) -> Result<(), LinkError> {
        match self.user.take() {
            Some(user) => {
                namespace::enter_user(user).map_err(LinkError::step("join the user namespace of the link"))
            }
            None => Ok(()),
        }
    }

    /// The client's end, once this process has [joined](Self::join).
    pub fn client(&self) -> &End {
        &self.client
    }

    /// The server's end, once this process has [joined](Self::join).
    pub fn server(&self) -> &End {
        &self.server
    }

    /// What a program at either end finds in its environment: the addresses, and the name by which the next start ends
    /// what a link has left behind.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mark = name(self.process.id()).map(|name| (MARK, name));
        let addresses = [("KENDALL_SERVER", SERVER.to_string()), ("KENDALL_CLIENT", CLIENT.to_string())];
        addresses.into_iter().chain(mark).collect()
    }

    /// Lets packets pass. What happens is logged beside `log` if there is one.
    ///
    /// # Errors
    /// Fails where the settings cannot be, or where the log cannot be written.
    pub fn start(&mut self, asked: &LinkSettings, seed: u64, log: Option<&Path>) -> Result<(), LinkError> {
        let (up, down) = (asked.up[..].into(), asked.down[..].into());
        match self.ask(&Request::Start { up, down, seed, log: log.map(Into::into) })? {
            Reply::Started => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Lets nothing pass any more. The log becomes a table, if one was kept and a path is given, whose instants count
    /// from the one given with it.
    ///
    /// # Errors
    /// Fails where the link was not started, or where the table cannot be written.
    pub fn stop(&mut self, table: Option<(&Path, i64)>) -> Result<Outcome, LinkError> {
        let table = table.map(|(path, zero_ns)| (path.into(), zero_ns));
        match self.ask(&Request::Stop { table })? {
            Reply::Stopped(outcome) => Ok(*outcome),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Whether the emulator is still there.
    ///
    /// # Errors
    /// Fails where it is not.
    pub fn check(&mut self) -> Result<(), LinkError> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(LinkError::Gone { how: status.to_string() }),
            Err(error) => Err(LinkError::Gone { how: error.to_string() }),
        }
    }

    /// A descriptor that becomes readable when the emulator ends.
    pub(crate) fn ends(&self) -> Result<OwnedFd, LinkError> {
        end_of(&self.process)
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, LinkError> {
        let asks = self.asks.as_mut().expect("it is there until this is dropped");
        let reply = say(asks, request).and_then(|()| hear(&mut self.answers));
        match reply {
            Ok(Some(Reply::Refused(why))) => Err(LinkError::Refused(why)),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(self.gone("it said nothing")),
            Err(error) => Err(self.gone(&error.to_string())),
        }
    }

    fn gone(&mut self, how: &str) -> LinkError {
        match self.ended_within(Duration::from_secs(1)) {
            Some(status) => LinkError::Gone { how: status },
            None => LinkError::Gone { how: how.into() },
        }
    }

    fn unexpected(&self, reply: &Reply) -> LinkError {
        LinkError::Gone { how: format!("it said {reply:?}") }
    }

    /// Waits until the emulator has ended, and gives its status.
    fn ended_within(&mut self, limit: Duration) -> Option<String> {
        let begun = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status.to_string()),
                Err(error) => return Some(error.to_string()),
                Ok(None) if begun.elapsed() > limit => return None,
                Ok(None) => sleep(Duration::from_millis(2)),
            }
        }
    }
}

impl Drop for EmulatedLink {
    fn drop(&mut self) {
        // It ends what runs at both ends, and then itself, when it hears nothing more.
        drop(self.asks.take());
        if self.ended_within(END_WITHIN).is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// Tries each back end, and says how it emulates a link here, or why it does not.
pub fn probe(program: &Path) -> Vec<(BackEnd, Result<String, LinkError>)> {
    let tried = |back_end| {
        let link = EmulatedLink::lay_with(program, back_end, None);
        (back_end, link.map(|link| link.described()))
    };
    BackEnd::ALL.map(tried).into()
}

/// Checks the name of a congestion control of TCP: the kernel's have at most 15 letters (`TCP_CA_NAME_MAX`).
///
/// # Errors
/// Describes a valid name.
pub fn check_congestion_control(name: &str) -> Result<(), String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if (1..=15).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    Err("must be the name of a congestion control of this kernel, such as cubic, reno or bbr".into())
}
