//! Failures with their own exit status.

use std::process::ExitCode;

use kendall_chat::client::ClientError;
use kendall_chat::peer::PeerError;
use kendall_chat::protocol::{Blame, EndOfCall};

use crate::output::{note, shown};

/// A failure, with an exit status by which scripts distinguish the first kinds from others.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user is absent, has no account, does not wait for calls, or does not answer.
    #[error("{0} cannot be reached: absent, not waiting for calls, or without an account")]
    Unreachable(String),
    /// The user does not answer.
    #[error("{0} does not answer")]
    Unanswered(String),
    /// No message came in time.
    #[error("only {0} of {1} messages arrived in time")]
    TooFew(u64, u64),
    /// The user refused the call.
    #[error("{0} refused the call")]
    Refused(String),
    /// The user does not take a file.
    #[error("{name} declined the file {file}")]
    FileRefused {
        /// The user.
        name: String,
        /// The file's name.
        file: String,
    },
    /// The directory has answered with another user than the one called.
    #[error("the directory answered for {answered}, but {wanted} was called")]
    AnotherUser {
        /// Who was called.
        wanted: String,
        /// Who answers.
        answered: String,
    },
    /// The peer's key is not the one that was seen before.
    #[error(
        "{peer} has another key than before, or another person answers in that name. Compare the safety number {number} with \
         {peer} by telephone; if it is right, accept the key with `kendall chat peers --forget {peer}`",
        peer = shown(name)
    )]
    KeyChanged {
        /// The peer.
        name: String,
        /// The safety number of the new key.
        number: String,
    },
    /// The server does not let the user in.
    #[error("the name or the password is wrong")]
    WrongNameOrPassword,
}

impl Failure {
    fn status(&self) -> u8 {
        match self {
            Self::Unreachable(_) | Self::Unanswered(_) | Self::TooFew(..) => 3,
            Self::Refused(_) | Self::FileRefused { .. } => 4,
            Self::KeyChanged { .. } | Self::AnotherUser { .. } => 5,
            Self::WrongNameOrPassword => 6,
        }
    }

    /// The failure that a failed call is.
    pub fn of_call(name: &str, error: PeerError) -> anyhow::Error {
        let name = name.to_owned();
        match error {
            PeerError::Ended { why: EndOfCall::Refused, .. } => Self::Refused(name).into(),
            PeerError::Ended { .. } => Self::Unanswered(name).into(),
            PeerError::Client(error) if error.blame() == Some(Blame::Unreachable) => {
                Self::Unreachable(name).into()
            }
            PeerError::Client(error) => worded(error),
            PeerError::Meet(error) => error.into(),
        }
    }
}

/// An error of a request as a user has to read it.
pub fn worded(error: ClientError) -> anyhow::Error {
    let ClientError::Refused { why, retry_ms } = error else {
        return match error.blame() {
            Some(Blame::WrongNameOrPassword) => Failure::WrongNameOrPassword.into(),
            _ => error.into(),
        };
    };
    let text = match why {
        Blame::WrongNameOrPassword => return Failure::WrongNameOrPassword.into(),
        Blame::InvalidName => {
            "this is not a name: use letters of one script, digits and visible ASCII characters, without spaces"
        }
        Blame::NameTaken => "the name, or one that looks like it, is taken: choose another",
        Blame::TooManyAttempts => "there were too many attempts",
        Blame::Busy => "the server has no capacity left",
        Blame::StoreFailed => {
            "the server cannot use its store of accounts; its operator finds the reason in its log"
        }
        Blame::AccountChanged => "the account was changed or deleted meanwhile: try again",
        Blame::TooMuch => "there are too many sessions or calls of this user",
        _ => return error.into(),
    };
    match retry_ms {
        0 => anyhow::anyhow!("{text}"),
        _ => anyhow::anyhow!("{text}: try again in {} s", retry_ms.div_ceil(1000)),
    }
}

/// The exit status of a failure after its message; other errors are left to the caller.
///
/// # Errors
/// Returns errors that are not a [`Failure`].
pub fn exit_code(error: anyhow::Error) -> anyhow::Result<ExitCode> {
    let Some(failure) = error.downcast_ref::<Failure>() else { return Err(error) };
    note(&failure.to_string());
    Ok(ExitCode::from(failure.status()))
}
