//! Registrations and log-ins of a connection, by the method of its workload. What the client computes first is not a part of an
//! operation and happens before `sent`.

use kendall_load::Stamps;

use super::line::{Line, answered, sent};
use super::population::password_of;
use crate::client::comparison::scram_registration;
use crate::client::{ClientError, Entered};
use crate::password::client::{LogIn, Registration};
use crate::password::{AuthMethod, scram};
use crate::protocol::{Answer, Request};

impl Line {
    pub(super) async fn register(&mut self, name: &str, stamps: &mut Stamps) -> Result<(), ClientError> {
        let password = password_of(name);
        let stretch = self.population.mix.stretch;
        let last = match self.population.mix.method {
            AuthMethod::Opaque => {
                let (registration, message) = Registration::start(&password);
                let answer =
                    self.first(Request::RegisterStart { name: name.to_owned(), message }, stamps).await?;
                let Answer::RegisterContinue { message } = answer else { return Err(ClientError::Protocol) };
                let record = registration.finish(&message, stretch)?;
                self.client.ask(Request::RegisterFinish { record }).await?
            }
            AuthMethod::Argon2id => {
                let password = self.client.in_clear(&password)?;
                self.first(Request::RegisterPassword { name: name.to_owned(), password }, stamps).await?
            }
            AuthMethod::Scram => self.first(scram_registration(name, &password, stretch), stamps).await?,
        };
        if matches!(last, Answer::Done) { Ok(()) } else { Err(ClientError::Protocol) }
    }

    pub(super) async fn log_in(&mut self, name: &str, stamps: &mut Stamps) -> Result<(), ClientError> {
        let password = password_of(name);
        let stretch = self.population.mix.stretch;
        let Entered { name, .. } = match self.population.mix.method {
            AuthMethod::Opaque => {
                let (log_in, message) = LogIn::start(&password);
                let answer =
                    self.first(Request::LogInStart { name: name.to_owned(), message }, stamps).await?;
                let Answer::LogInContinue { message } = answer else { return Err(ClientError::Protocol) };
                let message = log_in.finish(&message, stretch)?;
                self.client.enter(Request::LogInFinish { message }).await?
            }
            AuthMethod::Argon2id => {
                let password = self.client.in_clear(&password)?;
                sent(stamps);
                let entered =
                    self.client.enter(Request::LogInPassword { name: name.to_owned(), password }).await?;
                answered(stamps);
                entered
            }
            AuthMethod::Scram => {
                let (log_in, nonce) = scram::LogIn::start(name, &password);
                let answer = self.first(Request::ScramStart { name: name.to_owned(), nonce }, stamps).await?;
                self.client.finish_scram(log_in, answer, stretch).await?
            }
        };
        self.within = Some(name);
        Ok(())
    }

    /// The first request of an operation.
    async fn first(&mut self, request: Request, stamps: &mut Stamps) -> Result<Answer, ClientError> {
        sent(stamps);
        let answer = self.client.ask(request).await?;
        answered(stamps);
        Ok(answer)
    }
}
