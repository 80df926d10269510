//! The one judge of the generator: who limited a run, the server or the generator that was to measure it. The terminal, the
//! pages, the records, the search for a peak, the check of a model's assumptions and the bottleneck of a server all show or ask
//! this verdict. Every threshold stands here, with its reason.
//!
//! A run is generator-limited where requests left late although a connection was free, where the generator had hardly any
//! time to spare, where it ran out of ports or files, where the sends were not what was asked for in rate or law, or where its
//! books do not balance. What it measured then is partly itself. A wait for a connection is not its fault, but a doubt, and so is
//! a generator that has more of a full machine than the server; a server that cannot follow is a result.

mod sentence;
mod verdict;

use kendall_evidence::check::{SendLateness, SendsJudged};
use kendall_evidence::peak::{self, Aim, Sighting};
use kendall_load::{Lag, LagShare, RunSummary, Timing};
use kendall_probe::Summary;
use kendall_record::Outcome;
use kendall_station::{Arrivals, Law};
use kendall_stats::number::{percent, significant, time};
use kendall_stats::{LittleCheck, anderson_darling_exponential};

use crate::disturbance::Surroundings;
use crate::machine_use::{foreign_cores, is_full};

pub use sentence::statuses;
pub use verdict::{
    Check, Checked, Crowding, Doubt, GeneratorVerdict, Limit, ProcessJudged, Remark, Trust, WaitCause,
};

/// Lags up to this are as good as none, in microseconds: about what waking a thread takes.
const FINE_LAG_US: f64 = 50.0;
/// Nor does a lag count that makes up no more than this share of the response times: their own interval is rarely narrower.
const LAG_SHARE: f64 = 0.05;
/// Up to this share the lag is remarked on, with its remedy: the figures are a little too long, and which of two servers is faster
/// they still say. Beyond it they are partly the generator's.
const LAG_BREAKS: f64 = 0.2;
/// With fewer responses the p99 is one single request: only from here on is there an upper end, with 95 % confidence, to what
/// 99 % of all stay within (0.99²⁹⁹ < 0.05).
const TELLS_P99: u64 = 299;
/// A generator that uses more of a core than this has no time to spare for a burst.
const BUSY: f64 = 0.8;
/// The achieved rate may differ from the rate that was due by this share: ten times less than what Lancet allows, and more than
/// a schedule of thousands of requests loses to its ends.
const RATE: f64 = 0.01;
/// A generator that waits longer than this share of a run for a processor is not alone on its core.
const RUN_QUEUE: f64 = 0.1;
/// p-values below this count as significant.
const SIGNIFICANT: f64 = 1e-3;
/// Gaps whose coefficient of variation differs by no more load a server like those asked for.
const GAP_CV: f64 = 0.05;
/// Standard errors that the coefficient of variation of a sample may be off; 1/√n each for exponential gaps. Of 222 of these it is off by
/// more than 3 in 0.43 % of the trials, one run of 25 trials in ten, and by more than 5 in 0.009 %.
const CV_ERRORS: f64 = 5.0;
/// The same for the index of dispersion.
const DISPERSION: f64 = 0.1;
/// Books balance if Little's law is off by no more.
const LITTLE: f64 = 0.005;
/// Fewer gaps than this have no law.
const GAPS: usize = 100;
/// Fewer sends than this have no rate.
const DUE_AT_LEAST: u64 = 20;
/// The lag may be this share of an objective for response times: less does not decide whether it is met.
const LATE_OF_OBJECTIVE: f64 = 0.1;

