//! FIFO with unlimited capacity: each customer takes the server that is free first, so there are no events, only the
//! instants at which the servers become free (Kiefer and Wolfowitz 1955).

use std::ops::ControlFlow;

use kendall_station::Station;

use super::Engine;
use super::arriving::{Ahead, Arriving};
use super::observer::{Observer, Row};
use super::trace::{Fate, Sink, Traced};

/// A run by next-free instants.
pub(super) struct NextFree<'a> {
    arriving: Arriving<'a>,
    servers: Box<dyn Servers + Send>,
    waiting_s: Vec<f64>,
    response_s: Vec<f64>,
}

impl<'a> NextFree<'a> {
    pub(super) fn new(station: &Station, arriving: Arriving<'a>) -> Self {
        let servers: Box<dyn Servers + Send> = match station.servers.get() as usize {
            1 => Box::new(Few([0.0])),
            2 => Box::new(Few([0.0; 2])),
            3 => Box::new(Few([0.0; 3])),
            4 => Box::new(Few([0.0; 4])),
            few @ 5..=8 => Box::new(Few::<8>::of(few)),
            few @ 9..=16 => Box::new(Few::<16>::of(few)),
            many => Box::new(Many(vec![0.0; many])),
        };
        Self { arriving, servers, waiting_s: Vec::new(), response_s: Vec::new() }
    }
}

impl Engine for NextFree<'_> {
    fn run(&mut self, run: u64, observer: &mut Observer, mut sink: Sink<'_>) -> ControlFlow<()> {
        loop {
            let ahead = self.arriving.ahead(observer.longest_row());
            let Some(&now_s) = ahead.arrival_s.last() else { return ControlFlow::Continue(()) };
            let customers = ahead.arrival_s.len();
            self.waiting_s.resize(customers, 0.0);
            self.servers.serve(ahead.arrival_s, ahead.service_s, &mut self.waiting_s);
            self.response_s.clear();
            let both = self.waiting_s.iter().zip(ahead.service_s);
            self.response_s.extend(both.map(|(waiting_s, service_s)| waiting_s + service_s));
            if let Some(sink) = &mut sink {
                report(run, &ahead, &self.waiting_s, &self.response_s, sink);
            }
            let row = Row {
                response_s: &self.response_s,
                waiting_s: &self.waiting_s,
                service_s: ahead.service_s,
                class: ahead.class,
            };
            let seen = observer.departed_in_a_row(now_s, &row);
            self.arriving.passed(customers);
            if seen.is_break() {
                return seen;
            }
        }
    }
}

fn report(run: u64, ahead: &Ahead<'_>, waiting_s: &[f64], response_s: &[f64], sink: &mut dyn FnMut(&Traced)) {
    for i in 0..ahead.arrival_s.len() {
        let arrival_s = ahead.arrival_s[i];
        sink(&Traced {
            run,
            index: ahead.index + i as u64,
            class: ahead.class.get(i).map_or(0, |&class| class as usize),
            arrival_s,
            service_s: ahead.service_s[i],
            started_s: Some(arrival_s + waiting_s[i]),
            departure_s: arrival_s + response_s[i],
            waiting_s: waiting_s[i],
            server: None,
            fate: Fate::Served,
        });
    }
}

/// The instants at which servers become free.
trait Servers {
    /// Assigns each customer to the server that is free first, and writes its waiting time.
    fn serve(&mut self, arrival_s: &[f64], service_s: &[f64], waiting_s: &mut [f64]);
}

/// In ascending order; entries beyond the number of servers are never free. The array stays in registers, and no step
/// branches on drawn values.
struct Few<const M: usize>([f64; M]);

impl<const M: usize> Few<M> {
    fn of(servers: usize) -> Self {
        Self(std::array::from_fn(|i| if i < servers { 0.0 } else { f64::INFINITY }))
    }
}

impl<const M: usize> Servers for Few<M> {
    fn serve(&mut self, arrival_s: &[f64], service_s: &[f64], waiting_s: &mut [f64]) {
        let mut free_s = self.0;
        for ((&arrival_s, &service_s), waiting_s) in arrival_s.iter().zip(service_s).zip(waiting_s) {
            let start_s = if free_s[0] > arrival_s { free_s[0] } else { arrival_s };
            *waiting_s = start_s - arrival_s;
            // The new instant moves up past those before it.
            let mut until_s = start_s + service_s;
            for i in 1..M {
                let other_s = free_s[i];
                free_s[i - 1] = if other_s < until_s { other_s } else { until_s };
                until_s = if other_s < until_s { until_s } else { other_s };
            }
            free_s[M - 1] = until_s;
        }
        self.0 = free_s;
    }
}

/// A binary heap, the earliest on top. Its top is replaced in place, for which the standard heap needs two moves.
struct Many(Vec<f64>);

impl Servers for Many {
    fn serve(&mut self, arrival_s: &[f64], service_s: &[f64], waiting_s: &mut [f64]) {
        for ((&arrival_s, &service_s), waiting_s) in arrival_s.iter().zip(service_s).zip(waiting_s) {
            let start_s = self.0[0].max(arrival_s);
            *waiting_s = start_s - arrival_s;
            self.replace_first(start_s + service_s);
        }
    }
}

impl Many {
    fn replace_first(&mut self, until_s: f64) {
        let heap = &mut self.0;
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            if left >= heap.len() {
                break;
            }
            let right = left + 1;
            let child = if right < heap.len() && heap[right] < heap[left] { right } else { left };
            if heap[child] >= until_s {
                break;
            }
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = until_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every representation of the instants gives the same waiting times, equal to those of a linear search over the
        /// servers.
        #[test]
        fn every_way_to_keep_the_instants_is_the_same(
            customers in prop::collection::vec((0.0f64..1.0, 0.0f64..9.0), 1..200),
            servers in 1usize..=16,
        ) {
            let mut now_s = 0.0;
            let arrivals: Vec<f64> = customers.iter().map(|(gap_s, _)| { now_s += gap_s; now_s }).collect();
            let services: Vec<f64> = customers.iter().map(|customer| customer.1).collect();
            let mut free_s = vec![0.0f64; servers];
            let plain: Vec<f64> = arrivals.iter().zip(&services).map(|(arrival_s, service_s)| {
                let first = free_s.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
                let start_s = first.max(*arrival_s);
                *first = start_s + service_s;
                start_s - arrival_s
            }).collect();
            let (mut few, mut many) = (vec![0.0; arrivals.len()], vec![0.0; arrivals.len()]);
            Few::<16>::of(servers).serve(&arrivals, &services, &mut few);
            Many(vec![0.0; servers]).serve(&arrivals, &services, &mut many);
            prop_assert_eq!(&few, &plain);
            prop_assert_eq!(&many, &plain);
        }
    }
}
