//! The wording of estimates and their sources.

use std::process::ExitCode;

use kendall_report::terminal::percent;
pub(crate) use kendall_report::terminal::with_interval as shown;
use kendall_station::{By, Estimate, Station};
use kendall_stats::number;
use serde::Serialize;
use serde_json::Value;

use crate::UNSTABLE;

/// A share with its interval.
pub(crate) fn share(estimate: Estimate) -> String {
    shown(estimate, percent)
}

/// A time with its interval.
pub(crate) fn interval(time_s: Estimate) -> String {
    number::time_with_interval(time_s.value, time_s.interval)
}

/// Who answers.
pub(crate) fn by(by: &By) -> String {
    match by {
        By::Formula { source, approximate: None } => source.clone(),
        By::Formula { source, approximate: Some(how) } => format!("{source} (approximation: {how})"),
        By::Simulation { customers, seed, needed, .. } => {
            let customers = number::count(*customers);
            let run = format!("{customers} customers after the warm-up, seed {seed}; 95 % intervals");
            let doubt = needed.map(|needed| {
                format!(
                    ".\nDoubt: this close to saturation the station needs about {} customers to reach steady state, so these numbers \
                     describe a station that is still filling; give --customers",
                    number::significant(needed as f64, 2)
                )
            });
            run + &doubt.unwrap_or_default()
        }
        By::Measurement { requests, trials } => {
            let (requests, trials) = (*requests, *trials);
            format!("{} in {}", number::counted(requests, "request"), number::counted(trials, "trial"))
        }
    }
}

/// An answer as JSON. Where requests share the servers none waits, so there is no chance of waiting.
pub(crate) fn answer_json(station: &Station, way: &impl Serialize) -> Value {
    let mut json = serde_json::json!(way);
    if station.discipline.shares()
        && let Some(p_wait) = json.pointer_mut("/answer/p_wait")
    {
        *p_wait = Value::Null;
    }
    json
}

/// The exit status where stations are stable or not.
pub(crate) fn status(unstable: bool) -> ExitCode {
    ExitCode::from(if unstable { UNSTABLE } else { 0 })
}
