//! `kendall curve`: keys, servers and clients of CurveCP, in the manner of NaCl's tools.

mod console;
mod copy;
mod host;
mod run;
mod serve_files;
mod serve_shell;
mod serve_tunnel;
mod shell;
mod tunnel;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::num::NonZero;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use clap::{Args, Subcommand};
use kendall_curve::curvecp::congestion::Algorithm;
use kendall_curve::curvecp::{
    ClientConfig, DomainName, Extension, MessageConfig, PublicKey, SecretKey, ServerConfig,
};
use kendall_curve::{
    Connection, CurveError, Descriptors, Endpoint, KeyDirectory, RandomNonces, ServerGroup, Stream,
    copy_standard_streams, run_program, system_random,
};
use tokio::process;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::console::address;
use crate::copy::{Copy, copy};
use crate::host::duration;
use crate::run::{run, signalled};
use crate::serve_files::{ServeFiles, serve_files};
use crate::serve_shell::{ServeShell, serve_shell};
use crate::serve_tunnel::{ServeTunnel, serve_tunnel};
use crate::shell::{Shell, shell};
use crate::tunnel::{Tunnel, tunnel};
use kendall_stdio::{note, out};

/// How long a client that has received everything waits for a peer without its confirmation: the server may be NaCl's, which does
/// not confirm the end.
const TIME_WAIT: Duration = Duration::from_secs(1);

/// The subcommands of `kendall curve`.
#[derive(Args)]
pub struct Curve {
    #[command(subcommand)]
    command: Command,
}

impl Curve {
    /// Whether the command is a server of remote work, which logs the actions of each client.
    pub fn is_remote_server(&self) -> bool {
        matches!(self.command, Command::ServeFiles(_) | Command::ServeShell(_) | Command::ServeTunnel(_))
    }
}

