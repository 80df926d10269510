//! The service time that a station implies for each request, from the instants of sending and completion alone.
//!
//! Of first come first served on m servers and of processor sharing the service times can be computed exactly: each request starts when
//! a server is free, or its share of the servers adds up to its service. The right station gives implied times that do not depend on the
//! queue; a wrong one gives times that do, which its predictions of other loads then show.

use crate::block::{Block, Request};
use crate::order::Shared;

/// A time below which no implied service time is believed, in seconds.
const LEAST_S: f64 = 1e-9;

/// First come first served, of all requests of a block in the order of sending, where each spends `delay_s` outside the station: a
/// request starts when it has arrived and the server that is free first is free.
pub(crate) fn in_order_s(block: &Block, servers: usize, delay_s: f64) -> Vec<f64> {
    let mut free_s = vec![f64::NEG_INFINITY; servers];
    let implied = block.requests.iter().map(|request| {
        let first = free_s.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |first| first.0);
        since_free(request, &mut free_s[first], delay_s)
    });
    implied.collect()
}

/// One server that serves requests one by one, in any order: each starts when the one that completed before it did.
pub(crate) fn one_by_one_s(block: &Block, delay_s: f64) -> Vec<f64> {
    let mut implied_s = vec![LEAST_S; block.requests.len()];
    let mut free_s = f64::NEG_INFINITY;
    for &next in &block.by_completion {
        implied_s[next as usize] = since_free(&block.requests[next as usize], &mut free_s, delay_s);
    }
    implied_s
}

/// One server that takes all requests that wait and answers them together: each of a batch took the same part of the time from its start
/// to the last answer.
pub(crate) fn together_s(block: &Block, delay_s: f64) -> Vec<f64> {
    let requests = &block.requests;
    let mut implied_s = Vec::with_capacity(requests.len());
    let mut free_s = f64::NEG_INFINITY;
    while let Some(next) = requests.get(implied_s.len()) {
        let start_s = free_s.max(next.sent_s + delay_s);
        let waiting = &requests[implied_s.len()..];
        let size = waiting.partition_point(|request| request.sent_s + delay_s <= start_s).max(1);
        let end_s = waiting[..size].iter().map(|request| request.completed_s).fold(start_s, f64::max);
        implied_s.resize(implied_s.len() + size, ((end_s - start_s) / size as f64).max(LEAST_S));
        free_s = end_s;
    }
    implied_s
}

/// Servers with a queue each, to which requests are assigned in turn.
pub(crate) fn in_turn_s(block: &Block, servers: usize, delay_s: f64) -> Vec<f64> {
    let mut free_s = vec![f64::NEG_INFINITY; servers];
    let requests = block.requests.iter().enumerate();
    requests.map(|(index, request)| since_free(request, &mut free_s[index % servers], delay_s)).collect()
}

/// The time from the start of service to completion at a server that is free from `free_s` on.
fn since_free(request: &Request, free_s: &mut f64, delay_s: f64) -> f64 {
    let start_s = free_s.max(request.sent_s + delay_s);
    // One that overtook others did not make the server free before they were answered.
    *free_s = free_s.max(request.completed_s);
    (request.completed_s - start_s).max(LEAST_S)
}

/// Shared servers: from admission to completion, each request in service receives what the station gives to each for the number present.
pub(crate) fn shared_s(block: &Block, shared: &Shared, delay_s: f64) -> Vec<f64> {
    let requests = &block.requests;
    let mut station =
        Occupied { shared, received_s: 0.0, now_s: f64::NEG_INFINITY, present: 0, in_service: 0 };
    // What those in service had received when a request was admitted; NaN before that, and infinite once it has left.
    let mut at_admission_s = vec![f64::NAN; requests.len()];
    let mut implied_s = vec![LEAST_S; requests.len()];
    let (mut arrived, mut admitted) = (0, 0);
    for &leaving in &block.by_completion {
        let leaving = leaving as usize;
        let end_s = requests[leaving].completed_s;
        loop {
            let arrival_s = requests.get(arrived).map_or(f64::INFINITY, |request| request.sent_s + delay_s);
            station.advance(arrival_s.min(end_s));
            if arrival_s > end_s {
                break;
            }
            // A request that was answered sooner than the delay allows was never in the station.
            if requests[arrived].completed_s >= arrival_s {
                station.present += 1;
            } else {
                at_admission_s[arrived] = f64::INFINITY;
            }
            arrived += 1;
            station.admit(&mut admitted, arrived, &mut at_admission_s);
        }
        let since_s = std::mem::replace(&mut at_admission_s[leaving], f64::INFINITY);
        if since_s.is_infinite() || leaving >= arrived {
            continue;
        }
        station.present -= 1;
        if since_s.is_finite() {
            implied_s[leaving] = (station.received_s - since_s).max(LEAST_S);
            station.in_service -= 1;
        }
        station.admit(&mut admitted, arrived, &mut at_admission_s);
    }
    implied_s
}

