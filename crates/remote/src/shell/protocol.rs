//! The frames of the remote shell, on byte slices: no I/O, no clock.
//!
//! A frame is four bytes with the length of its body (little-endian), one byte with its kind, and the body. The client's
//! first frame is a request, which carries the version. `Open`, `Attach` and `Resume` are answered with `Attached`; from then
//! on the connection is that of the session.
//!
//! Output and input are numbered: each frame of them carries the offset of its first byte since the session began. The client
//! acknowledges output that it has written, the server input that the program's side has taken. After a connection
//! is lost, `Resume` and `Attached` say how much each side has received, so that nothing is lost or doubled.

/// The version of the protocol. A server refuses requests of another.
pub const VERSION: u8 = 1;

/// The bytes before the body of a frame.
pub const HEADER: usize = 5;

/// The longest body of a frame in bytes.
pub const MAX_BODY: usize = 64 * 1024;

/// The most bytes of input or output in a frame.
pub const MAX_DATA: usize = 32 * 1024;

/// The most variables that a request may bring.
pub const MAX_VARIABLES: usize = 256;

/// The most input in bytes that a client sends before the server has passed it to the program.
pub const INPUT_WINDOW: usize = 256 * 1024;

/// The most output in bytes that a server sends before the client has acknowledged it.
pub const OUTPUT_WINDOW: usize = 4 << 20;

/// A fault in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The body is longer than [`MAX_BODY`].
    #[error("the peer sent a frame of {0} bytes; at most {MAX_BODY} are allowed")]
    TooLong(u32),
    /// The fields are not those of this kind of frame.
    #[error("the peer sent a {0} frame that is not valid")]
    Invalid(&'static str),
    /// A kind of frame that this version does not have.
    #[error("the peer sent a frame of the unknown kind {0}")]
    UnknownKind(u8),
    /// A request of another version.
    #[error(
        "the peer speaks version {0} of the shell's protocol and this side version {VERSION}; run the same kendall on both"
    )]
    Version(u8),
}

/// The number of a session on its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u32);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A secret that the server draws for a session. The client that was attached proves by it that it may go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub [u8; 16]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// The size of a terminal's window in characters and, where known, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Characters in a row.
    pub columns: u16,
    /// Rows of characters.
    pub rows: u16,
    /// Width in pixels, or 0.
    pub x_pixels: u16,
    /// Height in pixels, or 0.
    pub y_pixels: u16,
}

impl Default for Window {
    /// 80 × 24, where a terminal does not say.
    fn default() -> Self {
        Self { columns: 80, rows: 24, x_pixels: 0, y_pixels: 0 }
    }
}

/// A terminal that a client requests: its type (`TERM`) and its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal<'a> {
    /// The value of `TERM`.
    pub kind: &'a [u8],
    /// The terminal's size.
    pub window: Window,
}

/// A session to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open<'a> {
    /// With a pseudo-terminal, or with three pipes.
    pub terminal: Option<Terminal<'a>>,
    /// A line for the user's shell, or a login shell.
    pub command: Option<&'a [u8]>,
    /// Variables that the server may accept.
    pub environment: Vec<(&'a [u8], &'a [u8])>,
}

/// The treatment of a client that is attached already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The attached client stays, if it still answers.
    IfFree,
    /// The attached client is detached.
    TakeOver,
}

/// Signals that a client may send to a program; the numbers are those of Linux.
pub const SIGNALS: [u8; 7] = [1, 2, 3, 9, 10, 12, 15];

/// A frame from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    /// Opens a session.
    Open(Open<'a>),
    /// Attaches to a session, anew: its recent output comes again.
    Attach {
        /// The session.
        session: SessionId,
        /// The client's window.
        window: Window,
        /// What to do where another client is attached.
        claim: Claim,
    },
    /// Continues a session whose connection was lost.
    Resume {
        /// The session.
        session: SessionId,
        /// The secret that came with `Attached`.
        token: Token,
        /// Offset of the next output that the client lacks.
        received: u64,
    },
    /// Asks for the client's sessions.
    List,
    /// Ends a session; as a request, or on the session's own connection.
    End(SessionId),
    /// Input.
    Input {
        /// Offset of the first byte.
        offset: u64,
        /// At most [`MAX_DATA`] bytes.
        bytes: &'a [u8],
    },
    /// The input ends at this offset.
    InputEnd(u64),
    /// The client has written all output before this offset.
    Acknowledge(u64),
    /// The window has another size.
    Resize(Window),
    /// A signal for the program, one of [`SIGNALS`].
    Signal(u8),
    /// The client leaves for good: a session with a terminal continues, one without gets SIGHUP.
    Detach,
    /// Asks for a `Pong`.
    Ping,
    /// Answers a `Ping`.
    Pong,
    /// The client has all output and the exit: the session can be forgotten.
    Finished,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit status.
    Status(u8),
    /// By this signal.
    Signal(u8),
}

