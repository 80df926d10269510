//! The traffic of a trial over its emulated link, from `link.parquet` in its folder.

use std::path::Path;

use kendall_archive::series::Series;
use kendall_flows::rows;
use kendall_system::System;

use super::cloud::Cloud;
use super::queue::{Cut, Left, left, queues};
use super::series::{FlowGoodput, Goodput, HopQueue, interval_s, seconds, window_s};

/// Connections that are shown one by one; the others are one.
const MOST_FLOWS: usize = 7;

/// The traffic of some trials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// The first trial of each combination, in the order of the combinations.
    pub trials: Vec<TrialTraffic>,
    /// The parts that cannot be shown, with the reasons.
    pub missing: Vec<String>,
}

/// The traffic of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialTraffic {
    /// The trial, as in [`TrialLine`](crate::report::trial::TrialLine).
    pub trial: String,
    /// The goodput of the last hop in the direction with more bytes, connection by connection; packets' headers
    /// are included.
    pub rates: Goodput,
    /// The queues along time.
    pub queues: Vec<HopQueue>,
    /// The delay in the queues of that direction against those rates, all connections together.
    pub cloud: Cloud,
}

impl Traffic {
    /// Adds a trial whose folder has, or should have, the log of its link, which was emulated like this.
    pub(crate) fn add(&mut self, trial: &str, folder: &Path, emulated: &str) {
        let file = folder.join("link.parquet");
        if !file.exists() {
            let why = format!(
                "There is no plot of the link along time, because a link emulated by {emulated} keeps no log of its packets."
            );
            if !self.missing.contains(&why) {
                self.missing.push(why);
            }
            return;
        }
        match Series::read(&file).map(|log| traffic(trial, &log)) {
            Ok(Some(traffic)) => self.trials.push(traffic),
            Ok(None) => self.missing.push(format!(
                "There is no plot of the link in trial {trial}, because its log has no packet that left it."
            )),
            Err(error) => {
                self.missing.push(format!("There is no plot of the link in trial {trial}: {error}."));
            }
        }
    }

    /// Says why there is no matrix of competition, where the system can measure one.
    pub(crate) fn without_matrix(&mut self, system: &System) {
        let measures = system.subcommands.all.iter().find(|one| one.name == "compete");
        if let (Some(measures), false) = (measures, self.trials.is_empty()) {
            self.missing.push(format!(
                "There is no matrix of competition, because all flows of a trial are of one kind: kendall {} {} measures every pair of \
                 kinds.",
                system.name, measures.name
            ));
        }
    }
}

/// What the log of a trial says; `None` where nothing left the link.
fn traffic(trial: &str, log: &Series) -> Option<TrialTraffic> {
    let delivered = log.values("delivered_bytes");
    let bytes = |place: usize| delivered.get(place).copied().flatten().unwrap_or_default();
    let sum =
        |way: &str| rows(log).filter(|row| row.direction == way).map(|row| bytes(row.place)).sum::<f64>();
    let way = if sum("down") >= sum("up") { "down" } else { "up" };
    if sum(way) <= 0.0 {
        return None;
    }
    let last_hop = rows(log).filter(|row| row.direction == way).map(|row| row.hop).max()?;
    let is_last = |row: &kendall_flows::LinkRow<'_>| row.direction == way && row.hop == last_hop;
    let to_ns = log.time_ns.iter().max()?.saturating_add(10_000_000);
    let cut = Cut::of(0, to_ns, interval_s(seconds(to_ns)));
    let mut flows: Vec<(&str, f64)> = Vec::new();
    for row in rows(log).filter(|row| is_last(row)) {
        match flows.iter_mut().find(|(flow, _)| *flow == row.flow) {
            Some((_, sum)) => *sum += bytes(row.place),
            None => flows.push((row.flow, bytes(row.place))),
        }
    }
    flows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (shown, others) = flows.split_at(flows.len().min(MOST_FLOWS));
    let rates = |kind: String, counts: &dyn Fn(&str) -> bool| {
        let left = left(log, cut, |row| is_last(row) && counts(row.flow)).into_values().next();
        // A connection that began after the last whole interval has nothing in any.
        let left = left.unwrap_or_else(|| vec![Left::default(); cut.intervals]);
        FlowGoodput { kind, bytes_per_s: left.iter().map(|left| left.bytes / cut.interval_s()).collect() }
    };
    let mut all: Vec<FlowGoodput> = (1..)
        .zip(shown)
        .map(|(number, (flow, _))| rates(format!("connection {number}"), &|one| one == *flow))
        .collect();
    if !others.is_empty() {
        let is_other = |one: &str| others.iter().any(|(flow, _)| *flow == one);
        all.push(rates(format!("{} other connections", others.len()), &is_other));
    }
    let edges_s = (0..=cut.intervals).map(|edge| seconds(cut.edge_ns(edge))).collect();
    Some(TrialTraffic {
        trial: trial.to_owned(),
        rates: Goodput { edges_s, flows: all },
        queues: queues(log, 0),
        cloud: cloud(log, way, last_hop, to_ns),
    })
}

