//! Controlled delay (Nichols, Jacobson, McGregor and Iyengar, RFC 8289): a queue whose packets wait for longer than a
//! target during a whole interval drops one, and then more at shrinking intervals, until they no longer do.

use crate::counters::Ledger;
use crate::drops::Cause;
use crate::line::{Line, Waiting};
use crate::packet::Ecn;

/// The treatment of packets whose ends support marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Warning {
    /// The queue marks the packet instead of dropping it (RFC 3168).
    #[default]
    Mark,
    /// The queue drops the packet.
    Drop,
}

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The acceptable standing wait, in ns.
    pub target_ns: i64,
    /// The time for which the target may be exceeded, in ns: about the longest usual round-trip time.
    pub interval_ns: i64,
    /// The treatment of packets that support marks.
    pub warning: Warning,
}

impl Default for CoDel {
    /// 5 ms and 100 ms (RFC 8289, sections 4.3 and 4.4), with marks.
    fn default() -> Self {
        Self { target_ns: 5_000_000, interval_ns: 100_000_000, warning: Warning::Mark }
    }
}

/// After this many intervals without a drop it no longer resumes at its previous rate (RFC 8289, section 5.5).
const FORGETS_AFTER: i64 = 16;

/// The controller of one queue. The names in parentheses are those of RFC 8289, section 5.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    settings: CoDel,
    /// The instant at which the wait will have been above the target for an interval (`first_above_time_`).
    due_ns: Option<i64>,
    /// Whether the controller is dropping packets (`dropping_`).
    dropping: bool,
    /// When to drop the next packet (`drop_next_`).
    next_ns: i64,
    /// Drops since it began to drop (`count_`).
    count: u64,
    /// The value of that number when dropping last began (`lastcount_`).
    last_count: u64,
    /// The largest packet up to now: a queue with no more than one is never too long (`MAXPACKET`).
    largest_bytes: u64,
}

impl Controller {
    pub(crate) fn new(settings: CoDel) -> Self {
        Self {
            settings,
            due_ns: None,
            dropping: false,
            next_ns: 0,
            count: 0,
            last_count: 0,
            largest_bytes: 0,
        }
    }

    /// Takes the next packet of a line that should not be dropped (`dequeue`).
    pub(crate) fn take<T>(
        &mut self,
        now_ns: i64,
        line: &mut Line<T>,
        ledger: &mut Ledger,
    ) -> Option<Waiting<T>> {
        let (mut head, mut too_long) = self.look(now_ns, line);
        if self.dropping {
            self.dropping = too_long;
            while self.dropping && now_ns >= self.next_ns {
                self.count += 1;
                match self.warn(now_ns, head?, ledger) {
                    Some(marked) => {
                        self.next_ns = self.after(self.next_ns);
                        return Some(marked);
                    }
                    None => (head, too_long) = self.look(now_ns, line),
                }
                self.dropping = too_long;
                if too_long {
                    self.next_ns = self.after(self.next_ns);
                }
            }
        } else if too_long {
            let marked = self.warn(now_ns, head?, ledger);
            head = marked.or_else(|| self.look(now_ns, line).0);
            self.begin(now_ns);
        }
        head
    }

    /// Takes the head of the line and returns whether the wait has been above the target for too long (`dodequeue`).
    fn look<T>(&mut self, now_ns: i64, line: &mut Line<T>) -> (Option<Waiting<T>>, bool) {
        let Some(head) = line.take() else {
            self.due_ns = None;
            return (None, false);
        };
        self.largest_bytes = self.largest_bytes.max(u64::from(head.packet.bytes));
        if now_ns - head.since_ns < self.settings.target_ns || line.bytes() <= self.largest_bytes {
            self.due_ns = None;
            return (Some(head), false);
        }
        let due_ns = *self.due_ns.get_or_insert(now_ns + self.settings.interval_ns);
        (Some(head), now_ns >= due_ns)
    }

    /// Begins to drop, near the rate that controlled the queue last time if that was recent.
    fn begin(&mut self, now_ns: i64) {
        let delta = self.count - self.last_count;
        let recent = now_ns - self.next_ns < FORGETS_AFTER * self.settings.interval_ns;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.next_ns = self.after(now_ns);
        self.dropping = true;
    }

    /// The instant of the next drop (`control_law`).
    fn after(&self, at_ns: i64) -> i64 {
        at_ns + (self.settings.interval_ns as f64 / (self.count as f64).sqrt()) as i64
    }

    /// Drops the packet, or marks it and returns it.
    fn warn<T>(&self, now_ns: i64, mut head: Waiting<T>, ledger: &mut Ledger) -> Option<Waiting<T>> {
        if self.settings.warning == Warning::Drop || head.packet.ecn == Ecn::NotCapable {
            ledger.dropped(now_ns, head.packet.flow, Cause::Aqm);
            return None;
        }
        head.packet.ecn = Ecn::Marked;
        head.marked = true;
        ledger.marked(now_ns, head.packet.flow);
        Some(head)
    }
}
