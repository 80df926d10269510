//! A client of the directory server: one connection, and every request.
//!
//! Calls are futures of tokio. What the server says unasked is kept until [`Client::next_push`] takes it. A log-in stretches the
//! password on the calling thread, which takes about 10 ms with [`Stretch::Argon2id`].
//!
//! The server is not trusted with the client's time and memory: an answer has a limit of time, and what is kept has a bound.

pub(crate) mod comparison;
pub mod security;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use kendall_talk::relay::Token;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::password::client::{LogIn, Registration};
use crate::password::{AuthMethod, PasswordError, Stretch};
use crate::protocol::{
    Answer, Blame, Contact, DirectoryMessage, Fault, Frame, GREETING_BYTES, Push, Reachable, Request, Secret,
    VERSION, decode_greeting, decode_said, encode_greeting, encode_request,
};
use security::Security;

/// Messages that wait to be taken; with more, the connection fails.
const PUSHES: usize = 4096;
/// The most users of a list; a server has at most 100,000 sessions.
const USERS: usize = 1 << 17;
/// How long the server may take for an answer. Its store may take 10 s, and other requests can wait before this one.
const PATIENCE: Duration = Duration::from_secs(60);

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ClientError {
    #[error("cannot reach the directory server at {address}: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("the connection to the directory server failed: {0}")]
    Connection(#[from] io::Error),
    #[error(
        "the server speaks version {0} of the protocol, and this client version {VERSION}; update the older one"
    )]
    Version(u8),
    #[error("the server does not speak this protocol; check the address, and whether it wants TLS")]
    Protocol,
    #[error("the server rejected the request: {why:?}; retry after {retry_ms} ms (0: a retry does not help)")]
    Refused { why: Blame, retry_ms: u32 },
    #[error(
        "the server or the account uses another method of authentication than {method}; use the one that the account was registered \
         with"
    )]
    OtherMethod { method: AuthMethod },
    #[error(
        "a password in clear needs TLS, or a server on the loopback; give the fingerprint of the server at {server}"
    )]
    PlainPassword { server: SocketAddr },
    #[error("a password has at most 255 bytes; choose a shorter one")]
    LongPassword,
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error("more than {PUSHES} messages of the server wait to be read")]
    Overrun,
    #[error("the directory server has not answered within {} s; try again later", PATIENCE.as_secs())]
    Silent,
}

impl ClientError {
    /// The reason why the server refused the request, if it did. A wrong password that the client itself notices counts.
    pub fn blame(&self) -> Option<Blame> {
        match self {
            Self::Refused { why, .. } => Some(*why),
            Self::OtherMethod { .. } => Some(Blame::OtherMethod),
            Self::Password(PasswordError::WrongNameOrPassword) => Some(Blame::WrongNameOrPassword),
            _ => None,
        }
    }
}

/// A session, as the server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The token with which another connection takes up the session.
    pub token: Secret,
    /// The account's name, as others see it.
    pub name: String,
    /// How long the session lasts without a request, in milliseconds.
    pub lease_ms: u32,
}

/// What carries a connection.
trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection to the directory server.
pub struct Client {
    stream: Box<dyn Duplex>,
    local: SocketAddr,
    server: SocketAddr,
    is_plain: bool,
    buffer: Vec<u8>,
    last: u32,
    pushes: VecDeque<Push>,
    bytes: (u64, u64),
    patience: Duration,
}

