//! The bounds of the directory, and how long things last.

use std::time::Duration;

/// The bounds of the directory, and how long things last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions in all. When there are as many, sessions without a connection give way, and then log-ins fail.
    pub sessions: usize,
    /// Sessions of one account. The oldest gives way.
    pub sessions_of_account: usize,
    /// How long a session lasts without a request.
    pub lease: Duration,
    /// How long a session lasts without a connection.
    pub linger: Duration,
    /// How old a session may become.
    pub max_age: Duration,
    /// Log-ins that wait for their proof. When there are as many, the one that has waited longest fails.
    pub log_ins: usize,
    /// How long a log-in may wait for its proof.
    pub log_in: Duration,
    /// How long a proof of the password allows changes of the account.
    pub proof: Duration,
    /// Users that a session may watch.
    pub watches: usize,
    /// The number of calls that a session may have begun, or that may ring there.
    pub calls: usize,
    /// How long a call rings.
    pub ring: Duration,
    /// Accepted calls whose sides are about to meet. When there are as many, accepting fails.
    pub meetings: usize,
    /// The time for which the sides of an accepted call are informed of each other's addresses.
    pub meeting: Duration,
    /// How attempts are limited; `None` for benchmarks.
    pub attempts: Option<AttemptLimits>,
}

/// How attempts are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimits {
    /// Log-ins to one account from one network.
    pub pair: BackOff,
    /// Log-ins to one account from all networks from which its user did not log in within the last 30 days.
    pub account: BackOff,
    /// Log-ins from one network.
    pub network: BackOff,
    /// Registrations from one network.
    pub registrations: BackOff,
    /// Calls that one account has begun, that are accepted, and whose sides are about to meet. When there are as many, further
    /// calls fail.
    pub meetings: usize,
    /// Counts that are kept, and pairs of account and known network. When there are as many, the count that would be forgotten
    /// first gives way, and the network that was used longest ago.
    pub counts: usize,
}

/// A limit with exponential back-off: a count that leaks, and above a number of free attempts a wait that doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// Attempts without a wait.
    pub free: u32,
    /// The time in which the count falls by one.
    pub leak: Duration,
    /// The first wait; each further attempt doubles it.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for Limits {
    /// 100,000 sessions, 8 of an account, leased for a minute, 10 s without a connection, 12 hours in all; 10,000 log-ins that
    /// wait 30 s at most; 5 minutes for changes of the account; 256 watches, 4 calls, which ring 30 s;
    /// 10,000 meetings, which take 30 s.
    fn default() -> Self {
        Self {
            sessions: 100_000,
            sessions_of_account: 8,
            lease: Duration::from_secs(60),
            linger: Duration::from_secs(10),
            max_age: Duration::from_secs(12 * 3600),
            log_ins: 10_000,
            log_in: Duration::from_secs(30),
            proof: Duration::from_secs(300),
            watches: 256,
            calls: 4,
            ring: Duration::from_secs(30),
            meetings: 10_000,
            meeting: Duration::from_secs(30),
            attempts: Some(AttemptLimits::default()),
        }
    }
}

impl Default for AttemptLimits {
    /// To one account from one network 5 attempts, then waits of 1 s to 15 minutes, one forgotten every 5 minutes. To one
    /// account from all unknown networks 50, waits of up to 30 s, one forgotten every minute. From one network 100 attempts, waits of up to a minute, one forgotten every second. 20 registrations from one network, one
    /// forgotten every 10 s. 32 meetings. 65,536 counts.
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            pair: BackOff { free: 5, leak: 300 * second, first: second, longest: 900 * second },
            account: BackOff { free: 50, leak: 60 * second, first: second, longest: 30 * second },
            network: BackOff { free: 100, leak: second, first: second, longest: 60 * second },
            registrations: BackOff { free: 20, leak: 10 * second, first: second, longest: 300 * second },
            meetings: 32,
            counts: 65_536,
        }
    }
}
