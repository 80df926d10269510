//! `kendall agent`: takes shares of loads, one at a time, until it is stopped.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_nats::{Client, Message, Subscriber};
use clap::Args;
use futures_util::StreamExt as _;
use kendall_load::{Plan, Progress, Workload, run_part};
use kendall_nats::{NatsAccess, NatsAddress, NatsFiles};
use kendall_record::clock::now_ns;
use kendall_stdio::note;
use kendall_system::System;
use tokio::runtime::{Builder, Handle};
use tokio::time::{MissedTickBehavior, interval};

use crate::job::{Allowed, Job};
use crate::message::{
    Beat, HELLO, Hello, Order, PROTOCOL, Reply, drawn_name, is_name, orders, read, reports, write,
};
use crate::outbox::Outbox;

/// How often an agent reports its counts, and checks whether to stop.
const BEAT_EVERY: Duration = Duration::from_millis(100);
/// An agent stops a run whose fleet it has not heard for this long.
const SILENCE_AT_MOST: Duration = Duration::from_secs(5);
/// The latest start, from the order on.
const START_WITHIN_NS: i64 = 60_000_000_000;

/// Send shares of loads that other machines order over a NATS server: kendall agent --nats nats://10.0.0.1:4222 --allow 10.0.0.9:8080
#[derive(Args, Clone, Debug)]
pub struct AgentOptions {
    /// The NATS server, or several, comma-separated: nats://HOST:4222, nats://USER:PASSWORD@HOST:4222 or tls://HOST:4222
    #[arg(long, value_name = "URL")]
    nats: NatsAddress,

    #[command(flatten)]
    files: NatsFiles,

    /// The targets that this agent may load, and no others; HOST:* allows every port of a host
    #[arg(long, value_name = "HOST:PORT[,...]", value_delimiter = ',', required = true)]
    allow: Vec<Allowed>,

    /// The name of the agent in results, if not that of its machine
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
}

fn name(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.into()) } else { Err("must be up to 64 letters, digits and hyphens".into()) }
}

/// The name of this machine.
fn machine() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if is_name(&name) { name } else { "agent".into() }
}

/// Serves as an agent until `cancel` is set.
///
/// # Errors
/// Fails where there is no NATS server at the URL, or where it closes the connection.
pub fn agent(
    options: &AgentOptions,
    systems: &'static [System],
    cancel: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let access = NatsAccess { address: options.nats.clone(), files: options.files.clone() };
        let client = access.connect("kendall agent").await?;
        let id = drawn_name();
        let mut hellos = client.subscribe(HELLO).await?;
        let mut ordered = client.subscribe(orders(&id)).await?;
        client.flush().await?;
        let name = options.name.clone().unwrap_or_else(machine);
        note(&format!("Agent {name} is ready"));
        let mut agent = Agent { id, name, allowed: &options.allow, systems, client, share: None };
        agent.serve(&mut hellos, &mut ordered, cancel).await
    })
}

struct Agent<'a> {
    id: String,
    name: String,
    allowed: &'a [Allowed],
    systems: &'static [System],
    client: Client,
    share: Option<Share>,
}

/// The share of a load that the agent has.
struct Share {
    run: String,
    heard: Instant,
    outbox: Outbox,
    state: State,
}

enum State {
    Prepared(Box<Job>, Box<dyn Workload>),
    Sending(Arc<Sending>, JoinHandle<()>),
}

/// What the thread that sends shares with the one that takes orders.
#[derive(Default)]
struct Sending {
    stop: AtomicBool,
    /// Whether the agent stops without an order, so that its share is not complete.
    is_abandoned: AtomicBool,
    /// Whether all requests are sent and answered, so that only the last report may be left.
    is_sent: AtomicBool,
    progress: Progress,
}

