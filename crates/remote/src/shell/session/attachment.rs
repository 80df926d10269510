//! Attaching clients to a session and detaching them.

use std::time::Duration;

use kendall_curve::{Stream, system_random};
use rand::Rng;
use tokio::time::{Instant, timeout};

use super::{Join, Joining, Presence, REDRAW, SCREEN, Session};
use crate::shell::framed::Framed;
use crate::shell::output_log::OutputLog;
use crate::shell::protocol::{Claim, DetachReason, Exit, MAX_DATA, Refusal, ServerFrame, Token, Window};

/// How long a client has to show that it is there, when another asks for its session.
const ANSWER: Duration = Duration::from_secs(1);

/// How long a client has to take what waits for it when it is detached.
const FAREWELL: Duration = Duration::from_millis(500);

/// Draws the secret of a client.
pub(super) fn draw_token() -> Token {
    let mut token = [0; 16];
    system_random().fill_bytes(&mut token);
    Token(token)
}

/// The client of a session.
pub(super) struct Attachment {
    pub(super) framed: Framed<Stream>,
    /// Offset of the next output to send.
    sent: u64,
    exit_sent: bool,
}

impl Attachment {
    /// Offset of the next output to send.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the client knows how its program ended.
    pub(super) fn has_exit(&self) -> bool {
        self.exit_sent
    }

    pub(super) fn send(&mut self, frame: &ServerFrame<'_>) {
        frame.append(self.framed.outbox());
    }

    /// Sends output as far as there is capacity; whether there was any.
    pub(super) fn send_output(&mut self, log: &OutputLog) -> bool {
        let before = self.sent;
        while self.framed.takes_bulk()
            && let Some((source, bytes)) = log.piece(self.sent, MAX_DATA)
        {
            ServerFrame::Output { source, offset: self.sent, bytes }.append(self.framed.outbox());
            self.sent += bytes.len() as u64;
        }
        self.sent > before
    }

    /// Sends how the program ended, once, after all output.
    pub(super) fn send_exit(&mut self, exit: Exit, output: u64) {
        if self.sent == output && !self.exit_sent {
            self.exit_sent = true;
            self.send(&ServerFrame::Exited { exit, output });
        }
    }

    /// Ends the connection for this reason.
    pub(super) async fn leave(&mut self, reason: DetachReason) {
        self.send(&ServerFrame::Detached(reason));
        self.finish().await;
    }

    /// Ends the connection.
    pub(super) async fn finish(&mut self) {
        _ = timeout(FAREWELL, self.framed.finish()).await;
    }
}

/// A client that asks for a session that another has.
pub(super) struct Waiting {
    framed: Framed<Stream>,
    window: Window,
    deadline: Instant,
}

impl Waiting {
    /// When the session is the client's, unless the other answers.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Refuses the client that waits: the attached one has answered.
    pub(super) fn refuse(self) {
        let text = "another client is attached to the session; --take-over detaches it";
        refuse(self.framed, Refusal::Attached, text);
    }
}

/// Refuses a request, without waiting for the peer to read that.
pub(crate) fn refuse(mut framed: Framed<Stream>, refusal: Refusal, text: &str) {
    ServerFrame::Refused(refusal, text).append(framed.outbox());
    tokio::spawn(async move { timeout(FAREWELL, framed.finish()).await });
}

impl Session {
    /// Answers a connection that asks for this session.
    pub(super) async fn join(&mut self, joining: Joining) {
        let Joining { framed, how } = joining;
        match how {
            Join::Resume { token, received } => self.resume(framed, token, received),
            Join::Anew { window, claim } => match &mut self.presence {
                Presence::Attached(_) if claim == Claim::IfFree && self.waiting.is_some() => {
                    refuse(framed, Refusal::Attached, "another client is attaching to the session");
                }
                Presence::Attached(attachment) if claim == Claim::IfFree => {
                    attachment.send(&ServerFrame::Ping);
                    self.waiting = Some(Waiting { framed, window, deadline: Instant::now() + ANSWER });
                }
                Presence::Attached(attachment) => {
                    attachment.leave(DetachReason::TakenOver).await;
                    self.attach_anew(framed, window);
                }
                Presence::Lost(_) | Presence::Detached(_) => self.attach_anew(framed, window),
            },
        }
    }

    /// The client did not answer, so the one that waits takes its place.
    pub(super) fn replace_silent_client(&mut self) {
        if let Some(Waiting { framed, window, .. }) = self.waiting.take() {
            self.attach_anew(framed, window);
        }
    }

    fn attach_anew(&mut self, framed: Framed<Stream>, window: Window) {
        // A client that was attached before cannot resume.
        self.token = draw_token();
        self.queue.reopen();
        self.window = window;
        let from = if self.about.has_terminal { self.log.recent(SCREEN) } else { self.log.unacknowledged() };
        self.attach(framed, from);
        self.draw_again();
    }

    fn resume(&mut self, framed: Framed<Stream>, token: Token, received: u64) {
        if token != self.token {
            return refuse(framed, Refusal::NoSession, "another client has attached to the session");
        }
        if received > self.log.end() {
            return refuse(framed, Refusal::BadRequest, "output was acknowledged that never was");
        }
        self.log.acknowledge(received);
        let from = received.max(self.log.start());
        self.attach(framed, from);
        if from > received {
            self.draw_again();
        }
    }

    /// Has the program draw its screen again, which it does when the window changes.
    fn draw_again(&mut self) {
        if self.about.has_terminal {
            let rows = self.window.rows.saturating_sub(1).max(1);
            self.program.resize(Window { rows, ..self.window });
            self.redraw = Some(Instant::now() + REDRAW);
        }
    }

    /// Makes a connection that of the session.
    pub(super) fn attach(&mut self, framed: Framed<Stream>, from: u64) {
        self.queue.acknowledge_again();
        let mut attachment = Attachment { framed, sent: from, exit_sent: false };
        attachment.send(&ServerFrame::Attached {
            session: self.about.session,
            token: self.token,
            terminal: self.about.has_terminal,
            input: self.queue.accepted(),
            output: from,
        });
        self.presence = Presence::Attached(attachment);
        self.about.state().attached = true;
    }
}
