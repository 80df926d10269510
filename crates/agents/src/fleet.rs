//! Agents that make one load together.

mod error;
mod run;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{IntoIter, channel};
use std::thread;
use std::time::Duration;

use async_nats::Client;
use clap::Args;
use futures_util::StreamExt as _;
use kendall_load::{Plan, Progress, RunSummary};
use kendall_nats::{NatsAccess, NatsAddress, NatsFiles};
use kendall_record::RequestRow;
use kendall_record::clock::now_ns;
use kendall_stats::number::time;
use kendall_stdio::note;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout, timeout_at};

use crate::clock::{BOUND_AT_MOST_NS, Offset, Probe};
use crate::job::Target;
use crate::message::{HELLO, Hello, MOST_BYTES, Order, PROTOCOL, Reply, is_name, orders, read, write};

pub use error::FleetError;
use error::shown;

/// How long a fleet looks for agents: until the wanted number answers, or for this long.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_AT_MOST: Duration = Duration::from_secs(10);
/// The longest wait for the reply to an order.
const REPLY: Duration = Duration::from_secs(10);
/// The most agents.
const AGENTS_AT_MOST: usize = 1000;

/// Which agents make a load.
#[derive(Args, Clone, Debug, Default)]
pub struct FleetOptions {
    /// Send the requests from agents (kendall agent) at this NATS server, which split them exactly, instead of from this machine
    #[arg(long, value_name = "URL")]
    agents: Option<NatsAddress>,

    /// Wait for this many agents, and use no more [default: those that answer within a second]
    #[arg(long, value_name = "N", requires = "agents", value_parser = clap::value_parser!(u32).range(1..=1000))]
    agents_count: Option<u32>,

    #[command(flatten)]
    files: NatsFiles,
}

/// The agents of a load, or of all trials of an experiment.
#[derive(Debug)]
pub struct Fleet {
    runtime: Runtime,
    client: Client,
    agents: Vec<Hello>,
}

impl Fleet {
    /// Looks for agents, and prints how well their clocks are known; `None` if the options name none.
    ///
    /// # Errors
    /// Fails where there is no NATS server, too few agents answer, or a clock is not known well enough.
    pub fn gather(options: &FleetOptions) -> Result<Option<Self>, FleetError> {
        let Some(address) = options.agents.clone() else { return Ok(None) };
        let access = NatsAccess { address, files: options.files.clone() };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (client, agents) = runtime.block_on(async {
            let client = access.connect("kendall").await?;
            let agents = find_idle(&client, options.agents_count).await?;
            Ok::<_, FleetError>((client, agents))
        })?;
        let fleet = Self { runtime, client, agents };
        let clocks = fleet.runtime.block_on(fleet.clocks())?;
        for (agent, offset) in fleet.agents.iter().zip(clocks) {
            let (ahead_s, bound_s) = (offset.ns as f64 / 1e9, offset.bound_ns as f64 / 1e9);
            let which = if ahead_s < 0.0 { "behind" } else { "ahead of" };
            note(&format!(
                "Agent {}: its clock is {} {which} this one, to within {}",
                agent.name,
                time(ahead_s.abs()),
                time(bound_s)
            ));
        }
        Ok(Some(fleet))
    }

    /// The number of agents.
    pub fn agents(&self) -> usize {
        self.agents.len()
    }

