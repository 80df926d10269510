//! A station in virtual time, fed by a trace: exact for any order of service, any number of servers, and limited room.
//!
//! Every order but processor sharing is one loop over arrivals and the events between them, on the same `Queue` that live servers take
//! their next request from. Processor sharing has its own clock, which advances by the service that each request present receives, so
//! that the order of departures is known on arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use kendall_station::{Discipline, Entry, GittinsTable, Job, Knows, Law, Queue, Size, Ticket};

use super::Rules;

/// Service times that a tabulated law keeps; more are thinned evenly.
const KEPT: usize = 2_000;

/// A request as a station sees it, in seconds since the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// The arrival of the request at the station.
    pub arrival_s: f64,
    /// The service time of the request.
    pub service_s: f64,
    /// The request's class, by number.
    pub class: usize,
}

/// When each request leaves, given in order of arrival; `None` for those that find the station full.
pub fn departures(visits: &[Visit], rules: &Rules<'_>) -> Vec<Option<f64>> {
    match rules.discipline {
        Discipline::Fifo if rules.capacity.is_none() => in_turn(visits, rules.servers.get() as usize),
        discipline if discipline.shares() => shared(visits, rules),
        _ => queued(visits, rules),
    }
}

/// First come, first served without a limit: each request takes the server that is free first (Kiefer and Wolfowitz 1955).
fn in_turn(visits: &[Visit], servers: usize) -> Vec<Option<f64>> {
    let mut free: BinaryHeap<Reverse<u64>> = (0..servers).map(|_| Reverse(key(0.0))).collect();
    let end = |visit: &Visit| {
        let mut first = free.peek_mut().expect("a station has a server");
        let end_s = f64::from_bits(first.0).max(visit.arrival_s) + visit.service_s;
        *first = Reverse(key(end_s));
        Some(end_s)
    };
    visits.iter().map(end).collect()
}

/// A key that orders instants as their values do: they are never negative.
fn key(at_s: f64) -> u64 {
    at_s.to_bits()
}

fn room(rules: &Rules<'_>) -> usize {
    rules.capacity.map_or(usize::MAX, |capacity| usize::try_from(capacity).unwrap_or(usize::MAX))
}

fn shared(visits: &[Visit], rules: &Rules<'_>) -> Vec<Option<f64>> {
    let (servers, room) = (f64::from(rules.servers.get()), room(rules));
    let mut ends_s = vec![None; visits.len()];
    // What each has received since the station was last empty, and the reading of that at which each is done.
    let (mut now_s, mut each_s) = (0.0f64, 0.0f64);
    let mut present: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let speed = |n: usize| (servers / n as f64).min(1.0);
    let arrivals = visits.iter().map(|visit| visit.arrival_s).chain([f64::INFINITY]);
    for (place, arrival_s) in arrivals.enumerate() {
        while let Some(&Reverse((done, leaving))) = present.peek() {
            let left_s = (f64::from_bits(done) - each_s).max(0.0);
            let end_s = now_s + left_s / speed(present.len());
            if end_s > arrival_s {
                break;
            }
            present.pop();
            (now_s, each_s) = (end_s, f64::from_bits(done));
            ends_s[leaving] = Some(end_s);
        }
        let Some(visit) = visits.get(place) else { break };
        // A fresh start keeps that clock small, and so exact.
        each_s = if present.is_empty() { 0.0 } else { each_s + (arrival_s - now_s) * speed(present.len()) };
        now_s = arrival_s;
        if present.len() < room {
            present.push(Reverse((key(each_s + visit.service_s), place)));
        }
    }
    ends_s
}

/// A request in service.
struct Running {
    entry: Entry<usize>,
    since_s: f64,
    /// The received service at which something happens: its end, or the point where it may be overtaken.
    until_s: f64,
    plan: u64,
}

/// The queue and the servers of the simulated station, and the requests in them.
struct StationState<'a> {
    visits: &'a [Visit],
    queue: Queue<usize>,
    servers: Vec<Option<Running>>,
    idle: Vec<usize>,
    /// When something happens at which server, by which plan; an event of an older plan is void.
    due: BinaryHeap<Reverse<(u64, usize, u64)>>,
    plans: u64,
    /// The first one waiting when that was planned.
    head: Option<Ticket>,
    now_s: f64,
    present: usize,
    ends_s: Vec<Option<f64>>,
}

fn queued(visits: &[Visit], rules: &Rules<'_>) -> Vec<Option<f64>> {
    let servers = rules.servers.get() as usize;
    let (jobs, room) = (jobs(visits, rules), room(rules));
    let mut station = StationState {
        visits,
        queue: Queue::new(rules.discipline),
        servers: (0..servers).map(|_| None).collect(),
        idle: (0..servers).rev().collect(),
        due: BinaryHeap::new(),
        plans: 0,
        head: None,
        now_s: 0.0,
        present: 0,
        ends_s: vec![None; visits.len()],
    };
    for (place, visit) in visits.iter().enumerate() {
        station.run_until(visit.arrival_s);
        station.now_s = visit.arrival_s;
        if station.present < room {
            let mut job = jobs[visit.class].clone();
            if rules.discipline.knows() == Knows::Size {
                job.size = Size::Exactly(visit.service_s);
            }
            station.admit(job, place);
        }
    }
    station.run_until(f64::INFINITY);
    station.ends_s
}

