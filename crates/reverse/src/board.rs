//! The board of the gang: all searches, the progress of each, and the next part to test.
//!
//! It knows no threads: a member takes a [`Part`], tests it, and enters the outcome.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::ops::Range;

use kendall_digest::sha256::{Outcome, Targets};

use crate::options::Sharing;
use crate::search::{Key, Search};

/// The fewest candidates that are worth a separate part.
pub(crate) const LEAST_PART: u64 = 2_048;
/// The number of digests that one pass compares.
const MOST_TARGETS: usize = 16;
/// The number of searches that are considered as riders.
const MOST_LOOKED_AT: usize = 64;

/// The board of all searches, with the parts of each that are in progress.
#[derive(Debug, Default)]
pub(crate) struct Board {
    searches: HashMap<u64, Search>,
    /// The searches by the start of their range; among those with the same start, the oldest is the last.
    by_start: BTreeSet<(u64, Reverse<u64>)>,
    /// The width of the widest range.
    widest: u64,
    /// The search that all members work on.
    pub(crate) current: Option<u64>,
    /// The searches that ended while they rode along.
    ended: Vec<u64>,
    next_id: u64,
    pub(crate) dismissed: bool,
    /// The searches of which a cluster has parts.
    on_cluster: BTreeSet<u64>,
    /// Those of them that have left the board, with their ends.
    left: Vec<(u64, SearchEnd)>,
}

/// The end of a search, if it has ended: with the number, or without one.
pub(crate) type SearchEnd = Option<Option<u64>>;

/// A part that a member is testing.
pub(crate) struct Part {
    search: u64,
    pub(crate) range: Range<u64>,
    riders: Vec<u64>,
    pub(crate) targets: Targets,
}

/// Whether a part has ended a search.
#[derive(PartialEq, Eq)]
pub(crate) enum News {
    None,
    SomebodyEnded,
}

