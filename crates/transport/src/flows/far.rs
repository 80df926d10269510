//! The server's end of the link: a server of each kind, and their total cost.

use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use kendall_flows::{ECHO_PORT, PROCESSOR_TIMES};
use kendall_record::clock::now_ns;
use tokio::runtime::Builder;

use super::end::{client_address, processor_s};
use super::peer::Wish;
use super::plan::{EVERY, Plan, Task};
use super::roam;
use super::source::Source;
use crate::kind::Kind;
use crate::server::{Server, TransportOptions};

const CONNECTIONS: usize = 256;

/// Serves until the process is ended.
pub(crate) fn run(plan: &Plan, at: IpAddr, folder: &Path) -> Result<(), String> {
    if let Task::Flows { moving_after: Some(_), .. } = plan.task {
        client_address().and_then(roam::expect)?;
    }
    // TCP last: the other end takes it as the sign that all servers are ready.
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Tcp).chain([Kind::Tcp]);
    let ours = kinds.map(|kind| (kind, Source::Ours(kind).address(at)));
    // The address of a tunnel does not exist yet.
    let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let within = plan
        .tunnels()
        .into_iter()
        .map(|tunnel| (Kind::Tcp, SocketAddr::new(any, Source::Tunnel(tunnel).port())));
    let echo = match plan.echo {
        Source::Ours(kind) => Some((kind, SocketAddr::new(at, ECHO_PORT))),
        Source::Peer(_) | Source::Tunnel(_) => None,
    };
    for (kind, listen) in echo.into_iter().chain(within).chain(ours) {
        let threads = NonZeroUsize::MIN;
        let options = TransportOptions { kind, listen, connections: CONNECTIONS, threads, stamps: None };
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
            let port = Source::Peer(peer).port();
            programs.push(peer.serve(at, port, wish, &plan.secrets).await?);
        }
        if let Source::Peer(peer) = plan.echo {
            let secrets = plan.echo_secrets();
            fs::create_dir(&secrets)
                .map_err(|error| format!("cannot make {}: {error}", secrets.display()))?;
            programs.push(peer.serve(at, ECHO_PORT, Wish::Echo, &secrets).await?);
        }
        for tunnel in plan.tunnels() {
            let outside = SocketAddr::new(at, Source::Tunnel(tunnel).port());
            programs.push(tunnel.serve(outside, &plan.secrets).await?);
            tunnel.use_congestion_control(&plan.congestion).await?;
        }
        let written = report_times(&folder.join(PROCESSOR_TIMES)).await;
        written.map_err(|error| format!("cannot write into {}: {error}", folder.display()))
    })
}

async fn report_times(file: &Path) -> io::Result<()> {
    let mut out = kendall_files::create(file)?;
    let mut tick = tokio::time::interval(EVERY);
    loop {
        tick.tick().await;
        writeln!(out, "{} {}", now_ns(), processor_s())?;
    }
}
