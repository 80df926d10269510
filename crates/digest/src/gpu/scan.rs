//! The search on a card: ranges cut into launches, two of them under way, and checks of their results. The card
//! is a trait, so that all of it runs in tests without one.

use std::collections::VecDeque;
use std::ops::Range;

use super::error::GpuError;
use super::launch::{Launch, MOST_CANDIDATES, Report, WIDTHS};
use crate::interrupt::Interrupt;
use crate::sha256::formula::Block;
use crate::sha256::{Outcome, Targets, digest};

/// The number of launches under way, so that the card has work while the host reads a result.
pub(super) const SLOTS: usize = 2;

/// A slot for a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) usize);

/// The operations of a card that a search needs.
pub(super) trait Card {
    /// The number of candidates of a launch of some milliseconds.
    fn batch(&self) -> u32;

    /// Begins a launch in a slot, after the launches that are still under way there.
    fn launch(&mut self, slot: Slot, launch: &Launch<'_>) -> Result<(), GpuError>;

    /// How the last launch of a slot ended, or `None` while it is under way.
    fn report(&mut self, slot: Slot) -> Result<Option<Report>, GpuError>;

    /// Raises the flag that launches poll.
    fn halt(&mut self) -> Result<(), GpuError>;

    /// Lowers the flag.
    fn resume(&mut self) -> Result<(), GpuError>;

    /// Waits for a time much shorter than a launch.
    fn pause(&mut self);
}

/// The first candidate in `range` that is behind one of the targets.
///
/// # Errors
/// Fails if the card does. Its state is then unknown: use it no more.
pub(super) fn scan(
    card: &mut impl Card,
    targets: &Targets,
    range: Range<u64>,
    interrupt: &Interrupt,
) -> Result<Outcome, GpuError> {
    // Launches of an earlier scan must end before the flag is lowered.
    for slot in (0..SLOTS).map(Slot) {
        while card.report(slot)?.is_none() {
            card.pause();
        }
    }
    card.resume()?;
    let outcome = Search { card, targets, interrupt, left: range, flights: VecDeque::new() }.run();
    outcome.and_then(|outcome| card.halt().map(|()| outcome))
}

/// Whether a card finds known answers, with each kernel: at the ends of a range, inside it, and beyond it.
///
/// # Errors
/// Fails if the card does.
pub(super) fn finds_known_answers(card: &mut impl Card) -> Result<bool, GpuError> {
    let start = (1 << 32) - 300;
    let range = start..start + 600;
    for width in WIDTHS {
        for value in [range.start, start + 299, start + 300, range.end - 1, range.end] {
            // The other targets are all beyond the range.
            let mut digests: Vec<_> = (range.end + 1..).take(width - 1).map(digest).collect();
            digests.push(digest(value));
            let expected = match range.contains(&value) {
                true => Outcome::Found { value, target: width - 1 },
                false => Outcome::Absent,
            };
            let targets = Targets::new(digests).expect("kernels are as wide as there can be targets");
            if scan(card, &targets, range.clone(), &Interrupt::new())? != expected {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A launch that is under way.
struct Flight {
    slot: Slot,
    range: Range<u64>,
}

struct Search<'a, C> {
    card: &'a mut C,
    targets: &'a Targets,
    interrupt: &'a Interrupt,
    /// The part of the range that was not launched yet.
    left: Range<u64>,
    /// In the order of their ranges.
    flights: VecDeque<Flight>,
}

impl<C: Card> Search<'_, C> {
    fn run(mut self) -> Result<Outcome, GpuError> {
        let mut free: Vec<Slot> = (0..SLOTS).map(Slot).collect();
        loop {
            while !self.left.is_empty() && !self.interrupt.is_raised() {
                let Some(slot) = free.pop() else { break };
                let range = self.next_piece();
                self.launch(slot, &range)?;
                self.flights.push_back(Flight { slot, range });
            }
            let Some(Flight { slot, range }) = self.flights.pop_front() else {
                return Ok(match self.left.is_empty() {
                    true => Outcome::Absent,
                    false => Outcome::Stopped { at: self.left.start },
                });
            };
            match self.end_of(slot)? {
                Report::Nothing => free.push(slot),
                Report::Cut(at) => return Ok(Outcome::Stopped { at: range.start + u64::from(at) }),
                Report::Match(at) => {
                    let value = range.start + u64::from(at);
                    if let Some(target) = self.targets.matched(value) {
                        return Ok(Outcome::Found { value, target });
                    }
                    // A false match. The candidates after it may not have been tested.
                    let rest = value + 1..range.end;
                    if rest.is_empty() {
                        free.push(slot);
                    } else {
                        self.launch(slot, &rest)?;
                        self.flights.push_front(Flight { slot, range: rest });
                    }
                }
            }
        }
    }

    /// Takes a piece for one launch from what is left.
    fn next_piece(&mut self) -> Range<u64> {
        let Range { start, end } = self.left;
        let next_block = (start | u64::from(u32::MAX)).checked_add(1);
        let longest = start.saturating_add(self.card.batch().clamp(1, MOST_CANDIDATES).into());
        let piece_end = end.min(longest).min(next_block.unwrap_or(u64::MAX));
        self.left.start = piece_end;
        start..piece_end
    }

    fn launch(&mut self, slot: Slot, range: &Range<u64>) -> Result<(), GpuError> {
        let launch = Launch {
            from: range.start as u32,
            count: (range.end - range.start) as u32,
            block: Block::new((range.start >> 32) as u32),
            wanted: &self.targets.wanted,
        };
        self.card.launch(slot, &launch)
    }

    fn end_of(&mut self, slot: Slot) -> Result<Report, GpuError> {
        loop {
            if let Some(report) = self.card.report(slot)? {
                return Ok(report);
            }
            if self.interrupt.is_raised() {
                self.card.halt()?;
            }
            self.card.pause();
        }
    }
}