impl Exit {
    /// The status that a shell reports: 128 and the number of the signal where there was one.
    pub fn code(self) -> u8 {
        match self {
            Self::Status(status) => status,
            Self::Signal(signal) => 128_u8.saturating_add(signal),
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The source of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The pseudo-terminal or the pipe of standard output.
    Output,
    /// The pipe of standard error.
    Errors,
}

/// The reason why the server detaches a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetachReason {
    /// The client requested it.
    Requested,
    /// Another client has attached.
    TakenOver,
    /// The server stops.
    ServerStops,
}

/// The reason why the server refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too many sessions, of this client or in all.
    Limit,
    /// The client has no such session.
    NoSession,
    /// Another client is attached.
    Attached,
    /// The program could not be started.
    NotStarted,
    /// The request is not valid, or of another version.
    BadRequest,
}

/// A session as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The session's number.
    pub session: SessionId,
    /// Whether a client is attached.
    pub attached: bool,
    /// Whether the session has a terminal.
    pub terminal: bool,
    /// The session's age in seconds.
    pub age_s: u64,
    /// Seconds since the last input or output.
    pub idle_s: u64,
    /// The command, or nothing for a login shell.
    pub command: &'a [u8],
}

/// A frame from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame<'a> {
    /// The connection is that of a session now.
    Attached {
        /// The session.
        session: SessionId,
        /// For `Resume`.
        token: Token,
        /// Whether the session has a terminal.
        terminal: bool,
        /// Offset of the next input that the server lacks.
        input: u64,
        /// Offset of the first output that it will send.
        output: u64,
    },
    /// The request is refused.
    Refused(Refusal, &'a str),
    /// The client's sessions.
    Sessions(Vec<Listed<'a>>),
    /// The session that `End` names is ending.
    Ending,
    /// Output.
    Output {
        /// The source of the output.
        source: Source,
        /// Offset of the first byte, both sources counted.
        offset: u64,
        /// At most [`MAX_DATA`] bytes.
        bytes: &'a [u8],
    },
    /// The program's side has taken all input before this offset.
    Taken(u64),
    /// The program has ended.
    Exited {
        /// How.
        exit: Exit,
        /// The length of all output.
        output: u64,
    },
    /// The client is detached; the connection ends.
    Detached(DetachReason),
    /// Asks for a `Pong`.
    Ping,
    /// Answers a `Ping`.
    Pong,
}

/// Finds the first frame in bytes: its kind and the length of its body, or `None` while the header is incomplete.
///
/// # Errors
/// [`FrameError::TooLong`].
pub fn header(bytes: &[u8]) -> Result<Option<(u8, usize)>, FrameError> {
    let Some([a, b, c, d, kind]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_le_bytes([*a, *b, *c, *d]);
    match usize::try_from(length) {
        Ok(fits) if fits <= MAX_BODY => Ok(Some((*kind, fits))),
        _ => Err(FrameError::TooLong(length)),
    }
}

/// Appends a frame whose body is what `body` appends.
fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind]);
    body(out);
    let length = out.len() - start - HEADER;
    debug_assert!(length <= MAX_BODY, "callers bound what a frame holds");
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(usize::from(u16::MAX))];
    out.extend_from_slice(&u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_window(out: &mut Vec<u8>, window: Window) {
    for field in [window.columns, window.rows, window.x_pixels, window.y_pixels] {
        out.extend_from_slice(&field.to_le_bytes());
    }
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.push(bytes.is_some().into());
    put_bytes(out, bytes.unwrap_or_default());
}

/// Reads the fields of a body from its front.
struct Fields<'a> {
    rest: &'a [u8],
    frame: &'static str,
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], FrameError> {
        let (front, rest) = self.rest.split_at_checked(length).ok_or(FrameError::Invalid(self.frame))?;
        self.rest = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (front, rest) = self.rest.split_first_chunk().ok_or(FrameError::Invalid(self.frame))?;
        self.rest = rest;
        Ok(*front)
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }

    fn session(&mut self) -> Result<SessionId, FrameError> {
        self.array().map(|bytes| SessionId(u32::from_le_bytes(bytes)))
    }

    fn bytes(&mut self) -> Result<&'a [u8], FrameError> {
        let length = self.u16()?;
        self.take(length.into())
    }

    fn window(&mut self) -> Result<Window, FrameError> {
        Ok(Window { columns: self.u16()?, rows: self.u16()?, x_pixels: self.u16()?, y_pixels: self.u16()? })
    }

    /// A choice by its index.
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> Result<T, FrameError> {
        let index = self.u8()?;
        choices.get(usize::from(index)).copied().ok_or(FrameError::Invalid(self.frame))
    }

    fn optional(&mut self) -> Result<Option<&'a [u8]>, FrameError> {
        let present = self.one_of(&[false, true])?;
        Ok(Some(self.bytes()?).filter(|_| present))
    }

    fn version(&mut self) -> Result<(), FrameError> {
        match self.u8()? {
            VERSION => Ok(()),
            other => Err(FrameError::Version(other)),
        }
    }

    /// Input or output, which is the rest of the body.
    fn data(&mut self) -> Result<&'a [u8], FrameError> {
        if self.rest.len() > MAX_DATA {
            return Err(FrameError::Invalid(self.frame));
        }
        Ok(std::mem::take(&mut self.rest))
    }

    fn end<T>(self, frame: T) -> Result<T, FrameError> {
        if self.rest.is_empty() { Ok(frame) } else { Err(FrameError::Invalid(self.frame)) }
    }
}

mod client;
mod server;

#[cfg(test)]
mod tests;
