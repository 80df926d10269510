//! The event loop behind every discipline but processor sharing: any arrivals, room, classes, preemption with resume.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

use kendall_station::{Class, Discipline, Entry, GittinsTable, Job, Law, Queue, Size, Station, Ticket};

use super::Instant;
use super::arriving::{Arriving, Customer};
use super::observer::{Departure, Observer};

/// A customer in the station, and whether it found all servers busy.
#[derive(Clone, Copy)]
struct Present {
    customer: Customer,
    delayed: bool,
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

/// A server, and how often its plans have changed: an event of older plans is void.
struct Server {
    running: Option<Running>,
    plan: u64,
}

struct Floor<'a> {
    queue: Queue<Present>,
    servers: Vec<Server>,
    idle: Vec<usize>,
    /// When something happens at which server, by which plan.
    events: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    /// What the discipline may know of a customer of each class at its arrival.
    jobs: &'a [Job],
    /// Whether service can make a customer of some class less urgent, which only Gittins minds.
    ages: bool,
    now_s: f64,
    present: u64,
}

/// Runs the station until the observer has seen enough; `jobs` are those of the [same](jobs) station.
pub(super) fn run(station: &Station, jobs: &[Job], mut arriving: Arriving<'_>, observer: &mut Observer) {
    let servers = station.servers.get() as usize;
    let mut floor = Floor {
        queue: Queue::new(station.discipline),
        servers: (0..servers).map(|_| Server { running: None, plan: 0 }).collect(),
        idle: (0..servers).rev().collect(),
        events: BinaryHeap::with_capacity(servers),
        ages: station.discipline == Discipline::Gittins && jobs.iter().any(loses_urgency),
        jobs,
        now_s: 0.0,
        present: 0,
    };
    let room = station.capacity.unwrap_or(u64::MAX);
    loop {
        let event_s = floor.next_event_s();
        let seen = match (arriving.next_s(), event_s) {
            (None, None) => break,
            (Some(arrival_s), event_s) if event_s.is_none_or(|at| arrival_s < at) => {
                floor.advance(arrival_s, observer);
                let customer = arriving.take().expect("its arrival was just looked up");
                if floor.present < room {
                    floor.admit(customer);
                    ControlFlow::Continue(())
                } else {
                    arriving.left(arrival_s);
                    observer.turned_away(arrival_s)
                }
            }
            (_, event_s) => {
                floor.advance(event_s.expect("one of the two is due"), observer);
                match floor.happen() {
                    Some(departure) => {
                        arriving.left(floor.now_s);
                        observer.departed(floor.now_s, departure)
                    }
                    None => ControlFlow::Continue(()),
                }
            }
        };
        if seen.is_break() {
            break;
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

impl Floor<'_> {
    /// When the next event is due that still counts.
    fn next_event_s(&mut self) -> Option<f64> {
        loop {
            let Reverse((at, server, plan)) = *self.events.peek()?;
            if self.servers[server].plan == plan {
                return Some(at.0);
            }
            self.events.pop();
        }
    }

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
        self.queue.push(job, Present { customer, delayed: self.idle.is_empty() });
        if let Some(server) = self.idle.pop() {
            self.start_next(server);
        } else if self.queue.discipline().preempts() {
            self.interrupt_for_the_first_waiting();
        }
        self.look_ahead();
    }

    /// The first event happens; a customer that is done departs.
    fn happen(&mut self) -> Option<Departure> {
        let Reverse((_, server, _)) = self.events.pop().expect("an event is due");
        let until = self.servers[server].running.as_ref().expect("a planned server is busy").until;
        let departure = match until {
            Until::Done => Some(self.release(server)),
            Until::Overtaken { attained_s } => {
                self.bring_up_to_date(server);
                let running = self.servers[server].running.as_mut().expect("it was busy just now");
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
        departure
    }

    fn release(&mut self, server: usize) -> Departure {
        let running = self.servers[server].running.take().expect("whoever is done was in service");
        self.present -= 1;
        if self.queue.is_empty() {
            self.servers[server].plan += 1;
            self.idle.push(server);
        } else {
            self.start_next(server);
        }
        let Present { customer, delayed } = running.entry.item;
        let response_s = self.now_s - customer.arrival_s;
        let waiting_s = (response_s - customer.service_s).max(0.0);
        Departure { class: customer.class, response_s, waiting_s, delayed }
    }

    /// If the least urgent customer in service must make way for the first one waiting, it does.
    fn interrupt_for_the_first_waiting(&mut self) {
        let mut least: Option<usize> = None;
        for server in 0..self.servers.len() {
            self.bring_up_to_date(server);
            let job = |server: usize| self.servers[server].running.as_ref().map(|running| &running.entry.job);
            let less = match (job(server), least.and_then(job)) {
                (Some(this), Some(other)) => self.queue.less_urgent(this, other),
                (this, _) => this.is_some(),
            };
            if less {
                least = Some(server);
            }
        }
        let job = |server: usize| self.servers[server].running.as_ref().map(|running| &running.entry.job);
        if let Some(server) = least
            && job(server).is_some_and(|job| self.queue.outranks(job))
        {
            self.interrupt(server);
        }
    }

    fn interrupt(&mut self, server: usize) {
        let running = self.servers[server].running.take().expect("only a busy server is interrupted");
        // First out, then back in: the one that is interrupted would outrank nobody that made it go.
        self.start_next(server);
        self.queue.resume(running.entry);
    }

    fn start_next(&mut self, server: usize) {
        let entry = self.queue.pop().expect("somebody waits");
        let running = Running { entry, since_s: self.now_s, until: Until::Done, planned_for: None };
        self.servers[server].running = Some(running);
        self.plan(server);
    }

    /// Credits the service received since it was last looked at.
    fn bring_up_to_date(&mut self, server: usize) {
        let now_s = self.now_s;
        if let Some(running) = &mut self.servers[server].running {
            running.entry.job.attained += now_s - running.since_s;
            running.since_s = now_s;
        }
    }

    /// Plans what happens next at a busy server whose customer is up to date.
    fn plan(&mut self, server: usize) {
        let slot = &mut self.servers[server];
        let running = slot.running.as_mut().expect("only a busy server has plans");
        let job = &running.entry.job;
        let left_s = (running.entry.item.customer.service_s - job.attained).max(0.0);
        let (head, overtaken) =
            if self.ages { (self.queue.head(), self.queue.overtaken_after(job)) } else { (None, None) };
        let overtaken = overtaken.filter(|after_s| *after_s < left_s);
        let (until, after_s) = match overtaken {
            Some(after_s) => (Until::Overtaken { attained_s: job.attained + after_s }, after_s),
            None => (Until::Done, left_s),
        };
        (running.until, running.planned_for) = (until, head);
        slot.plan += 1;
        self.events.push(Reverse((Instant(self.now_s + after_s), server, slot.plan)));
    }

    /// Another first one waiting may change when a customer in service is overtaken.
    fn look_ahead(&mut self) {
        if !self.ages {
            return;
        }
        let head = self.queue.head();
        for server in 0..self.servers.len() {
            if self.servers[server].running.as_ref().is_some_and(|running| running.planned_for != head) {
                self.bring_up_to_date(server);
                self.plan(server);
            }
        }
    }
}
