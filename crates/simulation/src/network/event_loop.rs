//! The event loop of a network: customers arrive from outside, pass from node to node, fail, retry, and leave.

use std::ops::ControlFlow;

use kendall_station::{Batch, Instants};
use kendall_stats::random::{Purpose, Rng, derive, stream, unit};

use super::hall::{Hall, Outcome};
use super::scene::{Customer, Event, Scene};
use super::spot::{Layout, Transitions};
use super::watch::{Failure, Watch};
use crate::observer::Departure;
use crate::trace::{Fate, Sink, Traced};
use crate::{MOST_INSIDE, SimulationError};

/// The number of events without a departing customer after which the network counts as stalled.
const STALLED: u64 = 4_000_000;
/// The number of arrivals from which on growth is checked: whether most customers are still there.
const FIRST_LOOK: u64 = 1 << 10;
/// The number of checks in a row, each after twice as many arrivals, that distinguish growth from filling.
const LOOKS: u32 = 4;

/// An open stream of customers to one node.
struct Stream<'a> {
    instants: Instants<'a>,
    batch: Option<&'a Batch>,
    rng: Rng,
}

/// The number of the run, and the most customers that arrive.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) number: u64,
    pub(super) seed: u64,
    pub(super) customers: u64,
}

impl Run {
    fn is_endless(&self) -> bool {
        self.customers == u64::MAX
    }
}

struct EventLoop<'a, 'w, 's> {
    layout: &'a Layout,
    run: Run,
    sink: Sink<'s>,
    halls: Vec<Hall<'a>>,
    scene: Scene<'w>,
    streams: Vec<Option<Stream<'a>>>,
    services: Vec<Rng>,
    retries: Vec<Rng>,
    routes: Rng,
    classes: Rng,
    thinking: Rng,
    /// The number of customers that may still arrive.
    left: u64,
    /// Streams that have not ended.
    coming: usize,
    /// Whether the watch has enough.
    enough: bool,
    /// Events since a customer ended.
    idle_events: u64,
    deadlock: Option<Vec<usize>>,
    /// Checks in a row at which most of the customers that arrived were still there.
    growing: u32,
}

/// Runs the network until the watch has enough or no customer is left. Returns when it ended.
pub(super) fn run(
    layout: &Layout,
    watch: &mut Watch,
    run: Run,
    sink: Sink<'_>,
) -> Result<f64, SimulationError> {
    let mut network = EventLoop::new(layout, watch, run, sink);
    while !network.enough && !network.is_over() {
        let Some((at_s, event)) = network.scene.next() else { break };
        if !network.still_counts(event) {
            continue;
        }
        network.scene.advance(at_s);
        network.happen(event);
        network.idle_events += 1;
        if let Some(stuck) = network.deadlock {
            let names: Vec<&str> = stuck.iter().map(|&node| layout.spots[node].name.as_str()).collect();
            let stations = names.join(", ");
            return Err(SimulationError::Deadlock {
                stations,
                at_s,
                customers: network.scene.watch.counts.arrived,
            });
        }
        if network.idle_events > STALLED {
            return Err(SimulationError::Stalled { events: STALLED, at_s });
        }
        let inside = network.scene.inside;
        if network.growing >= LOOKS || (inside > MOST_INSIDE && run.is_endless()) {
            return Err(network.scene.watch.unstable(inside));
        }
        if inside > MOST_INSIDE {
            return Err(SimulationError::Crowded { inside, at_s });
        }
    }
    let halls = &mut network.halls;
    halls.iter_mut().for_each(|hall| hall.touch(&mut network.scene));
    let (inside, now_s) = (network.scene.inside, network.scene.now_s);
    network.scene.watch.counts.inside += inside;
    Ok(now_s)
}

impl<'a, 'w, 's> EventLoop<'a, 'w, 's> {
    fn new(layout: &'a Layout, watch: &'w mut Watch, run: Run, sink: Sink<'s>) -> Self {
        let seed = run.seed;
        let mut scene = Scene::new(watch);
        let nodes = layout.spots.len();
        let spots = layout.spots.iter().enumerate();
        let halls = spots.map(|(i, spot)| Hall::new(spot, i, seed, &mut scene)).collect();
        let node_streams = |purpose| (0..nodes as u64).map(|i| stream(seed, purpose, i)).collect::<Vec<_>>();
        let mut network = Self {
            layout,
            run,
            sink,
            halls,
            scene,
            streams: Vec::with_capacity(nodes),
            services: node_streams(Purpose::Service),
            retries: node_streams(Purpose::Retry),
            routes: stream(seed, Purpose::Route, 0),
            classes: stream(seed, Purpose::Class, 0),
            thinking: stream(seed, Purpose::Think, 0),
            left: run.customers,
            coming: 0,
            enough: false,
            idle_events: 0,
            deadlock: None,
            growing: 0,
        };
        network.open(seed);
        network
    }

