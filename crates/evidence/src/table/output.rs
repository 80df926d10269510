//! Rows from the outputs of load generators.

use kendall_outputs::{Load, Output};

use super::{Row, Table};

/// A row for each output.
pub(super) fn table(outputs: &[Output]) -> Table {
    let rows = outputs.iter().map(row).collect();
    Table { rows, assumed: outputs.iter().filter_map(assumed).collect(), ..Table::default() }
}

fn row(output: &Output) -> Row {
    let positive = |value: f64| Some(value).filter(|value| *value > 0.0);
    let mut row = Row {
        labels: vec![("from".to_owned(), output.tool.to_owned())],
        response_mean_s: output.mean_s.and_then(positive),
        response_quantiles_s: output
            .quantiles_s
            .iter()
            .copied()
            .filter(|(_, time_s)| *time_s > 0.0)
            .collect(),
        throughput_per_s: positive(output.rate_per_s),
        lost: output.lost(),
        requests: output.requests.filter(|requests| *requests > 0).map(|requests| requests as f64),
        duration_s: output.duration_s.and_then(positive),
        ..Row::default()
    };
    row.labels.extend(output.name.iter().map(|name| ("command".to_owned(), name.clone())));
    match (output.load, output.connections) {
        (Some(Load::Closed { think_s }), Some(connections)) => {
            row.users = Some(connections as f64);
            row.think_s = Some(think_s);
        }
        (Some(Load::Open { rate_per_s: Some(rate_per_s) }), _) => row.rate_per_s = positive(rate_per_s),
        _ => row.rate_per_s = positive(output.rate_per_s),
    }
    row
}

/// What an output does not say, and what is taken for it.
fn assumed(output: &Output) -> Option<String> {
    let tool = output.tool;
    match (output.load, output.connections) {
        (Some(Load::Open { rate_per_s: None }), _) => Some(format!(
            "{tool} does not report its target rate; the achieved rate is used instead, which is too low where the server could not \
             keep up"
        )),
        (Some(Load::Closed { .. }), Some(_)) | (Some(Load::Open { .. }), _) => None,
        _ => Some(format!(
            "{tool} does not report whether its load was open (a schedule) or closed (a number of connections); its rate is taken as \
             that of an open stream. If the load was closed, write a table with the columns users, throughput and mean_ms"
        )),
    }
}
