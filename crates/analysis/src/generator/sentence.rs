//! The verdict on the generator in words.

use std::fmt;

use kendall_load::{RunSummary, Timing};
use kendall_record::Outcome;
use kendall_stats::number::{count, counted, percent, significant, time};

use super::{Checked, Doubt, GeneratorVerdict, Limit, Remark, Trust, WaitCause};

/// The share of failed requests from which on the first line of a result is about them.
const FAILED_SHARE: f64 = 0.01;

impl GeneratorVerdict {
    /// The first line of a result: what happened to the requests, where many failed, and the verdict on the generator.
    pub fn headline_of(&self, run: &RunSummary) -> String {
        let answered = run.count(Outcome::Answered);
        let failed = run.sent.saturating_sub(answered);
        if failed == 0 || (failed as f64) < FAILED_SHARE * run.sent as f64 {
            return self.headline();
        }
        let failures = Outcome::ALL.iter().filter(|outcome| **outcome != Outcome::Answered);
        let failures = failures.filter(|outcome| run.count(**outcome) > 0);
        let list: Vec<String> =
            failures.map(|&outcome| format!("{} {}", count(run.count(outcome)), outcome.name())).collect();
        let why = run.refused_because.as_ref().map_or_else(String::new, |why| format!(" (the first: {why})"));
        let statuses = statuses(run).map_or_else(String::new, |statuses| format!("; {statuses}"));
        let list = list.join(", ") + &why + &statuses;
        let requests = counted(run.sent, "request");
        let failures = match (answered, only_status(run)) {
            (0, Some(status)) => format!("FAILED: every answer had status {status} ({requests})."),
            (0, None) => format!("FAILED: none of {requests} was answered as expected: {list}."),
            _ => format!("{} of {requests} failed: {list}.", percent(failed as f64 / run.sent as f64)),
        };
        // That the generator was on time means little where nothing was answered.
        match (answered, self.trust) {
            (0, Trust::Trustworthy | Trust::Doubtful) => failures,
            _ => format!("{failures} {}", self.headline()),
        }
    }

    /// The verdict in a sentence, with further remarks.
    pub fn headline(&self) -> String {
        let remarks = self.remarks.iter().filter(|_| self.limits.is_empty());
        remarks.fold(self.verdict(), |line, remark| format!("{line} Remark: {remark}."))
    }

