//! Contradictions among the numbers of a table, or with their names.
//!
//! A table has no single requests, so there is nothing to test statistically: its numbers are recomputed from each other. A number that
//! differs by more than its printed digits can explain is broken.

mod agreement;
mod closed;
mod model;
mod open;

use kendall_station::Servers;

use super::{AssumptionVerdict, Finding};
use crate::table::{Row, Table};
use kendall_theory::{erlang_b, erlang_c};

/// Printed numbers are rounded; two of them that disagree by more are two numbers.
const DIGITS: f64 = 0.01;
/// The tolerance for what is computed from several printed numbers.
const COMPUTED: f64 = 0.02;

/// Finds the numbers of a table that contradict one another: units, utilisation, steady state, computed response times, operational
/// laws, total times, and a capacity that the model leaves out. `servers` is for rows without a number of servers. An assumption that
/// holds in every row is one finding; a broken one is a finding for each row.
pub fn check_table(table: &Table, servers: Option<Servers>) -> Vec<Finding> {
    let by_row: [fn(&Known<'_>) -> Option<Finding>; 11] = [
        model::units,
        model::utilisation,
        model::stability,
        model::formula_of,
        model::service_law,
        model::sum,
        open::rate,
        closed::interactive_law,
        open::total_time,
        open::room,
        open::precision,
    ];
    let known: Vec<Known<'_>> = table.rows.iter().map(|row| Known::new(row, servers)).collect();
    let mut found: Vec<Finding> = by_row.into_iter().flat_map(|check| of_rows(&known, check)).collect();
    found.extend(closed::labels(&known));
    found.extend(model::delay(&known));
    found
}

/// What a check says of the rows: each in which it does not hold, or once that it holds in all, at its worst.
fn of_rows(rows: &[Known<'_>], check: impl Fn(&Known<'_>) -> Option<Finding>) -> Vec<Finding> {
    let found: Vec<Finding> =
        rows.iter().filter_map(|known| Some(check(known)?.at(known.row.place()))).collect();
    if found.iter().any(|finding| finding.verdict != AssumptionVerdict::Holds) {
        return found.into_iter().filter(|finding| finding.verdict != AssumptionVerdict::Holds).collect();
    }
    let (all, size) =
        (found.len(), |finding: &Finding| finding.effect.as_ref().map_or(0.0, |effect| effect.value.abs()));
    let worst = found.into_iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    let finding_of = |worst: Finding| match all {
        1 => worst,
        _ => Finding { place: format!("all {all} rows, the worst {}", worst.place), ..worst },
    };
    worst.map(finding_of).into_iter().collect()
}

/// A row, and what follows from it.
struct Known<'a> {
    row: &'a Row,
    servers: Option<Servers>,
    /// The mean service time, from the service rate if the row has one: where the two disagree, utilisation was computed from the rate.
    service_s: Option<f64>,
}

impl<'a> Known<'a> {
    fn new(row: &'a Row, servers: Option<Servers>) -> Self {
        let own = row.servers.filter(|m| *m <= f64::from(u32::MAX)).and_then(|m| Servers::new(m as u32));
        let service_s = row.service_rate_per_s.map(|rate| 1.0 / rate).or(row.service_mean_s);
        Self { row, servers: own.or(servers), service_s }
    }

    /// Requests per second, as offered, or as completed.
    fn rate_per_s(&self) -> Option<f64> {
        self.row.open_rate_per_s()
    }

    /// Rate × service time / servers of all requests, also of those that are lost.
    fn offered_utilisation(&self) -> Option<f64> {
        let rate_per_s = self.rate_per_s().or(self.row.throughput_per_s)?;
        Some(rate_per_s * self.service_s? / f64::from(self.servers?.get()))
    }

    /// The row as M/M/m, with its capacity if the row has one; `None` without a steady state.
    fn exponential(&self) -> Option<Exponential> {
        let (rate_per_s, service_s, servers) = (self.rate_per_s()?, self.service_s?, self.servers?);
        let (m, load) = (f64::from(servers.get()), rate_per_s * service_s);
        if load >= m {
            return None;
        }
        let p_wait = erlang_c(servers.get(), load);
        let waiting_s = p_wait * service_s / (m - load);
        Some(Exponential { rate_per_s, service_s, servers, p_wait, waiting_s })
    }

    /// The row as M/M/m/K, built up from Erlang's loss system by one place after the other: each adds the state of a full
    /// station, ρ times as likely as the one before. All terms are positive.
    fn with_room(&self, room: u64) -> Option<Roomy> {
        let (rate_per_s, servers) = (self.rate_per_s()?, self.servers?.get());
        let load = rate_per_s * self.service_s?;
        let utilisation = load / f64::from(servers);
        let mut lost = erlang_b(servers, load);
        let mut present = load * (1.0 - lost);
        for place in u64::from(servers) + 1..=room {
            let added = utilisation * lost;
            present = (present + place as f64 * added) / (1.0 + added);
            lost = added / (1.0 + added);
        }
        let response_s = present / (rate_per_s * (1.0 - lost));
        response_s.is_finite().then_some(Roomy { lost, response_s })
    }

    /// How many requests the server can hold: the capacity given, or servers plus backlog.
    fn room(&self) -> Option<u64> {
        let servers = f64::from(self.servers?.get());
        let room = self.row.capacity.or_else(|| Some(self.row.backlog? + servers))?;
        (room >= servers && room <= 1e6).then_some(room as u64)
    }
}

/// M/M/m/K.
#[derive(Clone, Copy)]
struct Roomy {
    /// The share that is turned away.
    lost: f64,
    /// The mean response time of the others.
    response_s: f64,
}

/// M/M/m at a steady rate.
#[derive(Clone, Copy)]
struct Exponential {
    rate_per_s: f64,
    service_s: f64,
    servers: Servers,
    p_wait: f64,
    waiting_s: f64,
}

impl Exponential {
    fn response_s(&self) -> f64 {
        self.service_s + self.waiting_s
    }

    fn utilisation(&self) -> f64 {
        self.rate_per_s * self.service_s / f64::from(self.servers.get())
    }
}
