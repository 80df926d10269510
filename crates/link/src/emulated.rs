//! A link between two network namespaces of this machine, emulated by a separate process.

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
use crate::protocol::{LinkSettings, Reply, Request, receive, send};

/// The client's address on the link.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The server's address on the link.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The arguments that make kendall the process that emulates a link.
pub const EMULATE: [&str; 2] = ["link", "emulate"];

/// How long the emulator may take to end before it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A link that is set up. Dropping it ends every process at either end of it.
#[derive(Debug)]
pub struct EmulatedLink {
    process: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    back_end: BackEnd,
    privilege: Privilege,
    /// The settings that the emulator could not apply.
    notes: Vec<String>,
    user: Option<File>,
    client: End,
    server: End,
}

/// One end of a link: the namespace in which its device is.
#[derive(Debug)]
pub struct End(File);

impl End {
    /// Moves the calling thread here permanently.
    ///
    /// # Errors
    /// Fails where this process has not [joined](EmulatedLink::join).
    pub fn enter(&self) -> Result<(), LinkError> {
        namespace::enter(&self.0).map_err(LinkError::step("enter an end of the link"))
    }

    /// Calls a function here, which may start a process or open a socket, and moves back. Ordinary users can move back only to an
    /// end of the same link.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub fn visit<T>(&self, what: impl FnOnce() -> T) -> Result<T, LinkError> {
        namespace::within(&self.0, what).map_err(LinkError::step("enter an end of the link"))
    }

    /// Returns another handle of the same end.
    ///
    /// # Errors
    /// Fails where this process has too many files open.
    pub fn share(&self) -> Result<Self, LinkError> {
        self.0.try_clone().map(Self).map_err(LinkError::step("hold an end of the link"))
    }
}

impl EmulatedLink {
    /// Sets up a link with the first back end that works here. `program` is kendall itself, which becomes the emulator when
    /// called with [`EMULATE`]. Connections at both ends use this congestion control, or otherwise the machine's.
    ///
    /// # Errors
    /// Gives for each back end the reason why it does not work.
    pub fn set_up(
        program: &Path,
        back_ends: &[BackEnd],
        congestion: Option<&str>,
    ) -> Result<Self, LinkError> {
        end_leftovers();
        let mut refusals = Vec::new();
        for &back_end in back_ends {
            match Self::set_up_with(program, back_end, congestion) {
                Ok(link) => return Ok(link),
                Err(error) => refusals.push(format!("  {}: {error}", back_end.name())),
            }
        }
        Err(LinkError::Nowhere(refusals.join("\n")))
    }

    fn set_up_with(program: &Path, back_end: BackEnd, congestion: Option<&str>) -> Result<Self, LinkError> {
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
        let reply = send(&mut asks, &request).and_then(|()| receive(&mut answers));
        let process_id = process.id();
        let mut ended = |how: &str| {
            drop(process.kill());
            let status = process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            LinkError::Gone { how: format!("{how}{status}") }
        };
        let (privilege, client, server, notes) = match reply {
            Ok(Some(Reply::SetUp { privilege, client, server, notes })) => (privilege, client, server, notes),
            Ok(Some(Reply::Refused(why))) => {
                ended("");
                return Err(LinkError::Refused(why));
            }
            Ok(other) => return Err(ended(&format!("it replied {other:?}; "))),
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

    /// Describes how the link is emulated, for the record.
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

    /// The settings that could not be applied.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Enables this process to enter the two ends. The process must have a single thread, and cannot undo this. It keeps its
    /// user, and keeps the machine's network until it enters an end.
    ///
    /// # Errors
    /// Fails where the kernel refuses, as it does for a process with more threads.
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

    /// The environment variables of a program at either end: the addresses, and the name by which the next start finds and ends
    /// what a link has left behind.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mark = name(self.process.id()).map(|name| (MARK, name));
        let addresses = [("KENDALL_SERVER", SERVER.to_string()), ("KENDALL_CLIENT", CLIENT.to_string())];
        addresses.into_iter().chain(mark).collect()
    }

    /// Starts to forward packets. Writes a log of them next to `log` if there is one.
    ///
    /// # Errors
    /// Fails where the settings are not possible, or where the log cannot be written.
    pub fn start(&mut self, asked: &LinkSettings, seed: u64, log: Option<&Path>) -> Result<(), LinkError> {
        let (up, down) = (asked.up[..].into(), asked.down[..].into());
        match self.ask(&Request::Start { up, down, seed, log: log.map(Into::into) })? {
            Reply::Started => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Stops forwarding. Makes the log a table, if one was kept and a path is given. The times in the table count from the
    /// instant given with the path.
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

    /// Checks that the emulator is still running.
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
        let reply = send(asks, request).and_then(|()| receive(&mut self.answers));
        match reply {
            Ok(Some(Reply::Refused(why))) => Err(LinkError::Refused(why)),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(self.gone("it replied nothing")),
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
        LinkError::Gone { how: format!("it replied {reply:?}") }
    }

    /// Waits until the emulator has ended, and returns its status.
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
        // At the end of its input, the emulator ends every process at both ends, and then itself.
        drop(self.asks.take());
        if self.ended_within(END_WITHIN).is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// Tries each back end, and reports how it emulates a link here, or why it does not work.
pub fn probe(program: &Path) -> Vec<(BackEnd, Result<String, LinkError>)> {
    let tried = |back_end| {
        let link = EmulatedLink::set_up_with(program, back_end, None);
        (back_end, link.map(|link| link.described()))
    };
    BackEnd::ALL.map(tried).into()
}

/// Checks the name of a TCP congestion control: the kernel allows at most 15 letters (`TCP_CA_NAME_MAX`).
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
