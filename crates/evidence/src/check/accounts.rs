//! Do the numbers of a run add up: laws that hold whatever the model, and what became of every request.

use kendall_record::{Outcome, RequestRow};
use kendall_station::Arrivals;

use super::trial_set::{TrialSet, service_s};
use super::{AssumptionVerdict, Check, Finding, RunQueue, Setting};
use crate::seconds::seconds;
use kendall_stats::number::{percent, significant, time};
use kendall_stats::{mean, variance};

/// Little's law holds exactly on a drained trial; this is room for requests that have no end.
const LITTLE: f64 = 0.005;
/// Below this difference, the processor time of a server is that of its requests.
const CPU_OFF: f64 = 0.2;
/// The interactive law holds up to what is under way at both ends.
const INTERACTIVE: f64 = 0.02;
/// The network decides rather than the queue where this share of the response is outside the station.
const MOSTLY_DELAY: f64 = 0.5;

/// Checks Little's law over each whole trial and reports the worst one.
pub(super) fn little(seen: &TrialSet<'_>) -> Option<Finding> {
    let gaps = seen.whole.iter().filter_map(|trial| crate::little(trial.rows));
    let worst = gaps.max_by(|a, b| a.relative_gap.abs().total_cmp(&b.relative_gap.abs()));
    let Some(worst) = worst.filter(|worst| worst.relative_gap.is_finite()) else {
        return Some(Finding::cannot_tell(
            Check::LittlesLaw,
            "No request was completed, so Little's law cannot be checked.",
        ));
    };
    let (number, product) = (worst.mean_in_system, worst.throughput_per_s * worst.mean_response_s);
    let (number, product) = (significant(number, 3), significant(product, 3));
    let (verdict, sentence) = if worst.relative_gap.abs() > LITTLE {
        let sentence = format!(
            "Little's law is broken: {number} requests are in the system on average, but throughput × response time is \
             {product}. Requests or instants are missing from the record: measure again."
        );
        (AssumptionVerdict::Broken, sentence)
    } else {
        let sentence = format!(
            "{number} requests are in the system on average; throughput × response time is {product}."
        );
        (AssumptionVerdict::Holds, sentence)
    };
    Some(Finding::new(Check::LittlesLaw, verdict, sentence).effect("number in system", worst.relative_gap))
}

/// The utilisation law: processors busy = throughput × service time (Denning and Buzen 1978, equation 3), compared with the
/// processor time that the system counted.
pub(super) fn utilisation_law(seen: &TrialSet<'_>, setting: &Setting) -> Option<Finding> {
    let cpu_cores = setting.cpu_cores?;
    let (mut busy_s, mut span_s) = (0.0, 0.0);
    for trial in &seen.whole {
        let first = trial.rows.iter().map(|row| row.scheduled).min();
        let last = trial.rows.iter().filter_map(|row| row.completed).max();
        let (Some(first), Some(last)) = (first, last) else { continue };
        span_s += seconds(last - first);
        busy_s += trial.rows.iter().filter_map(service_s).sum::<f64>();
    }
    if busy_s <= 0.0 || span_s <= 0.0 {
        return Some(Finding::cannot_tell(
            Check::UtilisationLaw,
            "The server reported no service times; start it with --stamps if it can report them.",
        ));
    }
    let busy = busy_s / span_s;
    let effect = cpu_cores / busy - 1.0;
    let (cpu, cores) = (significant(cpu_cores, 3), significant(busy, 3));
    let (verdict, sentence) = if effect > CPU_OFF {
        let sentence = format!(
            "The server used {cpu} cores, but its requests were in service on {cores} only: {} of its work is outside the service \
             time, for example connection handling and system calls. The model does not include this work.",
            percent(effect / (1.0 + effect))
        );
        (AssumptionVerdict::Broken, sentence)
    } else if let Some(queue) = setting.run_queue.filter(|queue| queue.explains(busy, cpu_cores)) {
        let sentence = format!(
            "Requests were in service on {cores} servers at once, but these share {} cores: {} of their threads wait for a core, on \
             average. So service takes {} times as long as it does alone, and longer the more requests are in service. Model a station \
             with fewer servers that share, or run as many workers as there are cores, to measure the true service time.",
            queue.cores,
            significant(queue.waiting_threads, 3),
            significant(busy / cpu_cores, 2),
        );
        (AssumptionVerdict::Broken, sentence)
    } else if effect < -CPU_OFF {
        let sentence = format!(
            "Requests were in service on {cores} servers, which used {cpu} cores: service waits for something other than a processor, \
             such as a disk, a lock or another process."
        );
        (AssumptionVerdict::Broken, sentence)
    } else {
        (
            AssumptionVerdict::Holds,
            format!("The server used {cpu} cores, and rate × service time is {cores}."),
        )
    };
    Some(Finding::new(Check::UtilisationLaw, verdict, sentence).effect("processor time", effect))
}

