//! Links in a row: client – A – B – server, each with its own queue, rate and delay.

use crate::counters::Counters;
use crate::fault::Fault;
use crate::link::Link;
use crate::log::FlowRow;
use crate::packet::{Delivery, Packet};
use crate::random::{Purpose, derive};
use crate::settings::Settings;

/// The effects on a packet of the links that it has passed.
#[derive(Clone, Debug)]
struct Crossing<T> {
    item: T,
    marked: bool,
    wrong_bit: Option<u64>,
    waited_ns: i64,
}

/// One direction of a row of links. A packet enters each at the exact instant at which it leaves the previous
/// one.
#[derive(Debug)]
pub struct Path<T> {
    links: Vec<Link<Crossing<T>>>,
}

impl<T: Clone> Path<T> {
    /// A path over one link after the other. Each draws from a separate seed.
    ///
    /// # Errors
    ///
    /// Fails if there is no link, or if the settings of one are not valid: see [`Settings::check`].
    pub fn new<'a>(
        hops: impl IntoIterator<Item = &'a Settings>,
        seed: u64,
        start_ns: i64,
    ) -> Result<Self, Fault> {
        let links = hops
            .into_iter()
            .enumerate()
            .map(|(index, settings)| Link::new(settings, derive(seed, Purpose::Hop, index as u64), start_ns))
            .collect::<Result<Vec<_>, _>>()?;
        if links.is_empty() { Err(Fault::NoLink) } else { Ok(Self { links }) }
    }

    /// Keeps a log on each link; see [`Link::logged`].
    #[must_use]
    pub fn logged(mut self, every_ns: i64) -> Self {
        self.links = self.links.into_iter().map(|link| link.logged(every_ns)).collect();
        self
    }

    /// Passes a packet to the first link.
    pub fn offer(&mut self, now_ns: i64, packet: Packet<T>) {
        let Packet { bytes, flow, ecn, item } = packet;
        let item = Crossing { item, marked: false, wrong_bit: None, waited_ns: 0 };
        self.links[0].offer(now_ns, Packet { bytes, flow, ecn, item });
    }

    /// Takes the next packet that has left the last link by now, earliest first. Call it until it returns
    /// `None`.
    pub fn poll(&mut self, now_ns: i64) -> Option<Delivery<T>> {
        for index in 1..self.links.len() {
            let (before, after) = self.links.split_at_mut(index);
            let (from, to) = (&mut before[index - 1], &mut after[0]);
            while let Some(delivery) = from.poll(now_ns) {
                hand_on(delivery, to);
            }
        }
        let last = self.links.last_mut().expect("a path has a link");
        last.poll(now_ns).map(|delivery| {
            let (at_ns, copies, packet) = carry(delivery);
            let Packet { bytes, flow, ecn, item: Crossing { item, marked, wrong_bit, waited_ns } } = packet;
            let packet = Packet { bytes, flow, ecn, item };
            Delivery { at_ns, packet, copies, marked, wrong_bit, waited_ns }
        })
    }

    /// When to poll next if no packet is offered until then; `None` if the path is empty.
    pub fn next_ns(&self) -> Option<i64> {
        self.links.iter().filter_map(Link::next_ns).min()
    }

    /// The counters of each link up to now.
    pub fn counters(&self) -> impl Iterator<Item = Counters> + '_ {
        self.links.iter().map(Link::counters)
    }

    /// The bytes that wait before each link.
    pub fn queue_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.links.iter().map(Link::queue_bytes)
    }

    /// Takes the complete rows of each link's log, with the number of the link; see [`Link::drain_log`].
    pub fn drain_log(&mut self, now_ns: i64) -> impl Iterator<Item = (usize, FlowRow)> + '_ {
        let rows =
            move |(index, link): (usize, &mut Link<_>)| link.drain_log(now_ns).map(move |row| (index, row));
        self.links.iter_mut().enumerate().flat_map(rows)
    }

    /// Takes the open rows as well: for the end of a run.
    pub fn finish_log(&mut self) -> impl Iterator<Item = (usize, FlowRow)> + '_ {
        self.links
            .iter_mut()
            .enumerate()
            .flat_map(|(index, link)| link.finish_log().map(move |row| (index, row)))
    }
}

/// Adds the effects of a link on a packet to those of the previous links.
fn carry<T>(delivery: Delivery<Crossing<T>>) -> (i64, u32, Packet<Crossing<T>>) {
    let Delivery { at_ns, mut packet, copies, marked, wrong_bit, waited_ns } = delivery;
    packet.item.marked |= marked;
    packet.item.wrong_bit = packet.item.wrong_bit.or(wrong_bit);
    packet.item.waited_ns += waited_ns;
    (at_ns, copies, packet)
}

fn hand_on<T: Clone>(delivery: Delivery<Crossing<T>>, to: &mut Link<Crossing<T>>) {
    let (at_ns, copies, packet) = carry(delivery);
    for _ in 1..copies {
        to.offer(at_ns, packet.clone());
    }
    to.offer(at_ns, packet);
}
