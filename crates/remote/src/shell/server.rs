//! The server: admits clients, opens sessions and hands connections to them.

mod registry;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kendall_curve::curvecp::{MessageConfig, PublicKey, ServerConfig};
use kendall_curve::{Endpoint, Stream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::refusal_log::RefusalLog;
use crate::shell::account::Account;
use crate::shell::error::ShellError;
use crate::shell::framed::{Framed, Progress};
use crate::shell::process::{Launch, Program, start};
use crate::shell::protocol::{ClientFrame, Open, Refusal, ServerFrame, SessionId, Terminal};
use crate::shell::session::{About, Join, Joining, Patience, Request, Session, refuse};
use registry::{Registry, Reserved};

/// Connections that have not said yet what they want, at most.
const GREETINGS: usize = 64;
/// How long a connection has to say it.
const GREETING: Duration = Duration::from_secs(10);
/// How long a client has to take a list.
const LIST: Duration = Duration::from_secs(5);
/// Requests that wait for a session, at most.
const REQUESTS: usize = 8;
/// A client is lost after this time without a packet. It sends one every five seconds.
const SILENCE: Duration = Duration::from_secs(20);
/// Output that waits in the connection's own buffer. What waits there can no longer be replaced by a later screen.
const SEND_BUFFER: u64 = 1 << 20;

/// A client that the server admits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The user that runs its programs; the server's own, if absent.
    pub user: Option<String>,
    /// The client's label in logs in addition to its key, for example the comment of its line.
    pub label: String,
}

/// Decides by its public key whether a client is admitted.
pub type Admit = Arc<dyn Fn(&PublicKey) -> Option<Guest> + Send + Sync>;

/// The limits of a server, and the requests that it accepts from clients.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Sessions at once.
    pub sessions: usize,
    /// Sessions at once of one key.
    pub sessions_per_key: usize,
    /// How long a session waits for a client whose connection was lost.
    pub resume_for: Duration,
    /// How long a detached session lives.
    pub detached_for: Duration,
    /// Variables that clients may set, besides `LANG` and `LC_*`.
    pub accept_environment: Vec<String>,
}

impl Default for ServerSettings {
    /// 100 sessions, 20 for each key; five minutes to resume; a week detached.
    fn default() -> Self {
        Self {
            sessions: 100,
            sessions_per_key: 20,
            resume_for: Duration::from_secs(5 * 60),
            detached_for: Duration::from_secs(7 * 24 * 3600),
            accept_environment: Vec::new(),
        }
    }
}

/// Sets what the shell needs of CurveCP: only admitted clients are answered, and one that is silent is soon noticed.
pub fn configure(config: &mut ServerConfig, admit: &Admit, settings: &ServerSettings) {
    let (admit, mut refusals) = (admit.clone(), RefusalLog::default());
    config.authorise = Some(Box::new(move |key, address| {
        let is_admitted = admit(key).is_some();
        if !is_admitted {
            refusals.warn(Instant::now(), key, address);
        }
        is_admitted
    }));
    config.max_connections = settings.sessions * 2 + GREETINGS;
    config.message = MessageConfig {
        idle_timeout: Some(SILENCE),
        max_send_buffer: SEND_BUFFER,
        ..std::mem::take(&mut config.message)
    };
}

/// Serves shells until `stop` is ready; then ends all sessions.
///
/// # Errors
/// [`ShellError::Curve`] where the endpoint fails.
pub async fn serve(
    endpoint: Endpoint,
    admit: Admit,
    settings: ServerSettings,
    stop: impl Future<Output = ()>,
) -> Result<(), ShellError> {
    let server = Arc::new(Server {
        admit,
        registry: Registry::new(settings.sessions, settings.sessions_per_key),
        settings,
    });
    let (places, mut greetings) = (Arc::new(Semaphore::new(GREETINGS)), JoinSet::new());
    let mut stop = std::pin::pin!(stop);
    let ended = loop {
        let stream = tokio::select! {
            () = &mut stop => break Ok(()),
            Some(_) = greetings.join_next() => continue,
            accepted = endpoint.accept() => match accepted {
                Ok(stream) => stream,
                Err(error) => break Err(error.into()),
            },
        };
        // Without a place the stream is dropped, which its client sees as a failure.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let server = server.clone();
        greetings.spawn(async move {
            server.greet(stream).await;
            drop(place);
        });
    };
    greetings.shutdown().await;
    server.registry.stop().await;
    // Last frames are on their way.
    _ = timeout(Duration::from_secs(1), endpoint.idle()).await;
    ended
}

struct Server {
    admit: Admit,
    registry: Registry,
    settings: ServerSettings,
}

/// Who a client is, for logs.
struct Caller {
    key: PublicKey,
    guest: Guest,
    address: String,
}

impl std::fmt::Display for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "key {:?} ({}) from {}", self.key, self.guest.label, self.address)
    }
}

