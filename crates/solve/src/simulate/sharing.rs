//! Processor sharing in virtual time: a clock that advances by the service that each customer receives, so that the
//! order of departures is known at arrival and a change of speed costs nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use kendall_station::Station;

use super::Instant;
use super::arriving::{Arriving, Customer};
use super::observer::{Departure, Observer};

struct Sharing {
    servers: f64,
    now_s: f64,
    /// The service that whoever has been here since the station was last empty has received.
    each_s: f64,
    /// Customers by the reading of `each_s` at which they are done.
    present: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Their data, at the place named in the heap.
    customers: Vec<(Customer, bool)>,
    vacant: Vec<usize>,
}

/// Runs the station until the observer has seen enough.
pub(super) fn run(station: &Station, mut arriving: Arriving<'_>, observer: &mut Observer) {
    let mut sharing = Sharing {
        servers: f64::from(station.servers.get()),
        now_s: 0.0,
        each_s: 0.0,
        present: BinaryHeap::new(),
        customers: Vec::new(),
        vacant: Vec::new(),
    };
    let room = station.capacity.unwrap_or(u64::MAX);
    loop {
        let departure_s = sharing.next_departure_s();
        let arrival_s = arriving.next_s();
        let seen = match (arrival_s, departure_s) {
            (None, None) => break,
            (Some(arrival_s), departure_s) if departure_s.is_none_or(|at| arrival_s < at) => {
                sharing.advance(arrival_s, observer);
                let customer = arriving.take().expect("its arrival was just looked up");
                if (sharing.present.len() as u64) < room {
                    sharing.admit(customer);
                    ControlFlow::Continue(())
                } else {
                    arriving.left(arrival_s);
                    observer.turned_away(arrival_s)
                }
            }
            (_, departure_s) => {
                sharing.advance(departure_s.expect("one of the two is due"), observer);
                arriving.left(sharing.now_s);
                observer.departed(sharing.now_s, sharing.release())
            }
        };
        if seen.is_break() {
            break;
        }
    }
}

impl Sharing {
    /// The share of one server that each customer has now.
    fn speed(&self) -> f64 {
        (self.servers / self.present.len() as f64).min(1.0)
    }

    fn next_departure_s(&self) -> Option<f64> {
        let done = self.present.peek()?.0.0.0;
        Some(self.now_s + (done - self.each_s).max(0.0) / self.speed())
    }

    fn advance(&mut self, to_s: f64, observer: &mut Observer) {
        let n = self.present.len() as f64;
        observer.pass(to_s - self.now_s, n, n.min(self.servers));
        if self.present.is_empty() {
            // A fresh start keeps the virtual clock small, and so exact.
            self.each_s = 0.0;
        } else {
            self.each_s += (to_s - self.now_s) * self.speed();
        }
        self.now_s = to_s;
    }

    fn admit(&mut self, customer: Customer) {
        let delayed = self.present.len() as f64 >= self.servers;
        let place = self.vacant.pop().unwrap_or(self.customers.len());
        if place == self.customers.len() {
            self.customers.push((customer, delayed));
        } else {
            self.customers[place] = (customer, delayed);
        }
        self.present.push(Reverse((Instant(self.each_s + customer.service_s), place)));
    }

    fn release(&mut self) -> Departure {
        let Reverse((done, place)) = self.present.pop().expect("whoever departs was present");
        self.each_s = done.0;
        self.vacant.push(place);
        let (customer, delayed) = self.customers[place];
        let response_s = self.now_s - customer.arrival_s;
        let waiting_s = (response_s - customer.service_s).max(0.0);
        Departure { class: customer.class, response_s, waiting_s, delayed }
    }
}
