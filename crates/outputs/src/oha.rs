//! oha, as text and as JSON. It contains neither its connections nor its rate.

use serde_json::Value;

use crate::source::{Missing, Source, by_status, counts, level, number};
use crate::{Format, Output, summary};

pub(crate) const TEXT: Format = Format {
    tool: "oha",
    form: "the text",
    command: "oha --no-tui URL > FILE",
    is: |source| source.has_line("Success rate:") && source.has_line("Summary:"),
    read: |source| summary::output(source, is_failure),
};

pub(crate) const JSON: Format = Format {
    tool: "oha",
    form: "the JSON",
    command: "oha --no-tui --output-format json URL > FILE",
    is: |source| source.has_members(&["/summary", "/latencyPercentiles"]),
    read: json,
};

/// Requests in flight at the end of the run have not failed.
fn is_failure(error: &str) -> bool {
    !error.contains("aborted due to deadline")
}

fn json(source: &Source<'_>) -> Result<Vec<Output>, Missing> {
    let json = source.value()?;
    let (mut errors, mut requests) = by_status(counts(json, "/statusCodeDistribution"));
    for (what, count) in counts(json, "/errorDistribution").filter(|(what, _)| is_failure(what)) {
        errors.push((what.to_owned(), count));
        requests = requests.saturating_add(count);
    }
    let percentiles = json["latencyPercentiles"].as_object().into_iter().flatten();
    let quantile =
        |(name, value): (&String, &Value)| Some((level(name.strip_prefix('p')?)?, value.as_f64()?));
    Ok(vec![Output {
        rate_per_s: number(json, "/summary/requestsPerSec")?,
        requests: (requests > 0).then_some(requests),
        errors,
        duration_s: Some(number(json, "/summary/total")?),
        mean_s: Some(number(json, "/summary/average")?),
        quantiles_s: percentiles.filter_map(quantile).collect(),
        ..Output::default()
    }])
}
