//! The resource that limits a server, judged from measurements of the server and of its load.
//!
//! Each possible limit gets the share of the time in which it was reached, by the utilisation law: what is busy all the
//! time limits (Gregg, Systems Performance, 2nd edition, section 2.5.9, the USE method). The one that is busiest
//! is named, if it is busy enough; where nothing is, that is said. Whether it is the generator, its one judge says
//! ([`crate::generator`]).

mod sentence;

use kendall_evidence::AnswerPauses;
use kendall_probe::{Summary, THREAD, ThreadState, ThreadUse, Use};
use serde::{Deserialize, Serialize};

pub use sentence::{NO_DELAY, paused};

use crate::generator::{Crowding, GeneratorVerdict, ProcessJudged, crowding};
use crate::machine_use::{foreign_cores, is_full, taken_cores};

/// From this share of the time on, a thing limits.
const LIMITS: f64 = 0.8;
/// Bytes that clients have not acknowledged are normal on the way; those that could not even be sent are not.
const BLOCKED: f64 = 0.5;

/// Half of the time some thread is ready and has no core, and others have as much of one.
const HELD_UP: f64 = 0.5;
/// From this share of a request's time on, bytes that Nagle's algorithm holds back limit.
const HELD_BACK: f64 = 0.5;
/// The number of samples that must find a connection held back, unless the pauses of the answers show it as well.
const HELD_LOOKS: f64 = 3.0;

/// Measurements of the answers that help to judge the server. Values that the load does not have are absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswersSeen {
    /// Mean response time, from the instant that a request was due, in seconds.
    pub response_s: Option<f64>,
    /// Mean time from the instant that a request was sent, in seconds.
    pub request_s: Option<f64>,
    /// Answers per second.
    pub throughput_per_s: Option<f64>,
    /// Pauses within the answers, where they were counted.
    pub pauses: Option<AnswerPauses>,
}

/// The results of a load that help to judge the server.
#[derive(Clone, Copy, Debug)]
pub struct LoadSeen<'a> {
    /// The measurements of the answers.
    pub answers: AnswersSeen,
    /// How late the latest hundredth of the requests was sent by the generator's own fault, in seconds.
    pub send_lag_p99_s: f64,
    /// The verdict on the generator. The readings of its process are not judged a second time: a thread that spins on purpose is
    /// always busy, and limits nothing.
    pub verdict: &'a GeneratorVerdict,
}

/// What limits a server. Its sentence is its `Display`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "limit")]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence")]
pub enum Bottleneck {
    /// All cores that the server may use are busy, mostly with the server itself.
    Cpu { used_cores: f64, cores: f64, busiest: String },
    /// One of the server's threads is always busy, while other cores are idle.
    OneThread { thread: String, used_cores: f64, waiting: f64, cores: f64 },
    /// Threads wait for one mutex.
    Lock { share: f64, waiters: f64, used_cores: f64, cores: f64 },
    /// The server's threads are ready to run, but other programs use the cores.
    RunQueue { waiting_threads: f64, used_cores: f64, foreign_cores: f64, throttled: f64 },
    /// Nagle's algorithm holds the last bytes of answers back until the client's delayed acknowledgement of the first ones.
    HeldBack {
        share: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        per_request_s: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pauses: Option<AnswerPauses>,
    },
    /// The cores of the machine are all busy, with server, generator and other programs together.
    Machine {
        cores: f64,
        busy_cores: f64,
        server_cores: f64,
        waiting_threads: f64,
        generator_cores: f64,
        foreign_cores: f64,
    },
    /// The server produces output faster than the network takes it.
    Network { blocked: f64, unsent_bytes: f64 },
    /// The server waits for a disk.
    Disk { share: f64, threads: f64, written_per_s: Option<f64> },
    /// The server waits for another server.
    BackEnd { share: f64, waiting: f64 },
    /// The generator is late or has no core to spare, so the figures are of it and not of the server.
    Generator { why: GeneratorLimit },
    /// Nothing is at its limit.
    None { busiest: String, share: f64 },
}

/// The reason why the generator limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why")]
#[allow(missing_docs, reason = "the fields are the numbers of the sentence")]
pub enum GeneratorLimit {
    /// The generator sends late.
    Late {
        lag_s: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_s: Option<f64>,
    },
    /// One of the generator's threads is always busy.
    Busy { thread: String, used_cores: f64 },
    /// The generator has used more of the machine than the server, and the machine is full.
    Crowding { used_cores: f64, server_cores: f64 },
}

