//! Requests that need a worker: those that compute with keys or wait for the store.
//!
//! A worker waits for what it reads or changes in the store, so there are more workers than processors. For a new account, a
//! worker waits only where it hashes the password.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand_core_of_opaque::{OsRng, RngCore};
use tokio::runtime::Runtime;

use super::hall::Hall;
use super::store::{Inserted, Store, StoreFault};
use crate::directory::{ConnectionId, Refusal};
use crate::name::Name;
use crate::password::record::Record;
use crate::password::server::{HalfLogIn, Passwords};
use crate::password::{LOG_IN_1, REGISTER_1, REGISTER_3, scram};
use crate::protocol::{Answer, Blame};

/// What a connection is in the middle of.
#[derive(Debug, Default)]
pub(crate) enum Exchange {
    #[default]
    None,
    /// A registration that waits for its last message.
    Registration { name: Name, credential: [u8; 16] },
    /// A log-in that waits for its proof, to the account of this name, with a record of this digest.
    LogIn { name: Name, digest: [u8; 32], half: HalfLogIn },
    /// The exchange of a log-in by SCRAM.
    Scram { name: Name, digest: [u8; 32], half: scram::HalfLogIn },
    /// A change of the password that waits for its last message.
    Change { credential: [u8; 16] },
}

/// The exchange of a connection, which its requests at workers share.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedExchange(Arc<Mutex<Exchange>>);

impl SharedExchange {
    /// Takes the exchange; the connection is then in the middle of none.
    pub(crate) fn take(&self) -> Exchange {
        std::mem::take(&mut *self.lock())
    }

    pub(crate) fn begin(&self, exchange: Exchange) {
        *self.lock() = exchange;
    }

    fn lock(&self) -> MutexGuard<'_, Exchange> {
        // A value is replaced whole, so a panic leaves none half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work for a worker.
#[derive(Debug)]
pub(crate) enum Work {
    RegisterStart { name: Name, message: [u8; REGISTER_1] },
    LogInStart { name: Name, message: [u8; LOG_IN_1] },
    ChangeStart { message: [u8; REGISTER_1] },
    ChangeFinish { credential: [u8; 16], record: Box<[u8; REGISTER_3]> },
    Delete,
}

/// What workers share.
pub(crate) struct Office {
    pub(crate) hall: Arc<Hall>,
    pub(crate) passwords: Passwords,
    pub(crate) store: Arc<dyn Store>,
    /// What the store's futures run on.
    pub(crate) runtime: Runtime,
    /// The record that stands in for accounts that there are not, so that their log-ins take the same.
    pub(crate) decoy: Vec<u8>,
}

impl Office {
    /// Does the work of a connection.
    pub(crate) fn work(
        &self,
        connection: ConnectionId,
        exchange: &SharedExchange,
        work: &Work,
    ) -> Result<Answer, Refusal> {
        match work {
            Work::RegisterStart { name, message } => {
                let credential = Passwords::draw_credential();
                let second = self.register(&credential, message)?;
                exchange.begin(Exchange::Registration { name: name.clone(), credential });
                Ok(Answer::RegisterContinue { message: second })
            }
            Work::LogInStart { name, message } => self.log_in(exchange, name, message),
            Work::ChangeStart { message } => {
                let credential = Passwords::draw_credential();
                let second = self.register(&credential, message)?;
                exchange.begin(Exchange::Change { credential });
                Ok(Answer::RegisterContinue { message: second })
            }
            Work::ChangeFinish { credential, record } => self.change(connection, *credential, record),
            Work::Delete => self.delete(connection),
        }
    }

    fn register(&self, credential: &[u8; 16], first: &[u8; REGISTER_1]) -> Result<[u8; 64], Refusal> {
        self.passwords.register(credential, first).map_err(|_| Blame::InvalidMessage.into())
    }

