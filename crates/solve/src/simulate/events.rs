//! The event loop behind every discipline but processor sharing: any arrivals, room, classes, preemption with resume.

use std::ops::ControlFlow;
use std::sync::Arc;

use kendall_station::{Class, Discipline, Entry, GittinsTable, Job, Law, Queue, Size, Station, Ticket};

use super::Engine;
use super::arriving::{Arriving, Customer};
use super::due::Due;
use super::observer::{Departure, Observer};
use super::trace::{Fate, Sink, Traced};

/// A customer in the station.
#[derive(Clone, Copy)]
struct Present {
    customer: Customer,
    /// Whether it found all servers busy.
    delayed: bool,
    /// When it was first served; NaN before.
    started_s: f64,
}

/// A customer in service.
struct Running {
    entry: Entry<Present>,
    since_s: f64,
    /// The received service at which something happens: the end, or the point where it may be overtaken.
    until: Until,
    /// The first one waiting when that was planned. Looked at only where service can make somebody less urgent.
    planned_for: Option<Ticket>,
}

#[derive(Clone, Copy)]
enum Until {
    Done,
    Overtaken { attained_s: f64 },
}

/// A run through the general event loop.
pub(super) struct Floor<'a> {
    arriving: Arriving<'a>,
    queue: Queue<Present>,
    servers: Vec<Option<Running>>,
    idle: Vec<usize>,
    /// When something happens at which server.
    due: Due,
    /// What the discipline may know of a customer of each class at its arrival.
    jobs: &'a [Job],
    /// Whether service can make a customer of some class less urgent, which only Gittins minds.
    ages: bool,
    room: u64,
    now_s: f64,
    present: u64,
}

impl Engine for Floor<'_> {
    fn run(&mut self, run: u64, observer: &mut Observer, mut sink: Sink<'_>) -> ControlFlow<()> {
        loop {
            let arrival_s = self.arriving.next_s().unwrap_or(f64::INFINITY);
            let (due_s, server) = self.due.first();
            let seen = if arrival_s < due_s {
                self.advance(arrival_s, observer);
                let customer = self.arriving.take().expect("its arrival was just looked up");
                if self.present < self.room {
                    self.admit(customer);
                    continue;
                }
                self.arriving.left(arrival_s);
                if let Some(sink) = &mut sink {
                    sink(&customer.lost(run));
                }
                observer.turned_away(arrival_s)
            } else if due_s < f64::INFINITY {
                self.advance(due_s, observer);
                let Some(Present { customer, delayed, started_s }) = self.happen(server) else { continue };
                self.arriving.left(due_s);
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
                observer.departed(due_s, Departure { class: customer.class, response_s, waiting_s, delayed })
            } else {
                return ControlFlow::Continue(());
            };
            if seen.is_break() {
                return seen;
            }
        }
    }
}

/// A job of each class before any service. Only shortest-remaining is told true sizes, at arrival. The indices of a
/// measured law take some time to tabulate, so this is done once for all runs and all classes of that law.
pub(super) fn jobs(station: &Station) -> Vec<Job> {
    let tabulated = |law: &Law| match station.discipline {
        Discipline::Gittins | Discipline::CMu => Size::Law(Arc::new(GittinsTable::new(law))),
        _ => Size::Unknown,
    };
    let common = tabulated(&station.service);
    if station.classes.is_empty() {
        return vec![Job { size: common, ..Job::new() }];
    }
    let size = |own: Option<&Law>| own.map_or_else(|| common.clone(), tabulated);
    let job = |class: &Class| Job { weight: class.weight, size: size(class.service.as_ref()), attained: 0.0 };
    station.classes.iter().map(job).collect()
}

/// Whether the Gittins index of a job falls while it is served, by more than its table is coarse. Looked at between
/// a hundredth of the mean service and a hundred times it.
fn loses_urgency(job: &Job) -> bool {
    let Size::Law(table) = &job.size else { return false };
    let mean_s = table.residual_mean(0.0);
    let indices = (0..=200).map(|i| mean_s * libm::pow(10.0, f64::from(i) / 50.0 - 2.0));
    let mut highest = table.index(0.0);
    indices.filter(|&age_s| table.residual_mean(age_s) > 0.0).map(|age_s| table.index(age_s)).any(|index| {
        highest = highest.max(index);
        index < 0.99 * highest
    })
}

impl<'a> Floor<'a> {
    /// An empty station; `jobs` are [those](jobs) of the same.
    pub(super) fn new(station: &Station, jobs: &'a [Job], arriving: Arriving<'a>) -> Self {
        let servers = station.servers.get() as usize;
        Self {
            arriving,
            queue: Queue::new(station.discipline),
            servers: (0..servers).map(|_| None).collect(),
            idle: (0..servers).rev().collect(),
            due: Due::new(servers),
            ages: station.discipline == Discipline::Gittins && jobs.iter().any(loses_urgency),
            jobs,
            room: station.capacity.unwrap_or(u64::MAX),
            now_s: 0.0,
            present: 0,
        }
    }