impl RunQueue {
    /// Whether most of the time in service beyond that of processors passes in waiting for one.
    fn explains(self, busy: f64, cpu_cores: f64) -> bool {
        let missing = busy - cpu_cores;
        missing > CPU_OFF * busy && self.waiting_threads >= 0.5 * missing
    }
}

/// The interactive response-time law of a closed population: N = X(R + Z) (Denning and Buzen 1978, section 4).
pub(super) fn interactive_law(seen: &TrialSet<'_>) -> Option<Finding> {
    let Arrivals::Closed { population, think } = &seen.station.arrivals else { return None };
    let (mut answered, mut span_s) = (0usize, 0.0);
    for instants in seen.instants_ns(|row| row.response_ns().and(row.completed)) {
        if let [first, .., last] = instants.as_slice() {
            answered += instants.len() - 1;
            span_s += seconds(last - first);
        }
    }
    let (Some(response_s), true) = (seen.mean_response_s(), answered >= 20 && span_s > 0.0) else {
        let sentence = format!("{answered} answers are too few to check the interactive law; run longer.");
        return Some(Finding::cannot_tell(Check::InteractiveLaw, sentence));
    };
    let users = answered as f64 / span_s * (response_s + think.mean_s());
    let effect = users / f64::from(*population) - 1.0;
    // What is measured of X, R and Z is known to about 1/√n.
    let limit = INTERACTIVE + 3.0 / (answered as f64).sqrt();
    let shown = significant(users, 3);
    let (verdict, sentence) = if effect.abs() > limit {
        let sentence = format!(
            "Throughput × (response + think time) is {shown}, but there are {population} users: the number of users, the think time or \
             the response times are wrong."
        );
        (AssumptionVerdict::Broken, sentence)
    } else {
        (
            AssumptionVerdict::Holds,
            format!("Throughput × (response + think time) is {shown}, for {population} users."),
        )
    };
    Some(Finding::new(Check::InteractiveLaw, verdict, sentence).effect("users", effect))
}

/// Whether every request was answered.
pub(super) fn loss(seen: &TrialSet<'_>) -> Option<Finding> {
    let count = |outcome: Outcome| seen.rows().filter(|row| row.outcome == outcome).count();
    let [refused, timed_out, unanswered] =
        [Outcome::Refused, Outcome::TimedOut, Outcome::Unanswered].map(count);
    let (lost, all) = (refused + timed_out + unanswered, seen.count());
    if all == 0 {
        return Some(Finding::cannot_tell(
            Check::Loss,
            "No request was due after the warm-up; run longer, or shorten the warm-up.",
        ));
    }
    let share = lost as f64 / all as f64;
    // A model of limited capacity rejects requests, too.
    if lost == refused && seen.station.capacity.is_some() {
        return None;
    }
    let (verdict, sentence) = if lost == 0 {
        (AssumptionVerdict::Holds, format!("All {all} requests were answered."))
    } else {
        let sentence = format!(
            "{lost} of {all} requests ({}) had no answer: {refused} refused, {timed_out} timed out, {unanswered} unanswered at \
             the end. Response times count only the others.",
            percent(share)
        );
        (AssumptionVerdict::Broken, sentence)
    };
    Some(
        Finding::new(Check::Loss, verdict, sentence)
            .statistic("lost", lost as f64)
            .effect("requests lost", share),
    )
}

/// Whether every answer was right: a fast answer that is wrong is not a service.
pub(super) fn answers(seen: &TrialSet<'_>) -> Option<Finding> {
    let wrong = seen.rows().filter(|row| row.outcome == Outcome::Wrong).count();
    let all = seen.rows().filter(|row| row.response_ns().is_some()).count();
    if all == 0 {
        return Some(Finding::cannot_tell(
            Check::Answers,
            "No request was answered, so no answer can be checked.",
        ));
    }
    let share = wrong as f64 / all as f64;
    let finding = if wrong == 0 {
        Finding::new(Check::Answers, AssumptionVerdict::Holds, format!("All {all} answers were right."))
    } else {
        let sentence = format!(
            "{wrong} of {all} answers ({}) were wrong, so their response times do not measure the service. Repair the server before you use \
             the figures.",
            percent(share)
        );
        Finding::new(Check::Answers, AssumptionVerdict::Broken, sentence)
    };
    Some(finding.statistic("wrong", wrong as f64).effect("wrong answers", share))
}