    /// Opens the streams of arrivals. The users of a closed network begin by thinking.
    fn open(&mut self, seed: u64) {
        let layout = self.layout;
        for (node, spot) in layout.spots.iter().enumerate() {
            // The first node has the same instants as a load generator with this seed.
            let own = if node == 0 { seed } else { derive(seed, Purpose::Arrivals, node as u64) };
            let stream = spot.arrivals.as_ref().and_then(|arrivals| arrivals.instants(own));
            self.streams.push(stream.map(|instants| Stream {
                instants,
                batch: spot.conditions().batch.as_ref(),
                rng: stream_of_batches(seed, node),
            }));
            self.coming += usize::from(self.streams[node].is_some());
            self.expect_next(node);
        }
        if let Some(users) = &layout.users {
            self.coming += 1;
            for _ in 0..users.count {
                let think_s = users.think.sample(&mut self.thinking);
                self.scene.plan(think_s, Event::Request);
            }
        }
    }

    fn expect_next(&mut self, node: usize) {
        let Some(stream) = &mut self.streams[node] else { return };
        match stream.instants.next() {
            Some(at_s) => self.scene.plan_at(at_s, Event::Arrival { node: node as u32 }),
            None => self.coming -= 1,
        }
    }

    /// Whether the network is empty and there are no more arrivals.
    fn is_over(&self) -> bool {
        self.scene.inside == 0 && (self.left == 0 || self.coming == 0)
    }

    /// Whether an event is not void.
    fn still_counts(&self, event: Event) -> bool {
        match event {
            Event::Serve { node, server, plan } => self.halls[node as usize].counts(server, plan),
            Event::Share { node, plan } => {
                self.halls[node as usize].sharing.as_ref().is_some_and(|sharing| sharing.counts(plan))
            }
            Event::SetUp { node, server, plan } | Event::SwitchOff { node, server, plan } => {
                self.halls[node as usize].power_counts(server, plan)
            }
            Event::Impatience { customer, epoch } => self.scene.customers[customer as usize].epoch == epoch,
            Event::Arrival { .. } | Event::Request => self.left > 0,
            Event::Fail { .. } | Event::Repair { .. } | Event::Return { .. } => true,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Serve { node, server, .. } => {
                let outcome = self.halls[node as usize].serve(server, &mut self.scene);
                self.came_of(node as usize, outcome);
            }
            Event::Share { node, .. } => {
                let outcome = self.halls[node as usize].share(&mut self.scene);
                self.came_of(node as usize, outcome);
            }
            Event::Fail { node, server } => {
                let outcome = self.halls[node as usize].fail(server, &mut self.scene);
                self.came_of(node as usize, outcome);
            }
            Event::Repair { node, server } => self.halls[node as usize].repair(server, &mut self.scene),
            Event::SetUp { node, server, .. } => self.halls[node as usize].set_up(server, &mut self.scene),
            Event::SwitchOff { node, server, .. } => self.halls[node as usize].switch_off(server),
            Event::Impatience { customer, .. } => {
                let node = self.scene.of(customer).node as usize;
                self.halls[node].withdraw(customer, &mut self.scene);
                self.fail(customer, Failure::Abandoned);
                self.room_freed(node);
            }
            Event::Return { customer } => self.attempt(customer),
            Event::Arrival { node } => self.arrive(node as usize),
            Event::Request => {
                let users = self.layout.users.as_ref().expect("only users make requests");
                let node =
                    choose(&users.enter, &mut self.routes).expect("the chances of entering add up to 1");
                self.come(node);
            }
        }
    }

    /// The next customers of an open stream.
    fn arrive(&mut self, node: usize) {
        self.expect_next(node);
        let stream = self.streams[node].as_mut().expect("only streams have arrivals");
        let size = stream.batch.map_or(1, |batch| batch.sample(&mut stream.rng));
        for _ in 0..size {
            if self.left > 0 && !self.enough {
                self.come(node);
            }
        }
    }

