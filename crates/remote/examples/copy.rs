//! How fast copies are on the loopback interface: `cargo run --release -p kendall-remote --example copy [ROUNDS [FOLDER]]`.
//!
//! 1. One file of 1 GB, beside the same bytes over a plain stream of `curve`, from memory into nothing.
//! 2. 10,000 files of 1 kB in 100 folders, beside `scp -r` with its own sshd (`tools/install bench` installs both).
//!
//! Clients are processes; times are from their start to their end. Each round measures all in turn, and a median over the rounds
//! (5) is printed. Files are in FOLDER, which is that of temporary files by default, and in the page cache.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kendall_curve::curvecp::{DomainName, Extension, ServerConfig};
use kendall_curve::{Endpoint, KeyDirectory};
use kendall_remote::copy::{Access, CopySettings, FilePolicy, FileServer, Progress, upload};
use kendall_remote::{AuthorizedKeys, Host, SILENCE_LIMIT, Sessions, dial, public_key, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

const NAME: &str = "server.example";
const LARGE: usize = 1_000_000_000;
const SMALL_FILES: usize = 10_000;
/// Bytes that the plain stream writes or reads at once.
const PIECE: usize = 256 << 10;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what @ ("raw" | "put"), rest @ ..] = &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..]
    {
        return tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?
            .block_on(client(what, rest));
    }
    let rounds: usize = arguments.first().map_or(Ok(5), |rounds| rounds.parse())?;
    let parent = arguments.get(1).map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(parent)?;
    let path = |name: &str| folder.path().join(name);
    let server = KeyDirectory::create(&path("server"))?;
    let me = KeyDirectory::create(&path("me"))?;
    fs::write(path("keys"), format!("{:?} bench", me.public_key()))?;
    fs::create_dir(path("served"))?;
    prepare(folder.path())?;

    let (raw, files) =
        (raw_server(server.clone())?, file_server(&path("served"), &path("keys"), server.clone())?);
    let run = |what: &str, address: SocketAddr, source: &str| -> Outcome<f64> {
        let begun = Instant::now();
        let status = Command::new(std::env::current_exe()?)
            .args([what, &format!("{:?}", server.public_key()), &address.to_string()])
            .args([path("me"), path(source)])
            .status()?;
        if !status.success() {
            return Err(format!("the client {what} failed").into());
        }
        Ok(begun.elapsed().as_secs_f64())
    };
    let ssh = Ssh::start(folder.path())?;
    let [mut plain, mut large, mut small, mut scp] = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        plain.push(run("raw", raw, "large")?);
        large.push(run("put", files, "large")?);
        fs::remove_file(path("served/large"))?;
        small.push(run("put", files, "small")?);
        fs::remove_dir_all(path("served/small"))?;
        if let Some(ssh) = &ssh {
            scp.push(ssh.copy(&path("small"), &path("served"))?);
            fs::remove_dir_all(path("served/small"))?;
        }
    }
    let ratios: Vec<f64> = plain.iter().zip(&large).map(|(plain, large)| plain / large).collect();
    let rate = |times: &[f64]| LARGE as f64 / 1e6 / median(times);
    println!("1 GB, plain stream of curve      {:>7.0} MB/s", rate(&plain));
    println!(
        "1 GB, one file                   {:>7.0} MB/s   {:.2} of the plain stream",
        rate(&large),
        median(&ratios)
    );
    println!("10,000 files of 1 kB             {:>7.0} files/s", SMALL_FILES as f64 / median(&small));
    if !scp.is_empty() {
        let ratios: Vec<f64> = scp.iter().zip(&small).map(|(scp, small)| scp / small).collect();
        let rate = SMALL_FILES as f64 / median(&scp);
        println!(
            "10,000 files of 1 kB, scp -r     {rate:>7.0} files/s   kendall is {:.1} times as fast",
            median(&ratios)
        );
    }
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Writes the files to copy; their bytes are pseudo-random, so that nothing can be compressed or left out as a hole.
fn prepare(folder: &Path) -> Outcome<()> {
    let mut state = 1_u64;
    let mut piece = vec![0; 1 << 20];
    for word in piece.as_chunks_mut::<8>().0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *word = state.to_le_bytes();
    }
    let mut file = File::create(folder.join("large"))?;
    let mut left = LARGE;
    while left > 0 {
        let most = left.min(piece.len());
        file.write_all(&piece[..most])?;
        left -= most;
    }
    for number in 0..SMALL_FILES {
        let inner = folder.join("small").join(format!("{:02}", number % 100));
        if number < 100 {
            fs::create_dir_all(&inner)?;
        }
        fs::write(inner.join(number.to_string()), &piece[number..number + 1000])?;
    }
    Ok(())
}

