//! How long an experiment takes, by its file or by an earlier run.

use std::fmt;
use std::time::Duration;

use kendall_stats::quantity::{rate_per_s, time_s};
use toml::{Table, Value};

/// To start the server of a trial, to connect, to wait for the last answers and to stop it: as trials of the chat took.
const AROUND_TRIAL_S: f64 = 0.7;
/// A trial of a given number of requests whose rate depends on the machine.
const UNKNOWN_TRIAL_S: f64 = 5.0;
/// The load that measures a capacity.
const CALIBRATION_S: f64 = 4.0;
/// The measurement of a link before the first trial that uses it.
const LINK_S: f64 = 6.0;
/// The default of `repeats`.
const REPEATS: i64 = 3;

/// How long an experiment takes. Worded by `Display`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) trials: usize,
    duration: Duration,
    basis: Basis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// An earlier run took that long.
    Run,
    /// The file gives durations, or rates and numbers of requests.
    File,
    /// The rates depend on the machine.
    Guess,
}

impl Estimate {
    /// The trials and the duration of an earlier run.
    pub(super) fn measured((trials, duration): (usize, Duration)) -> Self {
        Self { trials, duration, basis: Basis::Run }
    }

    /// By the text of an experiment file, which was read before.
    pub(super) fn of(text: &str) -> Self {
        let file: Table = toml::from_str(text).unwrap_or_default();
        let empty = Table::new();
        let section = |name: &str| file.get(name).and_then(Value::as_table).unwrap_or(&empty);
        let cases: Vec<&Table> = match file.get("case").and_then(Value::as_array) {
            Some(cases) => cases.iter().filter_map(Value::as_table).collect(),
            None => vec![&empty],
        };
        let servers = levels(section("system")) * levels(section("workload"));
        let links = levels(section("link"));
        let mut loads = Vec::new();
        for case in &cases {
            let own = case.get("load").and_then(Value::as_table).unwrap_or(&empty).clone();
            loads.extend(combinations(&section("load").clone().into_iter().chain(own).collect()));
        }
        let repeats = file.get("repeats").and_then(Value::as_integer).unwrap_or(REPEATS) as usize;
        let each = servers * links * repeats;
        let times: Vec<Option<f64>> = loads.iter().map(trial_s).collect();
        let sending_s: f64 = times.iter().map(|time| time.unwrap_or(UNKNOWN_TRIAL_S)).sum();
        let trials = loads.len() * each;
        let calibrations = match loads.iter().any(is_share) {
            false => 0,
            true if file.get("calibrate").and_then(Value::as_str) == Some("once") => 1,
            true => servers * cases.len(),
        };
        let measured_links = if file.contains_key("link") { links } else { 0 };
        let seconds = sending_s * each as f64
            + trials as f64 * AROUND_TRIAL_S
            + calibrations as f64 * CALIBRATION_S
            + measured_links as f64 * LINK_S;
        let basis = if times.contains(&None) { Basis::Guess } else { Basis::File };
        Self { trials, duration: Duration::from_secs_f64(seconds), basis }
    }

    /// The time for the trials that are left after some.
    pub(super) fn left(&self, done: usize) -> Duration {
        let left = self.trials.saturating_sub(done) as f64 / self.trials.max(1) as f64;
        self.duration.mul_f64(left)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.basis {
            Basis::Run => "as before",
            Basis::File => "by its file",
            Basis::Guess => "a guess: its rates depend on the machine",
        };
        write!(f, "{} trials, {} ({by})", self.trials, in_words(self.duration))
    }
}

/// A duration to the second, minute or tenth of an hour.
pub(super) fn in_words(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// The number of combinations of the values of a table.
fn levels(table: &Table) -> usize {
    table.values().filter_map(Value::as_array).map(Vec::len).product()
}

/// A table for each combination of its values.
fn combinations(table: &Table) -> Vec<Table> {
    table.iter().fold(vec![Table::new()], |tables, (name, value)| {
        let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        let with = |table: Table| {
            let values = values.clone().into_iter();
            values.map(move |value| table.clone().into_iter().chain([(name.clone(), value)]).collect())
        };
        tables.into_iter().flat_map(with).collect()
    })
}

/// The time in which a load sends its requests, where it does not depend on the machine.
fn trial_s(load: &Table) -> Option<f64> {
    let time = |name: &str| time_s(load.get(name)?.as_str()?);
    if let Some(duration_s) = time("duration") {
        return Some(duration_s);
    }
    let requests = number(load.get("requests")?)?;
    let gap_s = || time("gap");
    let rate = |value: &Value| value.as_str().map_or_else(|| number(value), rate_per_s);
    load.get("rate").and_then(rate).map(f64::recip).or_else(gap_s).map(|gap_s| requests * gap_s)
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| Some(value.as_integer()? as f64))
}

/// Whether its rate is a share of the capacity, which is measured.
fn is_share(load: &Table) -> bool {
    let is_given = load.contains_key("capacity");
    !is_given && load.get("rate").and_then(Value::as_str).is_some_and(|rate| rate.ends_with('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(text: &str, trials: usize, seconds: f64, basis: Basis) {
        assert_eq!(
            Estimate::of(text),
            Estimate { trials, duration: Duration::from_secs_f64(seconds), basis }
        );
    }

    #[test]
    fn trials_are_the_combinations_and_each_takes_what_its_load_says() {
        let rates = "repeats = 2\n[system]\nroom = [1, 2]\n[load]\nrate = [1, 2, 4]\nrequests = 8\n";
        is(rates, 12, 4.0 * (8.0 + 4.0 + 2.0) + 12.0 * AROUND_TRIAL_S, Basis::File);
        let cases = "[load]\nrequests = 10\n[[case]]\nload.gap = \"100ms\"\n[[case]]\nload.gap = \"1s\"\n";
        is(cases, 6, 3.0 * (1.0 + 10.0) + 6.0 * AROUND_TRIAL_S, Basis::File);
    }

    #[test]
    fn shares_are_calibrated_links_measured_and_closed_loads_guessed() {
        let shares = "[system]\nlayout = [\"a\", \"b\"]\n[load]\nrate = \"30%\"\nduration = \"2s\"\n";
        is(shares, 6, 6.0 * (2.0 + AROUND_TRIAL_S) + 2.0 * CALIBRATION_S, Basis::File);
        let once = format!("calibrate = \"once\"\n{shares}");
        is(&once, 6, 6.0 * (2.0 + AROUND_TRIAL_S) + CALIBRATION_S, Basis::File);
        let closed = "repeats = 1\n[load]\nusers = 1\nrequests = 5\n[link]\nloss = [\"0%\", \"1%\"]\n";
        is(closed, 2, 2.0 * (UNKNOWN_TRIAL_S + AROUND_TRIAL_S + LINK_S), Basis::Guess);
    }

    #[test]
    fn what_is_left_is_the_share_of_trials_that_are_not_done() {
        let estimate = Estimate::measured((10, Duration::from_secs(600)));
        assert_eq!(estimate.left(4), Duration::from_secs(360));
        assert_eq!(estimate.left(12), Duration::ZERO);
        assert_eq!(estimate.to_string(), "10 trials, 10 min (as before)");
        assert_eq!(in_words(Duration::from_secs(7200)), "2.0 h");
    }
}