    /// Makes a load, of which each agent sends a share. `threads` is the number of each agent's threads, `None` for one on
    /// each of its cores. `collect` gets the rows of all agents on a separate thread. Setting `stop` stops at once.
    ///
    /// # Errors
    /// Fails where an agent refuses its share, dies or loses messages, since the rest is not the load that was planned.
    pub fn run<T: Send>(
        &self,
        target: &Target,
        plan: &Plan,
        threads: Option<u32>,
        progress: &Progress,
        stop: &AtomicBool,
        collect: impl FnOnce(IntoIter<Vec<RequestRow>>) -> T + Send,
    ) -> Result<(RunSummary, T), FleetError> {
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            let collector = scope.spawn(move || collect(receiver.into_iter()));
            let summary =
                self.runtime.block_on(self.conduct(target, plan, threads, (progress, stop), sender));
            let collected = collector.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((summary?, collected))
        })
    }

    /// Gives an order to an agent, and waits for its reply.
    async fn order(&self, agent: &Hello, order: &Order) -> Result<Reply, FleetError> {
        let silent = || FleetError::Silent { agent: agent.name.clone() };
        let payload = write(order);
        if payload.len() > MOST_BYTES {
            return Err(FleetError::TooLong);
        }
        let asked = timeout(REPLY, self.client.request(orders(&agent.id), payload.into())).await;
        let message = asked.map_err(|_| silent())?.map_err(|_| silent())?;
        match read(&message.payload) {
            Some(Reply::Refused { why }) => {
                Err(FleetError::Refused { agent: agent.name.clone(), why: shown(&why) })
            }
            Some(reply) => Ok(reply),
            None => Err(silent()),
        }
    }

    /// Gives an order that needs no reply.
    async fn send_order(&self, agent: &Hello, order: &Order) {
        // An agent that misses it is missed in turn.
        let _ = self.client.publish(orders(&agent.id), write(order).into()).await;
    }

    /// The offsets of all clocks.
    async fn clocks(&self) -> Result<Vec<Offset>, FleetError> {
        let mut offsets = Vec::new();
        for agent in &self.agents {
            let mut probes = Vec::new();
            while !Offset::is_settled(&probes) {
                let left_ns = now_ns();
                let Reply::Clock { now_ns: there_ns } = self.order(agent, &Order::Clock).await? else {
                    return Err(FleetError::Silent { agent: agent.name.clone() });
                };
                probes.push(Probe { left_ns, there_ns, back_ns: now_ns() });
            }
            let offset = Offset::of(&probes);
            let offset = offset.ok_or_else(|| FleetError::Silent { agent: agent.name.clone() })?;
            if offset.bound_ns > BOUND_AT_MOST_NS {
                let bound_s = offset.bound_ns as f64 / 1e9;
                return Err(FleetError::Clock { agent: agent.name.clone(), bound_s });
            }
            offsets.push(offset);
        }
        Ok(offsets)
    }
}

/// Looks for idle agents: the wanted number, or those that answer within a second. In the order of their names.
async fn find_idle(client: &Client, count: Option<u32>) -> Result<Vec<Hello>, FleetError> {
    let talk = |error: String| FleetError::Talk(error);
    let inbox = client.new_inbox();
    let mut replies = client.subscribe(inbox.clone()).await.map_err(|error| talk(error.to_string()))?;
    let wanted = count.map_or(1, |count| count as usize);
    let mut found = BTreeMap::new();
    let began = Instant::now();
    while found.len() < wanted && began.elapsed() < LOOK_AT_MOST {
        let asked = client.publish_with_reply(HELLO, inbox.clone(), bytes::Bytes::new()).await;
        asked.map_err(|error| talk(error.to_string()))?;
        let until = Instant::now() + LOOK;
        while let Ok(Some(message)) = timeout_at(until, replies.next()).await {
            let hello = read::<Hello>(&message.payload);
            let is_able = |hello: &Hello| {
                hello.protocol == PROTOCOL && !hello.is_busy && is_name(&hello.id) && is_name(&hello.name)
            };
            if let Some(hello) = hello.filter(is_able).filter(|_| found.len() < AGENTS_AT_MOST) {
                found.insert((hello.name.clone(), hello.id.clone()), hello);
            }
            if count.is_some() && found.len() >= wanted {
                break;
            }
        }
    }
    if found.len() < wanted {
        return Err(FleetError::TooFew { found: found.len(), wanted });
    }
    let most = count.map_or(usize::MAX, |count| count as usize);
    Ok(found.into_values().take(most).collect())
}