/// Names the bottleneck. `None` where no server was watched. Without a load the generator is unknown, and not among the possible
/// limits.
pub fn bottleneck(summary: &Summary, load: Option<&LoadSeen<'_>>) -> Option<Bottleneck> {
    let server = summary.server.as_ref()?;
    let generator = load.map(|load| generator(summary, load));
    let mut limits: Vec<Candidate> = generator
        .into_iter()
        .chain([
            cpu(summary, server),
            one_thread(summary, server),
            lock(summary, server),
            disk(server),
            held_back(server, load),
            network(server),
            back_end(server),
            run_queue(summary, server),
        ])
        .collect();
    // Of several that are as busy, the first is the nearest to the cause.
    limits.sort_by(|a, b| b.share.total_cmp(&a.share));
    let most = limits.swap_remove(0);
    if most.share >= LIMITS {
        return Some(most.limit);
    }
    if let Some(full) = full_machine(summary, server) {
        return Some(full);
    }
    Some(Bottleneck::None { busiest: most.name.into(), share: most.share })
}

/// A possible limit.
struct Candidate {
    name: &'static str,
    /// The share of the time in which it is reached.
    share: f64,
    limit: Bottleneck,
}

/// The generator as its judge found it; its busiest thread only says how far it was from having no time to spare.
fn generator(summary: &Summary, load: &LoadSeen<'_>) -> Candidate {
    let busiest = summary.generator.as_ref().and_then(busiest);
    let share = busiest.map_or(0.0, occupied);
    let busy = || GeneratorLimit::Busy {
        thread: busiest.map_or_else(String::new, |thread| thread.thread.clone()),
        used_cores: busiest.map_or(0.0, |thread| thread.cpu_cores),
    };
    let (share, why) = match (load.verdict.process(), crowding(summary)) {
        (ProcessJudged::Late, _) => {
            (1.0, GeneratorLimit::Late { lag_s: load.send_lag_p99_s, response_s: load.answers.response_s })
        }
        (_, Some(Crowding { used_cores, server_cores })) => {
            (1.0, GeneratorLimit::Crowding { used_cores, server_cores })
        }
        (ProcessJudged::Busy, None) => (share.max(LIMITS), busy()),
        // It spins, and its judge says that it had time to spare.
        (ProcessJudged::Sound, None) if share >= LIMITS => (0.0, busy()),
        (ProcessJudged::Sound, None) => (share, busy()),
    };
    Candidate { name: "the generator", share, limit: Bottleneck::Generator { why } }
}

fn cpu(summary: &Summary, server: &Use) -> Candidate {
    let busiest = busiest(server).map_or_else(String::new, |thread| thread.thread.clone());
    let mut share = server.cpu_cores / summary.cores;
    // On cores that it shares with its generator, the server has what is left.
    if is_full(summary) && server.waiting_threads > 0.2 && server.cpu_cores >= foreign_cores(summary) {
        let generator_cores = summary.generator.as_ref().map_or(0.0, |generator| generator.cpu_cores);
        share = share.max((server.cpu_cores + generator_cores) / summary.machine.cores);
    }
    let limit = Bottleneck::Cpu { used_cores: server.cpu_cores, cores: summary.cores, busiest };
    Candidate { name: "its cores", share: share.min(1.0), limit }
}

fn one_thread(summary: &Summary, server: &Use) -> Candidate {
    let thread = busiest(server);
    // Where there is one core only, or several threads would be as busy, it is the cores that limit.
    let wanted = server.cpu_cores + server.waiting_threads;
    let alone = summary.cores > 1.0 && thread.is_some_and(|thread| occupied(thread) > 0.6 * wanted);
    let share = thread.filter(|_| alone).map_or(0.0, occupied);
    let limit = Bottleneck::OneThread {
        thread: thread.map_or_else(String::new, |thread| thread.thread.clone()),
        used_cores: thread.map_or(0.0, |thread| thread.cpu_cores),
        waiting: thread.map_or(0.0, |thread| thread.waiting),
        cores: summary.cores,
    };
    Candidate { name: "its busiest thread", share, limit }
}

fn lock(summary: &Summary, server: &Use) -> Candidate {
    let lock = server.places.as_ref().and_then(|places| places.lock);
    let share = lock.map_or(0.0, |lock| lock.share);
    let limit = Bottleneck::Lock {
        share,
        waiters: lock.map_or(0.0, |lock| lock.waiters),
        used_cores: server.cpu_cores,
        cores: summary.cores,
    };
    // Threads queue for a lock also where all of them together have too few cores: then it is these that limit.
    let share = if server.cpu_cores < LIMITS * summary.cores { share } else { 0.0 };
    Candidate { name: "a lock", share, limit }
}