    #[inline]
    fn advance(&mut self, to_s: f64, observer: &mut Observer) {
        let busy = self.servers.len() - self.idle.len();
        observer.pass(to_s - self.now_s, self.present as f64, busy as f64);
        self.now_s = to_s;
    }

    fn admit(&mut self, customer: Customer) {
        let mut job = self.jobs[customer.class].clone();
        if self.queue.discipline() == Discipline::ShortestRemaining {
            job.size = Size::Exactly(customer.service_s);
        }
        self.present += 1;
        let present = Present { customer, delayed: self.idle.is_empty(), started_s: f64::NAN };
        if let Some(server) = self.idle.pop() {
            // Nobody waits while a server is idle.
            let entry = self.queue.admit(job, present);
            self.start(server, entry);
        } else {
            let ticket = self.queue.push(job, present);
            // Whoever waited before has not made anybody go; only who is first now may.
            if self.queue.discipline().preempts() && self.queue.head() == Some(ticket) {
                self.interrupt_for_the_first_waiting();
            }
        }
        self.look_ahead();
    }

    /// The event that was planned at a server happens; a customer that is done departs.
    fn happen(&mut self, server: usize) -> Option<Present> {
        let until = self.servers[server].as_ref().expect("a planned server is busy").until;
        let departed = match until {
            Until::Done => Some(self.release(server)),
            Until::Overtaken { attained_s } => {
                self.bring_up_to_date(server);
                let running = self.servers[server].as_mut().expect("it was busy just now");
                // Exactly, not by way of a rounded difference of instants: else it could fall short forever.
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

    fn release(&mut self, server: usize) -> Present {
        let running = self.servers[server].take().expect("whoever is done was in service");
        self.present -= 1;
        match self.queue.pop() {
            Some(entry) => self.start(server, entry),
            None => {
                self.due.plan(server, f64::INFINITY);
                self.idle.push(server);
            }
        }
        running.entry.item
    }

    /// If the least urgent customer in service must make way for the first one waiting, it does.
    fn interrupt_for_the_first_waiting(&mut self) {
        let mut least: Option<usize> = None;
        for server in 0..self.servers.len() {
            self.bring_up_to_date(server);
            let job = |server: usize| self.servers[server].as_ref().map(|running| &running.entry.job);
            let less = match (job(server), least.and_then(job)) {
                (Some(this), Some(other)) => self.queue.less_urgent(this, other),
                (this, _) => this.is_some(),
            };
            if less {
                least = Some(server);
            }
        }
        let job = |server: usize| self.servers[server].as_ref().map(|running| &running.entry.job);
        if let Some(server) = least
            && job(server).is_some_and(|job| self.queue.outranks(job))
        {
            self.interrupt(server);
        }
    }

    fn interrupt(&mut self, server: usize) {
        let running = self.servers[server].take().expect("only a busy server is interrupted");
        // First out, then back in: the one that is interrupted would outrank nobody that made it go.
        let entry = self.queue.pop().expect("somebody waits");
        self.start(server, entry);
        self.queue.resume(running.entry);
    }

    fn start(&mut self, server: usize, mut entry: Entry<Present>) {
        if entry.item.started_s.is_nan() {
            entry.item.started_s = self.now_s;
        }
        let running = Running { entry, since_s: self.now_s, until: Until::Done, planned_for: None };
        self.servers[server] = Some(running);
        self.plan(server);
    }

    /// Credits the service received since it was last looked at.
    fn bring_up_to_date(&mut self, server: usize) {
        let now_s = self.now_s;
        if let Some(running) = &mut self.servers[server] {
            running.entry.job.attained += now_s - running.since_s;
            running.since_s = now_s;
        }
    }

    /// Plans what happens next at a busy server whose customer is up to date.
    fn plan(&mut self, server: usize) {
        let running = self.servers[server].as_mut().expect("only a busy server has plans");
        let job = &running.entry.job;
        let left_s = (running.entry.item.customer.service_s - job.attained).max(0.0);
        let mut after_s = left_s;
        if self.ages {
            running.planned_for = self.queue.head();
            let overtaken = self.queue.overtaken_after(job).filter(|after_s| *after_s < left_s);
            running.until = overtaken
                .map_or(Until::Done, |after_s| Until::Overtaken { attained_s: job.attained + after_s });
            after_s = overtaken.unwrap_or(left_s);
        }
        self.due.plan(server, self.now_s + after_s);
    }

    /// Another first one waiting may change when a customer in service is overtaken.
    #[inline]
    fn look_ahead(&mut self) {
        if !self.ages {
            return;
        }
        let head = self.queue.head();
        for server in 0..self.servers.len() {
            if self.servers[server].as_ref().is_some_and(|running| running.planned_for != head) {
                self.bring_up_to_date(server);
                self.plan(server);
            }
        }
    }
}
