//! How long a message the path carries: packetization layer path MTU discovery, RFC 8899.
//!
//! Every path carries the reference's longest message, the base. Where the peer takes longer ones, a probe without data
//! shows whether the path does: first of the longest, then by bisection. A probe that is lost says nothing of congestion.
//! Where long messages vanish that went through before, the length falls back to the base and the search begins again.

use std::time::Duration;

use crate::message::{LENGTH_STEP, MAX_MESSAGE_BYTES};

const BASE: u16 = MAX_MESSAGE_BYTES as u16;
const STEP: u16 = LENGTH_STEP as u16;
/// Probes of one length that must be lost until it counts as too long: `MAX_PROBES` of RFC 8899, section 5.1.2.
const MAX_PROBES: u8 = 3;
/// After this time a path may carry more than it did: `PMTU_RAISE_TIMER` of RFC 8899, section 5.1.1.
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// Long messages lost in a row, none later having arrived, that show that the path no longer carries them.
const BLACK_HOLE_LOSSES: u8 = 8;
/// Probe time-outs in a row that show the same.
const BLACK_HOLE_TIMEOUTS: u32 = 2;
/// From the first fall to the base to the next search; each further fall doubles it.
const FIRST_REST: Duration = Duration::from_secs(1);

/// The search on one path.
#[derive(Debug)]
pub(super) struct PathMtu {
    /// Messages of this length arrive.
    length: u16,
    /// Messages of this length do not.
    too_long: Option<u16>,
    /// The probe that is under way: its number and length.
    probe: Option<(u64, u16)>,
    /// Probes of the present length that were lost.
    lost_probes: u8,
    /// No probe leaves before.
    rests_until: Duration,
    falls: u32,
    /// The newest long message that arrived, and how many later ones were lost.
    newest: Option<u64>,
    losses: u8,
}

impl Default for PathMtu {
    fn default() -> Self {
        Self {
            length: BASE,
            too_long: None,
            probe: None,
            lost_probes: 0,
            rests_until: Duration::ZERO,
            falls: 0,
            newest: None,
            losses: 0,
        }
    }
}

impl PathMtu {
    /// Bytes of the longest message that the path is known to carry.
    pub(super) fn length(&self) -> usize {
        self.length.into()
    }

    /// The length of the probe to send now, if one is to be sent; at most `limit`.
    pub(super) fn next_probe(&mut self, now: Duration, limit: usize) -> Option<usize> {
        if self.probe.is_some() || now < self.rests_until {
            return None;
        }
        let next = self.candidate(limit);
        if next.is_none() && self.too_long.take().is_some() {
            self.rests_until = now + RAISE_AFTER;
        }
        next.map(usize::from)
    }

    /// The longest length first, then the middle of what is left.
    fn candidate(&self, limit: usize) -> Option<u16> {
        let steps = |bytes: u16| bytes.saturating_sub(BASE) / STEP;
        let most = steps(u16::try_from(limit).unwrap_or(u16::MAX));
        let least = steps(self.length) + 1;
        let candidate = match self.too_long.map(steps) {
            Some(too_long) if too_long <= most => (least + too_long - 1).div_ceil(2),
            _ => most,
        };
        (candidate >= least && self.too_long.is_none_or(|too_long| candidate < steps(too_long)))
            .then_some(BASE + candidate * STEP)
    }

    /// Notes that a probe has left.
    pub(super) fn probe_sent(&mut self, number: u64, length: usize) {
        self.probe = Some((number, length as u16));
    }

    /// Takes the news that a probe arrived. One of an earlier search, perhaps on another path, shows nothing.
    pub(super) fn probe_arrived(&mut self, number: u64) {
        if let Some((_, length)) = self.probe.take_if(|probe| probe.0 == number) {
            (self.length, self.lost_probes) = (length, 0);
        }
    }

    /// Takes the news that a probe was lost.
    pub(super) fn probe_lost(&mut self, number: u64) {
        let Some((_, length)) = self.probe.take_if(|probe| probe.0 == number) else { return };
        self.lost_probes += 1;
        if self.lost_probes == MAX_PROBES {
            (self.too_long, self.lost_probes) = (Some(length), 0);
        }
    }