    fn log_in(
        &self,
        exchange: &SharedExchange,
        name: &Name,
        first: &[u8; LOG_IN_1],
    ) -> Result<Answer, Refusal> {
        let (record, is_there) = self.record_to_enter(name)?;
        let shown = Name::new(record.shown()).map_err(|_| Blame::StoreFailed)?;
        let digest = record.digest();
        let (half, second) = self
            .passwords
            .log_in(name.key(), is_there.then_some(&record), first)
            .map_err(|_| Blame::InvalidMessage)?;
        let name = if is_there { shown } else { name.clone() };
        exchange.begin(Exchange::LogIn { name, digest, half });
        Ok(Answer::LogInContinue { message: second })
    }

    /// The record of an account, or one that no password enters, and whether there is the account. From here on, an account
    /// that there is not takes each step of one that there is.
    pub(crate) fn record_to_enter(&self, name: &Name) -> Result<(Record, bool), Refusal> {
        let found = self.wait(self.store.find(name.key().as_str()))?;
        let is_there = found.is_some();
        let record = Record::decode(found.as_ref().unwrap_or(&self.decoy)).map_err(|error| {
            tracing::error!(key = name.key().as_str(), %error, "an account cannot be read");
            Blame::StoreFailed
        })?;
        let is_ours = record.method() == self.passwords.method();
        if is_ours { Ok((record, is_there)) } else { Err(Blame::OtherMethod.into()) }
    }

    /// Stores a new account. The store sends the answer, so that no worker waits while it writes.
    pub(crate) fn insert(
        &self,
        name: &Name,
        record: &Record,
    ) -> impl Future<Output = Result<Answer, Refusal>> + Send + use<> {
        let (store, key, record) = (Arc::clone(&self.store), name.key().clone(), record.encode());
        async move {
            match store.insert(key.as_str(), record).await.map_err(failed)? {
                Inserted::New => Ok(Answer::Done),
                Inserted::Taken => Err(Blame::NameTaken.into()),
            }
        }
    }

    fn change(
        &self,
        connection: ConnectionId,
        credential: [u8; 16],
        record: &[u8; REGISTER_3],
    ) -> Result<Answer, Refusal> {
        let (name, old) = self.record_to_change(connection)?;
        let new = Record::new(credential, &name, record).map_err(|_| Blame::InvalidMessage)?;
        let replaced = self.wait(self.store.replace(name.key().as_str(), &old, new.encode()));
        // Where it is unknown whether the store has the new record, the sessions of the old one end, too.
        if replaced != Ok(false) {
            self.hall.with(|directory, _| directory.password_changed(name.key(), connection, new.digest()));
        }
        if replaced? { Ok(Answer::Done) } else { Err(Blame::AccountChanged.into()) }
    }

    fn delete(&self, connection: ConnectionId) -> Result<Answer, Refusal> {
        let (name, old) = self.record_to_change(connection)?;
        let removed = self.wait(self.store.remove(name.key().as_str(), &old));
        if removed != Ok(false) {
            self.hall.with(|directory, _| directory.account_deleted(name.key(), connection));
        }
        if removed? { Ok(Answer::Done) } else { Err(Blame::AccountChanged.into()) }
    }

    /// The account that a connection may change, and its record, if it is still the one whose password was proved.
    fn record_to_change(&self, connection: ConnectionId) -> Result<(Name, Vec<u8>), Refusal> {
        let (name, digest) = self.hall.with(|directory, now| directory.to_change(now, connection))?;
        let old = self.wait(self.store.find(name.key().as_str()))?.ok_or(Blame::AccountChanged)?;
        let record = Record::decode(&old).map_err(|_| Blame::StoreFailed)?;
        if record.digest() == digest { Ok((name, old)) } else { Err(Blame::AccountChanged.into()) }
    }

    fn wait<T>(&self, call: impl Future<Output = Result<T, StoreFault>>) -> Result<T, Refusal> {
        self.runtime.block_on(call).map_err(failed)
    }
}

fn failed(error: StoreFault) -> Refusal {
    tracing::error!(%error, "the store of accounts failed");
    Blame::StoreFailed.into()
}

/// Random bytes.
pub(crate) fn draw<const N: usize>() -> [u8; N] {
    let mut drawn = [0; N];
    OsRng.fill_bytes(&mut drawn);
    drawn
}
