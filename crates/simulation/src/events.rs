//! The event loop behind every discipline but processor sharing: any arrivals, capacity, classes, preemption with resume.

use std::ops::ControlFlow;
use std::sync::Arc;

use kendall_station::{Class, Entry, GittinsTable, Job, Knows, Law, Queue, Rank, Size, Station, Ticket};

use super::Engine;
use super::arriving::{Arriving, Customer};
use super::due::Due;
use super::observer::{Departure, Observer};
use super::trace::{Fate, Sink, Traced};

/// A customer in the station.
#[derive(Clone, Copy)]
struct Present {
    customer: Customer,
    /// Whether the customer found all servers busy.
    delayed: bool,
    /// The instant at which the customer was first served; NaN before.
    started_s: f64,
}

/// The slot of a customer while it is in the station. Queue and servers pass on this small number.
type Slot = u32;

/// A customer in service, and the instant up to which its received service is credited.
struct Running {
    entry: Entry<Slot>,
    since_s: f64,
}

impl Running {
    /// Credits the service received since the last update.
    #[inline]
    fn bring_up_to_date(&mut self, now_s: f64) {
        self.entry.job.attained += now_s - self.since_s;
        self.since_s = now_s;
    }
}

/// The next event at a server where service can make a customer less urgent.
#[derive(Clone, Copy)]
struct Plan {
    until: Until,
    /// The first one waiting when this event was planned.
    head: Option<Ticket>,
}

#[derive(Clone, Copy)]
enum Until {
    Done,
    /// The received service at which the customer may be overtaken.
    Overtaken {
        attained_s: f64,
    },
}

/// The general event loop of a station.
pub(super) struct EventLoop<'a> {
    arriving: Arriving<'a>,
    present: Vec<Present>,
    vacant: Vec<Slot>,
    queue: Queue<Slot>,
    servers: Vec<Option<Running>>,
    idle: Vec<usize>,
    /// The next event of each server.
    due: Due,
    /// What the discipline knows of a customer of each class at its arrival.
    jobs: &'a [Job],
    /// The next events, one for each server, if service can make a customer of some class less urgent, which only matters
    /// to Gittins. Otherwise empty, and the next event of a server is the end of its service.
    plans: Vec<Plan>,
    room: u64,
    now_s: f64,
}

impl Engine for EventLoop<'_> {
    fn run(&mut self, run: u64, observer: &mut Observer, mut sink: Sink<'_>) -> ControlFlow<()> {
        loop {
            let arrival_s = self.arriving.next_s().unwrap_or(f64::INFINITY);
            let (due_s, server) = self.due.first();
            let seen = if arrival_s < due_s {
                self.advance(arrival_s, observer);
                let customer = self.arriving.take().expect("its arrival was just looked up");
                if self.count() < self.room {
                    self.admit(customer);
                    continue;
                }
                self.arriving.left(&customer, arrival_s);
                if let Some(sink) = &mut sink {
                    sink(&customer.lost(run));
                }
                observer.turned_away(arrival_s)
            } else if due_s < f64::INFINITY {
                self.advance(due_s, observer);
                let Some(Present { customer, delayed, started_s }) = self.happen(server) else { continue };
                self.arriving.left(&customer, due_s);
                let response_s = due_s - customer.arrival_s;
                let waiting_s = (response_s - customer.service_s).max(0.0);
                if let Some(sink) = &mut sink {
                    sink(&Traced {
                        started_s: Some(started_s),
                        departure_s: due_s,
                        waiting_s,
                        server: Some(server),
                        fate: Fate::Served,
                        ..customer.lost(run)
                    });
                }
                observer.departed(
                    due_s,
                    Departure { class: customer.class as usize, response_s, waiting_s, delayed },
                )
            } else {
                return ControlFlow::Continue(());
            };
            if seen.is_break() {
                return seen;
            }
        }
    }
}

