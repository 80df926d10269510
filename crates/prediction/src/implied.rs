//! The service time that a station implies for each request, from the instants of sending and completion alone.
//!
//! Of first come first served on m servers and of processor sharing the service times can be computed exactly: each request starts when
//! a server is free, or its share of the servers adds up to its service. The right station gives implied times that do not depend on the
//! queue; a wrong one gives times that do, which its predictions of other loads then show.

use kendall_station::Discipline;

use crate::observed::Block;

/// A time below which no implied service time is believed, in seconds.
const LEAST_S: f64 = 1e-9;

/// The service times that a station of `servers` implies, of all requests of a block in the order of sending, where each request spends
/// `delay_s` outside the station; exact for first come first served and for processor sharing.
pub(crate) fn implied_s(block: &Block, discipline: Discipline, servers: u32, delay_s: f64) -> Vec<f64> {
    if discipline.shares() {
        by_shares(block, f64::from(servers), delay_s)
    } else {
        by_turns(block, servers as usize, delay_s)
    }
}

/// First come first served: a request starts when it has arrived and the server that is free first is free.
fn by_turns(block: &Block, servers: usize, delay_s: f64) -> Vec<f64> {
    let mut free_s = vec![f64::NEG_INFINITY; servers];
    let implied = block.requests.iter().map(|request| {
        let first = free_s.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |first| first.0);
        let start_s = free_s[first].max(request.sent_s + delay_s);
        free_s[first] = request.completed_s;
        (request.completed_s - start_s).max(LEAST_S)
    });
    implied.collect()
}

/// Processor sharing: while n requests are present, each receives min(1, m/n) seconds of service per second.
fn by_shares(block: &Block, servers: f64, delay_s: f64) -> Vec<f64> {
    let requests = &block.requests;
    let mut received_at_arrival_s = vec![f64::NAN; requests.len()];
    let mut implied_s = vec![LEAST_S; requests.len()];
    let (mut present, mut received_s, mut now_s, mut next) = (0.0_f64, 0.0, f64::NEG_INFINITY, 0);
    for &leaving in &block.by_completion {
        let leaving = leaving as usize;
        let end_s = requests[leaving].completed_s;
        loop {
            let arrival_s = requests.get(next).map_or(f64::INFINITY, |request| request.sent_s + delay_s);
            let until_s = arrival_s.min(end_s);
            if present > 0.0 {
                received_s += (until_s - now_s).max(0.0) * (servers / present).min(1.0);
            }
            now_s = until_s;
            if arrival_s > end_s {
                break;
            }
            // A request that was answered sooner than the delay allows was never in the station.
            if requests[next].completed_s >= arrival_s {
                received_at_arrival_s[next] = received_s;
                present += 1.0;
            }
            next += 1;
        }
        if received_at_arrival_s[leaving].is_finite() {
            implied_s[leaving] = (received_s - received_at_arrival_s[leaving]).max(LEAST_S);
            present -= 1.0;
        }
    }
    implied_s
}

#[cfg(test)]
mod tests {
    use kendall_record::{Outcome, RequestRow};

    use super::*;

    /// Arrivals at 0, 1, 1.5 and 4 s with services of 2, 1, 1 and 0.5 s, as the four stations serve them.
    #[test]
    fn implied_times_are_the_service_times_of_the_right_station() {
        let delay_s = 0.25;
        let cases = [
            (Discipline::Fifo, 1, [2.0, 2.0, 2.5, 0.5]),
            (Discipline::Fifo, 2, [2.0, 1.0, 1.5, 0.5]),
            (Discipline::ProcessorSharing, 1, [3.75, 2.75, 2.5, 0.5]),
            (Discipline::ProcessorSharing, 2, [2.25, 1.25, 1.25, 0.5]),
        ];
        for (discipline, servers, responses_s) in cases {
            let row = |(index, (arrival_s, response_s)): (usize, (f64, f64))| {
                let ns = |s: f64| (s * 1e9) as i64;
                RequestRow::due(index as u64, ns(arrival_s))
                    .sent_at(ns(arrival_s), 1)
                    .ended(Outcome::Answered, ns(arrival_s + response_s + delay_s))
            };
            let rows: Vec<RequestRow> =
                [0.0, 1.0, 1.5, 4.0].into_iter().zip(responses_s).enumerate().map(row).collect();
            let found = implied_s(&Block::of(&rows, 0), discipline, servers, delay_s);
            for (found, expected) in found.iter().zip([2.0, 1.0, 1.0, 0.5]) {
                assert!((found - expected).abs() < 1e-6, "{discipline:?} {servers}: {found} {expected}");
            }
        }
    }
}