/// Judges the generator of a run by the figures that it counted, against the arrivals that it was to make, and by what was seen
/// of the machine, where that was watched. `surroundings` are those of a load that is judged alone; trials of a run are compared with
/// each other.
pub fn judge(
    run: &RunSummary,
    arrivals: &Arrivals,
    watched: Option<&Summary>,
    surroundings: Option<&Surroundings>,
) -> GeneratorVerdict {
    let mut judge = Judge::default();
    judge.lag(run);
    judge.rate(run, arrivals);
    judge.processor(run);
    judge.law(run, arrivals);
    judge.little(run);
    judge.connections(run);
    judge.limit(run.own_failures == 0, Limit::OwnFailures { count: run.own_failures });
    let Judge { checks, limits, remarks } = judge;
    let (waited, turned_away) = (run.waited_for_connection, run.turned_away);
    let unanswered = run.count(Outcome::Unanswered);
    let disturbed = surroundings.filter(|seen| seen.is_noticeable()).cloned().map(Doubt::Disturbed);
    let stalled = surroundings.and_then(Surroundings::noticeable_stalls).map(Doubt::Stalled);
    let cause = match (&disturbed, &stalled) {
        (None, None) => WaitCause::Connections,
        _ => WaitCause::Disturbance,
    };
    let doubts = [
        disturbed,
        stalled,
        (waited > 0).then_some(Doubt::Connections { waited, sent: run.sent, cause }),
        (turned_away > 0).then_some(Doubt::TurnedAway { count: turned_away }),
        (unanswered > 0).then_some(Doubt::Unanswered { count: unanswered }),
        watched.and_then(crowding).map(Doubt::Crowding),
    ];
    let doubts: Vec<Doubt> = doubts.into_iter().flatten().collect();
    let trust = match (limits.is_empty(), doubts.is_empty()) {
        (false, _) => Trust::GeneratorLimited,
        (true, false) => Trust::Doubtful,
        (true, true) => Trust::Trustworthy,
    };
    GeneratorVerdict { trust, checks, limits, doubts, remarks }
}

impl GeneratorVerdict {
    /// The verdict in the form that the search for a server's bottleneck needs.
    pub fn process(&self) -> ProcessJudged {
        if self.has(|limit| matches!(limit, Limit::Late { .. })) {
            ProcessJudged::Late
        } else if self.has(|limit| matches!(limit, Limit::Busy { .. })) {
            ProcessJudged::Busy
        } else {
            ProcessJudged::Sound
        }
    }

    fn has(&self, wanted: fn(&Limit) -> bool) -> bool {
        self.limits.iter().any(wanted)
    }

    /// How the generator may have decided whether a run met its objective: those of its limits that matter to the objective. A
    /// rate that passes although the generator was late passes, because the lag counts as response time. A rate that fails by
    /// more than the lag fails: an overloaded server misses the objective by more than any lag, and a server that keeps the
    /// generator waiting for the processor that they share is not the generator's fault.
    pub fn decided(&self, lag_p99_s: f64, seen: &Sighting, aim: &Aim) -> Option<String> {
        // The thread that sends late reads answers late, too.
        let late_s = 2.0 * lag_p99_s;
        let fails_anyway = seen.value_s.is_some_and(|value| value.value - late_s > aim.slo.at_most_s);
        if seen.outcome(aim) == peak::Outcome::Pass {
            return None;
        }
        let matters = |limit: &&Limit| match limit {
            // A request without a connection has no response time, and counts as failed.
            Limit::OwnFailures { .. } => true,
            _ if fails_anyway => false,
            Limit::Late { .. } | Limit::Busy { .. } | Limit::Waited { .. } => {
                late_s > LATE_OF_OBJECTIVE * aim.slo.at_most_s
            }
            Limit::Rate { .. } | Limit::Gaps { .. } | Limit::Dispersion { .. } | Limit::Little { .. } => true,
        };
        let matter: Vec<String> = self.limits.iter().filter(matters).map(ToString::to_string).collect();
        (!matter.is_empty()).then(|| matter.join("; "))
    }
}

/// The verdicts on the trials of one combination in the form that the check of a model's assumptions needs, and the send lag by their
/// rows.
///
/// Requests left late where the generator limited a trial by that, or a remark says so: a model is held to less than what breaks the
/// figures. They did also if they waited so much for a connection that it shows in the response times, which is not a fault of the
/// generator: that takes the same share as a lag. Of trials that an earlier version recorded without a verdict only the rows are known.
pub fn sends<'a>(
    verdicts: impl Iterator<Item = &'a GeneratorVerdict>,
    lateness: Option<&SendLateness>,
) -> SendsJudged {
    let shows = lateness.is_some_and(|late| late.mean_share.max(late.p99_share) > LAG_SHARE);
    let mut judged = SendsJudged { on_schedule: true, at_rate: true };
    for verdict in verdicts {
        let waited = verdict.doubts.iter().any(|doubt| matches!(doubt, Doubt::Connections { .. }));
        let is_unjudged = verdict.checks.is_empty();
        let late = verdict.process() == ProcessJudged::Late || !verdict.remarks.is_empty();
        let late = late || (shows && (waited || is_unjudged));
        judged.on_schedule &= !late;
        judged.at_rate &= !verdict.has(|limit| matches!(limit, Limit::Rate { .. }));
    }
    judged
}

