//! One load of a fleet: its shares are set up and started, and their reports become one run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt as _;
use kendall_load::{AgentFigures, OpenRequests, Plan, Progress, ReceivedRows, RunPart, RunSummary};
use kendall_record::RequestRow;
use kendall_record::clock::now_ns;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::clock::Offset;
use crate::fleet::Fleet;
use crate::fleet::error::{FleetError, shown};
use crate::job::{Job, Target};
use crate::message::{BEAT, Beat, FAILED, Hello, MOST_BYTES, Order, PART, ROWS, drawn_name, read, reports};
use crate::rows;

/// The time from the orders to start until the start.
const LEAD: Duration = Duration::from_millis(500);
/// An agent that is silent for this long is lost.
const SILENCE_AT_MOST: Duration = Duration::from_secs(3);
/// How often watchers are shown the rows, and whether to stop is checked.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// How often agents hear that the fleet is still there, in checks.
const ALIVE_EVERY: u32 = 25;
/// The most pieces of a part.
const PIECES_AT_MOST: usize = 64;

/// What an agent has reported of its share.
struct ShareSeen<'a> {
    agent: &'a Hello,
    heard: Instant,
    /// The number of its next message of rows.
    next: u64,
    beat: Beat,
    pieces: Vec<Vec<u8>>,
    part: Option<RunPart>,
}

impl Fleet {
    pub(super) async fn conduct(
        &self,
        target: &Target,
        plan: &Plan,
        threads: Option<u32>,
        (progress, stop): (&Progress, &AtomicBool),
        rows: Sender<Vec<RequestRow>>,
    ) -> Result<RunSummary, FleetError> {
        let run = drawn_name();
        let subscribed = self.client.subscribe(reports(&run, "*")).await;
        let mut reports = subscribed.map_err(|error| FleetError::Talk(error.to_string()))?;
        let done = self.shares(&run, (target, plan, threads), (progress, stop), rows, &mut reports).await;
        if done.is_err() {
            for agent in &self.agents {
                self.send_order(agent, &Order::Stop { run: run.clone() }).await;
            }
            let _ = self.client.flush().await;
        }
        done
    }

    async fn shares(
        &self,
        run: &str,
        (target, plan, threads): (&Target, &Plan, Option<u32>),
        (progress, stop): (&Progress, &AtomicBool),
        rows: Sender<Vec<RequestRow>>,
        reports: &mut Subscriber,
    ) -> Result<RunSummary, FleetError> {
        let before = self.clocks().await?;
        let shares = plan.share.split(self.agents.len() as u32);
        for ((agent, share), place) in self.agents.iter().zip(shares).zip(0..) {
            let job = Box::new(Job { target: target.clone(), plan: Plan { share, ..plan.clone() }, threads });
            self.order(agent, &Order::Prepare { run: run.into(), place, job }).await?;
        }
        let start_ns = now_ns() + LEAD.as_nanos() as i64;
        for (agent, offset) in self.agents.iter().zip(&before) {
            let at_ns = offset.there_ns(start_ns);
            self.order(agent, &Order::Start { run: run.into(), at_ns }).await?;
        }
        let seen = self.agents.iter().map(|agent| ShareSeen {
            agent,
            heard: Instant::now() + LEAD,
            next: 0,
            beat: Beat::default(),
            pieces: Vec::new(),
            part: None,
        });
        let mut seen: Vec<ShareSeen<'_>> = seen.collect();
        let mut received = ReceivedRows::default();
        let mut checks = interval(CHECK_EVERY);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut told_stop, mut told_enough, mut alive) = (false, false, 0);
        while seen.iter().any(|share| share.part.is_none()) {
            tokio::select! {
                message = reports.next() => {
                    let message = message.ok_or_else(|| FleetError::Talk("it closed the connection".into()))?;
                    if let Some(new) = take(&mut seen, &message)? {
                        received.take(&new);
                        // The collector is gone if it failed, and then `stop` is set.
                        let _ = rows.send(new);
                    }
                }
                _ = checks.tick() => {
                    let stops = stop.load(Ordering::Relaxed) && !std::mem::replace(&mut told_stop, stop.load(Ordering::Relaxed));
                    let enough = progress.enough.load(Ordering::Relaxed);
                    let ends = enough && !std::mem::replace(&mut told_enough, enough);
                    alive += 1;
                    for share in seen.iter().filter(|share| share.part.is_none()) {
                        if share.heard.elapsed() > SILENCE_AT_MOST {
                            return Err(FleetError::Silent { agent: share.agent.name.clone() });
                        }
                        let run = || run.to_owned();
                        if stops {
                            self.send_order(share.agent, &Order::Stop { run: run() }).await;
                        }
                        if ends {
                            self.send_order(share.agent, &Order::Enough { run: run() }).await;
                        }
                        if alive % ALIVE_EVERY == 0 {
                            self.send_order(share.agent, &Order::Alive { run: run() }).await;
                        }
                    }
                    received.publish(open(&seen), progress);
                }
            }
        }
        drop(rows);
        let after = self.clocks().await?;
        let parts: Vec<(&Hello, RunPart)> =
            seen.into_iter().filter_map(|share| Some((share.agent, share.part?))).collect();
        merged(parts, start_ns, (&before, &after), received, progress)
    }
}