    /// Admits one customer from outside.
    fn come(&mut self, node: usize) {
        self.left -= 1;
        let index = self.run.customers - self.left - 1;
        self.scene.watch.counts.arrived += 1;
        let class = match self.layout.shares.as_slice() {
            [] | [_] => 0,
            shares => {
                let u = unit(&mut self.classes);
                shares.partition_point(|&share| share <= u).min(shares.len() - 1)
            }
        };
        let now_s = self.scene.now_s;
        let who = self.scene.enter(Customer {
            class: class as u32,
            node: node as u32,
            server: 0,
            index,
            due_s: now_s,
            started_s: f64::NAN,
            joined_s: now_s,
            service_s: 0.0,
            served_s: 0.0,
            retries: 0,
            epoch: 0,
            ticket: None,
            begun: false,
            delayed_here: false,
            delayed: false,
        });
        let arrived = index + 1;
        if self.run.is_endless() && arrived >= FIRST_LOOK && arrived.is_power_of_two() {
            self.stop_if_growing(arrived);
        }
        self.visit(who, node);
    }

    /// Stops a network that only grows before its end.
    fn stop_if_growing(&mut self, arrived: u64) {
        let inside = self.scene.inside as f64;
        let most = inside > 0.25 * arrived as f64 && inside > 4.0 * self.layout.filling;
        self.growing = if most && self.layout.users.is_none() { self.growing + 1 } else { 0 };
    }

    /// Sends a customer to a node for service.
    fn visit(&mut self, who: u32, node: usize) {
        self.scene.watch.tally.visited(node);
        let customer = self.scene.of(who);
        customer.node = node as u32;
        customer.retries = 0;
        customer.service_s =
            self.halls[node].spot.service(customer.class as usize).sample(&mut self.services[node]);
        self.attempt(who);
    }

    /// Lets it enter the node, if there is capacity.
    fn attempt(&mut self, who: u32) {
        let now_s = self.scene.now_s;
        let customer = self.scene.of(who);
        customer.joined_s = now_s;
        let hall = &mut self.halls[customer.node as usize];
        if hall.has_room() {
            hall.admit(who, &mut self.scene);
        } else {
            hall.touch(&mut self.scene);
            self.fail(who, Failure::TurnedAway);
        }
    }