/// Whether the generator took more of a full machine than the server and than all others: then the server had what the generator
/// left of it. Halves are no reason to doubt, since a generator with much work and a server with little need more.
pub fn crowding(watched: &Summary) -> Option<Crowding> {
    let (generator, server) = (watched.generator.as_ref()?, watched.server.as_ref()?);
    let (used_cores, server_cores) = (generator.cpu_cores, server.cpu_cores);
    let crowded = is_full(watched) && used_cores > server_cores && used_cores > foreign_cores(watched);
    crowded.then_some(Crowding { used_cores, server_cores })
}

/// The largest share of the response times that a lag of the generator makes up.
fn lag_share(share: LagShare, responses: u64) -> f64 {
    let LagShare { mean, p50, p99 } = share;
    let p99 = if responses < TELLS_P99 { 0.0 } else { p99 };
    mean.max(p50).max(p99)
}

/// The lag of a generator, or of one of its threads.
#[derive(Clone, Copy)]
struct LagJudged {
    /// The thread's number, from 1; `None` for all of them.
    thread: Option<usize>,
    p99_s: f64,
    share: f64,
    fine: bool,
    held: bool,
}

impl LagJudged {
    fn new(thread: Option<usize>, lag: Lag, share: f64) -> Self {
        let fine = as_shown(&significant(lag.p99_ns as f64 / 1e3, 3)) <= FINE_LAG_US;
        let held = fine || as_shown(&percent(share)) <= 100.0 * LAG_BREAKS;
        Self { thread, p99_s: lag.p99_ns as f64 / 1e9, share, fine, held }
    }

    /// That of all threads, or that of the latest one if it limits the run.
    fn worst(run: &RunSummary) -> Self {
        let all = Self::new(None, run.lag, lag_share(run.lag_share, run.responses()));
        let threads = run.threads.iter().zip(1..);
        let threads =
            threads.map(|(one, number)| Self::new(Some(number), one.lag, lag_share(one.lag_share, one.sent)));
        let limits = threads.filter(|one| !one.held).max_by(|a, b| a.share.total_cmp(&b.share));
        limits.unwrap_or(all)
    }
}

/// Which of several threads a figure is of, to follow the figure.
fn of_threads(which: &str, run: &RunSummary) -> String {
    match run.threads.len() {
        0 | 1 => String::new(),
        threads => format!(", the {which} of {threads} threads"),
    }
}

/// Checks as they are made, and what they find wrong.
#[derive(Default)]
struct Judge {
    checks: Vec<Check>,
    limits: Vec<Limit>,
    remarks: Vec<Remark>,
}

impl Judge {
    fn check(
        &mut self,
        what: Checked,
        asked: impl Into<String>,
        found: impl Into<String>,
        held: Option<bool>,
    ) {
        self.checks.push(Check { what, asked: asked.into(), found: found.into(), held });
    }

    fn limit(&mut self, held: bool, limit: Limit) {
        if !held {
            self.limits.push(limit);
        }
    }

    /// The rate from the first send to the last. Sends that waited for a connection were not the generator's to make; nor is the
    /// time that the first or the last took to connect, which over a link of 50 ms is 1 % of five seconds.
    fn rate(&mut self, run: &RunSummary, arrivals: &Arrivals) {
        let (achieved, due) = (run.sends.per_s, run.sends.due_per_s);
        if matches!(arrivals, Arrivals::Closed { .. } | Arrivals::Attended(_))
            || due <= 0.0
            || run.sends.count < 2
        {
            return;
        }
        let ratio = achieved / due;
        let found = format!("{}/s of {}/s", significant(achieved, 4), significant(due, 4));
        let gaps = (run.sends.count - 1) as f64;
        let (span_s, due_s) = (gaps / achieved, gaps / due);
        let connecting_s = run.send_lag.max_ns.saturating_sub(run.lag.max_ns) as f64 / 1e9;
        let [shown, shown_due] = [achieved, due].map(|per_s| as_shown(&significant(per_s, 4)));
        let held = (shown / shown_due - 1.0).abs() <= RATE + 1e-9;
        let (found, held) = match (span_s - due_s).abs() - connecting_s <= RATE * due_s {
            true if !held => (format!("{found}; {} to connect explain that", time(connecting_s)), true),
            _ => (found, held),
        };
        let waited = run.waited_for_connection > 0;
        let is_measurable = run.sends.count >= DUE_AT_LEAST && (held || !waited);
        self.check(
            Checked::Rate,
            "within 1 % of what was due, connecting aside",
            found,
            is_measurable.then_some(held),
        );
        self.limit(held || !is_measurable, Limit::Rate { ratio });
    }

