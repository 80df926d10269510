//! A server and clients in the test's own process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces, Stream};
use kendall_remote::shell::protocol::Window;
use kendall_remote::shell::{
    Admit, ClientSettings, Connect, Guest, LocalEvent, LocalStreams, Outcome, ServerSettings, ShellError,
    Start, configure, run, serve,
};
use kendall_testbed::LIMIT;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::UdpSocket;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const NAME: &str = "server.example";

pub(crate) const WINDOW: Window = Window { columns: 100, rows: 30, x_pixels: 0, y_pixels: 0 };

fn server_key() -> SecretKey {
    SecretKey::from_bytes([1; 32])
}

pub(crate) fn client_key(number: u8) -> SecretKey {
    SecretKey::from_bytes([number; 32])
}

/// Runs a test that ends within the limit.
pub(crate) fn test(body: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { timeout(LIMIT, body).await.expect("the test ends") });
    runtime.shutdown_timeout(Duration::from_millis(100));
}

/// Runs a test on one thread, whose log it reads.
pub(crate) fn test_with_log<F: Future<Output = ()>>(body: impl FnOnce(Log) -> F) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LIMIT, body(log)).await.expect("the test ends") });
    runtime.shutdown_timeout(Duration::from_millis(100));
}

/// What servers of a test have logged.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Waits until a line contains a text.
    pub(crate) async fn expect(&self, text: &str) {
        until(|| String::from_utf8_lossy(&self.0.lock().unwrap()).contains(text)).await;
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::Write::write(&mut *self.0.lock().unwrap(), bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Waits until something is so, and lets other tasks of the thread go on.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A server for the keys 2 and 3.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<(), ShellError>>,
}

impl Server {
    pub(crate) fn start(settings: ServerSettings) -> Self {
        Self::start_as(settings, None)
    }

    /// A server whose programs run as this user.
    pub(crate) fn start_as(settings: ServerSettings, user: Option<&str>) -> Self {
        Self::start_with(settings, user, None)
    }

    /// A server that gives up a connection without a packet after this time.
    pub(crate) fn start_noticing(settings: ServerSettings, silence: Duration) -> Self {
        Self::start_with(settings, None, Some(silence))
    }

    fn start_with(settings: ServerSettings, user: Option<&str>, silence: Option<Duration>) -> Self {
        let guest = Guest { user: user.map(str::to_owned), label: "a test".into() };
        let known = [2, 3].map(|number| client_key(number).public_key());
        let admit: Admit = Arc::new(move |key| known.contains(key).then(|| guest.clone()));
        let name = DomainName::new(NAME).unwrap();
        let mut config = ServerConfig::new(server_key(), Extension::default(), name);
        configure(&mut config, &admit, &settings);
        config.message.idle_timeout = silence.or(config.message.idle_timeout);
        let endpoint = Endpoint::server("127.0.0.1:0".parse().unwrap(), config, RandomNonces).unwrap();
        let address = endpoint.address();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(serve(endpoint, admit, settings, async { _ = stopped.await }));
        Self { address, stop: Some(stop), serving }
    }

    pub(crate) async fn stop(mut self) {
        _ = self.stop.take().unwrap().send(());
        self.serving.await.unwrap().unwrap();
    }

    pub(crate) fn client(&self, start: Start) -> Client {
        Client::start(self.address, 2, start)
    }

    /// A client with a terminal.
    pub(crate) fn terminal(&self, command: &str) -> Client {
        self.client(terminal(command))
    }
}

/// A server that does what the test writes.
pub(crate) fn bare_server() -> Endpoint {
    let name = DomainName::new(NAME).unwrap();
    let config = ServerConfig::new(server_key(), Extension::default(), name);
    Endpoint::server("127.0.0.1:0".parse().unwrap(), config, RandomNonces).unwrap()
}

/// A connection to a server by the key of this number.
pub(crate) fn connect(address: SocketAddr, key: u8) -> (Endpoint, Stream) {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap(), RandomNonces).unwrap();
    let stream = endpoint
        .connect(ClientConfig {
            identity: client_key(key),
            server: server_key().public_key(),
            server_extension: Extension::default(),
            name: DomainName::new(NAME).unwrap(),
            addresses: vec![address],
            extension: None,
            capabilities: Default::default(),
            message: Default::default(),
        })
        .unwrap();
    (endpoint, stream)
}

pub(crate) fn pipes(command: &str) -> Start {
    Start::Open { terminal: None, command: Some(command.into()), environment: Vec::new() }
}

pub(crate) fn terminal(command: &str) -> Start {
    Start::Open {
        terminal: Some((b"xterm-256color".to_vec(), WINDOW)),
        command: Some(command.into()),
        environment: Vec::new(),
    }
}

/// A client whose terminal or pipes the test holds.
pub(crate) struct Client {
    pub(crate) input: Option<DuplexStream>,
    output: DuplexStream,
    errors: DuplexStream,
    events: mpsc::Sender<LocalEvent>,
    running: JoinHandle<Result<Outcome, ShellError>>,
    seen: Vec<u8>,
    /// Where the next expected text may begin.
    expected: usize,
}

impl Client {
    pub(crate) fn start(address: SocketAddr, key: u8, start: Start) -> Self {
        Self::with(address, key, start, Duration::from_secs(5))
    }

    /// A client that notices soon that the server is silent.
    pub(crate) fn with(address: SocketAddr, key: u8, start: Start, silence: Duration) -> Self {
        let connect: Connect = Box::new(move || Box::pin(async move { Ok(connect(address, key)) }));
        let settings = ClientSettings {
            host: "test".into(),
            no_answer: "no server answers".into(),
            answer_within: LIMIT,
            silence,
            has_escapes: !matches!(start, Start::Open { terminal: None, .. }),
            is_raw: false,
        };
        Self::start_with(settings, connect, start)
    }

