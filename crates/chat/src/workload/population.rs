//! The users of a workload: what they do, what they are called, and what their passwords are.

use std::net::SocketAddr;

use kendall_load::Reuse;
use kendall_stats::random::{Purpose, derive, stream, unit};

use crate::client::security::Security;
use crate::client::{Client, ClientError};
use crate::password::{AuthMethod, Stretch};
use crate::protocol::Blame;

/// An operation of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Registers an account of a new name.
    Register,
    /// Logs in to an account.
    LogIn,
    /// Requests the first page of users who are present.
    Who,
    /// Calls a user, who accepts: the time from the call to the peer's address.
    Call,
}

impl Operation {
    /// Every operation, in the order of the weights.
    pub const ALL: [Self; 4] = [Self::Register, Self::LogIn, Self::Who, Self::Call];

    /// The name of its class of requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::LogIn => "log-in",
            Self::Who => "who",
            Self::Call => "call",
        }
    }

    /// Whether the operation needs a session that other requests used before.
    pub fn needs_session(self) -> bool {
        matches!(self, Self::Who | Self::Call)
    }
}

/// The mix of operations of the users.
#[derive(Clone, Debug)]
pub struct Mix {
    /// The weight of each of [`Operation::ALL`]; one at least is positive.
    pub weights: [f64; 4],
    /// How many accounts log-ins are to.
    pub accounts: u32,
    /// Whether a connection carries many operations, or one.
    pub reuse: Reuse,
    /// How passwords are proved.
    pub method: AuthMethod,
    /// How clients stretch passwords.
    pub stretch: Stretch,
    /// The protection of connections.
    pub security: Security,
}

/// The users of a workload. What they do is a pure function of the seed.
#[derive(Debug)]
pub(super) struct Population {
    pub(super) server: SocketAddr,
    pub(super) mix: Mix,
    seed: u64,
    /// The operations that have a weight, with the share of each.
    pub(super) shares: Vec<(Operation, f64)>,
}

impl Population {
    pub(super) fn new(server: SocketAddr, seed: u64, mix: Mix) -> Self {
        let sum: f64 = mix.weights.iter().sum();
        let weighted = Operation::ALL.into_iter().zip(mix.weights).filter(|(_, weight)| *weight > 0.0);
        let shares = weighted.map(|(operation, weight)| (operation, weight / sum)).collect();
        Self { server, mix, seed, shares }
    }

    /// The operation with this number, as an index into those that have a weight.
    pub(super) fn class(&self, index: u64) -> usize {
        let drawn = unit(&mut stream(self.seed, Purpose::Class, index));
        let mut below = 0.0;
        let found = self.shares.iter().position(|(_, share)| {
            below += share;
            drawn < below
        });
        // The sum of the shares may be a rounding error less than 1.
        found.unwrap_or(self.shares.len() - 1)
    }

    /// The name of the account that the registration with this number makes: 17 bytes, as in the published study. Of the digits
    /// and letters of a hexadecimal number, no two look alike.
    pub(super) fn new_name(&self, index: u64) -> String {
        format!("k{:016x}", derive(self.seed, Purpose::Request, index))
    }

    /// The name of an account that there is from the beginning.
    pub(super) fn known_name(&self, number: u64) -> String {
        format!("p{:016x}", derive(self.seed, Purpose::Route, number % u64::from(self.mix.accounts)))
    }

    /// The account to which the log-in with this number is.
    pub(super) fn log_in_to(&self, index: u64) -> String {
        self.known_name(derive(self.seed, Purpose::Sample, index))
    }

    /// The user that a connection calls.
    pub(super) fn callee_name(&self, line: u64) -> String {
        format!("c{:016x}", derive(self.seed, Purpose::Retry, line))
    }

    /// Registers an account, unless it is there from a run before.
    pub(super) async fn ensure(&self, client: &mut Client, name: &str) -> Result<(), ClientError> {
        let Mix { method, stretch, .. } = self.mix;
        match client.register_by(method, name, &password_of(name), stretch).await {
            Err(error) if error.blame() == Some(Blame::NameTaken) => Ok(()),
            other => other,
        }
    }
}

pub(super) fn password_of(name: &str) -> String {
    format!("password of {name}")
}
