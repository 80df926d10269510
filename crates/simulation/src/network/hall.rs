//! One node while the network runs: its queue, its servers, and the conditions that change them.

mod standing;

use std::collections::VecDeque;

use kendall_station::{Clock, Entry, Knows, Queue, Size, Ticket};
use kendall_stats::random::{Purpose, Rng, stream};

use super::scene::{Customer, Event, Scene};
use super::sharing::Sharing;
use super::spot::Spot;
use super::until::Until;
use crate::events;
use crate::observer::Departure;

/// The outcome of an event at a server.
pub(super) enum Outcome {
    /// A customer is served, and still keeps its server.
    Served(u32),
    /// A breakdown has driven a customer out of the node.
    Broken(u32),
    Nothing,
}

struct Running {
    entry: Entry<u32>,
    since_s: f64,
    until: Until,
    /// The first one waiting when that was planned. Only used where service can make a customer less urgent.
    planned_for: Option<Ticket>,
}

#[derive(Clone, Copy, PartialEq)]
enum Power {
    On,
    Off,
    SettingUp,
}

pub(super) struct Server {
    running: Option<Running>,
    /// A customer that was served and is blocked.
    held: Option<u32>,
    /// How often the plans of its service, and of its on/off state, have changed.
    plan: u32,
    power_plan: u32,
    power: Power,
    broken: bool,
    /// The remaining service until it breaks down, where only service ages it.
    pub(super) life_s: f64,
}

/// The random streams of one node.
struct Streams {
    patience: Rng,
    breakdown: Rng,
    setup: Rng,
}

pub(super) struct Hall<'a> {
    pub(super) spot: &'a Spot,
    index: u32,
    queue: Queue<u32>,
    pub(super) servers: Vec<Server>,
    /// Servers that are ready to serve.
    ready: Vec<u32>,
    pub(super) sharing: Option<Sharing>,
    streams: Streams,
    /// Customers in the node: waiting, in service, and served but blocked.
    pub(super) present: u64,
    /// Servers that serve, that are broken, that are being set up; customers that are blocked.
    pub(super) busy: u64,
    down: u64,
    setting_up: u64,
    pub(super) blocked: u64,
    /// Customers of other nodes that are blocked until this one has capacity.
    pub(super) awaiting: VecDeque<u32>,
    since_s: f64,
}

