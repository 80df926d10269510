//! What limits a server, in sentences.

use std::fmt;

use kendall_evidence::AnswerPauses;
use kendall_stats::number::time;

use super::{Bottleneck, GeneratorLimit, LIMITS};

/// A server that uses and wants no more cores than this is idle.
const IDLE: f64 = 0.05;
/// The remedy for a wait for a delayed acknowledgement.
pub const NO_DELAY: &str = "Set TCP_NODELAY on the server's sockets, or write head and body with one call";

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu { used_cores, cores, busiest } => {
                write!(f, "The CPU is the bottleneck: the server uses {used_cores:.2} of {cores:.0} cores")?;
                if busiest.is_empty() {
                    f.write_str(".")
                } else {
                    write!(f, "; its busiest thread is {busiest}.")
                }
            }
            Self::OneThread { thread, used_cores, waiting, cores } => {
                write!(
                    f,
                    "One thread is the bottleneck: {thread} is busy {} of the time",
                    percent(*used_cores)
                )?;
                if *waiting >= 0.05 {
                    write!(f, " and ready to run for another {}", percent(*waiting))?;
                }
                write!(f, ", and can use only one of {cores:.0} cores.")
            }
            Self::Lock { share, waiters, used_cores, cores } => write!(
                f,
                "A lock is the bottleneck: {} of the time some thread waits for the same mutex, {waiters:.1} on average, while only \
                 {used_cores:.2} of {cores:.0} cores are used.",
                percent(*share)
            ),
            Self::RunQueue { throttled, .. } if *throttled >= LIMITS => write!(
                f,
                "The CPU quota of the control group is the bottleneck: it throttles the server {} of the time.",
                percent(*throttled)
            ),
            Self::RunQueue { waiting_threads, used_cores, foreign_cores, .. } => write!(
                f,
                "The run queue is the bottleneck: {waiting_threads:.1} of the server's threads are ready and have no core; it uses \
                 {used_cores:.2} cores, and other programs {foreign_cores:.2}."
            ),
            Self::HeldBack { share, per_request_s, pauses } => {
                write_held_back(f, *share, *per_request_s, *pauses)
            }
            Self::Machine { .. } => self.write_machine(f),
            Self::Network { blocked, unsent_bytes } => write!(
                f,
                "The network is the bottleneck: {} of the time there are bytes that cannot be sent yet, {:.0} kB on average.",
                percent(*blocked),
                unsent_bytes / 1e3
            ),
            Self::Disk { share, threads, written_per_s } => {
                write!(
                    f,
                    "The disk is the bottleneck: {} of the time some thread waits for it, {threads:.1} on average",
                    percent(*share)
                )?;
                match written_per_s.filter(|written| *written > 0.0) {
                    Some(written) => write!(f, ", while the server writes {:.1} MB/s.", written / 1e6),
                    None => f.write_str("."),
                }
            }
            Self::BackEnd { share, waiting } => write!(
                f,
                "The back end is the bottleneck: {} of the time the server waits for an answer of another server, {waiting:.1} on \
                average.",
                percent(*share)
            ),
            Self::Generator { why } => write!(f, "{why}"),
            Self::None { busiest, share } => write!(
                f,
                "No resource is saturated: the busiest is {busiest}, {} of the time.",
                percent(*share)
            ),
        }
    }
}

impl fmt::Display for GeneratorLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { lag_s, response_s } => {
                write!(
                    f,
                    "The generator is the bottleneck: the latest 1 % of the requests left {:.2} ms or more after they were due",
                    lag_s * 1e3
                )?;
                match response_s {
                    Some(response_s) => write!(f, "; the mean response is {:.2} ms.", response_s * 1e3),
                    None => f.write_str("."),
                }
            }
            Self::Busy { thread, used_cores } => write!(
                f,
                "The generator is the bottleneck: its thread {thread} is busy {} of the time.",
                percent(*used_cores)
            ),
            Self::Crowding { used_cores, server_cores } => write!(
                f,
                "The generator is the bottleneck: it uses {used_cores:.2} cores of a fully loaded machine, and the server \
                 {server_cores:.2}."
            ),
        }
    }
}

impl Bottleneck {
    /// A machine that is full limits a server that wants to run, and says nothing of one that is idle.
    fn write_machine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Machine {
            cores,
            busy_cores,
            server_cores,
            waiting_threads,
            generator_cores,
            foreign_cores,
        } = self
        else {
            return Ok(());
        };
        let whose = format!(
            "{server_cores:.2} by the server, {generator_cores:.2} by the generator and {foreign_cores:.2} by other programs or the \
             host"
        );
        if server_cores + waiting_threads < IDLE {
            return write!(
                f,
                "The server is idle on a fully loaded machine: {busy_cores:.1} of {cores:.0} cores are busy, {whose}."
            );
        }
        write!(
            f,
            "The machine is the bottleneck: {busy_cores:.1} of its {cores:.0} cores are busy, {whose}. Run the server on a separate \
             machine to see its own limit."
        )
    }
}

fn write_held_back(
    f: &mut fmt::Formatter<'_>,
    share: f64,
    per_request_s: Option<f64>,
    pauses: Option<AnswerPauses>,
) -> fmt::Result {
    write!(
        f,
        "Nagle's algorithm with delayed acknowledgements is the bottleneck, not the network: {} of the time the server's kernel holds \
         back the last bytes of an answer until the client acknowledges the first ones",
        percent(share)
    )?;
    if let Some(per_request_s) = per_request_s {
        write!(f, ", {} for each request", time(per_request_s))?;
    }
    if let Some(pauses) = pauses.filter(AnswerPauses::are_of_delayed_acknowledgements) {
        write!(f, ". {}", paused(&pauses))?;
    }
    write!(f, ". {NO_DELAY}.")
}

/// The pauses that clients saw, as a clause.
pub fn paused(pauses: &AnswerPauses) -> String {
    let AnswerPauses { first, later, .. } = pauses;
    format!(
        "{} of the answers paused for {} after their first bytes, and {} of the first ones of each connection",
        percent(later.share()),
        time(pauses.mean_s()),
        if first.paused == 0 { "none".to_owned() } else { percent(first.share()) }
    )
}
