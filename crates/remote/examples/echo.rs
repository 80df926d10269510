//! How long a key takes from a terminal to its echo: over `kendall curve shell`'s client and server, and over ssh.
//!
//! `cargo run --release -p kendall-remote --example echo [KEYS [ROUNDS]]`. Both connect over the loopback interface to a terminal in raw
//! mode on which `cat` runs, and take turns. ssh needs /usr/sbin/sshd, which gets a port, keys and a configuration of its own.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces};
use kendall_remote::shell::protocol::Window;
use kendall_remote::shell::{
    Admit, ClientSettings, Connect, Guest, LocalStreams, RawMode, ServerSettings, Start, configure,
    open_again, run, serve,
};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

const NAME: &str = "server.example";
/// What runs at the far end.
const CAT: &str = "stty raw -echo; echo ready; exec cat";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("server") => block_on(server()),
        Some("client") => block_on(client(&arguments[1])),
        _ => {
            let number = |index: usize, usual| arguments.get(index).map_or(Ok(usual), |text| text.parse());
            measure(number(0, 500)?, number(1, 9)?)
        }
    }
}

fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

async fn server() -> Result<()> {
    let admit: Admit = Arc::new(|_| Some(Guest { user: None, label: "benchmark".into() }));
    let mut config =
        ServerConfig::new(SecretKey::from_bytes([1; 32]), Extension::default(), DomainName::new(NAME)?);
    let settings = ServerSettings::default();
    configure(&mut config, &admit, &settings);
    let endpoint = Endpoint::server("127.0.0.1:0".parse()?, config, RandomNonces)?;
    println!("{}", endpoint.address());
    serve(endpoint, admit, settings, std::future::pending()).await?;
    Ok(())
}

/// The client as the command line has it.
async fn client(address: &str) -> Result<()> {
    let address = address.parse()?;
    let connect: Connect = Box::new(move || {
        Box::pin(async move {
            let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into(), RandomNonces)?;
            let stream = endpoint.connect(ClientConfig {
                identity: SecretKey::from_bytes([2; 32]),
                server: SecretKey::from_bytes([1; 32]).public_key(),
                server_extension: Extension::default(),
                name: DomainName::new(NAME).expect("the name is valid"),
                addresses: vec![address],
                extension: None,
                capabilities: Default::default(),
                message: Default::default(),
            })?;
            Ok((endpoint, stream))
        })
    });
    let settings = ClientSettings {
        host: "benchmark".into(),
        no_answer: "no server".into(),
        answer_within: Duration::from_secs(5),
        silence: Duration::from_secs(5),
        has_escapes: true,
        is_raw: true,
    };
    let _raw = RawMode::enter(std::io::stdin())?;
    let streams = LocalStreams {
        input: Box::new(open_again(0)?.0),
        output: Box::new(open_again(1)?.1),
        errors: Box::new(tokio::io::stderr()),
    };
    let start = Start::Open {
        terminal: Some((b"dumb".to_vec(), Window::default())),
        command: Some(CAT.into()),
        environment: Vec::new(),
    };
    let (_events, received) = tokio::sync::mpsc::channel(1);
    run(settings, connect, start, streams, received).await?;
    Ok(())
}

/// A program that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A program on a terminal whose other side is ours.
struct OnTerminal {
    terminal: std::fs::File,
    _program: Running,
}

impl OnTerminal {
    fn start(command: &mut Command) -> Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let terminal: OwnedFd = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        let mut modes = tcgetattr(&terminal)?;
        modes.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &modes)?;
        command.stdin(terminal.try_clone()?).stdout(terminal).stderr(Stdio::inherit());
        let program = Running(command.spawn()?);
        let mut on_terminal = Self { terminal: master.into(), _program: program };
        let mut seen = Vec::new();
        while !seen.windows(5).any(|window| window == b"ready") {
            let mut byte = [0];
            on_terminal.terminal.read_exact(&mut byte)?;
            seen.push(byte[0]);
        }
        // The rest of the line, and whatever is on its way.
        std::thread::sleep(Duration::from_millis(200));
        let _rest = on_terminal.terminal.read(&mut [0; 100])?;
        Ok(on_terminal)
    }

    /// Types keys, one after the echo of the other, with pauses; how long each took.
    fn type_keys(&mut self, count: usize) -> Result<Vec<Duration>> {
        let mut taken = Vec::with_capacity(count);
        for _ in 0..count {
            // As a typist does, so that nothing is still awake from the key before.
            std::thread::sleep(Duration::from_millis(2));
            let begun = Instant::now();
            self.terminal.write_all(b"x")?;
            let mut echo = [0];
            self.terminal.read_exact(&mut echo)?;
            assert_eq!(&echo, b"x", "the echo is what was typed");
            taken.push(begun.elapsed());
        }
        Ok(taken)
    }
}

/// Starts sshd with keys and a port of its own; the command that connects to it.
fn start_sshd(folder: &Path) -> Result<(Running, Command)> {
    let file = |name: &str| folder.join(name).display().to_string();
    for key in ["host", "client"] {
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &file(key)]).status()?;
        assert!(made.success(), "ssh-keygen makes a key");
    }
    std::fs::copy(file("client.pub"), file("authorized"))?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    std::fs::create_dir_all("/run/sshd").ok();
    let lines = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile \
         none\n",
        file("host"),
        file("authorized")
    );
    std::fs::write(file("config"), lines)?;
    let server = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f", &file("config")])
        .stderr(Stdio::null())
        .spawn()?;
    let server = Running(server);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut ssh = Command::new("ssh");
    ssh.args(["-tt", "-q", "-F", "none", "-i", &file("client"), "-p", &port.to_string()]);
    ssh.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "127.0.0.1", CAT]);
    Ok((server, ssh))
}

fn median(mut taken: Vec<Duration>) -> f64 {
    taken.sort();
    taken[taken.len() / 2].as_secs_f64() * 1e3
}

fn measure(keys: usize, rounds: usize) -> Result<()> {
    let own = env::current_exe()?;
    let mut server = Running(Command::new(&own).arg("server").stdout(Stdio::piped()).spawn()?);
    let mut address = String::new();
    BufReader::new(server.0.stdout.take().expect("it is piped")).read_line(&mut address)?;
    let mut ours = OnTerminal::start(Command::new(&own).args(["client", address.trim()]))?;
    let folder = tempfile::tempdir()?;
    let (_sshd, mut ssh) = start_sshd(folder.path())?;
    let mut theirs = OnTerminal::start(&mut ssh)?;
    let (mut our_medians, mut their_medians) = (Vec::new(), Vec::new());
    ours.type_keys(50)?;
    theirs.type_keys(50)?;
    for round in 1..=rounds {
        let (one, other) = (median(ours.type_keys(keys)?), median(theirs.type_keys(keys)?));
        println!("round {round}: kendall {one:.3} ms, ssh {other:.3} ms");
        our_medians.push(one);
        their_medians.push(other);
    }
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (one, other) = (middle(&mut our_medians), middle(&mut their_medians));
    println!(
        "median of {rounds} rounds of {keys} keys: kendall {one:.3} ms, ssh {other:.3} ms, difference {:+.3} ms",
        one - other
    );
    Ok(())
}
