//! CoDel, packet by packet, compared with a second implementation of RFC 8289, section 5: as a queue of arrival instants
//! that a server empties one packet at a time.

use std::collections::VecDeque;

use kendall_linkmodel::{Ecn, Link, Packet, Settings};
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const TARGET: i64 = 5 * MS;
const INTERVAL: i64 = 100 * MS;
const BYTES: u32 = 1500;
/// The sending time of a packet at 12 Mbit/s.
const SENDING: i64 = MS;

/// The variables of the RFC, under their original names.
#[derive(Default)]
struct Rfc {
    queue: VecDeque<(i64, usize)>,
    first_above_time: i64,
    drop_next: i64,
    count: i64,
    lastcount: i64,
    dropping: bool,
}

impl Rfc {
    fn dodequeue(&mut self, now: i64) -> (Option<usize>, bool) {
        let mut ok_to_drop = false;
        let Some((arrived, packet)) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let sojourn_time = now - arrived;
        // bytes() <= MAXPACKET: no more than one packet waits.
        if sojourn_time < TARGET || self.queue.len() <= 1 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    fn control_law(&self, t: i64) -> i64 {
        t + (INTERVAL as f64 / (self.count as f64).sqrt()) as i64
    }

    fn dequeue(&mut self, now: i64) -> Option<usize> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            (p, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * INTERVAL {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        p
    }
}

/// The packets that a server sends, and when it begins each.
fn by_the_rfc(arrivals: &[i64]) -> Vec<(i64, usize)> {
    let (mut rfc, mut sent, mut free) = (Rfc::default(), vec![], 0);
    let mut arriving = arrivals.iter().copied().enumerate().peekable();
    loop {
        let next = arriving.peek().map_or(i64::MAX, |(_, at)| *at);
        if !rfc.queue.is_empty() && free <= next {
            if let Some(packet) = rfc.dequeue(free) {
                sent.push((free, packet));
                free += SENDING;
            }
        } else if let Some((packet, at)) = arriving.next() {
            if rfc.queue.is_empty() {
                free = free.max(at);
            }
            rfc.queue.push_back((at, packet));
        } else {
            return sent;
        }
    }
}

fn by_the_link(arrivals: &[i64]) -> Vec<(i64, usize)> {
    let settings: Settings = "rate=12mbit queue=100M aqm=codel".parse().unwrap();
    let mut link = Link::new(&settings, 1, 0).unwrap();
    let mut sent = vec![];
    for (item, at) in arrivals.iter().enumerate() {
        sent.extend(std::iter::from_fn(|| link.poll(*at)));
        link.offer(*at, Packet { bytes: BYTES, flow: 1, ecn: Ecn::NotCapable, item });
    }
    while let Some(next_ns) = link.next_ns() {
        sent.extend(std::iter::from_fn(|| link.poll(next_ns)));
    }
    sent.iter().map(|one| (one.at_ns - SENDING, one.packet.item)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Periods of load from a tenth to three times the rate, so that CoDel begins to drop, continues, stops, and begins
    /// again.
    #[test]
    fn it_drops_what_the_rfc_drops(spells in prop::collection::vec((300_000_i64..10 * MS, 20_usize..800), 1..12)) {
        let mut at = 1;
        let gaps = spells.iter().flat_map(|(gap, packets)| std::iter::repeat_n(*gap, *packets));
        let arrivals: Vec<i64> = gaps.map(|gap| { at += gap; at }).collect();
        prop_assert_eq!(by_the_link(&arrivals), by_the_rfc(&arrivals));
    }
}

#[test]
fn the_spells_make_it_drop() {
    let arrivals: Vec<i64> = (1..=3_000).map(|packet| packet * 600_000).collect();
    let sent = by_the_rfc(&arrivals);
    assert!(sent.len() < arrivals.len() - 100, "{} of {}", sent.len(), arrivals.len());
    assert_eq!(by_the_link(&arrivals), sent);
}