fn cloud(log: &Series, way: &str, last_hop: usize, to_ns: i64) -> Cloud {
    let cut = Cut::of(0, to_ns, window_s(seconds(to_ns)));
    let hops = left(log, cut, |row| row.direction == way);
    let point = |at: usize| {
        let delay_s: Option<f64> = hops.values().map(|hop| hop[at].mean_s()).sum();
        let last = hops.get(&(way.to_owned(), last_hop))?;
        Some((delay_s?, last[at].bytes / cut.interval_s()))
    };
    Cloud { kind: String::new(), points: (0..cut.intervals).filter_map(point).collect() }
}

#[cfg(test)]
mod tests {
    use kendall_archive::series::{Layout, SeriesWriter};
    use tempfile::tempdir;

    use super::*;

    #[test]
    fn the_busier_way_is_shown_by_connection_and_what_is_missing_is_named() {
        let folder = tempdir().unwrap();
        let mut traffic = Traffic::default();
        for _ in 0..2 {
            traffic.add("001", folder.path(), "a relay");
        }
        assert_eq!(traffic.missing.len(), 1, "{:?}", traffic.missing);
        let layout = Layout::new("rows").label("direction").label("hop").label("flow");
        let layout = ["delivered_packets", "delivered_bytes", "queue_delay_mean_s", "queue_delay_max_s"]
            .into_iter()
            .fold(layout, |layout, name| layout.quantity(name, name));
        let mut log = SeriesWriter::create(&folder.path().join("link.parquet"), layout).unwrap();
        for row in 0..100 {
            for (way, hop, flow, bytes) in [
                ("up", "1", "a", 10.0),
                ("down", "1", "a", 900.0),
                ("down", "2", "a", 600.0),
                ("down", "2", "b", 300.0),
            ] {
                let values = [1.0, bytes, 0.001, 0.002].map(Some);
                log.append(row * 10_000_000, &[way, hop, flow], &values).unwrap();
            }
        }
        // A connection that begins after the last whole interval.
        log.append(1_030_000_000, &["down", "2", "c"], &[1.0, 50.0, 0.001, 0.002].map(Some)).unwrap();
        log.finish(0).unwrap();
        traffic.add("001", folder.path(), "veth");
        let [trial] = &traffic.trials[..] else { panic!("{:?}", traffic.missing) };
        let rates: Vec<f64> = trial.rates.flows.iter().map(|flow| flow.bytes_per_s[3]).collect();
        assert!((rates[0] - 60_000.0).abs() < 1.0 && (rates[1] - 30_000.0).abs() < 1.0, "{rates:?}");
        assert_eq!(trial.rates.flows.len(), 3);
        let intervals = trial.rates.edges_s.len() - 1;
        assert!(
            trial.rates.flows.iter().all(|flow| flow.bytes_per_s.len() == intervals),
            "{:?}",
            trial.rates
        );
        assert_eq!(trial.queues.len(), 3);
        // Both hops' waits add up.
        let (delay_s, rate) = trial.cloud.points[2];
        // An interval is not a whole number of rows.
        assert!((delay_s - 0.002).abs() < 1e-9 && (rate - 90_000.0).abs() < 9_500.0, "{delay_s} {rate}");
    }
}