    /// Takes the news that the long message of this number arrived.
    pub(super) fn arrived(&mut self, number: u64) {
        if self.newest < Some(number) {
            (self.newest, self.losses) = (Some(number), 0);
        }
    }

    /// Takes the news that a message with data was lost; whether the path has become a black hole.
    pub(super) fn lost(&mut self, number: u64, length: u16) -> bool {
        let counts = length > BASE && self.length > BASE && self.newest < Some(number);
        // One acknowledgement can show hundreds of losses before the caller falls back.
        self.losses = self.losses.saturating_add(u8::from(counts));
        counts && self.losses >= BLACK_HOLE_LOSSES
    }

    /// Whether this number of probe time-outs shows that the path has become a black hole.
    pub(super) fn timed_out(&self, timeouts: u32) -> bool {
        self.length > BASE && timeouts >= BLACK_HOLE_TIMEOUTS
    }

    /// Goes back to the base, because the path has become a black hole.
    pub(super) fn fall(&mut self, now: Duration) {
        let rest = (FIRST_REST * (1 << self.falls.min(10))).min(RAISE_AFTER);
        let falls = self.falls + 1;
        *self = Self { rests_until: now + rest, falls, newest: self.newest, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::LONGEST_MESSAGE_BYTES;

    const NOW: Duration = Duration::from_secs(9);

    /// Searches on a path that carries messages up to a length; the length that is found, and the probes that it took.
    fn search(mtu: &mut PathMtu, carries: usize, limit: usize) -> (usize, u64) {
        let mut probes = 0;
        while let Some(length) = mtu.next_probe(NOW, limit) {
            assert!(length <= limit && length > mtu.length(), "{length}");
            mtu.probe_sent(probes, length);
            assert_eq!(mtu.next_probe(NOW, limit), None, "one probe at a time");
            mtu.probe_arrived(probes + 1);
            mtu.probe_lost(probes + 1);
            let news = if length <= carries { PathMtu::probe_arrived } else { PathMtu::probe_lost };
            news(mtu, probes);
            probes += 1;
        }
        (mtu.length(), probes)
    }

    #[test]
    fn the_search_finds_what_the_path_carries_within_a_step() {
        for limit in [1_088, 1_344, LONGEST_MESSAGE_BYTES] {
            for carries in (1_088..1_500).step_by(4) {
                let (found, probes) = search(&mut PathMtu::default(), carries, limit);
                let most = carries.min(limit);
                assert!(found <= most && found + LENGTH_STEP > most, "{found} of {most}");
                assert!(probes <= 15, "{probes} probes");
                assert!(carries < limit || probes == u64::from(limit > 1_088), "the longest comes first");
            }
        }
    }

    #[test]
    fn a_path_that_carries_more_later_is_found_after_ten_minutes() {
        let mut mtu = PathMtu::default();
        assert_eq!(search(&mut mtu, 1_200, 1_344).0, 1_184);
        assert_eq!(mtu.next_probe(NOW + RAISE_AFTER - Duration::from_secs(1), 1_344), None);
        assert_eq!(mtu.next_probe(NOW + RAISE_AFTER, 1_344), Some(1_344));
    }

    #[test]
    fn long_messages_lost_in_a_row_make_a_black_hole_and_losses_before_one_that_arrived_do_not() {
        let mut mtu = PathMtu::default();
        search(&mut mtu, 1_344, 1_344);
        mtu.arrived(100);
        assert!((50..100).all(|number| !mtu.lost(number, 1_344)), "the one that arrived left later");
        assert!((101..200).all(|number| !mtu.lost(number, 1_088)), "the base always arrives");
        assert!((200..207).all(|number| !mtu.lost(number, 1_344)));
        mtu.arrived(210);
        assert!((211..218).all(|number| !mtu.lost(number, 1_344)));
        assert!(
            (218..600).all(|number| mtu.lost(number, 1_344)),
            "until the length falls, however many are lost"
        );
        mtu.fall(NOW);
        assert_eq!((mtu.length(), mtu.next_probe(NOW, 1_344)), (1_088, None));
        assert_eq!(mtu.next_probe(NOW + FIRST_REST, 1_344), Some(1_344));
        assert!(!mtu.timed_out(9), "there is nothing to fall from");
    }
}
