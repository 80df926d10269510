//! The client's end of the link: receives the flows, or repeats handshakes, and records its observations.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use kendall_flows::{ClientRecord, ECHO_PORT, LinkDirection, Tick};
use kendall_record::clock::now_ns;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};

use super::end::{client_address, processor_s};
use super::peer::{Peer, Wish};
use super::plan::{EVERY, Plan, Task};
use super::roam;
use super::source::{Flow, Source};
use super::tunnel;
use crate::kind::Kind;
use crate::protocol::{Head, MOST_BYTES, PIECE_BYTES, Pattern};
use crate::transport::{Connection, Duplex, Moved};

/// How long to wait for a server that does not listen yet.
const PATIENCE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(100);
/// The interval of polling within a measurement.
const POLL: Duration = Duration::from_millis(5);
/// The size of the echoes alongside the flows, and the pause between two.
const ECHO_BYTES: usize = 64;
const ECHO_EVERY: Duration = Duration::from_millis(50);
/// An echo that takes longer is lost.
const ECHO_LIMIT: Duration = Duration::from_secs(10);
/// A handshake that takes longer has failed.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

/// Runs the plan, and returns the observations.
pub(crate) fn run(plan: &Plan, to: IpAddr) -> Result<ClientRecord, String> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the near end: {error}"))?;
    runtime.block_on(async {
        // The last server that the far end starts.
        wait_for(Source::Ours(Kind::Tcp).address(to)).await?;
        match &plan.task {
            Task::Flows { flows, idle, lasting, moving_after } => {
                let mut tunnels = Vec::new();
                for tunnel in plan.tunnels() {
                    let source = Source::Tunnel(tunnel);
                    tunnels.push(tunnel.join(SocketAddr::new(to, source.port()), &plan.secrets).await?);
                    tunnel.use_congestion_control(&plan.congestion).await?;
                    wait_for(source.address(to)).await?;
                }
                let ends = Ends { to, plan };
                let seen = compete(flows, ends, *idle, *lasting, *moving_after).await;
                for program in tunnels {
                    tunnel::leave(program).await;
                }
                Ok(seen)
            }
            Task::Handshakes { source, count } => Ok(shake(*source, *count, to, &plan.secrets).await),
        }
    })
}

async fn wait_for(address: SocketAddr) -> Result<(), String> {
    let connected = async {
        while TcpStream::connect(address).await.is_err() {
            sleep(RETRY).await;
        }
    };
    timeout(PATIENCE, connected).await.map_err(|_| format!("nothing listens at {address}"))
}

/// The source of the flows, and the concurrent activities.
#[derive(Clone, Copy)]
struct Ends<'a> {
    to: IpAddr,
    plan: &'a Plan,
}

/// A rate of 0 would look like a flow that others starve.
fn never_began(number: usize, flow: &Flow, lasting: Duration) -> String {
    let had_s = lasting.saturating_sub(flow.after).as_secs_f64();
    format!(
        "flow {} ({}): no byte arrived in its {had_s:.1} s; increase --warmup, so that it has connected before",
        number + 1,
        flow.source
    )
}

async fn compete(
    flows: &[Flow],
    Ends { to, plan }: Ends<'_>,
    idle: Duration,
    lasting: Duration,
    moving_after: Option<Duration>,
) -> ClientRecord {
    // Becomes true once the client has another address.
    let (move_now, is_moved) = watch::channel(false);
    let mover = moving_after.map(|after| {
        tokio::spawn(async move {
            sleep(idle + after).await;
            let changed = client_address().and_then(roam::change);
            // No flow may be left to be notified.
            let _ = move_now.send(true);
            changed
        })
    });
    let echoes = tokio::spawn(echoes(plan.echo, to, plan.echo_secrets(), idle + lasting, is_moved.clone()));
    let arrived: Arc<Vec<AtomicU64>> = Arc::new(flows.iter().map(|_| AtomicU64::new(0)).collect());
    let mut running = Vec::new();
    for (number, flow) in flows.iter().copied().enumerate() {
        let (arrived, secrets, is_moved) = (arrived.clone(), plan.secrets.clone(), is_moved.clone());
        running.push(tokio::spawn(async move {
            sleep(idle + flow.after).await;
            let arrived = &arrived[number];
            let ended = match (flow.source, flow.way) {
                (Source::Peer(peer), _) => receive_from(peer, to, &secrets, arrived).await,
                (source, LinkDirection::Up) => upload(source, to, arrived, is_moved).await,
                (source, LinkDirection::Down) => receive(source, to, arrived, is_moved).await,
            };
            let why = ended.err().unwrap_or_else(|| "the server closed it".into());
            format!("flow {} ({}): {why}", number + 1, flow.source)
        }));
    }
    let from_ns = now_ns() + i64::try_from(idle.as_nanos()).unwrap_or(i64::MAX);
    let mut seen = ClientRecord { from_ns, ..ClientRecord::default() };
    let mut tick = interval(EVERY);
    let end_ns = from_ns.saturating_add(i64::try_from(lasting.as_nanos()).unwrap_or(i64::MAX));
    while now_ns() < end_ns {
        tick.tick().await;
        let bytes = arrived.iter().map(|bytes| bytes.load(Relaxed)).collect();
        seen.ticks.push(Tick { at_ns: now_ns(), processor_s: processor_s(), bytes });
    }
    for (number, (task, flow)) in running.into_iter().zip(flows).enumerate() {
        if task.is_finished() {
            seen.failures.extend(task.await.ok());
            continue;
        }
        task.abort();
        if arrived[number].load(Relaxed) == 0 {
            seen.failures.push(never_began(number, flow, lasting));
        }
    }
    if let Some(mover) = mover
        && let Ok(Err(why)) = mover.await
    {
        seen.failures.push(format!("the change of the address: {why}"));
    }
    match echoes.await {
        Ok(Ok(echoes)) => seen.echoes = echoes,
        Ok(Err(error)) => seen.failures.push(format!("the echoes alongside the flows: {error}")),
        Err(error) => seen.failures.push(format!("the echoes alongside the flows: {error}")),
    }
    seen
}

