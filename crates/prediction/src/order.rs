//! How the requests of a station share its servers, beyond one queue of a discipline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use kendall_evidence::Visit;
use kendall_station::{Discipline, Formulas};

use crate::points::interpolated;

/// How the requests of a station share its servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    /// All are in one queue.
    OneQueue(Discipline),
    /// Each server has a separate queue, and arrivals are assigned to them in turn, as by a load balancer.
    Turns,
    /// At most this many share the servers, as threads share processors; the others wait in the order of arrival.
    AtMost(u32),
    /// Each request is on a processor drawn at random, whatever the others do, and shares it: threads that wake up where their request
    /// arrived, and are moved late.
    Scattered,
    /// The same, but only as many requests are served at a time as there are servers; the others wait in the order of arrival.
    ScatteredFifo,
    /// The speed of the server depends on the number of requests present, and all of them share it: threads that disturb each other,
    /// or work that is done for many at once.
    SharedSpeed,
    /// The same speed, but one request is served at a time, in the order of arrival.
    SerialSpeed,
    /// One server takes all requests that wait, and serves them one after the other, the last to arrive first, before it takes others:
    /// the scheduler of Go puts the connections that became ready together onto a stack.
    Batches,
    /// One server takes all requests that wait, and answers all of them when the last is done: Redis reads all connections that are ready,
    /// and writes the answers before it waits for the next.
    Together,
}

impl Order {
    /// The order with its number of servers, in words.
    pub(crate) fn words(self, servers: u32) -> String {
        let plural = if servers == 1 { "" } else { "s" };
        match self {
            Self::OneQueue(discipline) => format!("{servers} server{plural}, {}", discipline.notation()),
            Self::Turns => format!("{servers} servers with a queue each, arrivals in turn"),
            Self::AtMost(limit) => format!("{servers} server{plural} shared by at most {limit}"),
            Self::Scattered => format!("{servers} processors, PS, requests on one at random"),
            Self::ScatteredFifo => format!("{servers} processors, FIFO, requests on one at random"),
            Self::SharedSpeed => "shared, with a speed that depends on the number present".into(),
            Self::SerialSpeed => "FIFO, with a speed that depends on the number present".into(),
            Self::Batches => "1 server, batches of all that wait, each LIFO".into(),
            Self::Together => "1 server, batches of all that wait, answered together".into(),
        }
    }

    /// Whether the speed by the number of requests present belongs to the station.
    pub(crate) fn has_speeds(self) -> bool {
        matches!(self, Self::SharedSpeed | Self::SerialSpeed)
    }

    /// Whether closed populations can be simulated in this order.
    pub(crate) fn serves_populations(self) -> bool {
        match self {
            // Requests are served in the order of arrival, or share the servers.
            Self::OneQueue(discipline) => {
                matches!(discipline.formulas(), Formulas::InOrder | Formulas::Sharing)
            }
            _ => true,
        }
    }

    /// The discipline that comes nearest.
    pub(crate) fn discipline(self) -> Discipline {
        match self {
            Self::OneQueue(discipline) => discipline,
            Self::Turns | Self::ScatteredFifo | Self::SerialSpeed | Self::Batches | Self::Together => {
                Discipline::Fifo
            }
            Self::AtMost(_) | Self::Scattered | Self::SharedSpeed => Discipline::ProcessorSharing,
        }
    }
}

/// Numbers of requests present whose speed is computed in advance.
const TABLED: usize = 1_024;

/// A fall of the throughput is continued to this many times the largest population.
const FALLS_TO: f64 = 8.0;
/// And no steeper than with this power of the number of users: two noisy points may lie far apart.
const STEEPEST: f64 = -0.5;

/// How fast a station works with each number of requests present, in seconds of service per second.
#[derive(Clone, Debug)]
pub(crate) struct Speed(Vec<f64>);

impl Speed {
    /// This number of servers of one speed.
    pub(crate) fn of_servers(servers: f64) -> Self {
        Self((0..TABLED).map(|present| (present as f64).min(servers)).collect())
    }

    /// This number of processors, on which requests are placed at random: the mean number of processors that have one.
    pub(crate) fn of_scattered(servers: u32) -> Self {
        let m = f64::from(servers);
        Self((0..TABLED).map(|present| m * (1.0 - libm::pow(1.0 - 1.0 / m, present as f64))).collect())
    }