/// A job of each class before any service. Only shortest-remaining gets true sizes, at arrival. The indices of a measured
/// law take some time to tabulate, so this is done once for all runs and all classes of that law.
pub(super) fn jobs(station: &Station) -> Vec<Job> {
    let tabulated = |law: &Law| match (station.discipline.knows(), law) {
        (Knows::WeightAndMean | Knows::WeightAndLaw, Law::Exponential { mean_s }) => {
            Size::Memoryless(*mean_s)
        }
        (Knows::WeightAndMean | Knows::WeightAndLaw, _) => Size::Law(Arc::new(GittinsTable::new(law))),
        (Knows::Nothing | Knows::Weight | Knows::Size, _) => Size::Unknown,
    };
    let common = tabulated(&station.service);
    if station.classes.is_empty() {
        return vec![Job { size: common, ..Job::new() }];
    }
    let size = |own: Option<&Law>| own.map_or_else(|| common.clone(), tabulated);
    let job = |class: &Class| Job { weight: class.weight, size: size(class.service.as_ref()), attained: 0.0 };
    station.classes.iter().map(job).collect()
}

/// An empty queue of the kind that suits the number of classes of a station.
pub(super) fn queue<T>(station: &Station) -> Queue<T> {
    const FEW: usize = 16;
    if station.classes.len() <= FEW {
        Queue::of_few_kinds(station.discipline)
    } else {
        Queue::new(station.discipline)
    }
}

/// Whether the Gittins index of a job falls while it is served, by more than the resolution of its table. Checks ages
/// between a hundredth of the mean service and a hundred times it.
pub(super) fn loses_urgency(job: &Job) -> bool {
    let Size::Law(table) = &job.size else { return false };
    let mean_s = table.residual_mean(0.0);
    let indices = (0..=200).map(|i| mean_s * libm::pow(10.0, f64::from(i) / 50.0 - 2.0));
    let mut highest = table.index(0.0);
    indices.filter(|&age_s| table.residual_mean(age_s) > 0.0).map(|age_s| table.index(age_s)).any(|index| {
        highest = highest.max(index);
        index < 0.99 * highest
    })
}

impl<'a> EventLoop<'a> {
    /// The loop of an empty station; `jobs` are [those](jobs) of the same station.
    pub(super) fn new(station: &Station, jobs: &'a [Job], arriving: Arriving<'a>) -> Self {
        let servers = station.servers.get() as usize;
        let ages = station.discipline.knows() == Knows::WeightAndLaw && jobs.iter().any(loses_urgency);
        Self {
            arriving,
            present: Vec::new(),
            vacant: Vec::new(),
            queue: queue(station),
            servers: (0..servers).map(|_| None).collect(),
            idle: (0..servers).rev().collect(),
            due: Due::new(servers),
            plans: vec![Plan { until: Until::Done, head: None }; if ages { servers } else { 0 }],
            jobs,
            room: station.capacity.unwrap_or(u64::MAX),
            now_s: 0.0,
        }
    }

    /// The number of customers in the station.
    #[inline]
    fn count(&self) -> u64 {
        (self.present.len() - self.vacant.len()) as u64
    }

    /// Assigns a slot to a customer.
    #[inline]
    fn settle(&mut self, present: Present) -> Slot {
        match self.vacant.pop() {
            Some(slot) => {
                self.present[slot as usize] = present;
                slot
            }
            None => {
                self.present.push(present);
                Slot::try_from(self.present.len() - 1).expect("memory holds fewer than 2³² customers")
            }
        }
    }

    #[inline]
    fn advance(&mut self, to_s: f64, observer: &mut Observer) {
        let busy = self.servers.len() - self.idle.len();
        observer.pass(to_s - self.now_s, self.count() as f64, busy as f64);
        self.now_s = to_s;
    }

    #[inline]
    fn admit(&mut self, customer: Customer) {
        let mut job = self.jobs[customer.class as usize].clone();
        if self.queue.discipline().knows() == Knows::Size {
            job.size = Size::Exactly(customer.service_s);
        }
        let slot = self.settle(Present { customer, delayed: self.idle.is_empty(), started_s: f64::NAN });
        if let Some(server) = self.idle.pop() {
            // No customer waits while a server is idle.
            let entry = self.queue.admit(job, slot);
            self.start(server, entry);
        } else if let Some(server) = self.makes_way_for(&job) {
            let running = self.servers[server].take().expect("only a busy server makes way");
            let entry = self.queue.admit(job, slot);
            self.start(server, entry);
            self.queue.resume(running.entry);
        } else {
            self.queue.push(job, slot);
        }
        self.look_ahead();
    }