/// Receives a flow and counts its bytes, until it fails.
async fn receive(
    source: Source,
    to: IpAddr,
    arrived: &AtomicU64,
    is_moved: watch::Receiver<bool>,
) -> Result<(), String> {
    let mut connection = connect(source, to).await.map_err(|error| error.to_string())?;
    let asked = connection.stream.write_all(&Head::Send(MOST_BYTES).encode()).await;
    asked.map_err(|error| error.to_string())?;
    tokio::select! {
        ended = count(&mut connection.stream, arrived) => ended,
        why = follow(connection.moved, is_moved) => Err(why),
    }
}

/// Connects to the laboratory's server of a source.
async fn connect(source: Source, to: IpAddr) -> io::Result<Connection> {
    let kind = source.kind().ok_or(io::ErrorKind::Unsupported)?;
    kind.transport().connect(source.address(to)).await
}

/// Receives the bytes of a third-party program, and counts them.
async fn receive_from(peer: Peer, to: IpAddr, secrets: &Path, arrived: &AtomicU64) -> Result<(), String> {
    // Its server may take longer to start than kendall's.
    loop {
        if let Ok(mut command) = peer.client(to, Source::Peer(peer).port(), Wish::Zeros, secrets) {
            let mut child = start(&mut command)?;
            let mut output = child.stdout.take().expect("it is piped");
            count(&mut output, arrived).await?;
            if arrived.load(Relaxed) > 0 {
                return Ok(());
            }
        }
        sleep(RETRY).await;
    }
}

/// Sends a flow, and counts the bytes that have arrived according to the server's reports, until it fails.
async fn upload(
    source: Source,
    to: IpAddr,
    arrived: &AtomicU64,
    is_moved: watch::Receiver<bool>,
) -> Result<(), String> {
    let Connection { stream, moved, .. } = connect(source, to).await.map_err(|error| error.to_string())?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let send = async {
        writer.write_all(&Head::Take(MOST_BYTES).encode()).await?;
        let (pattern, mut place) = (Pattern::default(), 0);
        while place < MOST_BYTES {
            let piece = pattern.piece(place..MOST_BYTES);
            writer.write_all(piece).await?;
            place += piece.len() as u64;
        }
        writer.flush().await
    };
    let reports = async {
        loop {
            let mut report = [0; 8];
            reader.read_exact(&mut report).await?;
            let bytes = u64::from_be_bytes(report);
            arrived.store(bytes, Relaxed);
            if bytes == MOST_BYTES {
                return Ok(());
            }
        }
    };
    let both = async { tokio::try_join!(send, reports).map(drop) };
    tokio::select! {
        ended = both => ended.map_err(|error: io::Error| error.to_string()),
        why = follow(moved, is_moved) => Err(why),
    }
}

fn start(command: &mut tokio::process::Command) -> Result<Child, String> {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    piped.spawn().map_err(|error| error.to_string())
}

