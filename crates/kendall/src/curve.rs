//! `kendall curve`: keys, servers and clients of CurveCP, in the manner of NaCl's tools.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use kendall_curve::curvecp::{
    ClientConfig, DomainName, Extension, MessageConfig, PublicKey, SecretKey, ServerConfig,
};
use kendall_curve::{
    Descriptors, Endpoint, KeyDirectory, RandomNonces, Stream, copy_standard_streams, run_program,
    system_random,
};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

use crate::INTERRUPTED;
use crate::print::{note, out};
use crate::serve::address;

/// How long a client that has everything waits for a peer that did not hear so: the server may be NaCl's, which does not
/// confirm the end.
const TIME_WAIT: Duration = Duration::from_secs(1);

#[derive(Subcommand)]
pub(crate) enum Curve {
    /// Create a key directory: kendall curve keygen serverkey
    Keygen {
        /// The directory, which must not exist yet
        directory: PathBuf,
    },
    /// Print the public key of a key directory in hexadecimal digits
    Show {
        /// The directory
        directory: PathBuf,
    },
    /// Connect standard input and output to a server
    Cat(Target),
    /// Serve: run a program for each connection, with the connection as its standard input and output
    Serve(Serve),
    /// Connect to a server and run a program with the connection as its standard input and output
    Connect(Connect),
}

/// A server, as a client has to know it.
#[derive(Args)]
pub(crate) struct Target {
    /// The server's domain name
    name: String,

    /// The server's public key, 64 hexadecimal digits
    #[arg(value_parser = public_key)]
    key: PublicKey,

    /// Where it listens: an IP address or a host, and a port; of a host all addresses are tried, up to eight
    #[arg(value_name = "ADDR")]
    address: String,

    /// The server's extension, 32 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = extension, default_value = "00000000000000000000000000000000")]
    extension: Extension,

    /// Be known to the server by the key of this directory [default: a fresh key]
    #[arg(long, value_name = "DIR")]
    key_directory: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// The domain name that clients have to name
    name: String,

    /// The directory of the server's key
    key_directory: PathBuf,

    /// Listen on this address; port 0 takes a free one
    #[arg(value_name = "ADDR", value_parser = address)]
    listen: SocketAddr,

    /// The extension that clients have to name, 32 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = extension, default_value = "00000000000000000000000000000000")]
    extension: Extension,

    /// Programs that run at once, at most; further clients wait
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    programs: u16,

    /// Serve this public key alone; may be repeated [default: all clients]
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    allow: Vec<PublicKey>,

    #[command(flatten)]
    program: Program,
}

#[derive(Args)]
pub(crate) struct Connect {
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

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }
}

pub(crate) fn curve(curve: Curve) -> anyhow::Result<ExitCode> {
    match curve {
        Curve::Keygen { directory } => show(KeyDirectory::create(&directory)?.public_key()),
        Curve::Show { directory } => show(KeyDirectory::public_key_in(&directory)?),
        Curve::Cat(target) => until_signal(cat(target)),
        Curve::Serve(options) => until_signal(serve(options)),
        Curve::Connect(options) => until_signal(connect(options)),
    }
}

fn show(key: PublicKey) -> anyhow::Result<ExitCode> {
    out(&format!("{key:?}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs until the work is done, or Ctrl-C or SIGTERM comes: then connections end in failure and programs are killed.
fn until_signal(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::select! {
            done = work => done,
            _ = interrupt.recv() => Ok(ExitCode::from(INTERRUPTED)),
            _ = terminate.recv() => Ok(ExitCode::SUCCESS),
        }
    });
    // A read of standard input cannot be cancelled.
    runtime.shutdown_background();
    done
}

async fn cat(target: Target) -> anyhow::Result<ExitCode> {
    let (_endpoint, stream) = open(target)?;
    copy_standard_streams(stream).await?;
    Ok(ExitCode::SUCCESS)
}

async fn connect(options: Connect) -> anyhow::Result<ExitCode> {
    let (endpoint, stream) = open(options.target)?;
    let connection = stream.connection().clone();
    let (command, descriptors) = (options.program.command(), options.program.descriptors());
    let status = run_program(stream, command, descriptors, endpoint.address()).await?;
    if !connection.established().await {
        bail!("the server does not answer");
    }
    endpoint.idle().await;
    Ok(code(status))
}

async fn serve(options: Serve) -> anyhow::Result<ExitCode> {
    let keys = KeyDirectory::open(&options.key_directory)?;
    let mut config =
        ServerConfig::new(keys.secret().clone(), options.extension, DomainName::new(&options.name)?);
    if !options.allow.is_empty() {
        config.authorise = Some(Box::new(move |key, _| options.allow.contains(key)));
    }
    let server = Endpoint::server(options.listen, config, keys.nonces()?)?;
    note(&format!("kendall: {} listens on {}", options.name, server.address()));
    let places = Arc::new(Semaphore::new(options.programs.into()));
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let stream = server.accept().await?;
        let (command, descriptors, local) =
            (options.program.command(), options.program.descriptors(), server.address());
        tokio::spawn(async move {
            if let Err(error) = run_program(stream, command, descriptors, local).await {
                note(&format!("kendall: {error}"));
            }
            drop(place);
        });
    }
}

/// Opens a connection to a server.
fn open(target: Target) -> anyhow::Result<(Endpoint, Stream)> {
    let unknown = || format!("\"{}\" is not a valid address: write HOST:PORT", target.address);
    let mut addresses: Vec<SocketAddr> = target.address.to_socket_addrs().with_context(unknown)?.collect();
    // One socket reaches the addresses of one family.
    let first = *addresses.first().with_context(unknown)?;
    addresses.retain(|address| address.is_ipv4() == first.is_ipv4());
    addresses.truncate(8);
    let any = if first.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let any = any.parse().expect("this is an address");
    let (identity, endpoint) = match &target.key_directory {
        Some(directory) => {
            let keys = KeyDirectory::open(directory)?;
            (keys.secret().clone(), Endpoint::client(any, keys.nonces()?)?)
        }
        None => (SecretKey::generate(&mut system_random()), Endpoint::client(any, RandomNonces)?),
    };
    let stream = endpoint.connect(ClientConfig {
        identity,
        server: target.key,
        server_extension: target.extension,
        name: DomainName::new(&target.name)?,
        addresses,
        extension: None,
        capabilities: Default::default(),
        message: MessageConfig { time_wait: TIME_WAIT, ..MessageConfig::default() },
    })?;
    Ok((endpoint, stream))
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
