//! Nonces: the counters we send, the window of counters we have received, and the trait of nonces for long-term keys.

use rand_core::CryptoRng;

/// The counter of the nonces we send under one key. It starts at a random value, as in the reference, so that an observer
/// does not learn the number of packets, and never wraps: a wrapped counter would repeat a nonce.
#[derive(Debug)]
pub(crate) struct SendCounter(u64);

impl SendCounter {
    pub(crate) fn new(rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        Self(rng.next_u64() >> 16)
    }

    /// A value that was never returned before; `None` once all are used, and from then on.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let counter = self.0;
        self.0 = counter.checked_add(1)?;
        Some(counter)
    }
}

/// The counters that a key has received: of the newest 1,984, each is accepted once, in any order; older ones never.
///
/// The bitmap is a ring of words, after RFC 6479.
#[derive(Debug, Default)]
pub(crate) struct ReplayWindow {
    newest: Option<u64>,
    seen: [u64; Self::WORDS as usize],
}

impl ReplayWindow {
    const WORDS: u64 = 32;
    /// Counters behind the newest by this much or more are refused. One word less than the ring, because the newest
    /// word is not full.
    const SPAN: u64 = (Self::WORDS - 1) * 64;

    /// Whether [`accept`](Self::accept) would accept this counter. Cheap, so asked before a box is opened.
    pub(crate) fn is_fresh(&self, counter: u64) -> bool {
        match self.newest {
            Some(newest) if counter <= newest => {
                newest - counter < Self::SPAN && self.seen[Self::word(counter)] >> (counter % 64) & 1 == 0
            }
            _ => true,
        }
    }

    /// Whether this counter is newer than all accepted ones.
    pub(crate) fn is_newest(&self, counter: u64) -> bool {
        self.newest.is_none_or(|newest| counter > newest)
    }

    /// Records the counter of an authentic packet; false where it was recorded before or is too old.
    pub(crate) fn accept(&mut self, counter: u64) -> bool {
        if !self.is_fresh(counter) {
            return false;
        }
        if self.is_newest(counter) {
            let newest = self.newest.unwrap_or(counter);
            let words = (counter / 64 - newest / 64).min(Self::WORDS);
            (0..words).for_each(|behind| self.seen[Self::word(counter - behind * 64)] = 0);
            self.newest = Some(counter);
        }
        self.seen[Self::word(counter)] |= 1 << (counter % 64);
        true
    }

    fn word(counter: u64) -> usize {
        (counter / 64 % Self::WORDS) as usize
    }
}

/// The source of 16-byte nonces for boxes of long-term keys (Cookies and vouches), which must never repeat in the life of
/// the key, restarts included.
pub trait LongTermNonces {
    /// A nonce that this source has never returned; `None` where it has none now. The packet that needs it is then not sent.
    fn next(&mut self) -> Option<[u8; 16]>;
}

impl<F: FnMut() -> [u8; 16]> LongTermNonces for F {
    fn next(&mut self) -> Option<[u8; 16]> {
        Some(self())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use std::collections::HashSet;

    #[test]
    fn a_counter_refuses_to_wrap() {
        let mut counter = SendCounter(u64::MAX - 1);
        assert_eq!(counter.next(), Some(u64::MAX - 1));
        assert_eq!((counter.next(), counter.next()), (None, None));
        let random = SendCounter::new(&mut rand::rngs::StdRng::seed_from_u64(1));
        assert!(random.0 < 1 << 48);
    }

    proptest! {
        #[test]
        fn each_counter_within_the_window_is_accepted_exactly_once(
            start in 0..u64::MAX - 10_000, steps in proptest::collection::vec(0u64..5_000, 1..400)
        ) {
            let (mut window, mut accepted, mut newest) = (ReplayWindow::default(), HashSet::new(), None::<u64>);
            for counter in steps.into_iter().map(|step| start + step) {
                let old = newest.is_some_and(|newest| newest.saturating_sub(counter) >= ReplayWindow::SPAN);
                let expected = !old && !accepted.contains(&counter);
                prop_assert_eq!(window.is_fresh(counter), expected);
                prop_assert_eq!(window.accept(counter), expected);
                if expected {
                    accepted.insert(counter);
                }
                newest = newest.max(Some(counter));
            }
        }
    }

    #[test]
    fn the_window_holds_at_the_end_of_the_numbers() {
        let mut window = ReplayWindow::default();
        assert!(window.accept(0) && !window.accept(0) && window.accept(u64::MAX) && !window.accept(u64::MAX));
        assert!(!window.accept(0) && !window.accept(u64::MAX - ReplayWindow::SPAN));
        assert!(window.accept(u64::MAX - ReplayWindow::SPAN + 1));
    }
}
