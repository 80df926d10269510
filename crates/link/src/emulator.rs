//! The process that emulates a link. It sets up the link, forwards its packets, and ends when kendall asks for it or has ended.
//! It then ends every process that still runs at either end, so that nothing is left.

use std::fs;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::fs::MetadataExt;
use std::path::{Path as File, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use kendall_linkmodel::{Path, Settings};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid, getppid, setsid};

use crate::error::LinkError;
use crate::forward::{Direction, Done, Stop};
use crate::netem;
use crate::outcome::{DirectionOutcome, Outcome};
use crate::port::Port;
use crate::protocol::{Reply, Request, receive, send};
use crate::setup::{Between, LinkSetup, TOWARDS, set_up};
use crate::spool::{Logged, SPAN_NS, Spool, write_table};

/// Serves the requests on one stream and answers on the other, until the first ends. The process must have a single thread, and
/// is of no other use afterwards.
///
/// # Errors
/// Fails where the streams do.
pub fn emulate(mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    let kendall = getppid();
    stand_apart();
    let mut emulator = Emulator::default();
    let mut serve = || {
        while let Some(request) = receive(&mut from)? {
            let reply = emulator.answer(request).unwrap_or_else(|error| Reply::Refused(error.to_string()));
            send(&mut to, &reply)?;
        }
        Ok(())
    };
    let served = serve();
    // Also where kendall has been killed while it waited for an answer.
    if let Some(laid) = &emulator.laid {
        end_all_within(laid, kendall);
    }
    served
}

/// Leaves kendall's session, for two reasons. Ctrl-C at the terminal is for kendall, which then ends the link in good order. And
/// where the kernel shares the processor among sessions before threads (autogroups, sched(7)), the link's session gets priority.
fn stand_apart() {
    // An ordinary user may be denied both; packets then leave later, and that is measured.
    let _ = setsid();
    let _ = fs::write("/proc/self/autogroup", "-20");
}

#[derive(Default)]
struct Emulator {
    laid: Option<LinkSetup>,
    running: Option<Running>,
}

/// A link that forwards packets.
enum Running {
    /// Forwarded by threads of this process.
    Threads(Threads),
    /// Forwarded by the kernel, with these settings.
    Netem { up: Vec<Settings>, down: Vec<Settings> },
}

impl Emulator {
    fn answer(&mut self, request: Request) -> Result<Reply, LinkError> {
        match request {
            Request::Lay { back_end, congestion } => {
                let laid = self.laid.insert(set_up(back_end, congestion.as_deref())?);
                Ok(Reply::SetUp {
                    privilege: laid.privilege,
                    client: laid.client.as_raw_fd(),
                    server: laid.server.as_raw_fd(),
                    notes: laid.notes.clone(),
                })
            }
            Request::Start { up, down, seed, log } => {
                let Some(laid) = self.laid.as_ref().filter(|_| self.running.is_none()) else {
                    return Err(LinkError::Refused(
                        "a link is laid, then started, and once at a time".into(),
                    ));
                };
                let (up, down) = (up.read()?, down.read()?);
                self.running = Some(match &laid.between {
                    Between::Ports(client, server) => {
                        Running::Threads(Threads::start([client, server], [&up, &down], seed, log)?)
                    }
                    Between::Netem => {
                        netem::open(TOWARDS[1], &up)?;
                        netem::open(TOWARDS[0], &down)?;
                        Running::Netem { up, down }
                    }
                });
                Ok(Reply::Started)
            }
            Request::Stop { table } => match self.running.take() {
                Some(Running::Threads(threads)) => Ok(Reply::Stopped(Box::new(threads.stop(table)?))),
                Some(Running::Netem { up, down }) => {
                    let way = |device, asked: &[Settings]| {
                        let hops = vec![netem::close_counted(device, asked)?];
                        Ok::<_, LinkError>(DirectionOutcome { hops, ..DirectionOutcome::default() })
                    };
                    let (up, down) = (way(TOWARDS[1], &up)?, way(TOWARDS[0], &down)?);
                    Ok(Reply::Stopped(Box::new(Outcome { up, down })))
                }
                None => Err(LinkError::Refused("only a link that was started can be stopped".into())),
            },
        }
    }
}