    fn lag(&mut self, run: &RunSummary) {
        let LagJudged { thread, p99_s: lag_p99_s, share, fine, held } = LagJudged::worst(run);
        let of = thread.map_or_else(String::new, |number| format!(" of thread {number}"));
        let found = format!("99 %{of} within {}, {} of the response", time(lag_p99_s), percent(share));
        let asked = "p99 within 50 µs, or at most 20 % of the response";
        self.check(Checked::Lag, asked, found, (run.sent > 0).then_some(held));
        self.limit(held, Limit::Late { lag_p99_s, share });
        if held && !fine && share > LAG_SHARE {
            self.remarks.push(Remark::Late { lag_p99_s, share, timing: run.thread.timing });
        }
    }

    fn processor(&mut self, run: &RunSummary) {
        let core_share = run.core_share();
        let found = format!("{} of a core{}", percent(core_share), of_threads("busiest", run));
        if run.thread.timing == Timing::Precise {
            self.check(Checked::Processor, "no limit: the generator spins", found, None);
        } else {
            let held = as_shown(&percent(core_share)) <= 100.0 * BUSY;
            self.check(Checked::Processor, "at most 80 % of a core", found, Some(held));
            self.limit(held, Limit::Busy { core_share });
        }
        if let Some(run_queue_s) = run.thread.run_queue_s {
            let share = run_queue_s / run.wall_s.max(1e-9);
            let held = as_shown(&percent(share)) <= 100.0 * RUN_QUEUE;
            let found = format!("{} of the run{}", percent(share), of_threads("most delayed", run));
            self.check(Checked::RunQueue, "at most 10 % of the run", found, Some(held));
            self.limit(held, Limit::Waited { share });
        }
    }

    /// Chance and effect together: of a million gaps every trifle is significant, and of a hundred hardly anything is.
    fn law(&mut self, run: &RunSummary, arrivals: &Arrivals) {
        let Arrivals::Open { gap } = arrivals else { return };
        let (sends, asked) = (&run.sends, gap.scv().sqrt());
        if sends.count <= GAPS as u64 || run.waited_for_connection > 0 || !asked.is_finite() {
            let why = if run.waited_for_connection > 0 { "some waited for a connection" } else { "too few" };
            self.check(Checked::Gaps, words(gap), why, None);
            return;
        }
        let allowed = GAP_CV.max(CV_ERRORS * asked / (sends.count as f64).sqrt()) * asked.max(1.0);
        let near = is_within(sends.gap_cv, asked, allowed);
        let chance = chance(&sends.gaps_ns, gap);
        let found = match chance {
            Some((statistic, p)) => {
                let (cv, statistic) = (significant(sends.gap_cv, 3), significant(statistic, 2));
                if p < SIGNIFICANT {
                    let effect = if near { ", too small to matter" } else { "" };
                    format!("CV {cv}; A² {statistic}: p < {SIGNIFICANT}{effect}")
                } else {
                    format!("CV {cv}; A² {statistic}: p = {} ≥ {SIGNIFICANT}", significant(p, 2))
                }
            }
            None => format!("CV {}", significant(sends.gap_cv, 3)),
        };
        let wanted = format!("{} ± {}", words(gap), significant(allowed, 2));
        self.check(Checked::Gaps, wanted, found, Some(near));
        self.limit(near, Limit::Gaps { cv: sends.gap_cv, asked });
        self.dispersion(run, gap);
    }

