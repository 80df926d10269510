//! Registrations and log-ins by the methods that experiments compare with OPAQUE.

use super::{Client, ClientError, Entered};
use crate::password::scram::{Challenge, LogIn, Verifier};
use crate::password::{AuthMethod, Stretch};
use crate::protocol::{Answer, Blame, ClearPassword, Request};

impl Client {
    /// Registers an account by a method of authentication. Argon2id is computed by the server, whatever the stretch; of SCRAM,
    /// [`Stretch::Off`] leaves out the iterations.
    ///
    /// # Errors
    /// As [`register`](Self::register), and where the server uses another method.
    pub async fn register_by(
        &mut self,
        method: AuthMethod,
        name: &str,
        password: &str,
        stretch: Stretch,
    ) -> Result<(), ClientError> {
        let registered = match method {
            AuthMethod::Opaque => self.register(name, password, stretch).await,
            AuthMethod::Argon2id => {
                let password = self.in_clear(password)?;
                self.done(Request::RegisterPassword { name: name.to_owned(), password }).await
            }
            AuthMethod::Scram => self.done(scram_registration(name, password, stretch)).await,
        };
        registered.map_err(|error| of_method(error, method))
    }

    /// Logs in by a method of authentication.
    ///
    /// # Errors
    /// As [`log_in`](Self::log_in), and where the server or the account uses another method.
    pub async fn log_in_by(
        &mut self,
        method: AuthMethod,
        name: &str,
        password: &str,
        stretch: Stretch,
    ) -> Result<Entered, ClientError> {
        let entered = match method {
            AuthMethod::Opaque => self.log_in(name, password, stretch).await,
            AuthMethod::Argon2id => {
                let password = self.in_clear(password)?;
                self.enter(Request::LogInPassword { name: name.to_owned(), password }).await
            }
            AuthMethod::Scram => self.log_in_by_scram(name, password, stretch).await,
        };
        entered.map_err(|error| of_method(error, method))
    }

    /// A password that may leave this client: over TLS, or to the loopback.
    pub(crate) fn in_clear(&self, password: &str) -> Result<ClearPassword, ClientError> {
        if self.is_plain && !self.server.ip().is_loopback() {
            return Err(ClientError::PlainPassword { server: self.server });
        }
        ClearPassword::new(password).ok_or(ClientError::LongPassword)
    }

    async fn log_in_by_scram(
        &mut self,
        name: &str,
        password: &str,
        stretch: Stretch,
    ) -> Result<Entered, ClientError> {
        let (log_in, nonce) = LogIn::start(name, password);
        let answer = self.ask(Request::ScramStart { name: name.to_owned(), nonce }).await?;
        self.finish_scram(log_in, answer, stretch).await
    }

    /// Answers the challenge of a log-in by SCRAM.
    pub(crate) async fn finish_scram(
        &mut self,
        log_in: LogIn,
        challenge: Answer,
        stretch: Stretch,
    ) -> Result<Entered, ClientError> {
        let Answer::ScramContinue { nonce, salt, iterations } = challenge else {
            return Err(ClientError::Protocol);
        };
        let proof = log_in.finish(&Challenge { nonce, salt, iterations }, stretch)?;
        match self.ask(Request::ScramFinish { proof: proof.proof }).await? {
            Answer::ScramDone { signature, token, name, lease_ms } => {
                proof.check(&signature)?;
                Ok(Entered { token, name, lease_ms })
            }
            _ => Err(ClientError::Protocol),
        }
    }
}

/// The registration of an account by SCRAM.
pub(crate) fn scram_registration(name: &str, password: &str, stretch: Stretch) -> Request {
    let Verifier { salt, stored_key, server_key, .. } = Verifier::new(password, stretch);
    Request::RegisterScram { name: name.to_owned(), salt, stored_key, server_key }
}

fn of_method(error: ClientError, method: AuthMethod) -> ClientError {
    match error.blame() {
        Some(Blame::OtherMethod) => ClientError::OtherMethod { method },
        _ => error,
    }
}