impl Board {
    /// Puts a search on the board.
    pub(crate) fn add(&mut self, key: Key) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.widest = self.widest.max(key.end - key.start);
        self.by_start.insert((key.start, Reverse(id)));
        self.searches.insert(id, Search::new(key));
        id
    }

    /// Takes a search off the board.
    pub(crate) fn remove(&mut self, id: u64) {
        let search = self.searches.remove(&id).expect("a search is taken off once");
        self.by_start.remove(&(search.key.start, Reverse(id)));
        if self.on_cluster.remove(&id) {
            self.left.push((id, search.ended()));
        }
        if self.searches.is_empty() {
            self.widest = 0;
        }
    }

    /// Whether the board is empty.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.searches.is_empty()
    }

    /// The outcome of searches that ended as riders since the last call. They stay on the board.
    pub(crate) fn take_ended(&mut self) -> Vec<(Key, Option<u64>)> {
        let ended = mem::take(&mut self.ended);
        let how = |id| {
            let search = self.searches.get(&id)?;
            Some((search.key, search.ended()?))
        };
        ended.into_iter().filter_map(how).collect()
    }

    /// Notes that a cluster has parts of a search, unless it has left the board.
    pub(crate) fn put_on_cluster(&mut self, id: u64) -> bool {
        self.searches.contains_key(&id) && self.on_cluster.insert(id)
    }

    /// The searches of which a cluster has parts and that have left the board since the last call.
    pub(crate) fn take_left(&mut self) -> Vec<(u64, SearchEnd)> {
        mem::take(&mut self.left)
    }

    /// Notes what is known of a search without a part of it: tested ranges, and the number.
    pub(crate) fn learn(
        &mut self,
        id: u64,
        tested: impl IntoIterator<Item = Range<u64>>,
        found: Option<u64>,
    ) -> News {
        let Some(search) = self.searches.get_mut(&id) else { return News::None };
        tested.into_iter().for_each(|range| search.strike_out(&range));
        if let Some(value) = found {
            search.find(value);
        }
        match search.ended() {
            Some(_) => News::SomebodyEnded,
            None => News::None,
        }
    }

    /// A search on the board, unless it has left.
    pub(crate) fn get(&self, id: u64) -> Option<&Search> {
        self.searches.get(&id)
    }

    /// A search on the board.
    pub(crate) fn search(&self, id: u64) -> &Search {
        &self.searches[&id]
    }

    /// The next part of a search, with its riders; `None` if no candidate is left to hand out.
    pub(crate) fn take_part(
        &mut self,
        id: u64,
        most: impl FnOnce(u64) -> Option<u64>,
        sharing: Sharing,
    ) -> Option<Part> {
        let search = self.searches.get(&id).filter(|search| search.ended().is_none())?;
        let start = search.next()?;
        let end = start.saturating_add(most(search.left())?);
        let (riders, end) = match sharing {
            Sharing::On => self.riders(id, start, end),
            Sharing::Off => (Vec::new(), end),
        };
        let range = self.searches.get_mut(&id)?.hand_out(end - start)?;
        let digest = |id: &u64| self.search(*id).key.digest;
        let digests: Vec<_> = [id].iter().chain(&riders).map(digest).collect();
        let targets = Targets::new(digests).expect("there are a few targets");
        Some(Part { search: id, range, riders, targets })
    }

    /// Other searches that still need a range from its start on, of those that begin nearest before it; and the
    /// end of the range, which is cut to what they need unless too little of it remains.
    fn riders(&self, id: u64, start: u64, mut end: u64) -> (Vec<u64>, u64) {
        let near = (start.saturating_sub(self.widest), Reverse(u64::MAX))..=(start, Reverse(0));
        let mut riders = Vec::new();
        for &(_, Reverse(other)) in self.by_start.range(near).rev().take(MOST_LOOKED_AT) {
            let search = self.search(other);
            if other == id || search.ended().is_some() || search.is_fragmented() {
                continue;
            }
            if let Some(lacked) = search.lacks_up_to(start)
                && lacked >= end.min(start.saturating_add(LEAST_PART))
            {
                end = end.min(lacked);
                riders.push(other);
            }
            if riders.len() == MOST_TARGETS - 1 {
                break;
            }
        }
        (riders, end)
    }

    /// Records the outcome of a part.
    pub(crate) fn enter(&mut self, part: Part, outcome: Outcome) -> News {
        let Part { search: id, range, riders, targets } = part;
        // A number that was found is only tested against the searches that want it.
        let tested_to = outcome.reached(&range);
        let found = match outcome {
            Outcome::Found { value, target } => Some((value, targets.digests()[target])),
            _ => None,
        };
        let mut news = News::None;
        // A search that has left the board needs no outcome.
        for other in [id].iter().chain(&riders) {
            let Some(search) = self.searches.get_mut(other) else { continue };
            let had_ended = search.ended().is_some();
            if *other == id {
                search.take_back(range.clone(), tested_to);
            } else {
                search.strike_out(&(range.start..tested_to));
            }
            if let Some((value, digest)) = found
                && search.key.digest == digest
            {
                search.find(value);
            }
            if search.ended().is_some() && !had_ended {
                news = News::SomebodyEnded;
                if self.current != Some(*other) {
                    self.ended.push(*other);
                }
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_search_is_cut_into_a_limited_number_of_ranges() {
        let mut board = Board::default();
        let key = |number, start, end| Key { digest: [number; 32], start, end };
        let wide = board.add(key(1, 0, 1 << 40));
        let mut tested = 0;
        for number in 0..1000 {
            let start = number * 3 * LEAST_PART;
            let small = board.add(key(2, start, start + LEAST_PART));
            let part = board.take_part(small, Some, Sharing::On).unwrap();
            tested += if part.riders == [wide] { LEAST_PART } else { 0 };
            assert!(board.enter(part, Outcome::Absent) == News::SomebodyEnded);
            board.remove(small);
        }
        let ranges = board.search(wide).rest().count();
        assert!((2..100).contains(&ranges), "{ranges}");
        // It still searches all of its range, and nothing twice.
        assert_eq!(board.search(wide).left(), (1 << 40) - tested);
        for _ in 0..ranges {
            let part = board.take_part(wide, |_| Some(u64::MAX), Sharing::On).unwrap();
            board.enter(part, Outcome::Absent);
        }
        assert_eq!(board.search(wide).ended(), Some(None));
    }
}
