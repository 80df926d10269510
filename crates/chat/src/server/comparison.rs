//! Requests of the methods of authentication that experiments compare with OPAQUE.

use super::hall::Hall;
use super::work::{Exchange, Office, SharedExchange, draw};
use crate::directory::{ConnectionId, Refusal};
use crate::name::Name;
use crate::password::AuthMethod;
use crate::password::record::{Proof, Record};
use crate::password::scram::{HalfLogIn, KEY_BYTES, NONCE_BYTES, Verifier};
use crate::protocol::{Answer, Blame, ClearPassword, Request, Secret};

/// Work for a worker.
#[derive(Debug)]
pub(crate) enum ComparedRequest {
    RegisterPassword {
        name: Name,
        password: ClearPassword,
    },
    LogInPassword {
        name: Name,
        password: ClearPassword,
    },
    /// With the name as the client has sent it, which both sides authenticate.
    ScramStart {
        name: Name,
        sent: String,
        nonce: [u8; NONCE_BYTES],
    },
}

/// The method that a request belongs to, if it belongs to one.
pub(crate) fn method_of(request: &Request) -> Option<AuthMethod> {
    match request {
        Request::RegisterStart { .. }
        | Request::RegisterFinish { .. }
        | Request::LogInStart { .. }
        | Request::LogInFinish { .. }
        | Request::ChangePasswordStart { .. }
        | Request::ChangePasswordFinish { .. } => Some(AuthMethod::Opaque),
        Request::RegisterPassword { .. } | Request::LogInPassword { .. } => Some(AuthMethod::Argon2id),
        Request::RegisterScram { .. } | Request::ScramStart { .. } | Request::ScramFinish { .. } => {
            Some(AuthMethod::Scram)
        }
        _ => None,
    }
}

/// The answer to a log-in, with the server's proof.
pub(crate) fn with_signature(answer: Answer, signature: [u8; KEY_BYTES]) -> Answer {
    match answer {
        Answer::InSession { token, name, lease_ms } => Answer::ScramDone { signature, token, name, lease_ms },
        other => other,
    }
}

impl ComparedRequest {
    /// Counts the attempt. A request of another kind comes back.
    pub(crate) fn begin(
        hall: &Hall,
        connection: ConnectionId,
        request: Request,
    ) -> Result<Result<Self, Request>, Refusal> {
        let read = |name: &str| Name::new(name).map_err(|_| Blame::InvalidName);
        let registers = || hall.with(|directory, now| directory.begin_registration(now, connection));
        let enters =
            |name: &Name| hall.with(|directory, now| directory.begin_log_in(now, connection, name.key()));
        Ok(Ok(match request {
            Request::RegisterPassword { name, password } => {
                let name = read(&name)?;
                registers()?;
                Self::RegisterPassword { name, password }
            }
            Request::LogInPassword { name, password } => {
                let name = read(&name)?;
                enters(&name)?;
                Self::LogInPassword { name, password }
            }
            Request::ScramStart { name: sent, nonce } => {
                let name = read(&sent)?;
                enters(&name)?;
                Self::ScramStart { name, sent, nonce }
            }
            other => return Ok(Err(other)),
        }))
    }

    /// Does the work of a connection.
    pub(crate) fn perform(
        &self,
        office: &Office,
        connection: ConnectionId,
        exchange: &SharedExchange,
    ) -> Result<Answer, Refusal> {
        match self {
            Self::RegisterPassword { name, password } => {
                let hash = office.passwords.hashers().hash(password.as_str());
                office.runtime.block_on(office.insert(name, &Record::argon2id(name, hash)))
            }
            Self::LogInPassword { name, password } => log_in(office, connection, name, password.as_str()),
            Self::ScramStart { name, sent, nonce } => {
                let (record, is_there) = office.record_to_enter(name)?;
                // Derived in either case, so that both take the same.
                let salt = office.passwords.salt_of_no_account(name.key());
                let Proof::Scram(verifier) = record.proof() else { return Err(Blame::OtherMethod.into()) };
                let salt = if is_there { verifier.salt } else { salt };
                let (half, challenge) = HalfLogIn::new(sent, nonce, Verifier { salt, ..verifier.clone() });
                let name = name_of(&record, is_there, name)?;
                exchange.begin(Exchange::Scram { name, digest: record.digest(), half });
                let iterations = challenge.iterations;
                Ok(Answer::ScramContinue { nonce: challenge.nonce, salt: challenge.salt, iterations })
            }
        }
    }
}

/// Checks a password in clear, of an account that there is or is not.
fn log_in(office: &Office, connection: ConnectionId, name: &Name, password: &str) -> Result<Answer, Refusal> {
    let (record, is_there) = office.record_to_enter(name)?;
    let Proof::Argon2id(hash) = record.proof() else { return Err(Blame::OtherMethod.into()) };
    if !(office.passwords.hashers().verify(hash, password) && is_there) {
        office.hall.with(|directory, _| directory.abandon_log_in(connection));
        return Err(Blame::WrongNameOrPassword.into());
    }
    let (name, digest, token) = (name_of(&record, is_there, name)?, record.digest(), Secret(draw()));
    office.hall.with(|directory, now| directory.finish_log_in(now, connection, name, digest, token))
}

/// The name of the account as others see it; of none, the one that was asked for.
fn name_of(record: &Record, is_there: bool, asked: &Name) -> Result<Name, Refusal> {
    let shown = Name::new(record.shown()).map_err(|_| Blame::StoreFailed)?;
    Ok(if is_there { shown } else { asked.clone() })
}
