//! The task of a client, its terminal and streams, and how it ended.

use std::pin::Pin;
use std::time::Duration;

use kendall_curve::{Endpoint, Stream};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::shell::error::ShellError;
use crate::shell::protocol::{Claim, ClientFrame, Exit, Open, SessionId, Terminal, Window};

/// A connection to the server, on its own socket.
pub type Connecting = Pin<Box<dyn Future<Output = Result<(Endpoint, Stream), ShellError>> + Send>>;

/// Opens connections to the server.
pub type Connect = Box<dyn Fn() -> Connecting + Send>;

/// The streams of the client's input and output.
pub struct LocalStreams {
    /// The input: what the user types, or a pipe.
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    /// The output of the program.
    pub output: Box<dyn AsyncWrite + Send + Unpin>,
    /// The error output of the program, where it has no terminal, and messages of the client.
    pub errors: Box<dyn AsyncWrite + Send + Unpin>,
}

/// An event at the client other than input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalEvent {
    /// The window has another size.
    Resized(Window),
    /// A signal by its number. A program without a terminal gets the first; after a second the client leaves. With a terminal
    /// it leaves at the first.
    Signal(u8),
}

/// The session that the client requests of the server.
#[derive(Clone, Debug)]
pub enum Start {
    /// A new session.
    Open {
        /// The type of the terminal and its window, or pipes.
        terminal: Option<(Vec<u8>, Window)>,
        /// A line for the user's shell, or a login shell.
        command: Option<Vec<u8>>,
        /// Variables that the server may accept.
        environment: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// A session that there is.
    Attach {
        /// The session.
        session: SessionId,
        /// The client's window.
        window: Window,
        /// What to do where another client is attached.
        claim: Claim,
    },
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// How messages name the server.
    pub host: String,
    /// The error to report where no server answers the first time.
    pub no_answer: String,
    /// How long to wait for the first answer.
    pub answer_within: Duration,
    /// After this time without an answer the user sees a line that says so, and after three times as long the client connects again.
    pub silence: Duration,
    /// Whether `~` at the beginning of a line begins an escape.
    pub has_escapes: bool,
    /// Whether the local terminal is raw, so that lines of the client's own need a carriage return.
    pub is_raw: bool,
}

/// How a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the program.
    Exited(Exit),
    /// The session continues at the server.
    Detached(SessionId),
    /// Another client has taken over the session.
    TakenOver(SessionId),
    /// The server stops.
    ServerStops,
    /// The user ended it with `~.`.
    Ended,
    /// By this signal, twice or on a terminal.
    Signalled(u8),
    /// The reader of the output has closed it.
    OutputClosed,
}

impl Start {
    /// Appends the request for it.
    pub(super) fn request(&self, out: &mut Vec<u8>) {
        match self {
            Self::Open { terminal, command, environment } => {
                let pairs = environment.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
                let terminal = terminal.as_ref().map(|(kind, window)| Terminal { kind, window: *window });
                ClientFrame::Open(Open {
                    terminal,
                    command: command.as_deref(),
                    environment: pairs.collect(),
                })
                .append(out);
            }
            Self::Attach { session, window, claim } => {
                ClientFrame::Attach { session: *session, window: *window, claim: *claim }.append(out);
            }
        }
    }
}