impl Server {
    /// Reads what a connection wants and does it.
    async fn greet(&self, stream: Stream) {
        let connection = stream.connection().clone();
        let key = connection.peer();
        // It was admitted when it connected; the list may have changed since.
        let Some(guest) = (self.admit)(&key) else { return };
        let address =
            connection.address().map_or_else(|| "an unknown address".into(), |address| address.to_string());
        let caller = Caller { key, guest, address };
        let mut framed = Framed::new(stream);
        let (kind, body) = match timeout(GREETING, framed.progress()).await {
            Ok(Ok(Progress::Frame(kind, body))) => (kind, body),
            other => return tracing::debug!("{caller} asked for nothing: {other:?}"),
        };
        match ClientFrame::decode(kind, &body) {
            Ok(ClientFrame::Open(open)) => self.open(framed, &caller, &open),
            Ok(ClientFrame::Attach { session, window, claim }) => {
                self.join(framed, &caller, session, Join::Anew { window, claim }).await;
            }
            Ok(ClientFrame::Resume { session, token, received }) => {
                self.join(framed, &caller, session, Join::Resume { token, received }).await;
            }
            Ok(ClientFrame::List) => self.list(framed, key).await,
            Ok(ClientFrame::End(session)) => self.end(framed, &caller, session).await,
            Ok(_) => refuse(framed, Refusal::BadRequest, "a connection begins with a request"),
            Err(error) => {
                tracing::warn!("{caller} sent a request that is not valid: {error}");
                refuse(framed, Refusal::BadRequest, &error.to_string());
            }
        }
    }

    fn open(&self, framed: Framed<Stream>, caller: &Caller, open: &Open<'_>) {
        let reserved = match self.registry.reserve(caller.key) {
            Ok(reserved) => reserved,
            Err(full) => {
                tracing::warn!("{caller} was refused a session: {full}");
                return refuse(framed, Refusal::Limit, &full.to_string());
            }
        };
        let started = Account::find(caller.guest.user.as_deref())
            .and_then(|account| Ok((self.start(&account, open)?, account.name)));
        let (program, user) = match started {
            Ok(started) => started,
            Err(error) => {
                tracing::error!("{caller} was refused a session: {error}");
                return refuse(framed, Refusal::NotStarted, &error.to_string());
            }
        };
        let command = open.command.unwrap_or_default().to_vec();
        let shown = open.command.map_or_else(|| "a login shell".into(), shown);
        tracing::info!("session {} opened by {caller} as {user}: {shown}", reserved.session());
        self.run(framed, reserved, open, program, command);
    }

    /// Starts the task of a session.
    fn run(
        &self,
        framed: Framed<Stream>,
        reserved: Reserved,
        open: &Open<'_>,
        program: Program,
        command: Vec<u8>,
    ) {
        let about = Arc::new(About::new(reserved.session(), open.terminal.is_some(), command));
        let (sender, requests) = mpsc::channel(REQUESTS);
        let patience = Patience { resume: self.settings.resume_for, detached: self.settings.detached_for };
        let window = open.terminal.map(|terminal| terminal.window).unwrap_or_default();
        let session = Session::new(about.clone(), patience, program, framed, window);
        reserved.fill(about.clone(), sender, async move {
            let exit = session.run(requests).await;
            let (seconds, id) = (about.began.elapsed().as_secs_f64(), about.session);
            let how = exit.map_or_else(|| "its program was left".into(), |exit| exit.to_string());
            tracing::info!("session {id} ended after {seconds:.1} s: {how}");
        });
    }

    fn start(&self, account: &Account, open: &Open<'_>) -> Result<Program, ShellError> {
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let environment = open
            .environment
            .iter()
            .filter(|(name, value)| self.accepts(name) && !value.contains(&0))
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let terminal = open.terminal.map(|Terminal { kind, window }| (OsStr::from_bytes(kind), window));
        start(&Launch { account, terminal, command: open.command.map(OsStr::from_bytes), environment })
    }

    /// Whether clients may set a variable.
    fn accepts(&self, name: &[u8]) -> bool {
        let is_plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let is_listed =
            || self.settings.accept_environment.iter().any(|accepted| accepted.as_bytes() == name);
        is_plain && (name == b"LANG" || name.starts_with(b"LC_") || is_listed())
    }

    async fn join(&self, framed: Framed<Stream>, caller: &Caller, session: SessionId, how: Join) {
        let Some(requests) = self.registry.find(session, caller.key) else {
            return refuse(framed, Refusal::NoSession, &no_session(session));
        };
        let verb = if matches!(how, Join::Resume { .. }) { "resumed" } else { "attached to" };
        tracing::info!("session {session} {verb} by {caller}");
        // A session that ends meanwhile drops the connection.
        _ = requests.send(Request::Join(Box::new(Joining { framed, how }))).await;
    }

    async fn list(&self, mut framed: Framed<Stream>, key: PublicKey) {
        let sessions = self.registry.list(key);
        let listed = sessions.iter().map(|about| about.listed()).collect();
        ServerFrame::Sessions(listed).append(framed.outbox());
        _ = timeout(LIST, framed.finish()).await;
    }

    async fn end(&self, mut framed: Framed<Stream>, caller: &Caller, session: SessionId) {
        let Some(requests) = self.registry.find(session, caller.key) else {
            return refuse(framed, Refusal::NoSession, &no_session(session));
        };
        tracing::info!("session {session} is ended by {caller}");
        _ = requests.send(Request::End).await;
        ServerFrame::Ending.append(framed.outbox());
        _ = timeout(LIST, framed.finish()).await;
    }
}

fn no_session(session: SessionId) -> String {
    format!("there is no session {session} of your key; --list shows those that there are")
}

/// A command for a log: one line of printable characters.
fn shown(command: &[u8]) -> String {
    String::from_utf8_lossy(&command[..command.len().min(1000)]).escape_debug().to_string()
}
