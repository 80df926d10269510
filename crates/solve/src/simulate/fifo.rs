//! FIFO with unlimited room and one class: each customer takes the server that is free first, so there are no events,
//! only the instants at which the servers become free (Kiefer and Wolfowitz 1955).

use std::ops::ControlFlow;

use kendall_station::Station;
use kendall_station::random::{Purpose, stream};

use super::observer::{Departure, Observer};

/// Up to this many servers a look at each of them is faster than a heap.
const FEW: usize = 12;

/// Runs the station until the observer has seen enough.
pub(super) fn run(station: &Station, seed: u64, observer: &mut Observer) {
    let servers = station.servers.get() as usize;
    if servers <= FEW {
        serve(station, seed, observer, Few(vec![0.0; servers]));
    } else {
        serve(station, seed, observer, Many(vec![0.0; servers]));
    }
}

/// The instants at which servers become free.
trait Servers {
    /// Gives a customer the server that is free first, from then on or from its arrival, and says when it was free.
    fn take(&mut self, arrival_s: f64, service_s: f64) -> f64;
}

fn serve(station: &Station, seed: u64, observer: &mut Observer, mut servers: impl Servers) {
    let mut rng = stream(seed, Purpose::Service, 0);
    let instants = station.arrivals.instants(seed).expect("an open stream has instants");
    for arrival_s in instants {
        let service_s = station.service.sample(&mut rng);
        let free_s = servers.take(arrival_s, service_s);
        let waiting_s = (free_s - arrival_s).max(0.0);
        let customer =
            Departure { class: 0, response_s: waiting_s + service_s, waiting_s, delayed: free_s > arrival_s };
        // Each customer brings its whole stay and its whole service at its arrival: over a long run these sums are the
        // integrals over time (Little's law in its sample-path form, Stidham 1974).
        observer.add_stay(customer.response_s, service_s);
        if observer.departed(arrival_s, customer) == ControlFlow::Break(()) {
            break;
        }
    }
}

/// Unordered; the earliest is looked for.
struct Few(Vec<f64>);

impl Servers for Few {
    #[inline]
    fn take(&mut self, arrival_s: f64, service_s: f64) -> f64 {
        let mut first = 0;
        for server in 1..self.0.len() {
            first = if self.0[server] < self.0[first] { server } else { first };
        }
        let free_s = self.0[first];
        self.0[first] = free_s.max(arrival_s) + service_s;
        free_s
    }
}

/// A binary heap, the earliest on top. Its top is replaced in place, which the standard heap offers only through two
/// moves.
struct Many(Vec<f64>);

impl Servers for Many {
    #[inline]
    fn take(&mut self, arrival_s: f64, service_s: f64) -> f64 {
        let heap = &mut self.0;
        let free_s = heap[0];
        let until_s = free_s.max(arrival_s) + service_s;
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
        free_s
    }
}
