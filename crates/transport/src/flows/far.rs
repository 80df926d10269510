//! The server's end of the link: a server of each kind, and what all of them cost.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use std::time::Duration;

use kendall_record::clock::now_ns;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;

use super::near::{self, Plan, Task};
use super::peer::Wish;
use super::roam;
use super::source::Source;
use crate::kind::Kind;
use crate::server::{Options, Server};

/// The file of processor times, a line for each [`EVERY`]: the instant, then seconds of all threads.
pub(crate) const PROCESSOR_TIMES: &str = "far.txt";
/// What went wrong here, if anything.
pub(crate) const TROUBLE: &str = "far.error";
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// The port of the echoes beside the flows.
pub(crate) const ECHO_PORT: u16 = 5200;
const CONNECTIONS: usize = 256;

/// The port of a source.
pub(crate) fn port(source: Source) -> u16 {
    let place = Source::all().position(|one| one == source).expect("all are in it");
    ECHO_PORT + 1 + u16::try_from(place).expect("there are few")
}

/// The processor time of this process.
pub(crate) fn processor_s() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Serves until the process is ended.
pub(crate) fn run(plan: &Plan, at: IpAddr, folder: &Path) -> Result<(), String> {
    if let Task::Flows { moving_after: Some(_), .. } = plan.task {
        near::client_address().and_then(roam::expect)?;
    }
    // TCP last: the other end takes it as the sign that all are there.
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Tcp).chain([Kind::Tcp]);
    let ours = kinds.map(|kind| (kind, port(Source::Ours(kind))));
    for (kind, port) in [(plan.echo, ECHO_PORT)].into_iter().chain(ours) {
        let listen = SocketAddr::new(at, port);
        let threads = NonZeroUsize::MIN;
        let options = Options { kind, listen, connections: CONNECTIONS, threads, stamps: None };
        let server = Server::bind(&options).map_err(|error| error.to_string())?;
        let serve = move || server.run_until(std::future::pending());
        let spawned = thread::Builder::new().name(kind.name().into()).spawn(serve);
        spawned.map_err(|error| format!("cannot start a thread: {error}"))?;
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the far end: {error}"))?;
    runtime.block_on(async {
        let wish = match plan.task {
            Task::Flows { .. } => Wish::Zeros,
            Task::Handshakes { .. } => Wish::OneByte,
        };
        let mut programs = Vec::new();
        for peer in plan.peers() {
            programs.push(peer.serve(at, port(Source::Peer(peer)), wish, folder).await?);
        }
        let written = report_times(&folder.join(PROCESSOR_TIMES)).await;
        written.map_err(|error| format!("cannot write into {}: {error}", folder.display()))
    })
}

async fn report_times(file: &Path) -> io::Result<()> {
    let mut out = File::create(file)?;
    let mut tick = tokio::time::interval(EVERY);
    loop {
        tick.tick().await;
        writeln!(out, "{} {}", now_ns(), processor_s())?;
    }
}
