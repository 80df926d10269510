//! The directory with its clock and the ways out to the clients. One lock guards all; pushes are queued under it, so that
//! they leave in the order of the changes that caused them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use kendall_service::Outlet;

use super::wire::Wire;
use crate::directory::{ConnectionId, Directory, Limits};
use crate::protocol::{DirectoryMessage, Frame};

/// The clock checks the directory at least this often, so that counts of attempts are forgotten.
const TICK: Duration = Duration::from_secs(1);

/// The directory with its clock and the ways out to the clients.
#[derive(Debug)]
pub(crate) struct Hall {
    started: Instant,
    state: Mutex<State>,
    /// Wakes the clock before the instant that it waits for.
    earlier: Condvar,
}

#[derive(Debug)]
struct State {
    directory: Directory,
    outlets: HashMap<ConnectionId, Outlet<Wire>>,
    last: u64,
    /// The instant that the clock waits for.
    wakes_at: Duration,
    is_closed: bool,
}

impl Hall {
    pub(crate) fn new(limits: Limits) -> Self {
        let state = State {
            directory: Directory::new(limits),
            outlets: HashMap::new(),
            last: 0,
            wakes_at: Duration::ZERO,
            is_closed: false,
        };
        Self { started: Instant::now(), state: Mutex::new(state), earlier: Condvar::new() }
    }

    /// A client has connected.
    pub(crate) fn connect(&self, outlet: Outlet<Wire>, peer: SocketAddr) -> ConnectionId {
        let mut state = self.lock();
        state.last += 1;
        let connection = ConnectionId(state.last);
        state.outlets.insert(connection, outlet);
        state.directory.connect(connection, peer);
        connection
    }

    /// A connection is gone.
    pub(crate) fn disconnect(&self, connection: ConnectionId) {
        self.with(|directory, now| directory.disconnect(now, connection));
        self.lock().outlets.remove(&connection);
    }

    /// Does something with the directory, and sends what clients are to learn of it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Directory, Duration) -> T) -> T {
        let mut state = self.lock();
        let now = self.started.elapsed();
        // What has come to its end is no more, however late the clock is.
        state.directory.advance(now);
        let result = act(&mut state.directory, now);
        state.send();
        if state.directory.next_deadline().is_some_and(|deadline| deadline < state.wakes_at) {
            self.earlier.notify_one();
        }
        result
    }

    /// Ends what comes to its end, until the hall is closed.
    pub(crate) fn run_clock(&self) {
        let mut state = self.lock();
        while !state.is_closed {
            let now = self.started.elapsed();
            state.directory.advance(now);
            state.send();
            let next = state.directory.next_deadline().unwrap_or(Duration::MAX).min(now + TICK);
            state.wakes_at = next;
            let wait = next.saturating_sub(now);
            state = self.earlier.wait_timeout(state, wait).expect(NO_PANIC).0;
        }
    }

    /// Ends the clock.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.earlier.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(NO_PANIC)
    }
}

impl State {
    fn send(&mut self) {
        for (connection, push) in self.directory.take_pushes() {
            let Some(outlet) = self.outlets.get(&connection) else { continue };
            // One that takes its messages too slowly loses its connection: it would miss some.
            if let Err(error) =
                outlet.push(&Wire::Frame(Frame { number: 0, message: DirectoryMessage::Push(push) }))
            {
                tracing::debug!(?connection, %error, "a message was not sent");
            }
        }
    }
}

const NO_PANIC: &str = "no thread panics while it holds the directory";