#[derive(Subcommand)]
enum Command {
    /// Create a key directory: kendall curve keygen serverkey
    Keygen {
        /// The directory, which must not exist yet
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the public key of a key directory in hexadecimal digits
    Show {
        /// The directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Connect standard input and output to a server
    Cat(Target),
    /// Run a program for each connection to a server, with the connection as its standard input and output
    Serve(Serve),
    /// Connect to a server and run a program with the connection as its standard input and output
    Connect(Connect),
    // Here and below, help is in the subcommand's own file: a documentation comment here would replace the long one.
    Copy(Copy),
    ServeFiles(ServeFiles),
    Shell(Box<Shell>),
    ServeShell(ServeShell),
    Tunnel(Tunnel),
    ServeTunnel(ServeTunnel),
}

/// A server, as a client has to know it.
#[derive(Args)]
struct Target {
    /// The server's domain name
    name: String,

    /// The server's public key, 64 hexadecimal digits
    #[arg(value_parser = public_key)]
    key: PublicKey,

    /// The server's address: an IP address or a host, and a port. All addresses of a host are tried, IPv4 and IPv6, up to eight,
    /// each a quarter of a second after the one before
    #[arg(value_name = "ADDR")]
    address: String,

    /// The server's extension, 32 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = extension, default_value = "00000000000000000000000000000000")]
    extension: Extension,

    /// Identify to the server by the key in this directory [default: a fresh key]
    #[arg(long, value_name = "DIR")]
    key_directory: Option<PathBuf>,

    /// Congestion control of this side: cubic, bbr, chicago (the reference's) or chicago-polled (with its timers
    /// of a millisecond, too)
    #[arg(long, value_name = "ALGORITHM", default_value_t)]
    congestion: Algorithm,

    /// Give up if no server has answered after this time
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    timeout: Duration,
}

#[derive(Args)]
struct Serve {
    /// The domain name that clients must give
    name: String,

    /// The directory of the server's key
    #[arg(value_name = "KEYDIR")]
    key_directory: PathBuf,

    /// Listen on this address; port 0 takes a free one
    #[arg(value_name = "ADDR", value_parser = address)]
    listen: SocketAddr,

    /// The extension that clients must give, 32 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = extension, default_value = "00000000000000000000000000000000")]
    extension: Extension,

    /// The most programs that run at once; further clients wait
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    programs: u16,

    /// Threads that handle packets, each with its own socket at the address: one per processor for many busy clients
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZero<usize>,

    /// Serve this public key alone; may be repeated [default: all clients]
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    allow: Vec<PublicKey>,

    /// Congestion control of this side: cubic, bbr, chicago (the reference's) or chicago-polled (with its timers
    /// of a millisecond, too)
    #[arg(long, value_name = "ALGORITHM", default_value_t)]
    congestion: Algorithm,

    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
struct Connect {
    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    program: Program,
}

/// A program to run on a connection. Its environment names the peer: CURVECPREMOTEKEY, CURVECPREMOTEIP and
/// CURVECPREMOTEPORT.
#[derive(Args)]
struct Program {
    /// Connect descriptors 6 (to read) and 7 (to write) in place of standard input and output
    #[arg(long)]
    ucspi: bool,

    /// The program and its arguments, after --
    #[arg(value_name = "CMD", last = true, required = true, num_args = 1..)]
    command: Vec<String>,
}

impl Program {
    fn descriptors(&self) -> Descriptors {
        if self.ucspi { Descriptors::Ucspi } else { Descriptors::Standard }
    }

    fn command(&self) -> process::Command {
        let mut command = process::Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }
}

/// Runs a subcommand; its exit status.
///
/// # Errors
/// Returns errors for the user.
pub fn curve(curve: Curve) -> anyhow::Result<ExitCode> {
    match curve.command {
        Command::Keygen { directory } => show(KeyDirectory::create(&directory)?.public_key()),
        Command::Show { directory } => show(KeyDirectory::public_key_in(&directory)?),
        Command::Cat(target) => run(unless_signalled(cat(target))),
        Command::Serve(options) => run(serve(options)),
        Command::Connect(options) => run(unless_signalled(connect(options))),
        Command::Copy(options) => copy(options),
        Command::ServeFiles(options) => serve_files(options),
        Command::Shell(options) => shell(*options),
        Command::ServeShell(options) => serve_shell(options),
        Command::Tunnel(options) => tunnel(options),
        Command::ServeTunnel(options) => serve_tunnel(options),
    }
}

fn show(key: PublicKey) -> anyhow::Result<ExitCode> {
    out(&format!("{key:?}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs until the work is done or a signal comes: then the connection ends in failure and its program is killed.
async fn unless_signalled(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::select! {
        done = work => done,
        code = signalled() => code,
    }
}

async fn cat(target: Target) -> anyhow::Result<ExitCode> {
    let (_endpoint, stream) = open(&target)?;
    let connection = stream.connection().clone();
    tokio::select! {
        silent = silence(&target, &connection) => return Err(silent),
        copied = copy_standard_streams(stream) => copied?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn connect(options: Connect) -> anyhow::Result<ExitCode> {
    let (endpoint, stream) = open(&options.target)?;
    let connection = stream.connection().clone();
    let (command, descriptors) = (options.program.command(), options.program.descriptors());
    let status = tokio::select! {
        silent = silence(&options.target, &connection) => return Err(silent),
        status = run_program(stream, command, descriptors, endpoint.address()) => status?,
    };
    // A program that ended before the server answered.
    if !timeout(options.target.timeout, connection.established()).await.unwrap_or(false) {
        return Err(no_answer(&options.target));
    }
    endpoint.idle().await;
    Ok(code(status))
}

/// Ends only where no server answers in time.
async fn silence(target: &Target, connection: &Connection) -> anyhow::Error {
    if let Ok(true) = timeout(target.timeout, connection.established()).await {
        std::future::pending::<()>().await;
    }
    no_answer(target)
}

/// What to check where no server answers: a server is silent to clients that are wrong about it.
fn no_answer(target: &Target) -> anyhow::Error {
    let Target { name, key, address, timeout, .. } = target;
    anyhow!(
        "no server answered at {address} within {timeout:?}. A server of CurveCP is silent to a client that names another \
         public key, domain name or extension, or that it does not allow: compare {key:?} with what `kendall curve show` \
         prints there, and {name} with the server's name; and check that UDP reaches {address}"
    )
}

async fn serve(options: Serve) -> anyhow::Result<ExitCode> {
    let keys = KeyDirectory::open(&options.key_directory)?;
    let name = DomainName::new(&options.name)?;
    let config = || {
        let mut config = ServerConfig::new(keys.secret().clone(), options.extension, name.clone());
        config.message.algorithm = options.congestion;
        let allowed = options.allow.clone();
        if !allowed.is_empty() {
            config.authorise = Some(Box::new(move |key, _| allowed.contains(key)));
        }
        config
    };
    let server = ServerGroup::bind(options.listen, options.threads, config, || keys.nonces())?;
    note(&format!("kendall: {} listens on {}", options.name, server.address()));
    let places = Arc::new(Semaphore::new(options.programs.into()));
    let mut programs = JoinSet::new();
    let mut signalled = pin!(signalled());
    let ended = loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
            (place, server.accept().await)
        };
        let (place, accepted) = tokio::select! {
            code = &mut signalled => break code,
            Some(_) = programs.join_next() => continue,
            accepted = accepted => accepted,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => break Err(error.into()),
        };
        let (command, descriptors, local) =
            (options.program.command(), options.program.descriptors(), server.address());
        programs.spawn(async move {
            if let Err(error) = run_program(stream, command, descriptors, local).await {
                note(&format!("kendall: {error}"));
            }
            drop(place);
        });
    };
    // Kills the programs, which would otherwise outlive the server.
    programs.shutdown().await;
    ended
}

/// Opens a connection to a server.
fn open(target: &Target) -> anyhow::Result<(Endpoint, Stream)> {
    let unknown = || format!("\"{}\" is not a valid address: write HOST:PORT", target.address);
    let mut addresses: Vec<SocketAddr> = target.address.to_socket_addrs().with_context(unknown)?.collect();
    ensure!(!addresses.is_empty(), unknown());
    addresses.truncate(8);
    let (identity, endpoint) = match &target.key_directory {
        Some(directory) => {
            let keys = KeyDirectory::open(directory)?;
            let nonces = keys.nonces()?;
            (keys.secret().clone(), bind(&mut addresses, |any| Endpoint::client(any, nonces))?)
        }
        None => {
            let identity = SecretKey::generate(&mut system_random());
            (identity, bind(&mut addresses, |any| Endpoint::client(any, RandomNonces))?)
        }
    };
    let message =
        MessageConfig { time_wait: TIME_WAIT, algorithm: target.congestion, ..MessageConfig::default() };
    let stream = endpoint.connect(ClientConfig {
        identity,
        server: target.key,
        server_extension: target.extension,
        name: DomainName::new(&target.name)?,
        addresses,
        extension: None,
        capabilities: Default::default(),
        message,
    })?;
    Ok((endpoint, stream))
}

/// Binds a socket that reaches the addresses, and drops those that it cannot reach: on a machine without IPv6, those of
/// IPv6.
fn bind<E>(
    addresses: &mut Vec<SocketAddr>,
    client: impl FnOnce(SocketAddr) -> Result<E, CurveError>,
) -> anyhow::Result<E> {
    let unspecified = |ip: IpAddr| SocketAddr::new(ip, 0);
    let [v4, v6] = [unspecified(Ipv4Addr::UNSPECIFIED.into()), unspecified(Ipv6Addr::UNSPECIFIED.into())];
    if addresses.iter().all(SocketAddr::is_ipv4) {
        return Ok(client(v4)?);
    }
    if addresses.iter().any(SocketAddr::is_ipv4) && UdpSocket::bind(v6).is_err() {
        addresses.retain(SocketAddr::is_ipv4);
        return Ok(client(v4)?);
    }
    Ok(client(v6)?)
}

/// An exit status as shells have it.
fn code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let signalled = || 128 + status.signal().unwrap_or(0);
    ExitCode::from(u8::try_from(status.code().unwrap_or_else(signalled)).unwrap_or(1))
}

fn public_key(digits: &str) -> anyhow::Result<PublicKey> {
    Ok(PublicKey(bytes(digits)?))
}

fn extension(digits: &str) -> anyhow::Result<Extension> {
    Ok(Extension(bytes(digits)?))
}

fn bytes<const N: usize>(digits: &str) -> anyhow::Result<[u8; N]> {
    ensure!(
        digits.len() == 2 * N && digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "write {} hexadecimal digits",
        2 * N
    );
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).expect("digits are ASCII");
        *byte = u8::from_str_radix(pair, 16).map_err(io::Error::other)?;
    }
    Ok(bytes)
}
