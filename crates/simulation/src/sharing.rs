//! Processor sharing in virtual time: a clock that advances by the service that each customer receives, so that the
//! order of departures is known at arrival and a change of speed costs nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use kendall_station::Station;

use super::arriving::{Arriving, Customer};
use super::observer::{Departure, Observer};
use super::trace::{Fate, Sink, Traced};
use super::{Engine, Instant};

/// A run under processor sharing.
pub(super) struct Sharing<'a> {
    arriving: Arriving<'a>,
    room: u64,
    servers: f64,
    now_s: f64,
    /// The service received by a customer that has been here since the station was last empty.
    each_s: f64,
    /// Customers by the reading of `each_s` at which they are done.
    present: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The customers' data, at the slot named in the heap.
    customers: Vec<(Customer, bool)>,
    vacant: Vec<usize>,
}

impl Engine for Sharing<'_> {
    fn run(&mut self, run: u64, observer: &mut Observer, mut sink: Sink<'_>) -> ControlFlow<()> {
        loop {
            let departure_s = self.next_departure_s();
            let arrival_s = self.arriving.next_s().unwrap_or(f64::INFINITY);
            let seen = if arrival_s < departure_s {
                self.advance(arrival_s, observer);
                let customer = self.arriving.take().expect("its arrival was just looked up");
                if (self.present.len() as u64) < self.room {
                    self.admit(customer);
                    continue;
                }
                self.arriving.left(&customer, arrival_s);
                if let Some(sink) = &mut sink {
                    sink(&customer.lost(run));
                }
                observer.turned_away(arrival_s)
            } else if departure_s < f64::INFINITY {
                self.advance(departure_s, observer);
                let (customer, departure) = self.release();
                self.arriving.left(&customer, departure_s);
                if let Some(sink) = &mut sink {
                    sink(&Traced {
                        started_s: Some(customer.arrival_s),
                        departure_s,
                        waiting_s: departure.waiting_s,
                        fate: Fate::Served,
                        ..customer.lost(run)
                    });
                }
                observer.departed(departure_s, departure)
            } else {
                return ControlFlow::Continue(());
            };
            if seen.is_break() {
                return seen;
            }
        }
    }
}

impl<'a> Sharing<'a> {
    pub(super) fn new(station: &Station, arriving: Arriving<'a>) -> Self {
        Self {
            arriving,
            room: station.capacity.unwrap_or(u64::MAX),
            servers: f64::from(station.servers.get()),
            now_s: 0.0,
            each_s: 0.0,
            present: BinaryHeap::new(),
            customers: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// The current share of one server that each customer has.
    fn speed(&self) -> f64 {
        (self.servers / self.present.len() as f64).min(1.0)
    }

    /// Infinite while the station is empty.
    fn next_departure_s(&self) -> f64 {
        self.present.peek().map_or(f64::INFINITY, |Reverse((done, _))| {
            self.now_s + (done.0 - self.each_s).max(0.0) / self.speed()
        })
    }

    fn advance(&mut self, to_s: f64, observer: &mut Observer) {
        let n = self.present.len() as f64;
        observer.pass(to_s - self.now_s, n, n.min(self.servers));
        if self.present.is_empty() {
            // A fresh start keeps the virtual clock small, and therefore exact.
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

    fn release(&mut self) -> (Customer, Departure) {
        let Reverse((done, place)) = self.present.pop().expect("a departing customer was present");
        self.each_s = done.0;
        self.vacant.push(place);
        let (customer, delayed) = self.customers[place];
        let response_s = self.now_s - customer.arrival_s;
        let waiting_s = (response_s - customer.service_s).max(0.0);
        (customer, Departure { class: customer.class as usize, response_s, waiting_s, delayed })
    }
}
