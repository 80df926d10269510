//! Accepted calls whose sides are about to meet.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use kendall_talk::relay::PairId;

use super::ConnectionId;
use crate::name::NameKey;

/// How often a side of a meeting learns a new address of the other. It tries as many.
const NEWS: usize = 8;

#[derive(Debug)]
struct Meeting {
    call: u64,
    caller: NameKey,
    connections: [ConnectionId; 2],
    /// The last known address of each side.
    seen: [Option<SocketAddr>; 2],
    /// How many addresses of each side were news.
    news: [usize; 2],
}

/// Accepted calls whose sides are about to meet.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    meetings: HashMap<PairId, Meeting>,
    order: BTreeSet<(Duration, PairId)>,
    /// When the meetings end that each account has called for, the first one first.
    of_caller: HashMap<NameKey, VecDeque<Duration>>,
}

impl Meetings {
    /// The caller's connection comes first. No meeting that was begun before ends later.
    pub(super) fn begin(
        &mut self,
        pair: PairId,
        call: u64,
        caller: NameKey,
        connections: [ConnectionId; 2],
        until: Duration,
    ) {
        self.of_caller.entry(caller.clone()).or_default().push_back(until);
        self.meetings.insert(pair, Meeting { call, caller, connections, seen: [None; 2], news: [0; 2] });
        self.order.insert((until, pair));
    }

    /// When the next meeting of a caller ends, if there are this many.
    pub(super) fn full_until(&self, caller: &NameKey, most: usize) -> Option<Duration> {
        self.of_caller.get(caller).filter(|ends| ends.len() >= most)?.front().copied()
    }

    /// Notes that one side was seen at an address. Returns the call and the connection that must learn of it,
    /// if it is news.
    pub(super) fn seen(
        &mut self,
        pair: PairId,
        side: usize,
        address: SocketAddr,
    ) -> Option<(u64, ConnectionId)> {
        let meeting = self.meetings.get_mut(&pair)?;
        let (seen, news) = (meeting.seen.get_mut(side)?, &mut meeting.news[side]);
        if *news >= NEWS || seen.replace(address) == Some(address) {
            return None;
        }
        *news += 1;
        Some((meeting.call, meeting.connections[1 - side]))
    }

    /// Forgets those whose time is over.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(&(until, pair)) = self.order.first()
            && until <= now
        {
            self.order.pop_first();
            let Some(Meeting { caller, .. }) = self.meetings.remove(&pair) else { continue };
            if let Some(ends) = self.of_caller.get_mut(&caller) {
                ends.pop_front();
                if ends.is_empty() {
                    self.of_caller.remove(&caller);
                }
            }
        }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.order.first().map(|(until, _)| *until)
    }

    pub(super) fn len(&self) -> usize {
        self.meetings.len()
    }
}

#[cfg(test)]
mod tests {
    use kendall_talk::relay::Pairs;

    use super::*;
    use crate::name::Name;

    #[test]
    fn a_side_that_changes_its_address_all_the_time_makes_few_news() {
        let pair = Pairs::new(Default::default()).open(Duration::ZERO, [[0; 16], [1; 16]]).unwrap();
        let (mut meetings, caller) = (Meetings::default(), Name::new("ann").unwrap().key().clone());
        let connections = [ConnectionId(0), ConnectionId(1)];
        meetings.begin(pair, 3, caller, connections, Duration::from_secs(30));
        let mut seen = |side, port| meetings.seen(pair, side, ([127, 0, 0, 1], port).into());
        let news: Vec<_> = (0..100).filter_map(|turn| seen(0, 1 + turn % 2)).collect();
        assert_eq!(news, [(3, connections[1]); NEWS]);
        assert_eq!(seen(1, 9), Some((3, connections[0])));
        assert_eq!(seen(1, 9), None);
    }
}