    fn came_of(&mut self, node: usize, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => {}
            Outcome::Served(who) => self.served(who, node),
            Outcome::Broken(who) => {
                self.fail(who, Failure::Broken);
                self.room_freed(node);
            }
        }
    }

    /// Routes a customer that was served: it goes on, leaves, or is blocked.
    fn served(&mut self, who: u32, node: usize) {
        let customer = self.scene.of(who);
        customer.served_s += customer.service_s;
        let next = choose(&self.layout.spots[node].transitions[customer.class as usize], &mut self.routes);
        if let Some(to) =
            next.filter(|&to| to != node && self.halls[to].spot.blocks && !self.halls[to].has_room())
        {
            self.halls[node].touch(&mut self.scene);
            self.halls[node].blocked += 1;
            self.halls[to].awaiting.push_back(who);
            self.look_for_deadlock(node);
            return;
        }
        self.halls[node].let_go(who, &mut self.scene);
        match next {
            Some(to) => self.visit(who, to),
            None => self.leave(who),
        }
        self.room_freed(node);
    }

    /// Admits customers that were blocked because this node was full, in order of blocking; which frees capacity at the
    /// nodes where they were.
    fn room_freed(&mut self, node: usize) {
        let mut freed = node;
        loop {
            let hall = &mut self.halls[freed];
            if !hall.has_room() {
                return;
            }
            let Some(who) = hall.awaiting.pop_front() else { return };
            let to = freed;
            let from = self.scene.of(who).node as usize;
            self.halls[from].touch(&mut self.scene);
            self.halls[from].blocked -= 1;
            self.halls[from].let_go(who, &mut self.scene);
            self.visit(who, to);
            // One replaced the customer that left, so capacity is only freed at the node that it came from.
            freed = from;
        }
    }

    /// A customer leaves the network served.
    fn leave(&mut self, who: u32) {
        let now_s = self.scene.now_s;
        let customer = *self.scene.of(who);
        let response_s = now_s - customer.due_s;
        let waiting_s = (response_s - customer.served_s).max(0.0);
        let class = customer.class as usize;
        let departure = Departure { class, response_s, waiting_s, delayed: customer.delayed };
        let phase = self.layout.period_s.map(|period_s| customer.due_s % period_s / period_s);
        let watch = &mut *self.scene.watch;
        watch.counts.served += 1;
        watch.tally.served(now_s, response_s, phase);
        self.end(who, Fate::Served, |watch, now_s| watch.overall.departed(now_s, departure));
    }

    /// Handles a customer that was not served: it retries later, or leaves for good.
    fn fail(&mut self, who: u32, failure: Failure) {
        let now_s = self.scene.now_s;
        let customer = self.scene.of(who);
        let node = customer.node as usize;
        customer.epoch = customer.epoch.wrapping_add(1);
        let tried = customer.retries;
        let _ = self.scene.watch.nodes[node].turned_away(now_s);
        if let Some(retry) = &self.layout.spots[node].conditions().retry
            && retry.most.is_none_or(|most| tried < most)
            && (retry.probability >= 1.0 || unit(&mut self.retries[node]) < retry.probability)
        {
            self.scene.of(who).retries = tried.saturating_add(1);
            self.scene.watch.counts.retries += 1;
            self.scene.watch.tally.retried();
            let after_s = retry.after.sample(tried, &mut self.retries[node]);
            self.scene.plan(after_s, Event::Return { customer: who });
            return;
        }
        let watch = &mut *self.scene.watch;
        *match failure {
            Failure::TurnedAway => &mut watch.counts.turned_away,
            Failure::Abandoned => &mut watch.counts.abandoned,
            Failure::Broken => &mut watch.counts.broken,
        } += 1;
        watch.tally.failed(now_s, failure);
        let fate = if failure == Failure::TurnedAway { Fate::Lost } else { Fate::Abandoned };
        self.end(who, fate, |watch, now_s| watch.overall.turned_away(now_s));
    }

    /// Removes a customer; a user thinks again.
    fn end(&mut self, who: u32, fate: Fate, observe: impl FnOnce(&mut Watch, f64) -> ControlFlow<()>) {
        self.idle_events = 0;
        if self.sink.is_some() {
            self.report_departure(who, fate);
        }
        let customer = self.scene.of(who);
        customer.epoch = customer.epoch.wrapping_add(1);
        self.scene.dismiss(who);
        if let Some(users) = &self.layout.users {
            let think_s = users.think.sample(&mut self.thinking);
            self.scene.plan(think_s, Event::Request);
        }
        if observe(self.scene.watch, self.scene.now_s).is_break() {
            self.enough = self.scene.watch.has_enough();
        }
    }

    /// Reports a customer that leaves to the trace.
    fn report_departure(&mut self, who: u32, fate: Fate) {
        let now_s = self.scene.now_s;
        let customer = *self.scene.of(who);
        let Some(sink) = &mut self.sink else { return };
        let node = &self.layout.spots[customer.node as usize].station;
        let named = fate == Fate::Served && !node.discipline.shares();
        let service_s =
            if fate == Fate::Served { customer.served_s } else { customer.served_s + customer.service_s };
        sink(&Traced {
            run: self.run.number,
            index: customer.index,
            class: customer.class as usize,
            arrival_s: customer.due_s,
            service_s,
            started_s: Some(customer.started_s).filter(|at_s| !at_s.is_nan()),
            departure_s: now_s,
            waiting_s: (now_s - customer.due_s - customer.served_s).max(0.0),
            server: named.then_some(customer.server as usize),
            fate,
        });
    }

    /// Finds nodes all of whose servers are blocked by one another, so that no customer ever moves again: the largest set
    /// of stuck nodes in which no customer waits for a node outside the set.
    fn look_for_deadlock(&mut self, node: usize) {
        if !self.halls[node].is_stuck(node, &self.scene) {
            return;
        }
        let halls = self.halls.iter().enumerate();
        let mut stuck: Vec<bool> = halls.map(|(node, hall)| hall.is_stuck(node, &self.scene)).collect();
        let mut more = true;
        while std::mem::take(&mut more) {
            for (to, hall) in self.halls.iter().enumerate() {
                if stuck[to] {
                    continue;
                }
                for &who in &hall.awaiting {
                    let from = self.scene.customers[who as usize].node as usize;
                    more |= std::mem::replace(&mut stuck[from], false);
                }
            }
        }
        let stuck: Vec<usize> = (0..stuck.len()).filter(|&node| stuck[node]).collect();
        self.deadlock = (!stuck.is_empty()).then_some(stuck);
    }
}

fn stream_of_batches(seed: u64, node: usize) -> Rng {
    stream(seed, Purpose::Batch, node as u64)
}

/// Draws one of several transitions; `None` where the draw is beyond the last.
fn choose(transitions: &Transitions, rng: &mut Rng) -> Option<usize> {
    match transitions.as_slice() {
        [] => None,
        // A single certain transition needs no draw.
        [(chance, only)] if *chance >= 1.0 => Some(*only as usize),
        transitions => {
            let u = unit(rng);
            transitions.iter().find(|(chance, _)| u < *chance).map(|&(_, node)| node as usize)
        }
    }
}
