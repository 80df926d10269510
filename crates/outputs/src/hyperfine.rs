//! hyperfine's results as JSON: each command with the time of each of its runs.

use serde_json::Value;

use crate::source::{Missing, number};
use crate::{Format, Load, Output};

pub(crate) const JSON: Format = Format {
    tool: "hyperfine",
    form: "the JSON",
    command: "hyperfine --export-json FILE COMMAND",
    is: |source| source.has_members(&["/results/0/command"]),
    read: |source| {
        let results = source.value()?["results"].as_array();
        results.into_iter().flatten().map(command).collect()
    },
};

fn command(json: &Value) -> Result<Output, Missing> {
    let name = json["command"].as_str().ok_or_else(|| Missing("a result has no \"command\"".to_owned()))?;
    let mean_s = number(json, "/mean")?;
    let times = json["times"].as_array().into_iter().flatten();
    let times_s: Vec<f64> = times.filter_map(Value::as_f64).filter(|time_s| *time_s >= 0.0).collect();
    let codes = json["exit_codes"].as_array().into_iter().flatten();
    let failed = codes.filter(|code| code.as_i64() != Some(0)).count() as u64;
    Ok(Output {
        name: Some(name.to_owned()),
        // One run after the other.
        load: Some(Load::Closed { think_s: 0.0 }),
        connections: Some(1),
        rate_per_s: if mean_s > 0.0 { 1.0 / mean_s } else { 0.0 },
        requests: Some(times_s.len() as u64).filter(|runs| *runs > 0),
        errors: vec![("exit status that is not 0".to_owned(), failed)],
        duration_s: Some(times_s.iter().sum::<f64>()).filter(|sum| *sum > 0.0),
        mean_s: Some(mean_s),
        quantiles_s: json["median"].as_f64().map(|median_s| (0.5, median_s)).into_iter().collect(),
        times_s,
        ..Output::default()
    })
}