    /// Handles the planned event of a server; a customer whose service is complete departs.
    #[inline]
    fn happen(&mut self, server: usize) -> Option<Present> {
        let departed = match self.plans.get(server).map(|plan| plan.until) {
            None | Some(Until::Done) => Some(self.release(server)),
            Some(Until::Overtaken { attained_s }) => {
                let running = self.servers[server].as_mut().expect("a planned server is busy");
                running.bring_up_to_date(self.now_s);
                // Set exactly, not from a rounded difference of instants, which could fall short for ever.
                running.entry.job.attained = attained_s;
                if self.queue.outranks(&running.entry.job) {
                    self.interrupt(server)
                } else {
                    self.plan(server)
                }
                None
            }
        };
        self.look_ahead();
        departed
    }

    #[inline]
    fn release(&mut self, server: usize) -> Present {
        let slot = self.servers[server].as_ref().expect("the departing customer was in service").entry.item;
        match self.queue.pop() {
            Some(entry) => self.start(server, entry),
            None => {
                self.servers[server] = None;
                self.due.plan(server, f64::INFINITY);
                self.idle.push(server);
            }
        }
        self.vacant.push(slot);
        self.present[slot as usize]
    }

    /// The server of the least urgent customer in service, if that customer must yield to a newcomer. All servers are
    /// busy.
    fn makes_way_for(&mut self, newcomer: &Job) -> Option<usize> {
        if !self.queue.discipline().preempts() {
            return None;
        }
        let newcomer = self.queue.rank(newcomer);
        // No waiting customer has interrupted one in service, so only a newcomer more urgent than the first of them can.
        if self.queue.first_rank().is_some_and(|first| first <= newcomer) {
            return None;
        }
        let mut least: Option<(Rank, usize)> = None;
        for (server, running) in self.servers.iter_mut().enumerate() {
            let running = running.as_mut().expect("all servers are busy");
            running.bring_up_to_date(self.now_s);
            let rank = self.queue.rank(&running.entry.job);
            if least.is_none_or(|(least, _)| rank > least) {
                least = Some((rank, server));
            }
        }
        least.filter(|(rank, _)| *rank > newcomer).map(|(_, server)| server)
    }

    fn interrupt(&mut self, server: usize) {
        let running = self.servers[server].take().expect("only a busy server is interrupted");
        // First out, then back in: the interrupted customer would not outrank the one that interrupted it.
        let entry = self.queue.pop().expect("a customer waits");
        self.start(server, entry);
        self.queue.resume(running.entry);
    }

    #[inline]
    fn start(&mut self, server: usize, entry: Entry<Slot>) {
        let present = &mut self.present[entry.item as usize];
        if present.started_s.is_nan() {
            present.started_s = self.now_s;
        }
        self.servers[server] = Some(Running { entry, since_s: self.now_s });
        self.plan(server);
    }

    /// Plans what happens next at a busy server whose customer is up to date.
    #[inline]
    fn plan(&mut self, server: usize) {
        let running = self.servers[server].as_ref().expect("only a busy server has plans");
        let job = &running.entry.job;
        let left_s = (self.present[running.entry.item as usize].customer.service_s - job.attained).max(0.0);
        let mut after_s = left_s;
        if let Some(plan) = self.plans.get_mut(server) {
            let overtaken = self.queue.overtaken_after(job).filter(|after_s| *after_s < left_s);
            let until = overtaken
                .map_or(Until::Done, |after_s| Until::Overtaken { attained_s: job.attained + after_s });
            *plan = Plan { until, head: self.queue.head() };
            after_s = overtaken.unwrap_or(left_s);
        }
        self.due.plan(server, self.now_s + after_s);
    }

    /// A new first one waiting can change when a customer in service is overtaken.
    #[inline]
    fn look_ahead(&mut self) {
        if !self.plans.is_empty() {
            self.plan_for_another_head();
        }
    }

    fn plan_for_another_head(&mut self) {
        let head = self.queue.head();
        for server in 0..self.servers.len() {
            if let Some(running) = &mut self.servers[server]
                && self.plans[server].head != head
            {
                running.bring_up_to_date(self.now_s);
                self.plan(server);
            }
        }
    }
}
