//! Answers as text: rows with formula and simulation side by side, by class and by station.

use kendall_analysis::Modelling;
use kendall_simulation::{NetworkAnswer, NodeAnswer};
use kendall_station::{Answer, ClassAnswer, Estimate, Network, Station};
use kendall_stats::number;
use kendall_theory::closed::Bounds;
use kendall_theory::{NetworkFormula, NodeFormula};

use crate::shown::{by, interval, share, shown};
use kendall_report::terminal::percent;

/// The width of the formula's column.
const WIDTH: usize = 16;
/// What is not known.
const NONE: &str = "–";

/// Rows of a table with their columns in line: the first to the left, the others to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn count(estimate: Estimate) -> String {
    shown(estimate, |value| number::significant(value, 4))
}

fn cell<T>(answer: Option<&T>, value: impl Fn(&T) -> Option<String>) -> String {
    answer.and_then(value).unwrap_or_else(|| NONE.into())
}

/// What formula and simulation say of a station, as far as each was asked.
pub(crate) fn station(
    station: &Station,
    formula: Option<&Modelling>,
    simulation: Option<&Modelling>,
) -> Vec<String> {
    let mut lines = vec![station.to_string()];
    lines.extend(station.offered_utilisation().map(|rho| format!("offered utilisation {}", percent(rho))));
    let answers = both(station, formula, simulation);
    if answers.is_empty() {
        return lines;
    }
    lines.push(String::new());
    lines.extend(answers);
    if !station.classes.is_empty() {
        lines.push(String::new());
        lines.extend(classes(station, [formula, simulation].map(answer_of)));
    }
    lines
}

fn answer_of(way: Option<&Modelling>) -> Option<&Answer> {
    way.and_then(Modelling::answer)
}

/// The rows that every answer has, if there is any answer.
fn both(station: &Station, formula: Option<&Modelling>, simulation: Option<&Modelling>) -> Vec<String> {
    let ways = [formula, simulation].map(answer_of);
    if ways == [None, None] {
        return Vec::new();
    }
    let mut lines = vec![format!("{:<24} {:>WIDTH$}   simulation", "", "formula")];
    let mut row = |name: &str, value: &dyn Fn(&Answer) -> Option<String>| {
        lines.push(format!("{name:<24} {:>WIDTH$}   {}", cell(ways[0], value), cell(ways[1], value)));
    };
    row("utilisation", &|answer| Some(share(answer.utilisation)));
    row("response time, mean", &|answer| Some(interval(answer.response.mean_s)));
    for (name, p) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        row(&format!("response time, {name}"), &|answer| answer.response.quantile(p).map(interval));
    }
    if station.discipline.shares() {
        // No request waits: each is served from the beginning, and slowed down by the others.
        row("delay by sharing, mean", &|answer| Some(interval(answer.waiting.mean_s)));
        row("slowdown, mean", &|answer| Some(slowdown(answer)));
    } else {
        row("waiting time, mean", &|answer| Some(interval(answer.waiting.mean_s)));
        row("P(wait)", &|answer| Some(share(answer.p_wait)));
    }
    row("in the station, mean", &|answer| Some(count(answer.in_system)));
    row("throughput, 1/s", &|answer| Some(count(answer.throughput_per_s)));
    row("lost", &|answer| Some(share(answer.lost)));
    lines
}

/// The mean response time over what a request takes alone.
fn slowdown(answer: &Answer) -> String {
    let alone_s = answer.response.mean_s.value - answer.waiting.mean_s.value;
    number::significant(answer.response.mean_s.value / alone_s, 4)
}

/// A row for each class.
fn classes(station: &Station, [formula, simulation]: [Option<&Answer>; 2]) -> Vec<String> {
    let waiting = if station.discipline.shares() { "delay: formula" } else { "waiting: formula" };
    let heads = ["class", "share", "weight", "response: formula", "simulation", "p99", waiting, "simulation"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for class in &station.classes {
        let of = |way: Option<&'_ Answer>| -> Option<ClassAnswer> {
            way?.classes.iter().find(|answer| answer.name == class.name).cloned()
        };
        let (exact, simulated) = (of(formula), of(simulation));
        let response = |answer: &ClassAnswer| Some(interval(answer.response.mean_s));
        let waiting = |answer: &ClassAnswer| Some(interval(answer.waiting.mean_s));
        rows.push(vec![
            class.name.clone(),
            percent(class.share),
            number::significant(class.weight, 3),
            cell(exact.as_ref(), response),
            cell(simulated.as_ref(), response),
            cell(simulated.as_ref(), |answer| answer.response.quantile(0.99).map(interval)),
            cell(exact.as_ref(), waiting),
            cell(simulated.as_ref(), waiting),
        ]);
    }
    aligned(&rows)
}

/// Who said so, or why not.
pub(crate) fn sources(formula: Option<&Modelling>, simulation: Option<&Modelling>) -> Vec<String> {
    let ways = [("formula", formula), ("simulation", simulation)];
    let said = ways.into_iter().filter_map(|(name, way)| Some((name, way?)));
    said.map(|(name, way)| match way {
        Modelling::Answer(answer) => format!("{name}: {}", by(&answer.by)),
        Modelling::NoAnswer(why) => format!("{name}: no answer. {why}"),
    })
    .collect()
}