/// The threads that forward, one for each direction.
struct Threads {
    stop: Arc<Stop>,
    held: OwnedFd,
    up: JoinHandle<io::Result<Done>>,
    down: JoinHandle<io::Result<Done>>,
}

impl Threads {
    fn start(
        [client, server]: [&Arc<dyn Port>; 2],
        [up, down]: [&[Settings]; 2],
        seed: u64,
        log: Option<PathBuf>,
    ) -> Result<Self, LinkError> {
        let (stop, held) = Stop::new().map_err(LinkError::step("make a pipe"))?;
        let way = |name, from: &Arc<dyn Port>, to: &Arc<dyn Port>, hops: &[Settings], seed| {
            let spool = log.as_ref().map(|log| spool(log, name)).transpose()?;
            // Packets that arrived while the link was down must not cross it now.
            let mut frame = from.frame();
            while from.receive(&mut frame).map_err(LinkError::step("empty a port"))?.is_some() {}
            let mut path = Path::new(hops, seed, kendall_record::clock::now_ns())?;
            if spool.is_some() {
                path = path.logged(SPAN_NS);
            }
            let direction = Direction::new(Arc::clone(from), Arc::clone(to), path, spool);
            let stop = Arc::clone(&stop);
            let builder = thread::Builder::new().name(format!("link {name}"));
            builder.spawn(move || direction.run(&stop)).map_err(LinkError::step("start a thread"))
        };
        // The directions share no state, and so no random numbers either.
        let up = way("up", client, server, up, seed)?;
        let down = way("down", server, client, down, !seed)?;
        Ok(Self { stop, held, up, down })
    }

    fn stop(self, table: Option<(PathBuf, i64)>) -> Result<Outcome, LinkError> {
        self.stop.set(self.held);
        let end = |way: JoinHandle<io::Result<Done>>| {
            let gone = |_| LinkError::Refused("a thread that forwards packets has failed".into());
            way.join().map_err(gone)?.map_err(LinkError::step("forward packets"))
        };
        let (mut up, mut down) = (end(self.up)?, end(self.down)?);
        let outcome = Outcome { up: (&up).into(), down: (&down).into() };
        if let Some((path, zero_ns)) = table {
            let logged = |direction, done: &mut Done| {
                let names = std::mem::take(&mut done.names);
                done.spool.take().map(|spool| Logged { direction, spool, names })
            };
            let logs = [logged("up", &mut up), logged("down", &mut down)];
            write_table(&path, zero_ns, logs.into_iter().flatten().collect())?;
        }
        Ok(outcome)
    }
}

fn spool(log: &File, name: &str) -> Result<Spool, LinkError> {
    let path = log.with_extension(name);
    Spool::create(path.clone()).map_err(|source| LinkError::Log { path, source })
}

/// Ends every process in the namespaces of a link, except this one and kendall.
fn end_all_within(laid: &LinkSetup, kendall: Pid) {
    let inode = |file: &fs::File| file.metadata().map(|metadata| metadata.st_ino());
    let (Ok(client), Ok(server)) = (inode(&laid.client), inode(&laid.server)) else { return };
    let ours = [client, server].map(|inode| format!("net:[{inode}]"));
    // A process may have forked just before it is killed, so this repeats until no process is left.
    for _ in 0..100 {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let within = |process: &Pid| {
            let namespace = fs::read_link(format!("/proc/{process}/ns/net"));
            namespace.is_ok_and(|namespace| ours.iter().any(|our| namespace.as_os_str() == our.as_str()))
        };
        let others = numbers.map(Pid::from_raw).filter(|process| ![getpid(), kendall].contains(process));
        let found: Vec<Pid> = others.filter(within).collect();
        if found.is_empty() {
            return;
        }
        for process in found {
            // The process may have ended already.
            let _ = kill(process, Signal::SIGKILL);
        }
        thread::sleep(std::time::Duration::from_millis(10));
    }
}
