//! One connection of a user, and the operations that it carries one after another.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kendall_load::{Connection, Exchange, LocalFuture, Request, Reuse, Stamps};
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::population::{Mix, Operation, Population, password_of};
use crate::client::{Client, ClientError};
use crate::protocol::{Answer, Blame, Contact, Push, Request as Asked};

/// The interval at which the called user reports its presence.
const STAY_ALIVE_EVERY: Duration = Duration::from_secs(15);
/// The keys that the two sides of a call hand over; there is no conversation.
const CALLER: [u8; 32] = [1; 32];
/// The talk that callers begin. None of them meets.
const TALK: [u8; 16] = [0; 16];
const CALLED: [u8; 32] = [2; 32];

/// One connection of a user.
pub(super) struct Line {
    pub(super) population: Arc<Population>,
    pub(super) client: Client,
    number: u64,
    /// The account of the session that the connection carries.
    pub(super) within: Option<String>,
    /// The user that this one calls, and the task in which that user accepts.
    called: Option<(String, JoinHandle<()>)>,
}

impl Line {
    pub(super) fn new(population: Arc<Population>, client: Client, number: u64) -> Self {
        Self { population, client, number, within: None, called: None }
    }

    /// Does an operation. What it needs first, for example a session, is no part of it and happens before `sent`.
    async fn operate(&mut self, index: u64, class: u32, stamps: &mut Stamps) -> Result<(), ClientError> {
        let operation = self.population.shares.get(class as usize).map(|(operation, _)| *operation);
        match operation.ok_or(ClientError::Protocol)? {
            Operation::Register => self.register(&self.population.new_name(index), stamps).await,
            Operation::LogIn => {
                self.log_out().await?;
                self.log_in(&self.population.log_in_to(index), stamps).await
            }
            Operation::Who => {
                self.enter().await?;
                sent(stamps);
                let answer = self.client.ask(Asked::WhoIsThere { after: String::new() }).await?;
                answered(stamps);
                if matches!(answer, Answer::Users { .. }) { Ok(()) } else { Err(ClientError::Protocol) }
            }
            Operation::Call => self.call(stamps).await,
        }
    }

    async fn call(&mut self, stamps: &mut Stamps) -> Result<(), ClientError> {
        self.enter().await?;
        let name = self.callee().await?;
        sent(stamps);
        let call = self.client.call(&name, TALK, Contact::unlisted(CALLER)).await?;
        answered(stamps);
        loop {
            match self.client.next_push().await? {
                Push::Accepted { call: accepted, peer, .. } if accepted == call => {
                    let is_peer = peer.name == name && peer.contact.key == CALLED;
                    return if is_peer { Ok(()) } else { Err(ClientError::Protocol) };
                }
                Push::CallEnded { call: ended, .. } if ended == call => {
                    return Err(refused(Blame::Unreachable));
                }
                Push::SessionEnded { .. } => return Err(refused(Blame::NoSession)),
                _ => {}
            }
        }
    }

    /// The user that this one calls, who waits for calls from then on.
    async fn callee(&mut self) -> Result<String, ClientError> {
        if let Some((name, waiting)) = &self.called
            && !waiting.is_finished()
        {
            return Ok(name.clone());
        }
        let population = &*self.population;
        let name = population.callee_name(self.number);
        let mut client = Client::connect(population.server, &population.mix.security).await?;
        population.ensure(&mut client, &name).await?;
        let Mix { method, stretch, .. } = population.mix;
        client.log_in_by(method, &name, &password_of(&name), stretch).await?;
        client.wait_for_calls().await?;
        self.called = Some((name.clone(), tokio::spawn(accept_all(client))));
        Ok(name)
    }

    /// Makes sure that the connection carries a session.
    async fn enter(&mut self) -> Result<(), ClientError> {
        if self.within.is_none() {
            let name = self.population.known_name(self.number);
            self.log_in(&name, &mut Stamps::default()).await?;
        }
        Ok(())
    }

    /// Makes sure that the connection carries no session.
    async fn log_out(&mut self) -> Result<(), ClientError> {
        match self.within.take() {
            Some(_) => self.client.log_out().await,
            None => Ok(()),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((_, waiting)) = &self.called {
            waiting.abort();
        }
    }
}

impl Connection for Line {
    fn port(&self) -> u16 {
        self.client.local_addr().port()
    }

    fn exchange<'a>(
        &'a mut self,
        index: u64,
        request: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async move {
            let (out, into) = self.client.bytes();
            let result = self.operate(index, request.class, stamps).await;
            stamps.completed = Some(now_ns());
            let (all_out, all_in) = self.client.bytes();
            (stamps.bytes_out, stamps.bytes_in) = (all_out - out, all_in - into);
            exchange(&result, self.population.mix.reuse)
        })
    }

    fn is_open(&mut self) -> bool {
        loop {
            match self.client.next_push().now_or_never() {
                None => return true,
                Some(Ok(Push::SessionEnded { .. }) | Err(_)) => return false,
                // News of a call that is over.
                Some(Ok(_)) => {}
            }
        }
    }
}

/// Accepts every call, until the connection or the session ends.
async fn accept_all(mut client: Client) {
    loop {
        match timeout(STAY_ALIVE_EVERY, client.next_push()).await {
            Ok(Ok(Push::Incoming { call, .. })) => {
                // A call that is over already needs no answer.
                let _ = client.accept(call, Contact::unlisted(CALLED)).await;
            }
            Ok(Ok(Push::SessionEnded { .. }) | Err(_)) => return,
            Ok(Ok(_)) => {}
            Err(_) if client.stay_alive().await.is_err() => return,
            Err(_) => {}
        }
    }
}

pub(super) fn sent(stamps: &mut Stamps) {
    stamps.sent = Some(now_ns());
}

pub(super) fn answered(stamps: &mut Stamps) {
    stamps.first_byte = Some(now_ns());
}

fn refused(why: Blame) -> ClientError {
    ClientError::Refused { why, retry_ms: 0 }
}

/// How an operation ended, for the generator.
fn exchange(result: &Result<(), ClientError>, reuse: Reuse) -> Exchange {
    match result {
        Ok(()) => Exchange { outcome: Outcome::Answered, reuse },
        // A session that has ended is begun again on a new connection.
        Err(ClientError::Refused { why: Blame::NoSession, .. }) => {
            Exchange { outcome: Outcome::Refused, reuse: Reuse::Close }
        }
        Err(ClientError::Refused { .. }) => Exchange { outcome: Outcome::Refused, reuse },
        Err(ClientError::Connect { .. } | ClientError::Connection(_)) => {
            Exchange { outcome: Outcome::Refused, reuse: Reuse::Close }
        }
        Err(ClientError::Silent) => Exchange { outcome: Outcome::TimedOut, reuse: Reuse::Close },
        Err(
            ClientError::Version(_)
            | ClientError::Protocol
            | ClientError::OtherMethod { .. }
            | ClientError::PlainPassword { .. }
            | ClientError::LongPassword
            | ClientError::Password(_)
            | ClientError::Overrun,
        ) => Exchange { outcome: Outcome::Wrong, reuse: Reuse::Close },
    }
}
