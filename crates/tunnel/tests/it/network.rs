//! A server, two clients and a network behind the server, each in a namespace.
//!
//! ```text
//! ann 192.0.2.2 ──── 192.0.2.1    server    203.0.113.1 ──── 203.0.113.2 lan
//! bob 198.51.100.2 ─ 198.51.100.1
//! ```

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use kendall_curve::KeyDirectory;
use kendall_remote::{AuthorizedKeys, Host};
use kendall_testbed::{LIMIT, TempDir, tempdir};
use kendall_tunnel::{ClientSettings, Pool, ServerSettings, TunnelError, connect, serve};
use nix::sched::{CloneFlags, setns};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The program that shows whether namespaces with TUN devices can be had.
pub(crate) const PROBE: [&str; 7] = ["ip", "tuntap", "add", "mode", "tun", "name", "probe0"];

pub(crate) const POOL: &str = "10.77.0.0/24";
pub(crate) const POOL6: &str = "fd77:1::/64";
pub(crate) const SERVER: &str = "10.77.0.1";
pub(crate) const SERVER6: &str = "fd77:1::1";

const NAME: &str = "server.example";

pub(crate) struct Network {
    folder: TempDir,
}

/// A server or a client on its own thread, in its namespace.
pub(crate) struct End {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<Result<(), TunnelError>>>,
    /// What a client has reported.
    pub(crate) reports: mpsc::Receiver<String>,
}

impl Network {
    pub(crate) fn new() -> Self {
        let folder = tempdir().unwrap();
        sh("for name in server ann bob lan; do ip netns add $name; ip -n $name link set lo up; done
            pair() {
                ip link add $3 netns server type veth peer name eth netns $1
                ip -n server addr add $4 dev $3; ip -n server link set $3 up
                ip -n $1 addr add $2 dev eth; ip -n $1 link set eth up
            }
            pair ann 192.0.2.2/24 ann 192.0.2.1/24
            pair bob 198.51.100.2/24 bob 198.51.100.1/24
            pair lan 203.0.113.2/24 lan 203.0.113.1/24
            ip -n lan route add default via 203.0.113.1
            ip netns exec server sysctl -qw net.ipv4.ip_forward=1");
        let network = Self { folder };
        let key = |name: &str| KeyDirectory::create(&network.path(name)).unwrap().public_key();
        key("server");
        let lines: Vec<_> = ["ann", "bob"].map(|name| format!("{:?} {name}\n", key(name))).into();
        fs::write(network.path("authorized"), lines.concat()).unwrap();
        fs::set_permissions(network.path("authorized"), fs::Permissions::from_mode(0o600)).unwrap();
        network
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        Path::join(self.folder.path(), name)
    }

    pub(crate) fn keys(&self, name: &str) -> KeyDirectory {
        KeyDirectory::open(&self.path(name)).unwrap()
    }

    pub(crate) fn host(&self, client: &str) -> Host {
        let address = if client == "bob" { "198.51.100.1:7000" } else { "192.0.2.1:7000" };
        let key = self.keys("server").public_key();
        Host { name: NAME.into(), key, address: address.into(), key_directory: None }
    }

    /// A server that listens.
    pub(crate) fn serve(&self, client_to_client: bool) -> End {
        let settings = ServerSettings {
            name: NAME.into(),
            keys: self.keys("server"),
            listen: "0.0.0.0:7000".parse().unwrap(),
            authorized: Arc::new(AuthorizedKeys::open(&self.path("authorized")).unwrap()),
            pool: Pool::new(POOL.parse().unwrap(), POOL6.parse().ok()).unwrap(),
            addresses: self.path("addresses"),
            device: "tun".into(),
            mtu: 1500,
            most: 10,
            client_to_client,
        };
        let end = start("server", |report, stop| async move {
            serve(settings, |address, _| report.send(address.to_string()).unwrap(), stop).await
        });
        end.report("");
        end
    }

    /// A client whose tunnel is up.
    pub(crate) fn connect(&self, name: &str, routes: &[&str]) -> End {
        let end = self.connecting(name, routes);
        end.report("is up");
        end
    }

    pub(crate) fn connecting(&self, name: &str, routes: &[&str]) -> End {
        let settings = ClientSettings {
            host: self.host(name),
            keys: self.keys(name),
            device: "tun".into(),
            routes: routes.iter().map(|route| route.parse().unwrap()).collect(),
            timeout: LIMIT,
        };
        start(name, |report, stop| async move {
            connect(settings, |line| _ = report.send(line.to_owned()), stop).await
        })
    }
}

impl End {
    /// Waits for a report with this in it.
    pub(crate) fn report(&self, wanted: &str) -> String {
        let begun = Instant::now();
        loop {
            let report = self.reports.recv_timeout(LIMIT.saturating_sub(begun.elapsed()));
            let report = report.unwrap_or_else(|_| panic!("no report of \"{wanted}\""));
            if report.contains(wanted) {
                return report;
            }
        }
    }

    /// Waits until it fails, and returns the error.
    pub(crate) fn failure(mut self) -> TunnelError {
        self.thread.take().unwrap().join().unwrap().unwrap_err()
    }

    /// Its error.
    pub(crate) fn end(mut self) -> Result<(), TunnelError> {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Starts a server or a client in its namespace.
fn start<F: Future<Output = Result<(), TunnelError>>>(
    namespace: &str,
    work: impl FnOnce(mpsc::Sender<String>, Stop) -> F + Send + 'static,
) -> End {
    let (report, reports) = mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    let thread = in_namespace(namespace, move |runtime| {
        let stop: Stop = Box::pin(async { _ = stopped.await });
        let done = runtime.block_on(work(report, stop));
        runtime.shutdown_timeout(Duration::from_secs(1));
        if let Err(error) = &done {
            eprintln!("{error}");
        }
        done
    });
    End { stop: Some(stop), thread: Some(thread), reports }
}

type Stop = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A thread in a namespace, with a runtime to work on.
pub(crate) fn in_namespace<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(Runtime) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let namespace = File::open(format!("/run/netns/{name}")).unwrap();
    thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        work(tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap())
    })
}

/// Runs a line of shell that has to succeed; what it printed.
pub(crate) fn sh(line: &str) -> String {
    let Output { status, stdout, stderr } = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(status.success(), "{line}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Whether a ping with this many bytes is answered.
pub(crate) fn answers(from: &str, to: &str, bytes: u32) -> bool {
    let line = format!("ip netns exec {from} ping -c 1 -W 2 -s {bytes} {to}");
    Command::new("sh").args(["-c", &line]).output().unwrap().status.success()
}

/// Waits until a ping is answered.
pub(crate) fn wait_for_answer(from: &str, to: &str) {
    kendall_testbed::wait_until(&format!("{to} answers {from}"), || answers(from, to, 56));
}