    /// The index of dispersion of the counts is 1 at every width for Poisson arrivals, and 0 for constant ones; of others it
    /// depends on the width.
    fn dispersion(&mut self, run: &RunSummary, gap: &Law) {
        let asked = match gap {
            Law::Exponential { .. } => 1.0,
            Law::Constant { .. } => 0.0,
            _ => return,
        };
        // A window must hold a send at least, or constant gaps do not show.
        let counted: Vec<&kendall_load::Dispersion> =
            run.sends.dispersion.iter().filter(|one| asked > 0.0 || one.window_s >= gap.mean_s()).collect();
        if counted.is_empty() {
            return;
        }
        // Four standard errors of the index (Cox and Lewis, 1966, section 6.3). Short constant gaps leave a fraction of a send in each
        // window, which is 1/4 at most over its mean.
        let allowed = |one: &kendall_load::Dispersion| {
            let fraction = if asked == 0.0 { 0.25 * gap.mean_s() / one.window_s } else { 0.0 };
            DISPERSION + 4.0 * asked * (2.0 / one.windows as f64).sqrt() + fraction
        };
        let wanted: Vec<String> = counted
            .iter()
            .map(|one| format!("{} in {}", significant(allowed(one), 2), whole_time(one.window_s)))
            .collect();
        let found: Vec<String> = counted.iter().map(|one| significant(one.index, 3)).collect();
        let held = counted.iter().all(|one| is_within(one.index, asked, allowed(one)));
        let off = |one: &kendall_load::Dispersion| (one.index - asked).abs() - allowed(one);
        let worst =
            counted.iter().copied().max_by(|a, b| off(a).total_cmp(&off(b))).expect("it is not empty");
        let wanted = format!("{} ± {}", significant(asked, 1), wanted.join(", "));
        self.check(Checked::Dispersion, wanted, found.join(", "), Some(held));
        self.limit(held, Limit::Dispersion { index: worst.index, asked });
    }

    fn little(&mut self, run: &RunSummary) {
        if run.little.in_system_s <= 0.0 {
            return;
        }
        let (wall_s, sent) = (run.wall_s.max(1e-9), run.sent.max(1) as f64);
        let law =
            LittleCheck::new(run.little.in_system_s / wall_s, sent / wall_s, run.little.responses_s / sent);
        let found = format!("off by {}", percent(law.relative_gap.abs()));
        let held = law.holds() || as_shown(&percent(law.relative_gap.abs())) <= 100.0 * LITTLE;
        self.check(Checked::Little, "L = λW within 0.5 %", found, Some(held));
        self.limit(held, Limit::Little { gap: law.relative_gap });
    }

    fn connections(&mut self, run: &RunSummary) {
        let waited = run.waited_for_connection;
        let found = match waited {
            0 => format!("none, {} opened", run.connections_opened),
            _ => format!(
                "{waited} of {} waited, 99 % up to {}",
                run.sent,
                time(run.wait_for_connection.p99_ns as f64 / 1e9)
            ),
        };
        self.check(Checked::Connections, "no request waits for one", found, Some(waited == 0));
    }
}

/// The chance of gaps like these by their law: the test of Anderson and Darling, after what turns that law into the
/// exponential one. `None` for a law without a density, or too few gaps.
fn chance(gaps_ns: &[u64], gap: &Law) -> Option<(f64, f64)> {
    if gaps_ns.len() < GAPS || gap.scv() <= 0.0 {
        return None;
    }
    // −ln of the chance of a longer gap is exponential, whatever the law.
    let exponential = |&ns: &u64| match gap {
        Law::Exponential { .. } => ns as f64,
        _ => -gap.survival(ns as f64 / 1e9).max(f64::MIN_POSITIVE).ln(),
    };
    let values: Vec<f64> = gaps_ns.iter().map(exponential).collect();
    anderson_darling_exponential(&values).map(|tested| (tested.statistic, tested.p_value))
}

/// The number that a text begins with, as its reader sees it: a check judges what it shows, so that no row is "ok" beside a number that
/// is outside of its bounds by a digit that was rounded off.
fn as_shown(text: &str) -> f64 {
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

/// Whether what was found is no further than allowed from what was asked for, each as its row shows it.
fn is_within(found: f64, asked: f64, allowed: f64) -> bool {
    let [found, asked, allowed] =
        [significant(found, 3), significant(asked, 3), significant(allowed, 2)].map(|shown| as_shown(&shown));
    // Decimal digits are not binary ones.
    (found - asked).abs() <= allowed + 1e-9
}

/// A law of gaps in words.
fn words(gap: &Law) -> String {
    format!("{} gaps, CV {}", gap.name(), significant(gap.scv().sqrt(), 3))
}

/// A time that is whole in its unit.
fn whole_time(time_s: f64) -> String {
    format!("{} ms", (time_s * 1e3).round())
}

#[cfg(test)]
mod consistent;
#[cfg(test)]
mod places;
#[cfg(test)]
mod tests;