impl<'a> Hall<'a> {
    pub(super) fn new(spot: &'a Spot, index: usize, seed: u64, scene: &mut Scene<'_>) -> Self {
        let count = spot.station.servers.get();
        let index = index as u32;
        let power = if spot.conditions().setup.is_some() { Power::Off } else { Power::On };
        let mut breakdown = stream(seed, Purpose::Breakdown, u64::from(index));
        let life = spot.conditions().breakdown.as_ref();
        let mut server = |server| {
            let life_s = life.map_or(f64::INFINITY, |life| life.up.sample(&mut breakdown));
            if life.is_some_and(|life| life.clock == Clock::Calendar) {
                scene.plan(life_s, Event::Fail { node: index, server });
            }
            Server { running: None, held: None, plan: 0, power_plan: 0, power, broken: false, life_s }
        };
        let servers = (0..count).map(&mut server).collect();
        Self {
            spot,
            index,
            queue: events::queue(&spot.station),
            servers,
            ready: if power == Power::On { (0..count).rev().collect() } else { Vec::new() },
            sharing: spot.station.discipline.shares().then(Sharing::new),
            streams: Streams {
                patience: stream(seed, Purpose::Patience, u64::from(index)),
                breakdown,
                setup: stream(seed, Purpose::Setup, u64::from(index)),
            },
            present: 0,
            busy: 0,
            down: 0,
            setting_up: 0,
            blocked: 0,
            awaiting: VecDeque::new(),
            since_s: 0.0,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.present < self.spot.room
    }

    /// Whether no customer here can go on unless one at another node does: all that could be served have been,
    /// and are blocked, and no waiting customer can leave by impatience. One whose service has begun does not.
    pub(super) fn is_stuck(&self, node: usize, scene: &Scene<'_>) -> bool {
        let waits_here = |customer: &Customer| {
            customer.node as usize == node && customer.ticket.is_some() && !customer.begun
        };
        let impatient = self.spot.conditions().patience.is_some()
            && !self.queue.is_empty()
            && scene.customers.iter().any(waits_here);
        let none_moves = match &self.sharing {
            Some(sharing) => sharing.is_empty(),
            None => self.servers.iter().all(|server| server.held.is_some()),
        };
        !self.has_room() && none_moves && !impatient
    }

    /// Brings the integrals over time up to now, before any change of state here.
    pub(super) fn touch(&mut self, scene: &mut Scene<'_>) {
        let time_s = scene.now_s - self.since_s;
        self.since_s = scene.now_s;
        let node = self.index as usize;
        scene.watch.nodes[node].pass(time_s, self.present as f64, self.busy as f64);
        if self.down + self.setting_up + self.blocked > 0 {
            scene.watch.tally.stands(
                node,
                self.down as f64 * time_s,
                self.setting_up as f64 * time_s,
                self.blocked as f64 * time_s,
            );
        }
        if let Some(sharing) = &mut self.sharing {
            sharing.advance(time_s, self.busy);
            if self.spot.operating_clock() {
                sharing.working.iter().for_each(|&s| self.servers[s as usize].life_s -= time_s);
            }
        }
    }

    /// Admits a customer; there is capacity.
    pub(super) fn admit(&mut self, who: u32, scene: &mut Scene<'_>) {
        self.touch(scene);
        self.present += 1;
        let now_s = scene.now_s;
        let delayed = self.ready.is_empty();
        let customer = scene.of(who);
        customer.delayed_here = delayed;
        customer.delayed |= delayed;
        customer.begun = false;
        if let Some(sharing) = &mut self.sharing {
            customer.begun = true;
            if customer.started_s.is_nan() {
                customer.started_s = now_s;
            }
            sharing.admit(customer.service_s, who);
            self.share_out_servers(scene);
            return;
        }
        let mut job = self.spot.jobs[customer.class as usize].clone();
        if self.spot.station.discipline.knows() == Knows::Size {
            job.size = Size::Exactly(customer.service_s);
        }
        if let Some(server) = self.take_ready() {
            // No customer waits while a server is ready.
            let entry = self.queue.admit(job, who);
            self.start(server, entry, scene);
            return;
        }
        customer.ticket = Some(self.queue.push(job, who));
        self.serve_first_waiting(scene);
        let customer = scene.of(who);
        if let Some(patience) = &self.spot.conditions().patience
            && !customer.begun
        {
            customer.epoch = customer.epoch.wrapping_add(1);
            let epoch = customer.epoch;
            let patience_s = patience.sample(&mut self.streams.patience);
            scene.plan(patience_s, Event::Impatience { customer: who, epoch });
        }
        self.want_setups(scene);
        self.look_ahead(scene);
    }

    /// Handles a new waiting customer: a ready server takes the first one, or one in service yields to it.
    fn serve_first_waiting(&mut self, scene: &mut Scene<'_>) {
        if let Some(server) = self.take_ready() {
            self.start_next(server, scene);
        } else if self.queue.discipline().preempts() {
            self.interrupt_for_the_first_waiting(scene);
        }
    }

    /// Whether a planned event of a server still counts.
    pub(super) fn counts(&self, server: u32, plan: u32) -> bool {
        self.servers[server as usize].plan == plan
    }

    pub(super) fn power_counts(&self, server: u32, plan: u32) -> bool {
        self.servers[server as usize].power_plan == plan
    }

    /// Handles the planned event of a server in service.
    pub(super) fn serve(&mut self, server: u32, scene: &mut Scene<'_>) -> Outcome {
        self.touch(scene);
        self.bring_up_to_date(server, scene.now_s);
        let slot = &mut self.servers[server as usize];
        let running = slot.running.as_mut().expect("a server with plans is in service");
        match running.until {
            Until::Done => {
                let who = running.entry.item;
                slot.running = None;
                slot.held = Some(who);
                slot.plan = slot.plan.wrapping_add(1);
                self.busy -= 1;
                scene.busy -= 1;
                return Outcome::Served(who);
            }
            Until::Overtaken(attained_s) => {
                // Exactly, not by way of a rounded difference of instants: else it could fall short for ever.
                running.entry.job.attained = attained_s;
                if self.queue.outranks(&running.entry.job) {
                    self.interrupt(server, scene);
                } else {
                    self.plan(server, scene);
                }
            }
            Until::Broken => return self.fail(server, scene),
        }
        self.look_ahead(scene);
        Outcome::Nothing
    }

    /// Lets a customer that was served leave the node; its server takes the next one.
    pub(super) fn let_go(&mut self, who: u32, scene: &mut Scene<'_>) {
        self.touch(scene);
        self.present -= 1;
        let customer = *scene.of(who);
        let response_s = scene.now_s - customer.joined_s;
        let departure = Departure {
            class: customer.class as usize,
            response_s,
            waiting_s: (response_s - customer.service_s).max(0.0),
            delayed: customer.delayed_here,
        };
        // Only the network as a whole decides when to end.
        let _ = scene.watch.nodes[self.index as usize].departed(scene.now_s, departure);
        if self.sharing.is_none() {
            let slot = &mut self.servers[customer.server as usize];
            slot.held = None;
            if !slot.broken {
                self.free(customer.server, scene);
            }
            self.look_ahead(scene);
        }
    }

    /// Removes a customer that waits.
    pub(super) fn withdraw(&mut self, who: u32, scene: &mut Scene<'_>) {
        self.touch(scene);
        let ticket = scene.of(who).ticket.take().expect("a waiting customer has a receipt");
        let entry = self.queue.remove(ticket);
        debug_assert!(entry.is_some(), "a customer whose service has not begun waits");
        self.present -= 1;
        self.look_ahead(scene);
    }

    /// Under processor sharing: the number of working servers follows the number of customers, and the next
    /// event is planned again.
    pub(super) fn share_out_servers(&mut self, scene: &mut Scene<'_>) {
        let Some(mut sharing) = self.sharing.take() else { return };
        while sharing.len() > self.busy {
            let Some(server) = self.take_ready() else { break };
            sharing.working.push(server);
            self.busy += 1;
            scene.busy += 1;
        }
        while sharing.len() < self.busy
            && let Some(server) = sharing.working.pop()
        {
            self.busy -= 1;
            scene.busy -= 1;
            // A node that shares has no queue, so the server gets no work there.
            self.free(server, scene);
        }
        let broken_after = if self.spot.operating_clock() {
            let lives = sharing.working.iter().map(|&s| (self.servers[s as usize].life_s.max(0.0), s));
            lives.min_by(|a, b| a.0.total_cmp(&b.0))
        } else {
            None
        };
        if let Some((after_s, plan)) = sharing.plan(scene.now_s, self.busy, broken_after) {
            scene.plan_at(after_s, Event::Share { node: self.index, plan });
        }
        self.sharing = Some(sharing);
        self.want_setups(scene);
    }

    /// Handles the planned event under processor sharing.
    pub(super) fn share(&mut self, scene: &mut Scene<'_>) -> Outcome {
        self.touch(scene);
        let sharing = self.sharing.as_mut().expect("only a node that shares plans so");
        match sharing.happen() {
            Ok(who) => {
                self.share_out_servers(scene);
                Outcome::Served(who)
            }
            Err(server) => self.fail(server, scene),
        }
    }

    fn start_next(&mut self, server: u32, scene: &mut Scene<'_>) {
        let entry = self.queue.pop().expect("a customer waits");
        self.start(server, entry, scene);
    }

    fn start(&mut self, server: u32, entry: Entry<u32>, scene: &mut Scene<'_>) {
        let now_s = scene.now_s;
        let customer = scene.of(entry.item);
        customer.begun = true;
        if customer.started_s.is_nan() {
            customer.started_s = now_s;
        }
        customer.server = server;
        customer.epoch = customer.epoch.wrapping_add(1);
        self.busy += 1;
        scene.busy += 1;
        let running = Running { entry, since_s: scene.now_s, until: Until::Done, planned_for: None };
        self.servers[server as usize].running = Some(running);
        self.plan(server, scene);
    }

    /// Interrupts the least urgent customer in service if it must yield to the first one waiting.
    fn interrupt_for_the_first_waiting(&mut self, scene: &mut Scene<'_>) {
        let mut least: Option<u32> = None;
        for server in 0..self.servers.len() as u32 {
            self.bring_up_to_date(server, scene.now_s);
            let job = |server: u32| {
                self.servers[server as usize].running.as_ref().map(|running| &running.entry.job)
            };
            let less = match (job(server), least.and_then(job)) {
                (Some(this), Some(other)) => self.queue.less_urgent(this, other),
                (this, _) => this.is_some(),
            };
            if less {
                least = Some(server);
            }
        }
        let Some(server) = least else { return };
        let running = self.servers[server as usize].running.as_ref();
        if running.is_some_and(|running| self.queue.outranks(&running.entry.job)) {
            self.interrupt(server, scene);
        }
    }

    fn interrupt(&mut self, server: u32, scene: &mut Scene<'_>) {
        let slot = &mut self.servers[server as usize];
        let running = slot.running.take().expect("only a busy server is interrupted");
        self.busy -= 1;
        scene.busy -= 1;
        // First out, then back in: the interrupted customer would not outrank the one that interrupted it.
        self.start_next(server, scene);
        self.queue.resume(running.entry);
    }

    /// Credits the service received since the last update.
    fn bring_up_to_date(&mut self, server: u32, now_s: f64) {
        let slot = &mut self.servers[server as usize];
        if let Some(running) = &mut slot.running {
            let served_s = now_s - running.since_s;
            running.entry.job.attained += served_s;
            running.since_s = now_s;
            slot.life_s -= served_s;
        }
    }

    /// Plans what happens next at a busy server whose customer is up to date.
    fn plan(&mut self, server: u32, scene: &mut Scene<'_>) {
        let slot = &mut self.servers[server as usize];
        let running = slot.running.as_mut().expect("only a busy server has plans");
        let job = &running.entry.job;
        let service_s = scene.customers[running.entry.item as usize].service_s;
        let (mut until, mut after_s) = (Until::Done, (service_s - job.attained).max(0.0));
        if self.spot.ages {
            running.planned_for = self.queue.head();
            if let Some(overtaken_s) = self.queue.overtaken_after(job).filter(|&s| s < after_s) {
                (until, after_s) = (Until::Overtaken(job.attained + overtaken_s), overtaken_s);
            }
        }
        if self.spot.operating_clock() && slot.life_s < after_s {
            (until, after_s) = (Until::Broken, slot.life_s.max(0.0));
        }
        running.until = until;
        slot.plan = slot.plan.wrapping_add(1);
        scene.plan(after_s, Event::Serve { node: self.index, server, plan: slot.plan });
    }

    /// A new first one waiting can change when a customer in service is overtaken.
    fn look_ahead(&mut self, scene: &mut Scene<'_>) {
        if !self.spot.ages {
            return;
        }
        let head = self.queue.head();
        for server in 0..self.servers.len() as u32 {
            let running = self.servers[server as usize].running.as_ref();
            if running.is_some_and(|running| running.planned_for != head) {
                self.bring_up_to_date(server, scene.now_s);
                self.plan(server, scene);
            }
        }
    }
}
