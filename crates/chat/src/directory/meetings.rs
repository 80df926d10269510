//! Accepted calls whose sides are about to meet.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use kendall_talk::relay::PairId;

use super::ConnectionId;

#[derive(Debug)]
struct Meeting {
    call: u64,
    connections: [ConnectionId; 2],
    /// The last known address of each side.
    seen: [Option<SocketAddr>; 2],
}

/// Accepted calls whose sides are about to meet.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    meetings: HashMap<PairId, Meeting>,
    order: BTreeSet<(Duration, PairId)>,
}

impl Meetings {
    /// The caller's connection comes first.
    pub(super) fn begin(&mut self, pair: PairId, call: u64, connections: [ConnectionId; 2], until: Duration) {
        self.meetings.insert(pair, Meeting { call, connections, seen: [None; 2] });
        self.order.insert((until, pair));
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
        let before = meeting.seen.get_mut(side)?.replace(address);
        (before != Some(address)).then_some((meeting.call, meeting.connections[1 - side]))
    }

    /// Forgets those whose time is over.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some(&(until, pair)) = self.order.first()
            && until <= now
        {
            self.order.pop_first();
            self.meetings.remove(&pair);
        }
    }

    pub(super) fn next(&self) -> Option<Duration> {
        self.order.first().map(|(until, _)| *until)
    }

    pub(super) fn len(&self) -> usize {
        self.meetings.len()
    }
}
