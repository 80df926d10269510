//! Requests of a client about its sessions: to list them, and to end one.

use std::time::Duration;

use kendall_curve::{Endpoint, Stream};
use tokio::time::timeout;

use crate::shell::error::ShellError;
use crate::shell::framed::{Framed, Progress, StreamError};
use crate::shell::protocol::{ClientFrame, Listed, ServerFrame, SessionId};

/// A session of the client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// The session's number.
    pub session: SessionId,
    /// Whether a client is attached.
    pub attached: bool,
    /// Whether the session has a terminal.
    pub terminal: bool,
    /// The session's age.
    pub age: Duration,
    /// The time since the last input or output.
    pub idle: Duration,
    /// The command, or nothing for a login shell.
    pub command: String,
}

/// Lists the client's sessions.
///
/// # Errors
/// [`ShellError`]; where no server answers within this time, with this text.
pub async fn list(
    connection: (Endpoint, Stream),
    within: Duration,
    no_answer: &str,
) -> Result<Vec<ListedSession>, ShellError> {
    ask(connection, &ClientFrame::List, within, no_answer, |answer| match answer {
        ServerFrame::Sessions(sessions) => Ok(sessions.iter().map(listed).collect()),
        _ => Err(ShellError::Protocol("an answer to another request")),
    })
    .await
}

/// Ends a session of the client's.
///
/// # Errors
/// [`ShellError`]; where no server answers within this time, with this text.
pub async fn end(
    connection: (Endpoint, Stream),
    session: SessionId,
    within: Duration,
    no_answer: &str,
) -> Result<(), ShellError> {
    ask(connection, &ClientFrame::End(session), within, no_answer, |answer| match answer {
        ServerFrame::Ending => Ok(()),
        _ => Err(ShellError::Protocol("an answer to another request")),
    })
    .await
}

fn listed(listed: &Listed<'_>) -> ListedSession {
    ListedSession {
        session: listed.session,
        attached: listed.attached,
        terminal: listed.terminal,
        age: Duration::from_secs(listed.age_s),
        idle: Duration::from_secs(listed.idle_s),
        command: String::from_utf8_lossy(listed.command).escape_debug().to_string(),
    }
}

async fn ask<T>(
    (_endpoint, stream): (Endpoint, Stream),
    request: &ClientFrame<'_>,
    within: Duration,
    no_answer: &str,
    read: impl FnOnce(ServerFrame<'_>) -> Result<T, ShellError>,
) -> Result<T, ShellError> {
    let missing = || ShellError::NoAnswer(no_answer.to_owned());
    let connection = stream.connection().clone();
    let mut framed = Framed::new(stream);
    request.append(framed.outbox());
    let answer = match timeout(within, framed.progress()).await {
        Err(_) => return Err(missing()),
        Ok(Ok(Progress::Frame(kind, body))) => match ServerFrame::decode(kind, &body)? {
            ServerFrame::Refused(_, text) => Err(ShellError::Refused(text.escape_debug().to_string())),
            frame => read(frame),
        },
        Ok(Ok(Progress::Drained | Progress::Ended)) => {
            Err(ShellError::Connection(std::io::ErrorKind::UnexpectedEof.into()))
        }
        Ok(Err(StreamError::Io(error))) if error.kind() == std::io::ErrorKind::TimedOut => {
            return Err(missing());
        }
        Ok(Err(StreamError::Io(error))) => Err(ShellError::Connection(error)),
        Ok(Err(StreamError::Frame(error))) => Err(error.into()),
    };
    _ = timeout(Duration::from_secs(1), async {
        _ = framed.finish().await;
        connection.closed().await
    })
    .await;
    answer
}