    pub(crate) fn start_with(settings: ClientSettings, connect: Connect, start: Start) -> Self {
        let ((input, local_input), (output, local_output)) = (duplex(1 << 16), duplex(1 << 16));
        let (errors, local_errors) = duplex(1 << 16);
        let streams = LocalStreams {
            input: Box::new(local_input),
            output: Box::new(local_output),
            errors: Box::new(local_errors),
        };
        let (events, received) = mpsc::channel(8);
        let running = tokio::spawn(run(settings, connect, start, streams, received));
        Self { input: Some(input), output, errors, events, running, seen: Vec::new(), expected: 0 }
    }

    pub(crate) async fn type_in(&mut self, text: &str) {
        self.input.as_mut().expect("the input is open").write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn event(&self, event: LocalEvent) {
        self.events.send(event).await.unwrap();
    }

    /// All that was written so far.
    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Reads output until a text comes, after the texts that were expected before.
    pub(crate) async fn expect(&mut self, text: &str) {
        loop {
            let mut windows = self.seen[self.expected..].windows(text.len());
            if let Some(at) = windows.position(|window| window == text.as_bytes()) {
                self.expected += at + text.len();
                return;
            }
            let mut piece = [0; 4096];
            let count = timeout(Duration::from_secs(30), self.output.read(&mut piece)).await;
            let count = count.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.seen())).unwrap();
            assert!(count > 0, "the output ended without {text:?}: {:?}", self.seen());
            self.seen.extend_from_slice(&piece[..count]);
        }
    }

    /// Types Ctrl-C until the output contains a text: a shell may just be between two programs.
    pub(crate) async fn interrupt_until(&mut self, text: &str) {
        loop {
            self.type_in("\x03").await;
            if timeout(Duration::from_millis(300), self.expect(text)).await.is_ok() {
                return;
            }
        }
    }

    /// The reports and errors, until they contain a text.
    pub(crate) async fn expect_error(&mut self, text: &str) {
        let mut seen = String::new();
        while !seen.contains(text) {
            let mut piece = [0; 4096];
            let count = self.errors.read(&mut piece).await.unwrap();
            assert!(count > 0, "the errors ended without {text:?}: {seen:?}");
            seen += &String::from_utf8_lossy(&piece[..count]);
        }
    }

    /// Ends the input and reads everything; how the client ended, its output and its errors.
    pub(crate) async fn finish(mut self) -> (Result<Outcome, ShellError>, Vec<u8>, Vec<u8>) {
        drop(self.input.take());
        self.wait().await
    }

    /// Reads everything until the client ends.
    pub(crate) async fn wait(self) -> (Result<Outcome, ShellError>, Vec<u8>, Vec<u8>) {
        let Self { input, mut output, mut errors, running, seen: mut all, .. } = self;
        let mut wrong = Vec::new();
        let (one, other) = tokio::join!(output.read_to_end(&mut all), errors.read_to_end(&mut wrong));
        one.unwrap();
        other.unwrap();
        let outcome = running.await.unwrap();
        drop(input);
        (outcome, all, wrong)
    }

    /// Waits until the client ends, and reads nothing of what it writes.
    pub(crate) async fn end_unread(self) -> Result<Outcome, ShellError> {
        self.running.await.unwrap()
    }

    /// Stops the client without a farewell, as `kill -9` does. Its socket lives on, silently.
    pub(crate) async fn kill(self) {
        self.running.abort();
        _ = self.running.await;
    }
}

/// A relay of UDP whose client address can change and that can go silent.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    silent: Arc<AtomicBool>,
    moved: Arc<Notify>,
}

impl Relay {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let address = front.local_addr().unwrap();
        let (silent, moved) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        tokio::spawn(relay(front, server, silent.clone(), moved.clone()));
        Self { address, silent, moved }
    }

    /// Drops all packets from now on, or none.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    /// Has the server see the clients at other addresses.
    pub(crate) fn change_addresses(&self) {
        self.moved.notify_one();
    }
}

async fn relay(front: Arc<UdpSocket>, server: SocketAddr, silent: Arc<AtomicBool>, moved: Arc<Notify>) {
    let mut backs = HashMap::<SocketAddr, (Arc<UdpSocket>, JoinHandle<()>)>::new();
    let mut datagram = [0; 2048];
    loop {
        let (length, client) = tokio::select! {
            received = front.recv_from(&mut datagram) => received.unwrap(),
            () = moved.notified() => {
                backs.drain().for_each(|(_, (_, task))| task.abort());
                continue;
            }
        };
        if silent.load(Ordering::SeqCst) {
            continue;
        }
        if let Entry::Vacant(place) = backs.entry(client) {
            let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
            let task = tokio::spawn(answers(back.clone(), front.clone(), client, silent.clone()));
            place.insert((back, task));
        }
        _ = backs[&client].0.send_to(&datagram[..length], server).await;
    }
}

async fn answers(back: Arc<UdpSocket>, front: Arc<UdpSocket>, client: SocketAddr, silent: Arc<AtomicBool>) {
    let mut datagram = [0; 2048];
    while let Ok(length) = back.recv(&mut datagram).await {
        if !silent.load(Ordering::SeqCst) {
            _ = front.send_to(&datagram[..length], client).await;
        }
    }
}

/// A stream's frames, for peers that the tests write.
pub(crate) async fn read_some(stream: &mut Stream) -> Vec<u8> {
    let mut bytes = vec![0; 70_000];
    let count = stream.read(&mut bytes).await.unwrap_or(0);
    bytes.truncate(count);
    bytes
}
