//! The verdict on the generator in words.

use std::fmt;

use kendall_load::RunSummary;
use kendall_record::Outcome;
use kendall_stats::number::{percent, significant, time};

use super::{Checked, Doubt, GeneratorVerdict, Limit, Trust};

/// From this share of failed requests on, the first line of a result is about them.
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
            failures.map(|&outcome| format!("{} {}", run.count(outcome), outcome.name())).collect();
        let why = run.refused_because.as_ref().map_or_else(String::new, |why| format!(" (the first: {why})"));
        let list = list.join(", ") + &why;
        let failures = match answered {
            0 => format!("FAILED: none of {} requests was answered as expected: {list}.", run.sent),
            _ => format!(
                "{} of {} requests failed: {list}.",
                percent(failed as f64 / run.sent as f64),
                run.sent
            ),
        };
        // That the generator was on time means little where nothing was answered.
        match (answered, self.trust) {
            (0, Trust::Trustworthy | Trust::Doubtful) => failures,
            _ => format!("{failures} {}", self.headline()),
        }
    }

    /// The verdict in a sentence.
    pub fn headline(&self) -> String {
        let list = |reasons: Vec<String>| reasons.join("; ");
        match self.trust {
            Trust::GeneratorLimited => {
                format!("GENERATOR-LIMITED: {}.", list(self.limits.iter().map(ToString::to_string).collect()))
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
                    said(Checked::Lag, &|found| format!("sent on schedule ({found})")),
                    said(Checked::Processor, &|found| format!("the generator used {found}")),
                    said(Checked::Gaps, &|_| "gaps as asked".to_owned()),
                    said(Checked::Little, &|_| "Little’s law holds".to_owned()),
                ];
                format!("Trustworthy: {}.", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Checked {
    /// What it is called in a table.
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
                "requests left late, 1 % by over {}, and that is up to {} of the response times",
                time(lag_p99_s),
                percent(share)
            ),
            Self::Busy { core_share } => {
                write!(f, "the generator was busy for {} of the time", percent(core_share))
            }
            Self::Waited { share } => {
                write!(f, "others kept the generator from its core for {} of the time", percent(share))
            }
            Self::Rate { ratio } => write!(f, "it sent {} of what was due per second", percent(ratio)),
            Self::Gaps { cv, asked } => write!(
                f,
                "the gaps between sends vary by {} of their mean, where {} was asked for",
                percent(cv),
                percent(asked)
            ),
            Self::Dispersion { index, asked } => write!(
                f,
                "the sends bunch: their index of dispersion is {}, where {} was asked for",
                significant(index, 2),
                significant(asked, 1)
            ),
            Self::OwnFailures { count } => {
                write!(f, "{count} connections failed because the generator had no port or file left")
            }
            Self::Little { gap } => {
                write!(f, "its books do not balance: Little’s law is off by {}", percent(gap.abs()))
            }
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Connections { waited, sent } => {
                write!(
                    f,
                    "{waited} of {sent} requests waited for a free connection; allow more with connections"
                )
            }
            Self::TurnedAway { count } => {
                write!(
                    f,
                    "{count} requests were given up unsent, because too many waited for a connection already"
                )
            }
            // Without its figures, so that all trials of a run say it once.
            Self::Crowding(_) => f.write_str(
                "the generator used more of a full machine than the server; use a machine with more cores, or another one for the \
                 load",
            ),
            Self::Unanswered { count } => {
                write!(
                    f,
                    "{count} requests were still out at the end, so the longest response times are not known"
                )
            }
        }
    }
}