impl Agent<'_> {
    async fn serve(
        &mut self,
        hellos: &mut Subscriber,
        ordered: &mut Subscriber,
        cancel: &AtomicBool,
    ) -> anyhow::Result<ExitCode> {
        let mut beats = interval(BEAT_EVERY);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                order = ordered.next() => self.take(&order.ok_or_else(closed)?).await,
                hello = hellos.next() => self.hello(&hello.ok_or_else(closed)?).await,
                _ = beats.tick() => {
                    let cancelled = cancel.load(Ordering::Relaxed);
                    self.beat(cancelled).await;
                    if cancelled && self.share.is_none() {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
            }
        }
    }

    async fn hello(&self, message: &Message) {
        let hello = Hello {
            protocol: PROTOCOL,
            id: self.id.clone(),
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            is_busy: self.share.is_some(),
        };
        self.reply(message, write(&hello)).await;
    }

    async fn reply(&self, message: &Message, payload: Vec<u8>) {
        if let Some(to) = &message.reply {
            // A fleet that misses a reply reports that.
            let _ = self.client.publish(to.clone(), payload.into()).await;
        }
    }

    async fn take(&mut self, message: &Message) {
        let reply = match read(&message.payload) {
            None => Reply::Refused { why: "the order is not one of this version of kendall".into() },
            Some(Order::Clock) => Reply::Clock { now_ns: now_ns() },
            Some(order) => match self.obey(order) {
                Ok(()) => Reply::Done,
                Err(why) => Reply::Refused { why },
            },
        };
        self.reply(message, write(&reply)).await;
    }

    fn obey(&mut self, order: Order) -> Result<(), String> {
        match order {
            Order::Clock => Ok(()),
            Order::Prepare { run, place, job } => self.prepare(run, place, job),
            Order::Start { run, at_ns } => self.start(&run, at_ns),
            Order::Alive { run } => self.share(&run).map(|share| share.heard = Instant::now()),
            Order::Enough { run } => self.share(&run).map(|share| {
                if let State::Sending(sending, _) = &share.state {
                    sending.progress.enough.store(true, Ordering::Relaxed);
                }
            }),
            Order::Stop { run } => {
                let share = self.share(&run)?;
                share.stop();
                if matches!(share.state, State::Prepared(..)) {
                    self.share = None;
                }
                Ok(())
            }
        }
    }

    /// The share of a run.
    fn share(&mut self, run: &str) -> Result<&mut Share, String> {
        let share = self.share.as_mut().filter(|share| share.run == run);
        share.ok_or_else(|| "it has no share of this load".into())
    }

    fn prepare(&mut self, run: String, place: u32, job: Box<Job>) -> Result<(), String> {
        // The next load may come before the beat that notices the end of the last one.
        if self.share.as_ref().is_some_and(Share::is_sent) {
            self.end_share();
        }
        if self.share.is_some() {
            return Err("it has a share of another load".into());
        }
        if !is_name(&run) {
            return Err("the name of the run is not valid".into());
        }
        let workload = job.workload(self.allowed, self.systems)?;
        note(&format!(
            "Share {} of {} of a load on {}",
            u64::from(place) + 1,
            job.plan.share.of(),
            job.target.address
        ));
        let subject = reports(&run, &place.to_string()).into();
        let outbox = Outbox { client: self.client.clone(), subject, runtime: Handle::current() };
        self.share =
            Some(Share { run, heard: Instant::now(), outbox, state: State::Prepared(job, workload) });
        Ok(())
    }

    fn start(&mut self, run: &str, at_ns: i64) -> Result<(), String> {
        if !matches!(self.share(run)?.state, State::Prepared(..)) {
            return Err("it sends already".into());
        }
        let within =
            at_ns.checked_sub(now_ns()).is_some_and(|left_ns| (0..START_WITHIN_NS).contains(&left_ns));
        if !within {
            return Err("the start is not within the next minute".into());
        }
        let Some(Share { run, heard, outbox, state: State::Prepared(job, workload) }) = self.share.take()
        else {
            return Err("it sends already".into());
        };
        let plan = Plan { threads: job.threads(), start_ns: Some(at_ns), ..job.plan };
        let sending = Arc::new(Sending::default());
        let (shared, reports) = (Arc::clone(&sending), outbox.clone());
        let thread = thread::Builder::new().name("kendall-agent".into()).spawn(move || {
            if let Err(why) = send(&plan, &*workload, &shared, &reports) {
                reports.failed(&why);
            }
        });
        let thread = thread.map_err(|error| format!("it cannot start a thread: {error}"))?;
        self.share = Some(Share { run, heard, outbox, state: State::Sending(sending, thread) });
        Ok(())
    }

    /// Reports the counts, and ends a share that is over or whose fleet is gone.
    async fn beat(&mut self, cancelled: bool) {
        let Some(share) = &mut self.share else { return };
        let abandons = cancelled || share.heard.elapsed() > SILENCE_AT_MOST;
        if abandons {
            share.abandon();
        }
        let is_over = match &share.state {
            State::Prepared(..) => abandons,
            State::Sending(sending, thread) => {
                let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
                let progress = &sending.progress;
                let beat = Beat {
                    sent: count(&progress.sent),
                    in_flight: count(&progress.in_flight),
                    waiting: count(&progress.waiting),
                };
                // A fleet that misses beats ends the run.
                let _ = share.outbox.beat(&beat).await;
                thread.is_finished()
            }
        };
        if is_over {
            self.end_share();
        }
    }

    /// Waits until the share has reported all, and forgets it.
    fn end_share(&mut self) {
        if let Some(Share { state: State::Sending(_, thread), outbox, .. }) = self.share.take() {
            tokio::task::block_in_place(|| {
                if thread.join().is_err() {
                    outbox.failed("its generator failed");
                }
            });
        }
    }
}

impl Share {
    /// Whether only its report may be left to send.
    fn is_sent(&self) -> bool {
        matches!(&self.state, State::Sending(sending, _) if sending.is_sent.load(Ordering::Relaxed))
    }

    fn abandon(&self) {
        if let State::Sending(sending, _) = &self.state {
            sending.is_abandoned.store(true, Ordering::Relaxed);
        }
        self.stop();
    }

    fn stop(&self) {
        if let State::Sending(sending, _) = &self.state {
            sending.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Sends the requests of a share, and reports them.
fn send(plan: &Plan, workload: &dyn Workload, sending: &Sending, outbox: &Outbox) -> Result<(), String> {
    let rows = |batches| {
        // Requests that cannot be reported are not worth sending.
        outbox.rows(batches).inspect_err(|_| sending.stop.store(true, Ordering::Relaxed))
    };
    let ended = run_part(plan, workload, &sending.progress, &sending.stop, rows);
    sending.is_sent.store(true, Ordering::Relaxed);
    let (part, _, messages) = ended.map_err(|error| error.to_string())?;
    if sending.is_abandoned.load(Ordering::Relaxed) {
        return Err("it was stopped, or did not hear of the load any more".into());
    }
    outbox.part(&part, messages?)
}

fn closed() -> anyhow::Error {
    anyhow::anyhow!("the NATS server has closed the connection for good")
}