/// A request of each class before any service. Only shortest-remaining knows true sizes, at arrival.
fn jobs(visits: &[Visit], rules: &Rules<'_>) -> Vec<Job> {
    let classes = visits.iter().map(|visit| visit.class + 1).max().unwrap_or(0);
    let job = |class| {
        let size = match rules.discipline.knows() {
            Knows::WeightAndMean | Knows::WeightAndLaw => size(visits, class),
            Knows::Nothing | Knows::Weight | Knows::Size => Size::Unknown,
        };
        Job { weight: rules.weight(class), size, attained: 0.0 }
    };
    (0..classes).map(job).collect()
}

/// The law of the measured service times of a class.
fn size(visits: &[Visit], class: usize) -> Size {
    let of_class = visits.iter().filter(|visit| visit.class == class);
    let mut services_s: Vec<f64> = of_class.map(|visit| visit.service_s).collect();
    services_s.sort_by(f64::total_cmp);
    let step = services_s.len().div_ceil(KEPT).max(1);
    let kept: Vec<f64> = services_s.into_iter().step_by(step).collect();
    match Law::empirical(kept) {
        Ok(law) if law.mean_s() > 0.0 => Size::Law(Arc::new(GittinsTable::new(&law))),
        _ => Size::Unknown,
    }
}

impl StationState<'_> {
    /// Everything happens that is due up to an instant.
    fn run_until(&mut self, to_s: f64) {
        while let Some(&Reverse((at, server, plan))) = self.due.peek() {
            if f64::from_bits(at) > to_s {
                break;
            }
            self.due.pop();
            if self.servers[server].as_ref().is_some_and(|running| running.plan == plan) {
                self.now_s = f64::from_bits(at);
                self.happen(server);
            }
        }
    }

    fn admit(&mut self, job: Job, place: usize) {
        self.present += 1;
        self.queue.push(job, place);
        if let Some(server) = self.idle.pop() {
            self.serve_next(server);
        } else if self.queue.discipline().preempts() {
            self.interrupt_for_the_first_waiting();
        }
        self.look_ahead();
    }

    /// A server's plan comes true: its request is done, or may have to make way.
    fn happen(&mut self, server: usize) {
        let mut running = self.servers[server].take().expect("a plan is of a busy server");
        // Exactly, not by way of a rounded difference of instants: else it could fall short forever.
        running.entry.job.attained = running.until_s;
        let place = running.entry.item;
        if running.until_s >= self.visits[place].service_s {
            self.ends_s[place] = Some(self.now_s);
            self.present -= 1;
            self.serve_next(server);
        } else if self.queue.outranks(&running.entry.job) {
            self.serve_next(server);
            self.queue.resume(running.entry);
        } else {
            self.serve(server, running.entry);
        }
        self.look_ahead();
    }

    fn serve_next(&mut self, server: usize) {
        match self.queue.pop() {
            Some(entry) => self.serve(server, entry),
            None => self.idle.push(server),
        }
    }

    fn serve(&mut self, server: usize, entry: Entry<usize>) {
        let (attained_s, service_s) = (entry.job.attained, self.visits[entry.item].service_s);
        let overtaken_s = self.queue.overtaken_after(&entry.job).map(|after_s| attained_s + after_s);
        let until_s = overtaken_s.filter(|&at_s| attained_s < at_s && at_s < service_s).unwrap_or(service_s);
        self.plans += 1;
        let at = key(self.now_s + (until_s - attained_s).max(0.0));
        self.due.push(Reverse((at, server, self.plans)));
        self.servers[server] = Some(Running { entry, since_s: self.now_s, until_s, plan: self.plans });
    }

    /// If the least urgent request in service must make way for the first one waiting, it does.
    fn interrupt_for_the_first_waiting(&mut self) {
        self.bring_up_to_date();
        let busy = self.servers.iter().enumerate().filter_map(|(at, server)| Some((at, server.as_ref()?)));
        let least = busy.reduce(|least, other| {
            let less = self.queue.less_urgent(&other.1.entry.job, &least.1.entry.job);
            if less { other } else { least }
        });
        let Some((server, _)) = least.filter(|(_, running)| self.queue.outranks(&running.entry.job)) else {
            return;
        };
        let interrupted = self.servers[server].take().expect("it was in service just now");
        // Take the next first, then put back the interrupted one: it cannot outrank the request that preempted it.
        self.serve_next(server);
        self.queue.resume(interrupted.entry);
    }

    /// Credits the service received since it was last looked at.
    fn bring_up_to_date(&mut self) {
        for running in self.servers.iter_mut().flatten() {
            running.entry.job.attained += self.now_s - running.since_s;
            running.since_s = self.now_s;
        }
    }

    /// Another first one waiting may change when a request in service is overtaken, which only Gittins minds.
    fn look_ahead(&mut self) {
        if self.queue.discipline().knows() != Knows::WeightAndLaw || self.queue.head() == self.head {
            return;
        }
        self.head = self.queue.head();
        self.bring_up_to_date();
        for server in 0..self.servers.len() {
            if let Some(running) = self.servers[server].take() {
                self.serve(server, running.entry);
            }
        }
    }
}