impl Client {
    /// Connects and greets.
    ///
    /// # Errors
    /// Fails where the server cannot be reached, is not the one that was pinned, or speaks another protocol or version.
    pub async fn connect(address: SocketAddr, security: &Security) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address).await;
        Self::over(stream.map_err(|source| ClientError::Connect { address, source })?, security).await
    }

    /// Greets over a connection that is made already, for example from an address of the caller's choice.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn over(stream: TcpStream, security: &Security) -> Result<Self, ClientError> {
        timeout(PATIENCE, Self::greet(stream, security)).await.unwrap_or(Err(ClientError::Silent))
    }

    async fn greet(stream: TcpStream, security: &Security) -> Result<Self, ClientError> {
        stream.set_nodelay(true)?;
        let (local, address) = (stream.local_addr()?, stream.peer_addr()?);
        let stream: Box<dyn Duplex> = match security {
            Security::Plain => Box::new(stream),
            Security::Tls { config, name } => {
                let secured = TlsConnector::from(config.clone()).connect(name.clone(), stream).await;
                Box::new(secured.map_err(|source| ClientError::Connect { address, source })?)
            }
        };
        let mut client = Self {
            stream,
            local,
            server: address,
            is_plain: matches!(security, Security::Plain),
            buffer: Vec::new(),
            last: 0,
            pushes: VecDeque::new(),
            bytes: (0, 0),
            patience: PATIENCE,
        };
        client.send(&encode_greeting(VERSION)).await?;
        loop {
            match decode_greeting(&client.buffer) {
                Ok(VERSION) => break,
                Ok(version) => return Err(ClientError::Version(version)),
                Err(Fault::Incomplete) => client.receive().await?,
                Err(Fault::Malformed) => return Err(ClientError::Protocol),
            }
        }
        client.buffer.drain(..GREETING_BYTES);
        Ok(client)
    }

    /// Registers an account.
    ///
    /// # Errors
    /// Fails where the name is invalid or taken, and where the server refuses for another reason.
    pub async fn register(
        &mut self,
        name: &str,
        password: &str,
        stretch: Stretch,
    ) -> Result<(), ClientError> {
        let (registration, message) = Registration::start(password);
        let answer = self.ask(Request::RegisterStart { name: name.to_owned(), message }).await?;
        let Answer::RegisterContinue { message } = answer else { return Err(ClientError::Protocol) };
        let record = registration.finish(&message, stretch)?;
        self.done(Request::RegisterFinish { record }).await
    }

    /// Logs in: this connection then carries a session. In a session, proves the password once more.
    ///
    /// # Errors
    /// Fails where there is no such account or this is not its password, and where the server refuses for another reason.
    pub async fn log_in(
        &mut self,
        name: &str,
        password: &str,
        stretch: Stretch,
    ) -> Result<Entered, ClientError> {
        let (log_in, message) = LogIn::start(password);
        let answer = self.ask(Request::LogInStart { name: name.to_owned(), message }).await?;
        let Answer::LogInContinue { message } = answer else { return Err(ClientError::Protocol) };
        let message = log_in.finish(&message, stretch)?;
        self.enter(Request::LogInFinish { message }).await
    }

    /// Takes up a session on this connection.
    ///
    /// # Errors
    /// Fails where the token is of no session any more.
    pub async fn resume(&mut self, token: Secret) -> Result<Entered, ClientError> {
        self.enter(Request::Resume { token }).await
    }

    /// Makes the session last on.
    ///
    /// # Errors
    /// Fails without a session.
    pub async fn stay_alive(&mut self) -> Result<(), ClientError> {
        self.done(Request::StayAlive).await
    }

    /// The names of all users who are present, in order.
    ///
    /// # Errors
    /// Fails without a session.
    pub async fn who_is_there(&mut self) -> Result<Vec<String>, ClientError> {
        let mut all: Vec<String> = Vec::new();
        loop {
            let after = all.last().cloned().unwrap_or_default();
            match self.ask(Request::WhoIsThere { after }).await? {
                Answer::Users { names, more } => {
                    for name in names.as_slice() {
                        // Otherwise the list could have no end.
                        if all.last().is_some_and(|last| name <= last) || all.len() >= USERS {
                            return Err(ClientError::Protocol);
                        }
                        all.push(name.clone());
                    }
                    // A page without names would be asked for without end.
                    if more == 0 || names.as_slice().is_empty() {
                        return Ok(all);
                    }
                }
                _ => return Err(ClientError::Protocol),
            }
        }
    }

    /// Watches a user: [`Push::Changed`] reports whether the user is there, at once and when it changes.
    ///
    /// # Errors
    /// Fails where the name is invalid and where the session watches as many users as it may.
    pub async fn watch(&mut self, name: &str) -> Result<(), ClientError> {
        self.done(Request::Watch { name: name.to_owned() }).await
    }

    /// Ends a watch.
    ///
    /// # Errors
    /// Fails without a session.
    pub async fn unwatch(&mut self, name: &str) -> Result<(), ClientError> {
        self.done(Request::Unwatch { name: name.to_owned() }).await
    }

    /// From now on calls ring here, as [`Push::Incoming`].
    ///
    /// # Errors
    /// Fails without a session.
    pub async fn wait_for_calls(&mut self) -> Result<(), ClientError> {
        self.done(Request::WaitForCalls).await
    }

    /// Calls no longer ring here.
    ///
    /// # Errors
    /// Fails without a session.
    pub async fn stop_waiting(&mut self) -> Result<(), ClientError> {
        self.done(Request::StopWaiting).await
    }

    /// Calls a user; [`Push::Accepted`] or [`Push::CallEnded`] follows. Returns the number of the call.
    ///
    /// # Errors
    /// Fails where the user cannot be reached.
    pub async fn call(&mut self, name: &str, talk: [u8; 16], contact: Contact) -> Result<u64, ClientError> {
        match self.ask(Request::Call { name: name.to_owned(), talk, contact }).await? {
            Answer::Ringing { call } => Ok(call),
            _ => Err(ClientError::Protocol),
        }
    }

    /// Takes a call that rings here. Returns the peer, and this side's token at the meeting point.
    ///
    /// # Errors
    /// Fails where the call is over.
    pub async fn accept(&mut self, call: u64, contact: Contact) -> Result<(Reachable, Token), ClientError> {
        match self.ask(Request::Accept { call, contact }).await? {
            Answer::Joined { peer, token } => Ok((peer, token)),
            _ => Err(ClientError::Protocol),
        }
    }

    /// Refuses a call that rings here.
    ///
    /// # Errors
    /// Fails where the call is over.
    pub async fn refuse(&mut self, call: u64) -> Result<(), ClientError> {
        self.done(Request::Refuse { call }).await
    }

    /// Gives up a call that this client has begun.
    ///
    /// # Errors
    /// Fails where the call is over.
    pub async fn cancel(&mut self, call: u64) -> Result<(), ClientError> {
        self.done(Request::Cancel { call }).await
    }

    /// Ends the session. The connection stays open.
    ///
    /// # Errors
    /// Fails without a session.
    pub async fn log_out(&mut self) -> Result<(), ClientError> {
        self.done(Request::LogOut).await
    }

    /// Changes the password, which must have been proved within the last five minutes. All other sessions of the account end.
    ///
    /// # Errors
    /// Fails without such a proof, and where the account was changed since.
    pub async fn change_password(&mut self, new: &str, stretch: Stretch) -> Result<(), ClientError> {
        let (registration, message) = Registration::start(new);
        let answer = self.ask(Request::ChangePasswordStart { message }).await?;
        let Answer::RegisterContinue { message } = answer else { return Err(ClientError::Protocol) };
        let record = registration.finish(&message, stretch)?;
        self.done(Request::ChangePasswordFinish { record }).await
    }

    /// Deletes the account, whose password must have been proved within the last five minutes.
    ///
    /// # Errors
    /// Fails without such a proof, and where the account was changed since.
    pub async fn delete_account(&mut self) -> Result<(), ClientError> {
        self.done(Request::DeleteAccount).await
    }

    /// Makes a request and waits for its answer.
    ///
    /// # Errors
    /// Fails where the server refuses it or does not answer within a minute, and where the connection fails.
    pub async fn ask(&mut self, request: Request) -> Result<Answer, ClientError> {
        timeout(self.patience, self.answer(request)).await.unwrap_or(Err(ClientError::Silent))
    }

    async fn answer(&mut self, request: Request) -> Result<Answer, ClientError> {
        self.last = self.last.wrapping_add(1).max(1);
        let number = self.last;
        let mut bytes = Vec::new();
        encode_request(&Frame { number, message: request }, &mut bytes);
        self.send(&bytes).await?;
        loop {
            match self.next().await? {
                Frame { message: DirectoryMessage::Push(push), .. } => self.keep(push)?,
                Frame { message: DirectoryMessage::Answer(_), number: other } if other != number => {}
                Frame { message: DirectoryMessage::Answer(Answer::Failed { why, retry_ms }), .. } => {
                    return Err(ClientError::Refused { why, retry_ms });
                }
                Frame { message: DirectoryMessage::Answer(answer), .. } => return Ok(answer),
            }
        }
    }

    /// Waits for the next message that is not an answer to a request. A caller may drop the future; no message is lost.
    ///
    /// # Errors
    /// Fails where the connection fails.
    pub async fn next_push(&mut self) -> Result<Push, ClientError> {
        if let Some(push) = self.pushes.pop_front() {
            return Ok(push);
        }
        loop {
            // The answer to a request whose caller gave up is skipped.
            if let DirectoryMessage::Push(push) = self.next().await?.message {
                return Ok(push);
            }
        }
    }

    /// The client's own address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Where the server is: TCP of this connection, and UDP of its meeting point.
    pub fn server_addr(&self) -> SocketAddr {
        self.server
    }

    /// Bytes sent and received, without those of TLS.
    pub fn bytes(&self) -> (u64, u64) {
        self.bytes
    }

    pub(crate) async fn done(&mut self, request: Request) -> Result<(), ClientError> {
        match self.ask(request).await? {
            Answer::Done => Ok(()),
            _ => Err(ClientError::Protocol),
        }
    }

    pub(crate) async fn enter(&mut self, request: Request) -> Result<Entered, ClientError> {
        match self.ask(request).await? {
            Answer::InSession { token, name, lease_ms } => Ok(Entered { token, name, lease_ms }),
            _ => Err(ClientError::Protocol),
        }
    }

    /// Waits for a message that `picked` takes, and keeps all others. A caller may drop the future; no message is lost.
    pub(crate) async fn pick_push<T>(
        &mut self,
        mut picked: impl FnMut(&Push) -> Option<T>,
    ) -> Result<T, ClientError> {
        let mut passed = 0;
        loop {
            while let Some(push) = self.pushes.get(passed) {
                if let Some(value) = picked(push) {
                    self.pushes.remove(passed);
                    return Ok(value);
                }
                passed += 1;
            }
            if passed >= PUSHES {
                // Checked before the next one is read, which would be lost.
                return Err(ClientError::Overrun);
            }
            if let DirectoryMessage::Push(push) = self.next().await?.message {
                self.pushes.push_back(push);
            }
        }
    }

    fn keep(&mut self, push: Push) -> Result<(), ClientError> {
        if self.pushes.len() >= PUSHES {
            return Err(ClientError::Overrun);
        }
        self.pushes.push_back(push);
        Ok(())
    }

    /// The next frame.
    async fn next(&mut self) -> Result<Frame<DirectoryMessage>, ClientError> {
        loop {
            match decode_said(&self.buffer) {
                Ok((frame, used)) => {
                    self.buffer.drain(..used);
                    return Ok(frame);
                }
                Err(Fault::Incomplete) => self.receive().await?,
                Err(Fault::Malformed) => return Err(ClientError::Protocol),
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await?;
        self.bytes.0 += bytes.len() as u64;
        Ok(())
    }

    async fn receive(&mut self) -> Result<(), ClientError> {
        let read = self.stream.read_buf(&mut self.buffer).await?;
        self.bytes.1 += read as u64;
        if read == 0 { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) } else { Ok(()) }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("local", &self.local).finish_non_exhaustive()
    }
}
