//! A session: a program, its recent output, and at most one client at a time. A task drives it; a connection that asks for the
//! session is handed to that task, which alone reads and writes it from then on.

mod attachment;

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kendall_curve::Stream;
use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::shell::framed::{Framed, Progress, StreamError};
use crate::shell::input_queue::InputQueue;
use crate::shell::output_log::OutputLog;
use crate::shell::process::{Buffers, Program, exit};
use crate::shell::protocol::{
    Claim, ClientFrame, DetachReason, Exit, Listed, MAX_DATA, OUTPUT_WINDOW, ServerFrame, SessionId, Source,
    Token, Window,
};
use attachment::{Attachment, Waiting};

pub(crate) use attachment::refuse;

/// Output that a session with a terminal holds, and that waits for its client.
const TERMINAL_LOG: usize = 1 << 20;
/// The most output of a terminal that is on its way, so that an interrupted program soon looks so.
const TERMINAL_IN_FLIGHT: usize = 128 * 1024;
/// The size of the log for pipes, where throughput counts.
const PIPE_LOG: usize = OUTPUT_WINDOW;
/// Recent output that a client sees that attaches anew.
const SCREEN: u64 = 16 * 1024;
/// How long a program has to end after SIGHUP before it is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// How long the window has a row less, so that a program notices and draws its screen again.
const REDRAW: Duration = Duration::from_millis(50);

/// How long sessions without a client live.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// A client whose connection is lost may resume; until then its program waits once the log is full.
    pub(crate) resume: Duration,
    /// A detached session ends after this time.
    pub(crate) detached: Duration,
}

/// What a session is, for logs and lists.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) session: SessionId,
    pub(crate) has_terminal: bool,
    pub(crate) command: Vec<u8>,
    pub(crate) began: Instant,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    attached: bool,
    active: Instant,
}

impl About {
    pub(crate) fn new(session: SessionId, has_terminal: bool, command: Vec<u8>) -> Self {
        let now = Instant::now();
        let state = Mutex::new(State { attached: true, active: now });
        Self { session, has_terminal, command, began: now, state }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session as a list shows it.
    pub(crate) fn listed(&self) -> Listed<'_> {
        let state = *self.state();
        Listed {
            session: self.session,
            attached: state.attached,
            terminal: self.has_terminal,
            age_s: self.began.elapsed().as_secs(),
            idle_s: state.active.elapsed().as_secs(),
            command: &self.command,
        }
    }
}

/// A connection that asks for a session.
pub(crate) struct Joining {
    pub(crate) framed: Framed<Stream>,
    pub(crate) how: Join,
}

/// How a connection asks for a session.
#[derive(Debug)]
pub(crate) enum Join {
    Anew { window: Window, claim: Claim },
    Resume { token: Token, received: u64 },
}

/// What the server asks of a session.
pub(crate) enum Request {
    Join(Box<Joining>),
    /// Ends it.
    End,
    /// Ends it because the server stops.
    Stop,
}

/// Whether a session has a client.
enum Presence {
    Attached(Attachment),
    /// The connection was lost; the client may resume.
    Lost(Instant),
    Detached(Instant),
}

/// A session, driven by [`Session::run`].
pub(crate) struct Session {
    about: Arc<About>,
    patience: Patience,
    program: Program,
    buffers: Buffers,
    exit: Option<(Exit, Instant)>,
    log: OutputLog,
    queue: InputQueue,
    token: Token,
    window: Window,
    presence: Presence,
    /// A client that waits for whether the present one answers.
    waiting: Option<Waiting>,
    /// The instant at which the window gets its size back.
    redraw: Option<Instant>,
    /// When a program that was hung up is killed.
    kill: Option<Instant>,
    /// The program was hung up: there is nothing to return to.
    ending: bool,
    /// The client has everything.
    finished: bool,
}

