//! The client: one session, over one connection after another.
//!
//! When the server falls silent or a connection fails, the client reconnects and continues the session. It ends with the program,
//! when its user leaves, or when the server no longer has the session.

mod link;
mod sink;
mod work;

use std::io;
use std::time::Duration;

use kendall_curve::{Endpoint, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::shell::error::ShellError;
use crate::shell::escape::{Escape, EscapeFilter, HELP};
use crate::shell::framed::{Framed, Progress, StreamError};
use crate::shell::input_window::{InputWindow, Next};
use crate::shell::protocol::{
    ClientFrame, DetachReason, Exit, MAX_DATA, OUTPUT_WINDOW, Refusal, ServerFrame, SessionId, Source, Token,
    Window,
};
use link::{Link, LinkEvent, Timing};
use sink::Sink;

pub use work::{ClientSettings, Connect, Connecting, LocalEvent, LocalStreams, Outcome, Start};

/// Output that is written but not acknowledged, at most, unless time passes.
const ACKNOWLEDGE_AFTER: u64 = 32 * 1024;
/// … and that time.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_millis(100);
/// How long the client waits for the server when it leaves.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long the client waits for the end of a session that its user ends.
const END: Duration = Duration::from_secs(4);

/// A client at work.
struct Client {
    settings: ClientSettings,
    connect: Connect,
    link: Link,
    input: InputWindow,
    escapes: EscapeFilter,
    session: Option<(SessionId, Token)>,
    has_terminal: bool,
    window: Option<Window>,
    /// Offset of the next output that is expected.
    received: u64,
    acknowledged: u64,
    acknowledge_at: Option<Instant>,
    exit: Option<Exit>,
    signalled: bool,
    /// When the client no longer waits for the session that its user has ended.
    give_up: Option<Instant>,
    output: Sink,
    errors: Sink,
}

enum Event {
    Connected(Result<(Endpoint, Stream), ShellError>),
    Progress(Result<Progress, StreamError>),
    Input(io::Result<usize>),
    Local(LocalEvent),
    Written(io::Result<()>),
    Deadline,
}

/// Runs a session until it is over or the client leaves it.
///
/// # Errors
/// [`ShellError`], where the server does not answer, refuses, or has lost the session.
pub async fn run(
    settings: ClientSettings,
    connect: Connect,
    start: Start,
    streams: LocalStreams,
    mut events: mpsc::Receiver<LocalEvent>,
) -> Result<Outcome, ShellError> {
    let LocalStreams { input: mut local, output, errors } = streams;
    let connection = connect().await?;
    let mut client = Client::new(settings, connect, connection, &start, output, errors);
    let mut typed = vec![0; MAX_DATA];
    loop {
        client.send();
        if let Some(outcome) = client.is_over().await {
            return Ok(outcome);
        }
        let event = client.next(&mut local, &mut typed, &mut events).await;
        let outcome = match event {
            Event::Connected(connection) => {
                client.connected(connection);
                None
            }
            Event::Progress(progress) => client.progressed(progress)?,
            Event::Input(count) => client.typed(&typed[..count.unwrap_or(0)]),
            Event::Local(event) => client.happened(event),
            Event::Written(Ok(())) => None,
            Event::Written(Err(_)) => Some(Outcome::OutputClosed),
            Event::Deadline => client.deadlines_passed()?,
        };
        if let Some(outcome) = outcome {
            client.leave(outcome).await;
            return Ok(outcome);
        }
    }
}

impl Client {
    fn new(
        settings: ClientSettings,
        connect: Connect,
        (endpoint, stream): (Endpoint, Stream),
        start: &Start,
        output: Box<dyn AsyncWrite + Send + Unpin>,
        errors: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> Self {
        let (has_terminal, window) = match start {
            Start::Open { terminal, .. } => {
                (terminal.is_some(), terminal.as_ref().map(|(_, window)| *window))
            }
            Start::Attach { window, .. } => (true, Some(*window)),
        };
        let mut framed = Framed::new(stream);
        start.request(framed.outbox());
        let until = Instant::now() + settings.answer_within;
        Self {
            link: Link::greeting(endpoint, framed, until),
            settings,
            connect,
            input: InputWindow::default(),
            escapes: EscapeFilter::default(),
            session: None,
            has_terminal,
            window,
            received: 0,
            acknowledged: 0,
            acknowledge_at: None,
            exit: None,
            signalled: false,
            give_up: None,
            output: Sink::new(output),
            errors: Sink::new(errors),
        }
    }

    async fn next(
        &mut self,
        local: &mut (dyn AsyncRead + Send + Unpin),
        typed: &mut [u8],
        events: &mut mpsc::Receiver<LocalEvent>,
    ) -> Event {
        let deadline = self.deadline();
        let passed = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        // A tilde that was held back may come on top.
        let most = self.input.free().saturating_sub(1).min(typed.len());
        tokio::select! {
            event = self.link.next() => match event {
                LinkEvent::Connected(connection) => Event::Connected(connection),
                LinkEvent::Progress(progress) => Event::Progress(progress),
            },
            count = local.read(&mut typed[..most]), if most > 0 => Event::Input(count),
            Some(event) = events.recv() => Event::Local(event),
            written = self.output.write(), if !self.output.is_idle() => Event::Written(written),
            written = self.errors.write(), if !self.errors.is_idle() => Event::Written(written),
            () = passed => Event::Deadline,
        }
    }

    fn timing(&self) -> Timing {
        Timing { silence: self.settings.silence }
    }

    fn deadline(&self) -> Option<Instant> {
        let link = self.link.deadline(self.timing());
        [link, self.acknowledge_at, self.give_up].into_iter().flatten().min()
    }

    /// Puts into the outbox what the server lacks.
    fn send(&mut self) {
        let Some(framed) = self.link.up() else { return };
        let mut sent = false;
        while framed.takes_bulk()
            && let Some(next) = self.input.next()
        {
            sent = true;
            match next {
                Next::Input(offset, bytes) => {
                    ClientFrame::Input { offset, bytes: &bytes }.append(framed.outbox())
                }
                Next::End(offset) => ClientFrame::InputEnd(offset).append(framed.outbox()),
            }
        }
        let waiting = self.output.first_waiting().into_iter().chain(self.errors.first_waiting()).min();
        let written = waiting.unwrap_or(self.received);
        let now = Instant::now();
        let news = written.saturating_sub(self.acknowledged);
        if news >= ACKNOWLEDGE_AFTER
            || (news > 0 && (sent || self.acknowledge_at.is_some_and(|at| at <= now)))
        {
            ClientFrame::Acknowledge(written).append(framed.outbox());
            self.acknowledged = written;
            self.acknowledge_at = None;
        } else if news > 0 && self.acknowledge_at.is_none() {
            self.acknowledge_at = Some(now + ACKNOWLEDGE_WITHIN);
        } else if news == 0 {
            self.acknowledge_at = None;
        }
    }

    /// Ends the connection in order once the program is over and everything is written.
    async fn is_over(&mut self) -> Option<Outcome> {
        let exit = self.exit.filter(|_| self.output.is_idle() && self.errors.is_idle())?;
        if let Some(framed) = self.link.up() {
            ClientFrame::Finished.append(framed.outbox());
        }
        self.link.close(FAREWELL).await;
        Some(Outcome::Exited(exit))
    }

    fn progressed(&mut self, progress: Result<Progress, StreamError>) -> Result<Option<Outcome>, ShellError> {
        let (kind, body) = match progress {
            Ok(Progress::Drained) => return Ok(None),
            Ok(Progress::Frame(kind, body)) => (kind, body),
            Ok(Progress::Ended) => return self.lost(io::ErrorKind::UnexpectedEof.into()),
            Err(StreamError::Io(error)) => return self.lost(error),
            Err(StreamError::Frame(error)) => return Err(error.into()),
        };
        if self.link.heard() {
            self.notice("the server answers again");
        }
        match ServerFrame::decode(kind, &body)? {
            ServerFrame::Attached { session, token, terminal, input, output } => {
                self.attached(session, token, terminal, input, output)?;
            }
            ServerFrame::Refused(refusal, text) => return Err(self.refused(refusal, text)),
            ServerFrame::Output { source, offset, bytes }
                if offset == self.received && self.session.is_some() =>
            {
                self.received += bytes.len() as u64;
                if self.received - self.acknowledged > OUTPUT_WINDOW as u64 {
                    return Err(ShellError::Protocol(
                        "more output than it may send before it is acknowledged",
                    ));
                }
                let sink = if source == Source::Errors { &mut self.errors } else { &mut self.output };
                sink.push(Some(offset), bytes);
            }
            ServerFrame::Taken(offset) if self.input.taken(offset) => {}
            ServerFrame::Exited { exit, output } if output == self.received => self.exit = Some(exit),
            ServerFrame::Ping => {
                if let Some(framed) = self.link.up() {
                    ClientFrame::Pong.append(framed.outbox());
                }
            }
            ServerFrame::Pong => {}
            ServerFrame::Detached(reason) => return Ok(self.detached(reason)),
            ServerFrame::Output { .. } => {
                return Err(ShellError::Protocol("output that does not continue the output before"));
            }
            ServerFrame::Taken(_) => {
                return Err(ShellError::Protocol("it acknowledged input that was never sent"));
            }
            ServerFrame::Exited { .. } => return Err(ShellError::Protocol("an exit before all output")),
            ServerFrame::Sessions(_) | ServerFrame::Ending => {
                return Err(ShellError::Protocol("an answer to another request"));
            }
        }
        Ok(None)
    }

    /// The server has made the connection that of the session.
    fn attached(
        &mut self,
        session: SessionId,
        token: Token,
        terminal: bool,
        input: u64,
        output: u64,
    ) -> Result<(), ShellError> {
        if !self.link.opened() {
            return Err(ShellError::Protocol("it attached a connection twice"));
        }
        if self.session.replace((session, token)).is_none() {
            self.has_terminal = terminal;
            self.input.begin(input);
            self.received = output;
            self.acknowledged = output;
        } else {
            if !self.input.resume(input) || output < self.received {
                return Err(ShellError::Protocol("it resumes at another offset than requested"));
            }
            let lost = output - self.received;
            match lost {
                0 => self.notice("connected again"),
                lost => {
                    self.notice(&format!("connected again; {lost} bytes of output were dropped meanwhile"))
                }
            }
            self.received = output;
            self.acknowledged = output;
        }
        if let (Some(window), Some(framed)) = (self.window.filter(|_| terminal), self.link.up()) {
            ClientFrame::Resize(window).append(framed.outbox());
        }
        Ok(())
    }

    fn refused(&self, refusal: Refusal, text: &str) -> ShellError {
        // What a server says is shown on a terminal.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match self.session {
            Some(_) if refusal == Refusal::NoSession => ShellError::SessionGone(text),
            _ => ShellError::Refused(text),
        }
    }

    fn detached(&self, reason: DetachReason) -> Option<Outcome> {
        let (session, _) = self.session?;
        Some(match reason {
            DetachReason::Requested => Outcome::Detached(session),
            DetachReason::TakenOver => Outcome::TakenOver(session),
            DetachReason::ServerStops => Outcome::ServerStops,
        })
    }

    /// A connection has failed: the first ends the client, a later one is replaced.
    fn lost(&mut self, error: io::Error) -> Result<Option<Outcome>, ShellError> {
        if self.exit.is_some() {
            // All that is missing is to be written here.
            self.link = Link::down_for_good();
            return Ok(None);
        }
        if self.session.is_none() {
            return Err(match error.kind() {
                io::ErrorKind::TimedOut => ShellError::NoAnswer(self.settings.no_answer.clone()),
                _ => ShellError::Connection(error),
            });
        }
        if self.give_up.is_some() {
            return Ok(Some(Outcome::Ended));
        }
        if self.link.is_up() {
            self.notice("the connection is lost; connecting again");
        }
        self.link = Link::down(self.settings.silence);
        Ok(None)
    }

    fn deadlines_passed(&mut self) -> Result<Option<Outcome>, ShellError> {
        let now = Instant::now();
        if self.give_up.is_some_and(|at| at <= now) {
            return Ok(Some(Outcome::Ended));
        }
        match self.link.deadline_passed(self.timing()) {
            link::Due::Nothing => Ok(None),
            link::Due::Silent => {
                self.notice("the server does not answer; waiting");
                Ok(None)
            }
            link::Due::Lost if self.session.is_none() => {
                Err(ShellError::NoAnswer(self.settings.no_answer.clone()))
            }
            link::Due::Lost => self.lost(io::ErrorKind::TimedOut.into()),
            // On each new connection the server may send a further window of output.
            link::Due::Connect if self.output.bytes() + self.errors.bytes() > 2 * OUTPUT_WINDOW => {
                self.link = Link::down(self.settings.silence);
                Ok(None)
            }
            link::Due::Connect => {
                self.link = Link::connecting((self.connect)());
                Ok(None)
            }
        }
    }

    /// Asks on a new connection to go on. Where there is no network, it is tried again later.
    fn connected(&mut self, connection: Result<(Endpoint, Stream), ShellError>) {
        let Some((session, token)) = self.session else { return };
        self.link = match connection {
            Ok((endpoint, stream)) => {
                let mut framed = Framed::new(stream);
                ClientFrame::Resume { session, token, received: self.received }.append(framed.outbox());
                Link::greeting(endpoint, framed, Instant::now() + 3 * self.settings.silence)
            }
            Err(error) => {
                tracing::debug!("cannot connect again: {error}");
                Link::down(self.settings.silence)
            }
        };
    }

    /// What the user typed; nothing is the end of the input.
    fn typed(&mut self, bytes: &[u8]) -> Option<Outcome> {
        if bytes.is_empty() {
            self.input.end();
            return None;
        }
        if !self.settings.has_escapes {
            self.input.push(bytes);
            return None;
        }
        let mut rest = bytes;
        loop {
            let mut plain = Vec::new();
            let found = self.escapes.filter(rest, &mut plain);
            self.input.push(&plain);
            let (escape, after) = found?;
            rest = after;
            match escape {
                Escape::Help => self.errors.push(None, HELP.as_bytes()),
                Escape::Detach => match (self.session, self.link.up()) {
                    (Some(_), Some(framed)) => ClientFrame::Detach.append(framed.outbox()),
                    (session, _) => {
                        return Some(session.map_or(Outcome::Ended, |(id, _)| Outcome::Detached(id)));
                    }
                },
                Escape::End => match (self.session, self.link.up()) {
                    (Some((session, _)), Some(framed)) => {
                        ClientFrame::End(session).append(framed.outbox());
                        self.give_up = Some(Instant::now() + END);
                    }
                    _ => return Some(Outcome::Ended),
                },
            }
        }
    }

    fn happened(&mut self, event: LocalEvent) -> Option<Outcome> {
        match event {
            LocalEvent::Resized(window) => {
                self.window = Some(window);
                if let Some(framed) = self.link.up() {
                    ClientFrame::Resize(window).append(framed.outbox());
                }
                None
            }
            LocalEvent::Signal(signal) => {
                let again = std::mem::replace(&mut self.signalled, true);
                match self.link.up() {
                    Some(framed) if !again && !self.has_terminal => {
                        ClientFrame::Signal(signal).append(framed.outbox());
                        None
                    }
                    _ => Some(Outcome::Signalled(signal)),
                }
            }
        }
    }

    /// Reports to the user, on its own line.
    fn notice(&mut self, text: &str) {
        let host = &self.settings.host;
        let line = match self.settings.is_raw {
            true => format!("\r\n[kendall: {host}: {text}; ~. ends, ~d detaches]\r\n"),
            false => format!("kendall: {host}: {text}\n"),
        };
        self.errors.push(None, line.as_bytes());
    }

    /// Leaves the session, and lets the server know.
    async fn leave(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Detached(_) | Outcome::TakenOver(_) | Outcome::ServerStops => {
                self.link.close(FAREWELL).await
            }
            _ => self.link.leave(FAREWELL).await,
        }
        // What was received before is shown, unless what shows it is stuck.
        let write = async {
            while !self.output.is_idle() && self.output.write().await.is_ok() {}
            while !self.errors.is_idle() && self.errors.write().await.is_ok() {}
        };
        _ = timeout(FAREWELL, write).await;
    }
}