/// A station of shared servers at one instant.
struct Occupied<'a> {
    shared: &'a Shared,
    /// The service that a request in service since the beginning would have received.
    received_s: f64,
    now_s: f64,
    present: usize,
    in_service: usize,
}

impl Occupied<'_> {
    fn advance(&mut self, until_s: f64) {
        if self.present > 0 {
            self.received_s += (until_s - self.now_s).max(0.0) * self.shared.each(self.present);
        }
        self.now_s = until_s;
    }

    /// Admits those that arrived and did not leave, as far as the limit allows.
    fn admit(&mut self, admitted: &mut usize, arrived: usize, at_admission_s: &mut [f64]) {
        while self.in_service < self.shared.limit && *admitted < arrived {
            let at_s = &mut at_admission_s[*admitted];
            *admitted += 1;
            if at_s.is_nan() {
                *at_s = self.received_s;
                self.in_service += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kendall_evidence::Visit;
    use kendall_record::{Outcome, RequestRow};
    use kendall_station::Discipline;
    use kendall_stats::random::{Purpose, exponential, stream};

    use super::*;
    use crate::candidate::Candidate;
    use crate::observed::Conditions;
    use crate::order::Order;

    /// As the client saw visits to a station.
    fn block(visits: &[(f64, f64)]) -> Block {
        let ns = |s: f64| (s * 1e9) as i64;
        let row = |(index, &(sent_s, response_s)): (usize, &(f64, f64))| {
            RequestRow::due(index as u64, ns(sent_s))
                .sent_at(ns(sent_s), 1)
                .ended(Outcome::Answered, ns(sent_s + response_s))
        };
        Block::of(&visits.iter().enumerate().map(row).collect::<Vec<RequestRow>>(), 0)
    }

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
            let visits =
                std::iter::zip([0.0, 1.0, 1.5, 4.0], responses_s.map(|response_s| response_s + delay_s));
            let station = Candidate { order: Order::OneQueue(discipline), servers, delay_s };
            let found = station.implied_s(&block(&visits.collect::<Vec<_>>()), &Conditions::default());
            for (found, expected) in found.iter().zip([2.0, 1.0, 1.0, 0.5]) {
                assert!((found - expected).abs() < 1e-6, "{discipline:?} {servers}: {found} {expected}");
            }
        }
    }

    /// An event loop does not always take requests in the order of sending.
    #[test]
    fn no_service_counts_twice_where_requests_overtake_each_other() {
        let implied_s = |servers, visits: &[(f64, f64)]| {
            let station = Candidate { order: Order::OneQueue(Discipline::Fifo), servers, delay_s: 0.0 };
            station.implied_s(&block(visits), &Conditions::default())
        };
        // Served from 0 to 2, from 3 to 4 and from 2 to 3 s.
        let found = implied_s(1, &[(0.0, 2.0), (0.5, 3.5), (1.0, 2.0)]);
        assert!(found.iter().zip([2.0, 1.0, 1.0]).all(|(found, s)| (found - s).abs() < 1e-6), "{found:?}");
        // The first server is busy until 5.5 s, the second until 6 s; the fourth request overtook the third.
        let found = implied_s(2, &[(0.0, 4.0), (0.0, 6.0), (1.0, 4.0), (1.5, 3.0), (2.0, 3.5)]);
        assert!((found.iter().sum::<f64>() - 11.5).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn every_order_implies_what_it_served() {
        let closed = [(1, 100.0), (2, 150.0), (8, 200.0), (64, 160.0)];
        let conditions = Conditions { closed: &closed, ..Conditions::default() };
        let mut rng = stream(3, Purpose::Arrivals, 0);
        let mut now_s = 0.0;
        let arrive = |_| {
            now_s += 0.008 * exponential(&mut rng);
            Visit { arrival_s: now_s, service_s: 0.01 * exponential(&mut rng), class: 0 }
        };
        let visits: Vec<Visit> = (0..2_000).map(arrive).collect();
        let orders = [
            Order::Turns,
            Order::AtMost(4),
            Order::AtMost(2),
            Order::Scattered,
            Order::ScatteredFifo,
            Order::SharedSpeed,
            Order::SerialSpeed,
            Order::Batches,
        ];
        for order in orders {
            let servers = if order == Order::Batches { 1 } else { 2 };
            let station = Candidate { order, servers, delay_s: 0.002 };
            let responses_s = station.responses_s(&visits, &conditions);
            let seen: Vec<(f64, f64)> =
                std::iter::zip(visits.iter().map(|visit| visit.arrival_s), responses_s).collect();
            let found = station.implied_s(&block(&seen), &conditions);
            for (found, visit) in found.iter().zip(&visits) {
                assert!((found - visit.service_s).abs() < 1e-5, "{order:?}: {found} {}", visit.service_s);
            }
        }
    }
}