fn disk(server: &Use) -> Candidate {
    let (share, threads) = server.places.as_ref().map_or((0.0, 0.0), |places| places.at(ThreadState::Disk));
    let written_per_s = server.disk_per_s.map(|(_, written)| written);
    Candidate { name: "the disk", share, limit: Bottleneck::Disk { share, threads, written_per_s } }
}

/// Bytes that the network could take, and that the server's own side holds back: however rarely that is, it limits where it is most of
/// a request's time.
fn held_back(server: &Use, load: Option<&LoadSeen<'_>>) -> Candidate {
    let connections = server.connections.unwrap_or_default();
    let (held, share) = connections.held_back.unwrap_or_default();
    let AnswersSeen { response_s, throughput_per_s, pauses, .. } =
        load.map(|load| load.answers).unwrap_or_default();
    let per_request_s = throughput_per_s.map(|per_s| held / per_s);
    let is_most = match per_request_s.zip(response_s) {
        // By Little's law, the mean number of connections held back is that of requests.
        Some((per_request_s, response_s)) => per_request_s >= HELD_BACK * response_s,
        None => share >= BLOCKED,
    };
    let held_looks = share * connections.looks as f64;
    let clients_say_so = pauses.is_some_and(|seen| seen.are_of_delayed_acknowledgements());
    let limits = if clients_say_so { held_looks > 0.0 } else { is_most && held_looks >= HELD_LOOKS };
    Candidate {
        name: "an acknowledgement that is waited for",
        share: if limits { 1.0 } else { share.min(0.99 * LIMITS) },
        limit: Bottleneck::HeldBack { share, per_request_s, pauses },
    }
}

/// A machine of which all cores are busy, where no single limit is reached.
fn full_machine(summary: &Summary, server: &Use) -> Option<Bottleneck> {
    is_full(summary).then(|| Bottleneck::Machine {
        cores: summary.machine.cores,
        busy_cores: taken_cores(summary),
        server_cores: server.cpu_cores,
        waiting_threads: server.waiting_threads,
        generator_cores: summary.generator.as_ref().map_or(0.0, |generator| generator.cpu_cores),
        foreign_cores: foreign_cores(summary),
    })
}

fn network(server: &Use) -> Candidate {
    let connections = server.connections.unwrap_or_default();
    let blocked = connections.send_blocked.unwrap_or(0.0);
    // Some bytes wait now and then wherever large answers are sent; half of the time is too often.
    let share = if blocked >= BLOCKED { blocked.max(LIMITS) } else { blocked };
    let limit = Bottleneck::Network { blocked, unsent_bytes: connections.unsent_bytes };
    Candidate { name: "the network", share, limit }
}

fn back_end(server: &Use) -> Candidate {
    let (seen, waiting) = server.places.as_ref().map_or((0.0, 0.0), |places| places.at(ThreadState::BackEnd));
    let connections = server.connections.and_then(|connections| connections.back_end);
    let (due, share_due) = connections.map_or((0.0, 0.0), |(_, busy, share)| (busy, share));
    let share = seen.max(share_due);
    let limit = Bottleneck::BackEnd { share, waiting: waiting.max(due) };
    Candidate { name: "its back end", share, limit }
}

fn run_queue(summary: &Summary, server: &Use) -> Candidate {
    let foreign_cores = foreign_cores(summary);
    let throttled = server.throttled.unwrap_or(0.0);
    // Its own threads are not in each other's way where it has not used up its cores.
    let others = foreign_cores >= HELD_UP && server.cpu_cores < LIMITS * summary.cores;
    let waits = others && is_full(summary) && server.waiting_threads >= HELD_UP;
    // What the server itself waits for all the time stays its limit: more cores would not help it.
    let share = if waits { LIMITS } else { 0.0 };
    let limit = Bottleneck::RunQueue {
        waiting_threads: server.waiting_threads,
        used_cores: server.cpu_cores,
        foreign_cores,
        throttled,
    };
    Candidate { name: "the run queue", share: share.max(throttled), limit }
}

/// The thread that used most, the one that watches left out.
fn busiest(role: &Use) -> Option<&ThreadUse> {
    role.threads.iter().find(|thread| !thread.thread.starts_with(THREAD))
}

/// The share of the time in which a thread was busy or would have been, had it had a core.
fn occupied(thread: &ThreadUse) -> f64 {
    (thread.cpu_cores + thread.waiting).min(1.0)
}

#[cfg(test)]
mod tests;