    /// As closed populations got it: users and requests per second. Of N users with a throughput of X, X times the delay are outside the
    /// station, by Little's law. Its speed is the throughput while it is not empty, with the mean number present then; of a single user,
    /// that is one request, whose speed is 1. Where throughput falls as users are added, the fall continues beyond the largest
    /// population, by the same power of the number of users, up to [`FALLS_TO`] times as many.
    ///
    /// `None` where fewer than three populations were measured, or not that of one user.
    pub(crate) fn of_populations(closed: &[(u32, f64)], delay_s: f64) -> Option<Self> {
        closed.first().filter(|first| first.0 == 1)?;
        let busy = busy_shares(closed, delay_s);
        let while_busy = |(&(users, per_s), busy): (&(u32, f64), f64)| {
            (((f64::from(users) - per_s * delay_s) / busy).max(1.0), per_s / busy)
        };
        let mut points: Vec<(f64, f64)> = std::iter::zip(closed, busy).map(while_busy).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let [first, .., before, last] = points[..] else { return None };
        let alone_s = first.1.recip();
        let falls = libm::log(last.1 / before.1) / libm::log(last.0 / before.0);
        let falls = if falls.is_finite() { falls.clamp(STEEPEST, 0.0) } else { 0.0 };
        let speed = |present: usize| {
            let present = present as f64;
            let beyond = (present / last.0).clamp(1.0, FALLS_TO);
            interpolated(&points, present) * libm::pow(beyond, falls) * alone_s
        };
        Some(Self((0..TABLED).map(|present| if present == 0 { 0.0 } else { speed(present) }).collect()))
    }

    /// Of this number of such servers, among which requests are divided evenly.
    pub(crate) fn times(self, servers: u32) -> Self {
        let n = servers as usize;
        let speed = |present: usize| {
            let (each, more) = (present / n, present % n);
            (n - more) as f64 * self.at(each) + more as f64 * self.at(each + 1)
        };
        Self((0..TABLED).map(speed).collect())
    }

    fn at(&self, present: usize) -> f64 {
        self.0[present.min(TABLED - 1)]
    }

    /// The speed with many requests.
    pub(crate) fn full(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }
}

/// The share of time in which the station has a request, for each closed population, ascending and from one user on. With a throughput
/// of X, N users are all outside in the share of time P(N) = P(N − 1) X D/N, where D is the delay (Reiser and Lavenberg 1980, for a
/// station whose speed depends on the number present). The throughput between measured populations is interpolated.
fn busy_shares(closed: &[(u32, f64)], delay_s: f64) -> Vec<f64> {
    /// A delay that is longer than the responses of a user leaves less than nothing.
    const LEAST: f64 = 1e-3;
    let throughput: Vec<(f64, f64)> =
        closed.iter().map(|&(users, per_s)| (f64::from(users), per_s)).collect();
    let (mut added, mut empty) = (0, 1.0);
    let busy = closed.iter().map(|&(users, _)| {
        while added < users && empty > 0.0 {
            added += 1;
            let more = f64::from(added);
            empty *= interpolated(&throughput, more) * delay_s / more;
        }
        (1.0 - empty).clamp(LEAST, 1.0)
    });
    busy.collect()
}

/// Gets the index of a visit and when it ends, and may add one that arrives later than all.
pub(crate) type OnDeparture<'a> = &'a mut dyn FnMut(usize, f64) -> Option<Visit>;