async fn count(stream: &mut (impl AsyncRead + Unpin), arrived: &AtomicU64) -> Result<(), String> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match stream.read(&mut piece).await {
            Ok(0) => return Ok(()),
            Ok(bytes) => _ = arrived.fetch_add(bytes as u64, Relaxed),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Moves a connection to the client's new address. Only returns if that fails, with the reason.
async fn follow(moved: Option<Moved>, mut is_moved: watch::Receiver<bool>) -> String {
    let changed = is_moved.wait_for(|is_moved| *is_moved).await.map(|_| ());
    if let (Ok(()), Some(moved)) = (changed, moved)
        && let Err(error) = moved()
    {
        return format!("it cannot follow the address: {error}");
    }
    std::future::pending().await
}

/// Sends echoes on one connection for this long.
async fn echoes(
    source: Source,
    to: IpAddr,
    secrets: PathBuf,
    lasting: Duration,
    is_moved: watch::Receiver<bool>,
) -> io::Result<Vec<(i64, Option<i64>)>> {
    // The program lives as long as its stream.
    let mut program = None;
    let (mut stream, head) = match source {
        Source::Peer(peer) => {
            let (stream, child) = answering(peer, to, &secrets).await?;
            program = Some(child);
            (stream, Vec::new())
        }
        Source::Ours(_) | Source::Tunnel(_) => {
            let kind = source.kind().ok_or(io::ErrorKind::Unsupported)?;
            let Connection { stream, moved, .. } = kind.transport().connect(source.echo_address(to)).await?;
            tokio::spawn(follow(moved, is_moved));
            (stream, Head::Echo(ECHO_BYTES as u64).encode().to_vec())
        }
    };
    let message = [head, vec![7; ECHO_BYTES]].concat();
    let (mut seen, from_ns) = (Vec::new(), now_ns());
    while now_ns() - from_ns < i64::try_from(lasting.as_nanos()).unwrap_or(i64::MAX) {
        let sent_ns = now_ns();
        let exchange = async {
            stream.write_all(&message).await?;
            stream.read_exact(&mut [0; ECHO_BYTES]).await
        };
        match timeout(ECHO_LIMIT, exchange).await {
            Ok(Ok(_)) => seen.push((sent_ns, Some(now_ns() - sent_ns))),
            Ok(Err(_)) | Err(_) => {
                seen.push((sent_ns, None));
                break;
            }
        }
        sleep(ECHO_EVERY).await;
    }
    drop(program);
    Ok(seen)
}

/// Starts a third-party program, and waits until its server echoes.
async fn answering(peer: Peer, to: IpAddr, secrets: &Path) -> io::Result<(Box<dyn Duplex>, Child)> {
    let from = tokio::time::Instant::now();
    loop {
        // Its server may take longer to start than kendall's.
        let answered = async {
            let mut command = peer.client(to, ECHO_PORT, Wish::Echo, secrets).map_err(io::Error::other)?;
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
            let mut child = command.spawn()?;
            let both = child.stdout.take().zip(child.stdin.take());
            let (output, input) = both.ok_or(io::ErrorKind::BrokenPipe)?;
            let mut stream = tokio::io::join(output, input);
            stream.write_all(&[7]).await?;
            stream.read_exact(&mut [0; 1]).await?;
            Ok((stream, child))
        };
        let answered: io::Result<_> =
            timeout(PATIENCE, answered).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match answered {
            Ok((stream, child)) => return Ok((Box::new(stream), child)),
            Err(error) if from.elapsed() > PATIENCE => return Err(error),
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// Connects repeatedly, with one byte each.
async fn shake(source: Source, count: u32, to: IpAddr, secrets: &Path) -> ClientRecord {
    let mut seen = ClientRecord::default();
    let from = tokio::time::Instant::now();
    // The packets that a tunnel's program sends before its other end exists wait for seconds, and do not belong to
    // a handshake.
    let mut is_ready = !matches!(source, Source::Tunnel(_));
    while seen.handshakes_ns.len() < count as usize && seen.failures.len() < 5 {
        let began_ns = now_ns();
        let ended = timeout(HANDSHAKE_LIMIT, one_byte(source, to, secrets)).await;
        match ended.unwrap_or_else(|_| Err("no answer in time".into())) {
            Ok(_) if !is_ready => is_ready = true,
            Ok(arrived_ns) => {
                if seen.handshakes_ns.is_empty() {
                    seen.from_ns = began_ns;
                }
                seen.handshakes_ns.push(arrived_ns - began_ns);
            }
            // A third-party server may not have started yet.
            Err(_) if seen.handshakes_ns.is_empty() && from.elapsed() < PATIENCE => sleep(RETRY).await,
            Err(why) => seen.failures.push(why),
        }
    }
    seen
}

/// Connects for a byte; returns when it arrived.
async fn one_byte(source: Source, to: IpAddr, secrets: &Path) -> Result<i64, String> {
    match source {
        Source::Ours(_) => exchange(source, to).await.map_err(|error| error.to_string()),
        Source::Tunnel(tunnel) => {
            let program = tunnel.join(SocketAddr::new(to, source.port()), secrets).await?;
            let arrived_ns = loop {
                match exchange(source, to).await {
                    // Its device does not exist yet.
                    Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => sleep(POLL).await,
                    ended => break ended.map_err(|error| error.to_string()),
                }
            };
            tunnel::leave(program).await;
            arrived_ns
        }
        Source::Peer(peer) => {
            let mut child = start(&mut peer.client(to, source.port(), Wish::OneByte, secrets)?)?;
            let mut output = child.stdout.take().expect("it is piped");
            let read = output.read_exact(&mut [0; 1]).await.map_err(|error| error.to_string());
            read.map(|_| now_ns())
        }
    }
}

/// Fetches a byte from the laboratory's server and ends the connection; returns when the byte arrived.
async fn exchange(source: Source, to: IpAddr) -> io::Result<i64> {
    let mut stream = connect(source, to).await?.stream;
    stream.write_all(&Head::Send(1).encode()).await?;
    stream.read_exact(&mut [0; 1]).await?;
    let arrived_ns = now_ns();
    stream.shutdown().await?;
    if let Source::Tunnel(_) = source {
        // The end of the connection must pass before the tunnel ends.
        let _ = timeout(PATIENCE, stream.read(&mut [0; 1])).await;
    }
    Ok(arrived_ns)
}