/// A server that reads what a client sends and answers with a byte; where it listens.
fn raw_server(keys: KeyDirectory) -> Outcome<SocketAddr> {
    let config = ServerConfig::new(keys.secret().clone(), Extension::default(), DomainName::new(NAME)?);
    on_runtime(move |bound| async move {
        let nonces = keys.nonces().expect("the directory is there");
        let endpoint = Endpoint::server(any(), config, nonces).expect("a port is free");
        _ = bound.send(endpoint.address());
        while let Ok(mut stream) = endpoint.accept().await {
            let mut piece = vec![0; PIECE];
            while !matches!(stream.read(&mut piece).await, Ok(0) | Err(_)) {}
            _ = stream.write_all(b".").await;
            _ = stream.shutdown().await;
            _ = stream.connection().closed().await;
        }
    })
}

fn file_server(folder: &Path, authorized: &Path, keys: KeyDirectory) -> Outcome<SocketAddr> {
    let policy = FilePolicy {
        access: Access::ReadWrite,
        allow_owner: false,
        allow_special_bits: false,
        silence_limit: SILENCE_LIMIT,
    };
    let files = FileServer::new(folder, policy)?;
    let authorized = Arc::new(AuthorizedKeys::open(authorized)?);
    let sessions = Sessions { name: NAME.into(), keys, listen: any(), authorized, most: 4, most_per_key: 4 };
    on_runtime(move |bound| async move {
        let session = move |stream, client: String, stop: kendall_remote::Stop| {
            let files = files.clone();
            async move { files.session(stream, &client, stop.requested()).await }
        };
        let bound = |address| _ = bound.send(address);
        _ = serve(sessions, bound, session, std::future::pending()).await;
    })
}

/// Runs a server in threads of its own until the process ends; where it listens.
fn on_runtime<F: Future<Output = ()>>(
    server: impl FnOnce(oneshot::Sender<SocketAddr>) -> F + Send + 'static,
) -> Outcome<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (bound, address) = oneshot::channel();
    thread::spawn(move || runtime.block_on(server(bound)));
    Ok(address.blocking_recv()?)
}

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A process that sends.
async fn client(what: &str, arguments: &[&str]) -> Outcome<()> {
    let [key, address, directory, source] = arguments else { return Err("started by hand".into()) };
    let key = public_key(key).ok_or("a key")?;
    let host = Host { name: NAME.into(), key, address: (*address).into(), key_directory: None };
    let mut dialled = dial(&host, &KeyDirectory::open(Path::new(directory))?).await?;
    let connection = dialled.connection().clone();
    if what == "put" {
        let (sources, progress) = (vec![source.into()], Progress::default());
        let report = upload(dialled.stream, sources, Vec::new(), CopySettings::default(), progress).await?;
        if report.failed > 0 {
            return Err(report.failures.join("\n").into());
        }
    } else {
        let (piece, mut left) = (vec![7; PIECE], LARGE);
        while left > 0 {
            left -= dialled.stream.write(&piece[..PIECE.min(left)]).await?;
        }
        dialled.stream.shutdown().await?;
        dialled.stream.read_to_end(&mut Vec::new()).await?;
    }
    connection.closed().await;
    Ok(())
}

/// An sshd of our own on a free port.
struct Ssh {
    server: Child,
    port: u16,
    key: String,
}

impl Ssh {
    fn start(folder: &Path) -> Outcome<Option<Self>> {
        let path = |name: &str| folder.join(name).display().to_string();
        let has = |program: &str| Command::new(program).arg("-V").stderr(Stdio::null()).status().is_ok();
        if !has("scp") || !Path::new("/usr/sbin/sshd").exists() {
            println!("scp or sshd is not installed: tools/install bench");
            return Ok(None);
        }
        for name in ["host_key", "client_key"] {
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &path(name)]).status()?;
        }
        fs::copy(path("client_key.pub"), path("ssh_authorized"))?;
        fs::create_dir_all("/run/sshd")?;
        let port = TcpListener::bind(any())?.local_addr()?.port();
        let option = |text: String| ["-o".to_owned(), text];
        let server = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", "/dev/null", "-p", &port.to_string(), "-h", &path("host_key")])
            .args(option("ListenAddress=127.0.0.1".into()))
            .args(option(format!("AuthorizedKeysFile={}", path("ssh_authorized"))))
            .args(option("StrictModes=no".into()))
            .args(option("PermitRootLogin=yes".into()))
            .args(option("UsePAM=no".into()))
            .args(option("Subsystem=sftp internal-sftp".into()))
            .stderr(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("sshd does not listen".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(Self { server, port, key: path("client_key") }))
    }

    fn copy(&self, source: &Path, target: &Path) -> Outcome<f64> {
        let begun = Instant::now();
        let status = Command::new("scp")
            .args(["-r", "-p", "-q", "-P", &self.port.to_string(), "-i", &self.key])
            .args([
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
                "-o",
                "LogLevel=ERROR",
            ])
            .arg(source)
            .arg(format!("127.0.0.1:{}", target.display()))
            .status()?;
        if !status.success() {
            return Err("scp failed".into());
        }
        Ok(begun.elapsed().as_secs_f64())
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        _ = self.server.kill();
        _ = self.server.wait();
    }
}