/// When each visit ends at a station that serves them so, of visits in the order of arrival.
pub(crate) fn departures_s(
    visits: &[Visit],
    serve: impl FnOnce(&mut Vec<Visit>, OnDeparture<'_>),
) -> Vec<f64> {
    let mut ends_s = vec![f64::INFINITY; visits.len()];
    serve(&mut visits.to_vec(), &mut |visit, end_s| {
        ends_s[visit] = end_s;
        None
    });
    ends_s
}

/// The response times of a closed population without think time at a station that serves so, in the order in which they end.
pub(crate) fn population_s(
    users: usize,
    services_s: &[f64],
    delay_s: f64,
    serve: impl FnOnce(&mut Vec<Visit>, OnDeparture<'_>),
) -> Vec<f64> {
    let mut services_s = services_s.iter();
    let mut arrive = |arrival_s| Some(Visit { arrival_s, service_s: *services_s.next()?, class: 0 });
    let mut visits: Vec<Visit> = (0..users).filter_map(|_| arrive(0.0)).collect();
    let mut arrivals_s = vec![0.0; visits.len()];
    let mut responses_s = Vec::new();
    serve(&mut visits, &mut |visit, end_s| {
        responses_s.push(end_s - arrivals_s[visit] + delay_s);
        // The first to end is also the first to be back.
        let next = arrive(end_s + delay_s)?;
        arrivals_s.push(next.arrival_s);
        Some(next)
    });
    responses_s
}

/// Serves visits in batches ([`Order::Batches`]).
pub(crate) fn serve_in_batches(visits: &mut Vec<Visit>, ended: OnDeparture<'_>) {
    batches(visits, |visits, batch, mut now_s| {
        for served in batch.rev() {
            now_s += visits[served].service_s;
            visits.extend(ended(served, now_s));
        }
        now_s
    });
}

/// Serves visits in batches that are answered together ([`Order::Together`]).
pub(crate) fn serve_together(visits: &mut Vec<Visit>, ended: OnDeparture<'_>) {
    batches(visits, |visits, batch, now_s| {
        let end_s = now_s + visits[batch.clone()].iter().map(|visit| visit.service_s).sum::<f64>();
        for served in batch {
            visits.extend(ended(served, end_s));
        }
        end_s
    });
}

/// Has all visits that wait served, each time the earlier ones have ended. `serve` gets them and the instant, and returns when they end.
fn batches(visits: &mut Vec<Visit>, mut serve: impl FnMut(&mut Vec<Visit>, Range<usize>, f64) -> f64) {
    let (mut first, mut now_s) = (0, f64::NEG_INFINITY);
    while let Some(next) = visits.get(first) {
        now_s = now_s.max(next.arrival_s);
        let end = first + visits[first..].partition_point(|visit| visit.arrival_s <= now_s);
        now_s = serve(visits, first..end, now_s);
        first = end;
    }
}

/// A station whose requests in service, at most `limit` of them, share its speed equally; the others wait in the order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) limit: usize,
    pub(crate) speed: Speed,
}

impl Shared {
    /// Service that each request in service receives per second.
    pub(crate) fn each(&self, present: usize) -> f64 {
        self.speed.at(present) / present.clamp(1, self.limit) as f64
    }

    /// Serves visits in the order of arrival.
    pub(crate) fn serve(&self, visits: &mut Vec<Visit>, ended: OnDeparture<'_>) {
        // The service that each request in service received since the beginning grows alike, so the next to leave is the one with the
        // smallest total at its end. The bits of positive numbers have their order.
        let mut in_service: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let (mut arrived, mut admitted) = (0, 0);
        let (mut now_s, mut received_s) = (0.0, 0.0);
        loop {
            let each = self.each(in_service.len() + arrived - admitted);
            let end = in_service.peek().map(|first| (f64::from_bits(first.0.0), first.0.1));
            let end_s = end.map_or(f64::INFINITY, |(at_s, _)| now_s + (at_s - received_s).max(0.0) / each);
            let arrival_s = visits.get(arrived).map_or(f64::INFINITY, |visit| visit.arrival_s);
            if arrival_s < end_s {
                received_s += (arrival_s - now_s) * each;
                now_s = arrival_s;
                arrived += 1;
            } else if let Some((at_s, leaving)) = end {
                (now_s, received_s) = (end_s, at_s);
                in_service.pop();
                visits.extend(ended(leaving, end_s));
            } else {
                return;
            }
            while in_service.len() < self.limit && admitted < arrived {
                in_service.push(Reverse(((received_s + visits[admitted].service_s).to_bits(), admitted)));
                admitted += 1;
            }
        }
    }
}

/// The response times of a closed population without think time at servers that take one request at a time, of one queue or with a queue
/// each to which arrivals are assigned in turn. In the order of arrival.
pub(crate) fn population_in_order_s(
    users: usize,
    services_s: &[f64],
    delay_s: f64,
    servers: usize,
    in_turn: bool,
) -> Vec<f64> {
    let mut free_s = vec![0.0_f64; servers];
    // The next arrival of each user.
    let mut arrivals: BinaryHeap<Reverse<u64>> = (0..users).map(|_| Reverse(0)).collect();
    let serve = |(index, service_s): (usize, &f64)| {
        let arrival_s = arrivals.pop().map_or(0.0, |first| f64::from_bits(first.0));
        let first = |(_, a): &(usize, &f64), (_, b): &(usize, &f64)| a.total_cmp(b);
        let server = match in_turn {
            true => index % servers,
            false => free_s.iter().enumerate().min_by(first).map_or(0, |first| first.0),
        };
        let end_s = free_s[server].max(arrival_s) + service_s;
        free_s[server] = end_s;
        arrivals.push(Reverse((end_s + delay_s).to_bits()));
        end_s - arrival_s + delay_s
    };
    services_s.iter().enumerate().map(serve).collect()
}

/// When each visit ends, of visits that are assigned to servers in turn.
pub(crate) fn departures_in_turn_s(visits: &[Visit], servers: usize) -> Vec<f64> {
    let mut free_s = vec![f64::NEG_INFINITY; servers];
    let serve = |(index, visit): (usize, &Visit)| {
        let free_s = &mut free_s[index % servers];
        *free_s = free_s.max(visit.arrival_s) + visit.service_s;
        *free_s
    };
    visits.iter().enumerate().map(serve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(all: &[(f64, f64)]) -> Vec<Visit> {
        all.iter().map(|&(arrival_s, service_s)| Visit { arrival_s, service_s, class: 0 }).collect()
    }

    #[test]
    fn a_limit_holds_requests_back_until_one_leaves() {
        // Two of three share one server until the first has its second at 2; the third, from then on, shares with the other.
        let shared = Shared { limit: 2, speed: Speed::of_servers(1.0) };
        let all = visits(&[(0.0, 1.0), (0.0, 2.0), (0.5, 0.5)]);
        let found = departures_s(&all, |visits, ended| shared.serve(visits, ended));
        for (found, expected) in found.iter().zip([2.0, 3.5, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    #[test]
    fn arrivals_in_turn_wait_although_another_server_is_free() {
        let found = departures_in_turn_s(&visits(&[(0.0, 5.0), (0.0, 1.0), (2.0, 1.0), (3.0, 1.0)]), 2);
        assert_eq!(found, [5.0, 1.0, 6.0, 4.0]);
    }

    #[test]
    fn a_batch_ends_before_others_are_taken() {
        // The first is alone; two wait until it ends at 3, and the last of them is served first; the fourth comes too late for them.
        let all = visits(&[(0.0, 3.0), (1.0, 1.0), (2.0, 2.0), (4.0, 1.0)]);
        assert_eq!(departures_s(&all, serve_in_batches), [3.0, 6.0, 5.0, 7.0]);
        // Of two users, the one whose request ends the batch is the last to be back, and first in the next one.
        assert_eq!(population_s(2, &[1.0; 6], 0.0, serve_in_batches), [1.0, 2.0, 1.0, 3.0, 1.0, 3.0]);
    }

    #[test]
    fn a_batch_is_answered_together() {
        let all = visits(&[(0.0, 3.0), (1.0, 1.0), (2.0, 2.0), (4.0, 1.0)]);
        assert_eq!(departures_s(&all, serve_together), [3.0, 6.0, 6.0, 7.0]);
        assert_eq!(population_s(2, &[1.0; 4], 0.0, serve_together), [2.0; 4]);
    }

    #[test]
    fn populations_tell_the_speed_and_a_fall_goes_on() {
        // 10 ms outside and 10 ms of service alone: one user gets 50/s, and is in the station for half of the time.
        let speed = Speed::of_populations(&[(1, 50.0), (2, 80.0), (32, 160.0), (64, 120.0)], 0.01).unwrap();
        assert!((speed.at(1) - 1.0).abs() < 1e-12, "{}", speed.at(1));
        assert!((speed.full() - 1.6).abs() < 0.02, "{}", speed.full());
        assert!(speed.at(128) < 0.8 * speed.at(63), "{} {}", speed.at(128), speed.at(63));
        assert!(Speed::of_populations(&[(1, 50.0), (2, 80.0)], 0.0).is_none());
    }

    /// With a delay as long as the service, N users of one exponential server get B(N − 1)/B(N) times its speed, where B(N) is the sum of
    /// 1/n! up to N: 1/2, 4/5, 15/16 and 64/65.
    #[test]
    fn a_server_of_constant_speed_has_it_for_any_number_present() {
        let closed = [(1, 50.0), (2, 80.0), (3, 93.75), (4, 6_400.0 / 65.0)];
        let speed = Speed::of_populations(&closed, 0.01).unwrap();
        for present in 1..20 {
            assert!((speed.at(present) - 1.0).abs() < 1e-9, "{present}: {}", speed.at(present));
        }
    }
}
