//! The present connection of a client, or the wait for the next, and the times that decide between them.

use std::pin::Pin;
use std::time::Duration;

use kendall_curve::{Endpoint, Stream};
use tokio::time::{Instant, timeout};

use crate::shell::error::ShellError;
use crate::shell::framed::{Framed, Progress, StreamError};
use crate::shell::protocol::ClientFrame;

/// A connection that is being opened.
type Connecting = Pin<Box<dyn Future<Output = Result<(Endpoint, Stream), ShellError>> + Send>>;

/// What has happened on a link.
pub(super) enum LinkEvent {
    /// The link has a connection, or none can be opened.
    Connected(Result<(Endpoint, Stream), ShellError>),
    Progress(Result<Progress, StreamError>),
}

/// The times of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// After this time without an answer the server counts as silent, after three times as long as lost.
    pub(super) silence: Duration,
}

/// The connection of a client.
pub(super) struct Link {
    state: State,
}

enum State {
    /// Looks up the server's address and opens a connection.
    Connecting(Connecting),
    /// Asked for the session; gives up at this instant.
    Greeting { _endpoint: Endpoint, framed: Framed<Stream>, until: Instant },
    /// The connection is the session's.
    Up { _endpoint: Endpoint, framed: Framed<Stream>, heard: Instant, asked: Option<Instant>, silent: bool },
    /// Waits until this instant to reconnect; without one, it does not reconnect.
    Down { until: Option<Instant> },
}

/// What the time has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// The server has become silent.
    Silent,
    /// The connection counts as lost.
    Lost,
    /// It is time to connect again.
    Connect,
}

impl Link {
    /// A connection that has been asked for the session.
    pub(super) fn greeting(endpoint: Endpoint, framed: Framed<Stream>, until: Instant) -> Self {
        Self { state: State::Greeting { _endpoint: endpoint, framed, until } }
    }

    /// A connection that is being opened.
    pub(super) fn connecting(connecting: Connecting) -> Self {
        Self { state: State::Connecting(connecting) }
    }

    /// No connection, until after a fifth of the time of silence.
    pub(super) fn down(silence: Duration) -> Self {
        Self { state: State::Down { until: Some(Instant::now() + silence / 5) } }
    }

    /// No connection, and none needed.
    pub(super) fn down_for_good() -> Self {
        Self { state: State::Down { until: None } }
    }

    /// The connection becomes that of the session. False where it is so already.
    pub(super) fn opened(&mut self) -> bool {
        let state = std::mem::replace(&mut self.state, State::Down { until: None });
        let was_greeting = matches!(state, State::Greeting { .. });
        self.state = match state {
            State::Greeting { _endpoint, framed, .. } => {
                State::Up { _endpoint, framed, heard: Instant::now(), asked: None, silent: false }
            }
            state => state,
        };
        was_greeting
    }

    /// The connection, where it is the session's.
    pub(super) fn up(&mut self) -> Option<&mut Framed<Stream>> {
        match &mut self.state {
            State::Up { framed, .. } => Some(framed),
            State::Connecting(_) | State::Greeting { .. } | State::Down { .. } => None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// The server has sent something; whether it was silent before.
    pub(super) fn heard(&mut self) -> bool {
        let State::Up { heard, asked, silent, .. } = &mut self.state else { return false };
        (*heard, *asked) = (Instant::now(), None);
        std::mem::take(silent)
    }

    /// Waits for what happens next. Can be cancelled. Not called again after `Connected`.
    pub(super) async fn next(&mut self) -> LinkEvent {
        match &mut self.state {
            State::Connecting(connecting) => LinkEvent::Connected(connecting.await),
            State::Greeting { framed, .. } | State::Up { framed, .. } => {
                LinkEvent::Progress(framed.progress().await)
            }
            State::Down { .. } => std::future::pending().await,
        }
    }

    pub(super) fn deadline(&self, timing: Timing) -> Option<Instant> {
        match &self.state {
            State::Greeting { until, .. } => Some(*until),
            State::Up { heard, asked: None, .. } => Some(*heard + timing.silence),
            State::Up { asked: Some(asked), silent: false, .. } => Some(*asked + timing.silence),
            State::Up { asked: Some(asked), silent: true, .. } => Some(*asked + 2 * timing.silence),
            // A look-up has its own time limit.
            State::Connecting(_) => None,
            State::Down { until } => *until,
        }
    }

    /// Does what is due: asks a silent server whether it is there.
    pub(super) fn deadline_passed(&mut self, timing: Timing) -> Due {
        let now = Instant::now();
        if self.deadline(timing).is_none_or(|deadline| deadline > now) {
            return Due::Nothing;
        }
        match &mut self.state {
            State::Greeting { .. } => Due::Lost,
            State::Up { framed, asked: asked @ None, .. } => {
                ClientFrame::Ping.append(framed.outbox());
                *asked = Some(now);
                Due::Nothing
            }
            State::Up { silent: silent @ false, .. } => {
                *silent = true;
                Due::Silent
            }
            State::Up { .. } => Due::Lost,
            State::Connecting(_) => Due::Nothing,
            State::Down { .. } => Due::Connect,
        }
    }

    /// Ends the connection in order and waits until the server knows, at most this long.
    pub(super) async fn close(&mut self, within: Duration) {
        let State::Up { framed, .. } = &mut self.state else { return };
        let connection = framed.stream().connection().clone();
        _ = timeout(within, async {
            _ = framed.finish().await;
            connection.closed().await
        })
        .await;
    }

    /// Notifies the server that the client leaves, and ends the connection.
    pub(super) async fn leave(&mut self, within: Duration) {
        if let State::Up { framed, .. } = &mut self.state {
            ClientFrame::Detach.append(framed.outbox());
        }
        self.close(within).await;
    }
}