enum Event {
    Request(Option<Request>),
    Client(Result<Progress, StreamError>),
    Output(Source, usize),
    InputTaken(usize),
    Exited(std::io::Result<std::process::ExitStatus>),
    Deadline,
}

impl Session {
    /// A session of a program that has just started, with the client that asked for it.
    pub(crate) fn new(
        about: Arc<About>,
        patience: Patience,
        program: Program,
        framed: Framed<Stream>,
        window: Window,
    ) -> Self {
        let capacity = if about.has_terminal { TERMINAL_LOG } else { PIPE_LOG };
        let mut session = Self {
            patience,
            program,
            buffers: Buffers::new(),
            exit: None,
            log: OutputLog::new(capacity),
            queue: InputQueue::default(),
            token: attachment::draw_token(),
            window,
            presence: Presence::Detached(Instant::now()),
            waiting: None,
            redraw: None,
            kill: None,
            ending: false,
            finished: false,
            about,
        };
        session.attach(framed, 0);
        session
    }

    /// Drives the session until it is over; how its program ended.
    pub(crate) async fn run(mut self, mut requests: mpsc::Receiver<Request>) -> Option<Exit> {
        while !self.is_over() {
            self.send();
            match self.next(&mut requests).await {
                Event::Request(Some(Request::Join(joining))) => self.join(*joining).await,
                Event::Request(Some(Request::End)) => self.hang_up(),
                Event::Request(Some(Request::Stop) | None) => {
                    self.stop().await;
                    break;
                }
                Event::Client(progress) => self.progressed(progress).await,
                Event::Output(source, count) => {
                    self.log.push(source, self.buffers.read(source, count));
                    self.about.state().active = Instant::now();
                }
                Event::InputTaken(count) => {
                    self.queue.taken(count);
                    self.close_input_at_end();
                }
                Event::Exited(status) => {
                    let how = status.map_or(Exit::Signal(9), exit);
                    self.exit = Some((how, Instant::now()));
                }
                Event::Deadline => self.deadlines_passed(),
            }
        }
        self.exit.map(|(exit, _)| exit)
    }