    fn verdict(&self) -> String {
        let list = |reasons: Vec<String>| reasons.join("; ");
        match self.trust {
            Trust::GeneratorLimited => {
                // What took the machine is why the generator was late.
                let causes = self
                    .doubts
                    .iter()
                    .filter(|doubt| matches!(doubt, Doubt::Disturbed(_) | Doubt::Stalled(_)));
                let reasons =
                    self.limits.iter().map(ToString::to_string).chain(causes.map(ToString::to_string));
                format!("GENERATOR-LIMITED: {}.", list(reasons.collect()))
            }
            Trust::Doubtful => {
                format!("Doubtful: {}.", list(self.doubts.iter().map(ToString::to_string).collect()))
            }
            Trust::Trustworthy => {
                let said = |what: Checked, say: &dyn Fn(&str) -> String| {
                    let check =
                        self.checks.iter().find(|check| check.what == what && check.held == Some(true));
                    check.map(|check| say(&check.found))
                };
                let parts = [
                    said(Checked::Lag, &|found| format!("sent on schedule ({found})"))
                        .filter(|_| self.remarks.is_empty()),
                    said(Checked::Processor, &|found| format!("the generator used {found}")),
                    said(Checked::Gaps, &|_| "gaps as asked".to_owned()),
                    said(Checked::Little, &|_| "Little’s law holds".to_owned()),
                ];
                format!("Trustworthy: {}.", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// How many answers had each status, as "status: 200 × 98, 404 × 2"; `None` in a protocol without statuses.
pub fn statuses(run: &RunSummary) -> Option<String> {
    let counts: Vec<String> =
        run.statuses.iter().map(|(status, &answers)| format!("{status} × {}", count(answers))).collect();
    (!counts.is_empty()).then(|| format!("status: {}", counts.join(", ")))
}

/// The status that every request was answered with, if there is one.
fn only_status(run: &RunSummary) -> Option<u16> {
    let mut statuses = run.statuses.iter();
    let (&status, &count) = statuses.next()?;
    (statuses.next().is_none() && count == run.sent).then_some(status)
}

impl Checked {
    /// The check's name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Lag => "lag with a free connection",
            Self::Processor => "generator’s processor",
            Self::RunQueue => "generator’s run queue",
            Self::Gaps => "law of the gaps",
            Self::Dispersion => "dispersion of the sends",
            Self::Little => "Little’s law",
            Self::Connections => "waits for a connection",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Late { lag_p99_s, share } => write!(
                f,
                "requests left late, 1 % of them by over {}, which is up to {} of the response times; use --timing precise, or reserve \
                 a core for the generator",
                time(lag_p99_s),
                percent(share)
            ),
            Self::Busy { core_share } => {
                write!(
                    f,
                    "the generator was busy for {} of the time; send from more cores with --generator-threads",
                    percent(core_share)
                )
            }
            Self::Waited { share } => {
                write!(
                    f,
                    "other programs kept the generator from its core for {} of the time",
                    percent(share)
                )
            }
            Self::Rate { ratio } => write!(f, "it sent {} of the requests due per second", percent(ratio)),
            Self::Gaps { cv, asked } => write!(
                f,
                "the gaps between sends vary by {} of their mean, where {} was requested",
                percent(cv),
                percent(asked)
            ),
            Self::Dispersion { index, asked } => write!(
                f,
                "the sends bunch: their index of dispersion is {}, where {} was requested",
                significant(index, 2),
                significant(asked, 1)
            ),
            Self::OwnFailures { count } => {
                let failed = counted(count, "connection");
                write!(f, "{failed} failed because the generator had no port or file left")
            }
            Self::Little { gap } => {
                write!(f, "its counts do not add up: Little’s law is off by {}", percent(gap.abs()))
            }
        }
    }
}

impl Remark {
    /// The remark without its figures, so that trials with the same remark share one sentence.
    pub fn brief(&self) -> &'static str {
        match self {
            Self::Late { timing: Timing::Sleep, .. } => {
                "requests left a little late, which shows in the response times; timing = \"precise\" sends them on time"
            }
            Self::Late { timing: Timing::Precise, .. } => {
                "requests left a little late, which shows in the response times; reserve a core for the generator"
            }
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Late { lag_p99_s, share, timing } = *self;
        let remedy = match timing {
            Timing::Precise => "reserve a core for the generator",
            Timing::Sleep => "--timing precise sends them on time",
        };
        let (lag, share) = (time(lag_p99_s), percent(share));
        write!(
            f,
            "1 % of the requests left over {lag} late, which is up to {share} of the response times; {remedy}"
        )
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disturbed(surroundings) => write!(
                f,
                "{surroundings}; wait until it is quiet (kendall doctor --wait-quiet 1m), or measure on another machine"
            ),
            Self::Stalled(stalls) => write!(
                f,
                "this machine stalled: an idle thread woke up to {} late, {} of the run in all",
                time(stalls.longest_s),
                percent(stalls.share)
            ),
            Self::Connections { waited, sent, cause } => {
                let advice = match cause {
                    WaitCause::Connections => "allow more connections",
                    WaitCause::Disturbance => "the disturbance explains that",
                };
                let (waited, sent) = (count(*waited), counted(*sent, "request"));
                write!(f, "{waited} of {sent} waited for a free connection; {advice}")
            }
            Self::TurnedAway { count } => {
                let unsent = counted(*count, "request");
                write!(f, "dropped unsent: {unsent}, because too many were waiting for a connection")
            }
            // Without its figures, so that all trials of a run say it once.
            Self::Crowding(_) => f.write_str(
                "the generator used more of a full machine than the server; use a machine with more cores, or run the generator on \
                 another machine",
            ),
            Self::Unanswered { count } => {
                let out = counted(*count, "request");
                write!(f, "unanswered at the end: {out}, so the longest response times are unknown")
            }
        }
    }
}