/// The counts of all shares.
fn open(seen: &[ShareSeen<'_>]) -> OpenRequests {
    let sum =
        |count: fn(&Beat) -> u64| seen.iter().map(|share| count(&share.beat)).fold(0, u64::saturating_add);
    OpenRequests {
        sent: sum(|beat| beat.sent),
        in_flight: sum(|beat| beat.in_flight),
        waiting: sum(|beat| beat.waiting),
    }
}

/// Takes a report; returns its rows.
fn take(seen: &mut [ShareSeen<'_>], message: &Message) -> Result<Option<Vec<RequestRow>>, FleetError> {
    let place = message.subject.rsplit('.').next().and_then(|place| place.parse::<usize>().ok());
    let Some(share) = place.and_then(|place| seen.get_mut(place)) else { return Ok(None) };
    share.heard = share.heard.max(Instant::now());
    let lost = |share: &ShareSeen<'_>| FleetError::Lost { agent: share.agent.name.clone() };
    match message.payload.split_first() {
        Some((&ROWS, payload)) if share.part.is_none() => {
            let found = rows::decode(payload).filter(|(number, _)| *number == share.next);
            let (_, rows) = found.ok_or_else(|| lost(share))?;
            share.next += 1;
            return Ok(Some(rows));
        }
        Some((&BEAT, payload)) => share.beat = read(payload).unwrap_or(share.beat),
        Some((&PART, payload)) => share.piece(payload).ok_or_else(|| lost(share))?,
        Some((&FAILED, why)) => {
            let why = shown(&String::from_utf8_lossy(why));
            return Err(FleetError::Failed { agent: share.agent.name.clone(), why });
        }
        _ => return Err(lost(share)),
    }
    Ok(None)
}

impl ShareSeen<'_> {
    /// Takes a piece of the part; `None` where pieces or rows before it are missing.
    fn piece(&mut self, payload: &[u8]) -> Option<()> {
        let (number, payload) = payload.split_first_chunk::<2>()?;
        let (count, payload) = payload.split_first_chunk::<2>()?;
        let (messages, piece) = payload.split_first_chunk::<8>()?;
        let count = usize::from(u16::from_le_bytes(*count));
        let is_next = usize::from(u16::from_le_bytes(*number)) == self.pieces.len();
        let is_allowed = count <= PIECES_AT_MOST && piece.len() <= MOST_BYTES && self.part.is_none();
        if !is_next || !is_allowed || u64::from_le_bytes(*messages) != self.next {
            return None;
        }
        self.pieces.push(piece.to_vec());
        if self.pieces.len() == count {
            let part: RunPart = serde_json::from_slice(&self.pieces.concat()).ok()?;
            self.beat = Beat { sent: part.sent, ..Beat::default() };
            self.part = Some(part).filter(RunPart::is_consistent);
            return self.part.is_some().then_some(());
        }
        Some(())
    }
}

/// The run of which these are the parts.
fn merged(
    parts: Vec<(&Hello, RunPart)>,
    start_ns: i64,
    (before, after): (&[Offset], &[Offset]),
    received: ReceivedRows,
    progress: &Progress,
) -> Result<RunSummary, FleetError> {
    let mut figures = Vec::new();
    let mut sum: Option<RunPart> = None;
    for (((agent, part), before), after) in parts.into_iter().zip(before).zip(after) {
        let late_ns = part.start_ns.saturating_sub(before.there_ns(start_ns));
        if late_ns != 0 {
            return Err(FleetError::Late { agent: agent.name.clone(), late_s: late_ns as f64 / 1e9 });
        }
        figures.push(AgentFigures {
            name: agent.name.clone(),
            sent: part.sent,
            clock_bound_s: before.bound_ns as f64 / 1e9,
            clock_drift_s: after.ns.saturating_sub(before.ns) as f64 / 1e9,
        });
        match &mut sum {
            Some(sum) => sum.add(&part),
            None => sum = Some(part),
        }
    }
    let sum = sum.expect("a fleet has an agent");
    Ok(RunSummary { agents: figures, ..received.end(sum, start_ns, progress)? })
}