/// What became of the customers that were not simply served, and of the servers that were not simply there.
pub(crate) fn events(answer: &NetworkAnswer) -> Vec<String> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, estimate: Estimate, text: String| {
        if estimate.value > 0.0 {
            rows.push((name, text));
        }
    };
    add("lost after rejection".into(), answer.turned_away, share(answer.turned_away));
    add("left impatiently".into(), answer.abandoned, share(answer.abandoned));
    add("lost in a breakdown".into(), answer.broken, share(answer.broken));
    add("retries of a customer".into(), answer.retries, count(answer.retries));
    let alone = answer.nodes.len() == 1;
    for node in &answer.nodes {
        let name = |what: &str| if alone { what.to_owned() } else { format!("{what}, {}", node.name) };
        add(name("servers down"), node.down, share(node.down));
        add(name("servers being set up"), node.setting_up, share(node.setting_up));
        add(name("blocked"), node.blocked, count(node.blocked));
    }
    let mut lines: Vec<String> =
        rows.into_iter().map(|(name, text)| format!("{name:<24} {:>WIDTH$}   {text}", "")).collect();
    if !answer.phases.is_empty() {
        lines.push(format!("\n{:<24} {:>WIDTH$}   response time, mean", "who came from … to …", "share"));
    }
    lines.extend(answer.phases.iter().map(|phase| {
        let unit = number::TimeUnit::in_words(phase.to_s);
        let span = format!("{} to {} {}", unit.number(phase.from_s), unit.number(phase.to_s), unit.symbol());
        format!("{span:<24} {:>WIDTH$}   {}", percent(phase.share.value), interval(phase.response_s))
    }));
    lines
}

/// What formula and simulation say of a network as a whole, and of each of its stations.
pub(crate) fn network(
    network: &Network,
    formula: Option<&NetworkFormula>,
    simulation: Option<&NetworkAnswer>,
) -> Vec<String> {
    if formula.is_none() && simulation.is_none() {
        return Vec::new();
    }
    let mut lines = vec![format!("{:<24} {:>WIDTH$}   simulation", "", "formula")];
    let mut row = |name: &str,
                   exact: &dyn Fn(&NetworkFormula) -> String,
                   answer: &dyn Fn(&Answer) -> Option<String>| {
        let simulated = cell(simulation.map(|simulation| &simulation.overall), answer);
        lines.push(format!(
            "{name:<24} {:>WIDTH$}   {simulated}",
            cell(formula, |formula| Some(exact(formula)))
        ));
    };
    let none = |_: &NetworkFormula| NONE.to_owned();
    row("response time, mean", &|formula| number::time(formula.response_s), &|answer| {
        Some(interval(answer.response.mean_s))
    });
    for (name, p) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        row(&format!("response time, {name}"), &none, &|answer| answer.response.quantile(p).map(interval));
    }
    row("in the network, mean", &|formula| number::significant(formula.in_system, 4), &|answer| {
        Some(count(answer.in_system))
    });
    row("throughput, 1/s", &|formula| number::significant(formula.throughput_per_s, 4), &|answer| {
        Some(count(answer.throughput_per_s))
    });
    row("lost", &none, &|answer| Some(share(answer.lost)));
    lines.extend(simulation.into_iter().flat_map(events));
    lines.push(String::new());
    lines.extend(nodes(network, formula, simulation));
    lines
}

/// Two rows for each station, one for each way.
fn nodes(
    network: &Network,
    formula: Option<&NetworkFormula>,
    simulation: Option<&NetworkAnswer>,
) -> Vec<String> {
    let heads =
        ["station", "servers", "", "visits", "utilisation", "response, mean", "waiting, mean", "there, mean"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (i, node) in network.nodes.iter().enumerate() {
        let exact = formula.map(|formula| &formula.nodes[i]).map(by_formula);
        let simulated = simulation.map(|simulation| by_simulation(&simulation.nodes[i]));
        let mut first = [node.name.clone(), node.servers.to_string()];
        for (way, cells) in [("formula", exact), ("simulation", simulated)] {
            if let Some(cells) = cells {
                rows.push(
                    std::mem::take(&mut first).into_iter().chain([way.to_owned()]).chain(cells).collect(),
                );
            }
        }
    }
    aligned(&rows)
}

fn by_formula(node: &NodeFormula) -> [String; 5] {
    [
        number::significant(node.visits, 4),
        percent(node.utilisation),
        number::time(node.response_s),
        number::time(node.waiting_s),
        number::significant(node.in_station, 4),
    ]
}

fn by_simulation(node: &NodeAnswer) -> [String; 5] {
    let answer = node.answer.as_ref();
    [
        count(node.visits),
        cell(answer, |answer| Some(share(answer.utilisation))),
        cell(answer, |answer| Some(interval(answer.response.mean_s))),
        cell(answer, |answer| Some(interval(answer.waiting.mean_s))),
        cell(answer, |answer| Some(count(answer.in_system))),
    ]
}

/// What a closed population can at most and must at least do.
pub(crate) fn bounds(bounds: &Bounds) -> Vec<String> {
    let rate = |(low, high): (f64, f64)| {
        format!("{} to {}", number::significant(low, 4), number::significant(high, 4))
    };
    let time = |(low, high): (f64, f64)| format!("{} to {}", number::time(low), number::time(high));
    let mut rows = vec![["bounds", "throughput, 1/s", "response time, mean"].map(str::to_owned).to_vec()];
    let mut row =
        |name: &str, throughput, response| rows.push(vec![name.into(), rate(throughput), time(response)]);
    row("asymptotic", bounds.throughput_per_s, bounds.response_s);
    if let Some((throughput, response)) = bounds.balanced_throughput_per_s.zip(bounds.balanced_response_s) {
        row("balanced", throughput, response);
    }
    let mut lines = aligned(&rows);
    if bounds.saturation_users.is_finite() {
        lines.push(format!("Users queue from N* = {} on.", number::significant(bounds.saturation_users, 4)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_line() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let lines = aligned(&[row(["", "a", "bb"]), row(["µ", "ccc", ""])]);
        assert_eq!(lines, ["     a  bb", "µ  ccc"]);
    }
}