/// After these times a connection or a packet is tried again: a SYN after 1, 3 and 7 s (linearly, 1 to 4 s, from Linux 6.5
/// on), the first data after 0.2, 0.4 and 0.8 s (RFC 6298, and its lower limit in Linux).
const RETRIES_MS: [i64; 8] = [200, 400, 800, 1_000, 2_000, 3_000, 4_000, 7_000];
/// How near to one of these times.
const NEAR_NS: i64 = 10_000_000;

/// Whether times outside the station pile up where a lost packet is sent again: then an accept queue overflowed, or the
/// link lost some, without any request being lost.
pub(super) fn retries(seen: &TrialSet<'_>) -> Option<Finding> {
    let outside = |row: &RequestRow| Some(row.response_ns()? - (row.finished? - row.queued?));
    let mut outside_ns: Vec<i64> = seen.rows().filter_map(outside).collect();
    if outside_ns.len() < 20 {
        return Some(Finding::cannot_tell(
            Check::Retries,
            "Fewer than 20 answers have the server's timestamps; start it with --stamps if it can report them, or run longer.",
        ));
    }
    outside_ns.sort_unstable();
    let usual = outside_ns[outside_ns.len() / 2];
    let between = |from: i64, to: i64| {
        outside_ns.partition_point(|&ns| ns <= usual + to)
            - outside_ns.partition_point(|&ns| ns < usual + from)
    };
    let (mut at_retries, mut beside) = (0, 0);
    for at in RETRIES_MS.map(|ms| 1_000_000 * ms) {
        at_retries += between(at - NEAR_NS, at + NEAR_NS);
        beside += between(at - 3 * NEAR_NS, at - NEAR_NS - 1) + between(at + NEAR_NS + 1, at + 3 * NEAR_NS);
    }
    let share = at_retries as f64 / outside_ns.len() as f64;
    // The neighbouring windows are twice as wide: three times their density means that times pile up.
    let finding = if at_retries >= 3 && 2 * at_retries > 3 * beside {
        let sentence = format!(
            "{at_retries} requests ({}) took 0.2, 0.4, 0.8, 1, 2, 3, 4 or 7 s longer than usual, the delays of TCP retransmissions: an \
             accept queue overflowed, or the link drops packets. No queueing model includes these delays: lengthen the accept queue, or \
             find where packets are lost.",
            percent(share)
        );
        Finding::new(Check::Retries, AssumptionVerdict::Broken, sentence)
    } else {
        Finding::new(
            Check::Retries,
            AssumptionVerdict::Holds,
            "No response time shows the delay of a TCP retransmission.",
        )
    };
    Some(finding.statistic("at pauses", at_retries as f64).effect("requests", share))
}

/// How much of the response time passes outside the station.
pub(super) fn delay(seen: &TrialSet<'_>) -> Option<Finding> {
    let outside = |row: &RequestRow| Some(seconds(row.response_ns()? - (row.finished? - row.queued?)));
    let mut outside_s: Vec<f64> = seen.rows().filter_map(outside).collect();
    let (Some(response_s), true) = (seen.mean_response_s(), outside_s.len() >= 20) else {
        return Some(Finding::cannot_tell(
            Check::Delay,
            "Fewer than 20 answers have the server's timestamps; start it with --stamps if it can report them, or run longer.",
        ));
    };
    outside_s.sort_by(f64::total_cmp);
    let delay_s = outside_s[outside_s.len() / 2].max(0.0);
    let share = if response_s > 0.0 { delay_s / response_s } else { 0.0 };
    let spread = variance(&outside_s).sqrt() / mean(&outside_s);
    let (shown, all) = (time(delay_s), time(response_s));
    let (verdict, sentence) = if share > MOSTLY_DELAY {
        let sentence = format!(
            "{shown} of {all} pass outside the station: the network and the operating systems at both ends dominate, not the queue. \
             Add this time to the model as a delay."
        );
        (AssumptionVerdict::Broken, sentence)
    } else {
        (AssumptionVerdict::Holds, format!("{shown} of {all} pass outside the station."))
    };
    let finding = Finding::new(Check::Delay, verdict, sentence).statistic("coefficient of variation", spread);
    Some(finding.effect("response outside", share))
}
