//! A directory server that runs while a test does, and its clients.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use kendall_chat::client::security::Security;
use kendall_chat::client::{Client, ClientError, Entered};
use kendall_chat::directory::Limits;
use kendall_chat::password::server::Passwords;
use kendall_chat::password::{AuthMethod, Stretch};
use kendall_chat::protocol::{Blame, Contact, Push};
use kendall_chat::server::keys::Identity;
use kendall_chat::server::store::{Memory, Store};
use kendall_chat::server::{DirectoryOptions, bind};
use kendall_service::Config;
use kendall_testbed::{LIMIT, Running};
use tokio::net::TcpSocket;
use tokio::time::timeout;

/// A talk that a client begins.
pub(crate) const TALK: [u8; 16] = [3; 16];

pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// The options of a server that keeps its accounts there.
pub(crate) fn options(store: Arc<dyn Store>, limits: Limits, identity: Option<Identity>) -> DirectoryOptions {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let usual = Config::new("127.0.0.1:0".parse().unwrap());
    let workers = NonZeroUsize::new(4).unwrap();
    DirectoryOptions {
        service: Config { workers, grace: Duration::from_millis(10), ..usual },
        limits,
        store,
        runtime: runtime.unwrap(),
        passwords: Passwords::new(),
        identity,
    }
}

/// A server that checks passwords by this method.
pub(crate) fn by(method: AuthMethod, options: DirectoryOptions) -> DirectoryOptions {
    DirectoryOptions { passwords: options.passwords.by(method), ..options }
}

/// Runs a server while a test does.
pub(crate) fn run(options: DirectoryOptions) -> Running {
    let server = bind(options).unwrap();
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run())
}

/// A server in memory, within these limits.
pub(crate) fn serve(limits: Limits) -> Running {
    run(options(Arc::new(Memory::default()), limits, None))
}

/// Runs what clients do.
pub(crate) fn clients<T>(act: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LIMIT, act).await.expect("the clients are done in time") })
}

pub(crate) async fn connect(server: &Running) -> Client {
    Client::connect(server.address, &Security::Plain).await.unwrap()
}

/// A client at one of the addresses of the loopback.
pub(crate) async fn connect_from(server: &Running, from: [u8; 4]) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::from(from), 0)).unwrap();
    let stream = socket.connect(server.address).await.unwrap();
    Client::over(stream, &Security::Plain).await.unwrap()
}

/// A client with a session of a new account.
pub(crate) async fn new_user(server: &Running, name: &str) -> Client {
    let mut client = connect(server).await;
    client.register(name, PASSWORD, Stretch::Off).await.unwrap();
    enter(&mut client, name).await;
    client
}

pub(crate) async fn enter(client: &mut Client, name: &str) -> Entered {
    client.log_in(name, PASSWORD, Stretch::Off).await.unwrap()
}

/// Why a request was refused.
pub(crate) fn blame<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Blame {
    let error = result.expect_err("the server refuses it");
    error.blame().unwrap_or_else(|| panic!("not by the server: {error}"))
}

/// The next message, which is one that this function knows.
pub(crate) async fn pushed<T>(client: &mut Client, known: impl Fn(&Push) -> Option<T>) -> T {
    let push = client.next_push().await.unwrap();
    known(&push).unwrap_or_else(|| panic!("unexpected: {push:?}"))
}

pub(crate) fn contact(number: u8) -> Contact {
    Contact::unlisted([number; 32])
}