    async fn next(&mut self, requests: &mut mpsc::Receiver<Request>) -> Event {
        let (most, deadline, exited) = (self.readable(), self.deadline(), self.exit.is_some());
        let Program { child, input, output } = &mut self.program;
        let client = async {
            match &mut self.presence {
                Presence::Attached(attachment) => attachment.framed.progress().await,
                Presence::Lost(_) | Presence::Detached(_) => pending().await,
            }
        };
        let passed = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => pending().await,
            }
        };
        tokio::select! {
            request = requests.recv() => Event::Request(request),
            progress = client => Event::Client(progress),
            (source, count) = output.read(&mut self.buffers, most, exited), if most > 0 && !output.is_over() =>
                Event::Output(source, count),
            count = input.write(self.queue.front()), if !self.queue.front().is_empty() => Event::InputTaken(count),
            status = child.wait(), if !exited => Event::Exited(status),
            () = passed => Event::Deadline,
        }
    }

    /// How much output may be read.
    fn readable(&self) -> usize {
        match &self.presence {
            Presence::Detached(_) => MAX_DATA,
            Presence::Lost(_) => self.log.free(usize::MAX),
            Presence::Attached(_) if self.about.has_terminal => self.log.free(TERMINAL_IN_FLIGHT),
            Presence::Attached(_) => self.log.free(usize::MAX),
        }
    }

    /// Whether the program has ended and all its output is read.
    fn program_is_over(&self) -> Option<Exit> {
        self.exit.map(|(exit, _)| exit).filter(|_| self.program.output.is_over())
    }

    fn is_over(&self) -> bool {
        self.program_is_over().is_some()
            && (self.finished || self.forget_at().is_some_and(|at| at <= Instant::now()))
    }

    /// When a session whose program is over and that has no client is forgotten.
    fn forget_at(&self) -> Option<Instant> {
        let (Presence::Lost(since) | Presence::Detached(since)) = &self.presence else { return None };
        let (_, exited) = self.exit.filter(|_| self.program.output.is_over())?;
        let is_detached = matches!(self.presence, Presence::Detached(_));
        if is_detached && (self.ending || !self.about.has_terminal) {
            Some(*since)
        } else {
            Some((*since).max(exited) + self.patience.resume)
        }
    }

    /// When a session without a client changes: a lost client is given up, a detached program is hung up.
    fn absence_ends(&self) -> Option<Instant> {
        match &self.presence {
            Presence::Lost(since) => Some(*since + self.patience.resume),
            Presence::Detached(since) if self.kill.is_none() && self.exit.is_none() => {
                Some(*since + self.patience.detached)
            }
            Presence::Attached(_) | Presence::Detached(_) => None,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.as_ref().map(Waiting::deadline);
        [waiting, self.redraw, self.kill, self.absence_ends(), self.forget_at()].into_iter().flatten().min()
    }

    fn deadlines_passed(&mut self) {
        let now = Instant::now();
        let is_past = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_past(self.redraw) {
            self.redraw = None;
            self.program.resize(self.window);
        }
        if is_past(self.kill) {
            self.kill = None;
            self.program.hang_up(Signal::KILL);
            // Programs that were started in the background may hold pipes open.
            self.program.output.close();
        }
        if is_past(self.absence_ends()) {
            self.absence_ended();
        }
        if is_past(self.waiting.as_ref().map(Waiting::deadline)) {
            self.replace_silent_client();
        }
    }

    fn absence_ended(&mut self) {
        let (session, Patience { resume, detached }) = (self.about.session, self.patience);
        match self.presence {
            Presence::Lost(_) if self.about.has_terminal => {
                tracing::info!(
                    "session {session}: its client did not resume within {resume:?}; it is detached, and continues"
                );
                self.detached();
            }
            Presence::Lost(_) => {
                tracing::info!(
                    "session {session}: its client did not resume within {resume:?}; its command gets SIGHUP"
                );
                self.detached();
            }
            Presence::Attached(_) | Presence::Detached(_) => {
                tracing::info!(
                    "session {session}: no client attached within {detached:?}; its program gets SIGHUP"
                );
                self.hang_up();
            }
        }
    }

    /// No client is expected to resume: a program on a terminal continues, one on pipes has lost its user.
    fn detached(&mut self) {
        self.presence = Presence::Detached(Instant::now());
        self.about.state().attached = false;
        if !self.about.has_terminal {
            self.hang_up();
        }
    }

    fn hang_up(&mut self) {
        if self.kill.is_none() {
            self.program.hang_up(Signal::HUP);
            self.ending = true;
            self.kill = Some(Instant::now() + KILL_AFTER);
        }
    }

    /// Ends the session because the server stops.
    async fn stop(&mut self) {
        if let Presence::Attached(attachment) = &mut self.presence {
            attachment.leave(DetachReason::ServerStops).await;
        }
        self.program.hang_up(Signal::HUP);
        if self.exit.is_none() {
            let status = timeout(KILL_AFTER, self.program.child.wait()).await;
            self.program.hang_up(Signal::KILL);
            let status = match status {
                Ok(status) => status,
                Err(_) => self.program.child.wait().await,
            };
            self.exit = Some((status.map_or(Exit::Signal(9), exit), Instant::now()));
        }
    }

    fn close_input_at_end(&mut self) {
        if self.queue.is_over() {
            self.program.input.end();
        }
    }

    /// Puts what the client lacks into its outbox, as far as there is capacity.
    fn send(&mut self) {
        let over = self.program_is_over();
        let Presence::Attached(attachment) = &mut self.presence else { return };
        let had_output = attachment.send_output(&self.log);
        if let Some(taken) = self.queue.acknowledgement(had_output) {
            attachment.send(&ServerFrame::Taken(taken));
        }
        if let Some(exit) = over {
            attachment.send_exit(exit, self.log.end());
        }
    }

    async fn progressed(&mut self, progress: Result<Progress, StreamError>) {
        let frame = match progress {
            Ok(Progress::Drained) => return,
            Ok(Progress::Frame(kind, body)) => ClientFrame::decode(kind, &body)
                .map(|frame| self.handle(&frame))
                .map_err(|error| error.to_string()),
            // A client that leaves on purpose says so: this may be one that has given up a silent connection for another.
            Ok(Progress::Ended) | Err(StreamError::Io(_)) => return self.lost(),
            Err(StreamError::Frame(error)) => Err(error.to_string()),
        };
        match frame {
            Ok(Ok(After::GoOn)) => {}
            Ok(Ok(After::Detach)) => {
                if let Presence::Attached(attachment) = &mut self.presence {
                    attachment.leave(DetachReason::Requested).await;
                }
                self.detached();
            }
            Ok(Ok(After::Finish)) => {
                if let Presence::Attached(attachment) = &mut self.presence {
                    attachment.finish().await;
                }
                self.finished = true;
            }
            Ok(Err(broken)) => self.misbehaved(broken),
            Err(broken) => self.misbehaved(&broken),
        }
    }

    fn misbehaved(&mut self, how: &str) {
        tracing::warn!("session {}: its client was disconnected: {how}", self.about.session);
        self.detached();
    }

    fn lost(&mut self) {
        tracing::info!("session {}: the connection is lost; its client may resume", self.about.session);
        self.presence = Presence::Lost(Instant::now());
        self.about.state().attached = false;
    }

    /// Handles a frame of a client that is attached. An error is what it did wrong.
    fn handle(&mut self, frame: &ClientFrame<'_>) -> Result<After, &'static str> {
        if let Some(waiting) = self.waiting.take() {
            waiting.refuse();
        }
        let Presence::Attached(attachment) = &mut self.presence else { return Ok(After::GoOn) };
        let holds = |holds: bool, wrong| if holds { Ok(After::GoOn) } else { Err(wrong) };
        match *frame {
            ClientFrame::Input { offset, bytes } => {
                self.about.state().active = Instant::now();
                holds(
                    self.queue.accept(offset, bytes),
                    "input that does not continue the input before, or too much",
                )
            }
            ClientFrame::InputEnd(offset) => {
                let ended = self.queue.end(offset, self.about.has_terminal);
                self.close_input_at_end();
                holds(ended, "an end of input where input is missing")
            }
            ClientFrame::Acknowledge(offset) => {
                let sent = offset <= attachment.sent();
                holds(sent && self.log.acknowledge(offset), "an acknowledgment of output that was never sent")
            }
            ClientFrame::Resize(window) => {
                self.window = window;
                self.redraw = None;
                self.program.resize(window);
                Ok(After::GoOn)
            }
            ClientFrame::Signal(signal) => {
                self.program.signal(signal);
                Ok(After::GoOn)
            }
            ClientFrame::Ping => {
                attachment.send(&ServerFrame::Pong);
                Ok(After::GoOn)
            }
            ClientFrame::Pong => Ok(After::GoOn),
            ClientFrame::Detach => Ok(After::Detach),
            ClientFrame::Finished if attachment.has_exit() => Ok(After::Finish),
            ClientFrame::Finished => Err("an end of a session that has not ended"),
            ClientFrame::End(session) if session == self.about.session => {
                self.hang_up();
                Ok(After::GoOn)
            }
            ClientFrame::Open(_)
            | ClientFrame::Attach { .. }
            | ClientFrame::Resume { .. }
            | ClientFrame::List
            | ClientFrame::End(_) => Err("a request on a connection that is a session's already"),
        }
    }
}

/// What follows a frame.
enum After {
    GoOn,
    Detach,
    Finish,
}
