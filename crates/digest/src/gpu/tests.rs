//! The whole search, over the interpreter as the card: all but the calls to the driver.

use std::ops::Range;

use proptest::prelude::*;

use super::interpret::{self, Kernel, Memory, STOP_AT, WORDS_AT, parse};
use super::launch::{Launch, Report, UNTOUCHED};
use super::scan::{Card, SLOTS, Slot, finds_known_answers, scan};
use super::{GpuError, Sums, ptx};
use crate::sha256::formula::{Block, residue};
use crate::sha256::{self, Outcome, Targets, digest};
use crate::{Engine, Interrupt};

/// A launch that was not run yet.
struct Waiting {
    kernel: usize,
    blocks: u32,
    call: Vec<u32>,
}

/// A card of at most `blocks` blocks. A launch runs at the second request for its report.
struct Interpreted<'a> {
    kernels: Vec<Kernel>,
    blocks: u32,
    batch: u32,
    waiting: [Option<Waiting>; SLOTS],
    reports: [Report; SLOTS],
    asked: bool,
    halted: bool,
    /// The number of launches before it fails.
    launches_left: usize,
    /// Raised in the pause that comes after this many.
    interrupt: Option<(usize, &'a Interrupt)>,
    /// How many times threads see the flag lowered, independently of the host.
    looks: usize,
    seed: u64,
}

impl Interpreted<'_> {
    fn new(sums: Sums) -> Self {
        Self {
            kernels: parse(&ptx::module(sums)).unwrap(),
            blocks: 2,
            batch: 700,
            waiting: [None, None],
            reports: [Report::Nothing; SLOTS],
            asked: false,
            halted: false,
            launches_left: usize::MAX,
            interrupt: None,
            looks: usize::MAX,
            seed: 1,
        }
    }

    /// One launch, to its end.
    fn run(&mut self, launch: &Launch<'_>) -> Report {
        self.launch(Slot(0), launch).unwrap();
        assert_eq!(self.report(Slot(0)), Ok(None));
        self.report(Slot(0)).unwrap().unwrap()
    }
}

impl Card for Interpreted<'_> {
    fn batch(&self) -> u32 {
        self.batch
    }

    fn launch(&mut self, slot: Slot, launch: &Launch<'_>) -> Result<(), GpuError> {
        assert!(self.waiting[slot.0].is_none(), "the slot is taken");
        let Some(left) = self.launches_left.checked_sub(1) else {
            return Err(GpuError { to: "launch", why: "it was removed".into() });
        };
        self.launches_left = left;
        let (blocks, call) = (launch.blocks(self.blocks), launch.call(WORDS_AT, STOP_AT));
        self.waiting[slot.0] = Some(Waiting { kernel: launch.width(), blocks, call });
        Ok(())
    }

    fn report(&mut self, slot: Slot) -> Result<Option<Report>, GpuError> {
        if self.waiting[slot.0].is_some() && !std::mem::replace(&mut self.asked, true) {
            return Ok(None);
        }
        self.asked = false;
        if let Some(Waiting { kernel, blocks, call }) = self.waiting[slot.0].take() {
            self.seed += 1;
            let looks_left = if self.halted { 0 } else { self.looks };
            let mut memory = Memory { words: UNTOUCHED, looks_left };
            interpret::run(&self.kernels[kernel], blocks, &call, &mut memory, self.seed);
            self.reports[slot.0] = memory.words.into();
        }
        Ok(Some(self.reports[slot.0]))
    }

    fn halt(&mut self) -> Result<(), GpuError> {
        self.halted = true;
        Ok(())
    }

    fn resume(&mut self) -> Result<(), GpuError> {
        self.halted = false;
        Ok(())
    }

    fn pause(&mut self) {
        match &mut self.interrupt {
            Some((0, interrupt)) => interrupt.raise(),
            Some((pauses_left, _)) => *pauses_left -= 1,
            None => {}
        }
    }
}

/// The card must find what the portable engine finds.
fn check(card: &mut Interpreted<'_>, targets: &Targets, start: u64, end: u64) {
    let expected = sha256::scan(Engine::Portable, targets, start..end, &Interrupt::new());
    assert_eq!(scan(card, targets, start..end, &Interrupt::new()), Ok(expected), "{start}..{end}");
}

/// A launch for one target.
fn launch(from: u64, count: u32, wanted: &[u32]) -> Launch<'_> {
    Launch { from: from as u32, count, block: Block::new((from >> 32) as u32), wanted }
}

/// The value that the kernel compares for a candidate.
fn judged(candidate: u64) -> u32 {
    residue(&Block::new((candidate >> 32) as u32), (candidate as u32).swap_bytes())
}

#[test]
fn each_kernel_passes_the_check_that_cards_have_to_pass() {
    for sums in [Sums::Multiplier, Sums::Adder] {
        assert_eq!(finds_known_answers(&mut Interpreted::new(sums)), Ok(true));
    }
}

#[test]
fn a_card_that_computes_wrongly_does_not_pass() {
    let text = ptx::module(Sums::Multiplier);
    let wrong = text.replacen("0xca", "0xac", 1);
    assert_ne!(text, wrong);
    let mut card = Interpreted { kernels: parse(&wrong).unwrap(), ..Interpreted::new(Sums::Multiplier) };
    assert_eq!(finds_known_answers(&mut card), Ok(false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_card_finds_what_the_portable_engine_finds(
        start: u64,
        length in 0u64..1500,
        offsets in prop::collection::vec(0u64..2500, 1..12),
        blocks in 1u32..4,
        batch in 1u32..900,
    ) {
        let batch = batch.max(length as u32 / 5);
        let digests: Vec<_> = offsets.iter().map(|offset| digest(start.wrapping_add(*offset))).collect();
        let mut card = Interpreted { blocks, batch, ..Interpreted::new(Sums::Multiplier) };
        check(&mut card, &Targets::new(digests).unwrap(), start, start.saturating_add(length));
    }
}

#[test]
fn ranges_may_be_empty_or_reach_either_end_of_all_numbers() {
    let mut card = Interpreted::new(Sums::Multiplier);
    for (start, end) in [(0, 0), (0, 1), (7, 8), (9, 9), (u64::MAX - 1, u64::MAX), (u64::MAX - 800, u64::MAX)]
    {
        for answer in [start, end.wrapping_sub(1), end] {
            check(&mut card, &Targets::one(digest(answer)), start, end);
        }
    }
    let backwards = Range { start: 9, end: 3 };
    let outcome = scan(&mut card, &Targets::one(digest(5)), backwards, &Interrupt::new());
    assert_eq!(outcome, Ok(Outcome::Absent));
}

#[test]
fn the_upper_half_changes_within_a_range() {
    let mut card = Interpreted::new(Sums::Adder);
    let border = 5 << 32;
    for answer in [border - 900, border - 1, border, border + 1, border + 800] {
        check(&mut card, &Targets::one(digest(answer)), border - 900, border + 801);
    }
}

#[test]
fn every_thread_finds_its_answer() {
    let mut card = Interpreted::new(Sums::Multiplier);
    let from = (3 << 32) + 0x00ff_fff0;
    // All lanes of one warp, and then threads of two blocks that go round twice.
    let places = (0..32).map(|at| (at, 32)).chain((0..1100).step_by(91).map(|at| (at, 1100)));
    for (at, count) in places {
        let wanted = [judged(from + u64::from(at))];
        assert_eq!(card.run(&launch(from, count, &wanted)), Report::Match(at));
        assert_eq!(
            card.run(&launch(from, at.max(1), &wanted)),
            match at {
                0 => Report::Match(0),
                _ => Report::Nothing,
            }
        );
    }
}

#[test]
fn of_several_answers_the_first_is_found_in_whatever_order_threads_run() {
    let mut card = Interpreted { batch: 600, ..Interpreted::new(Sums::Multiplier) };
    let targets = Targets::new([digest(900), digest(577), digest(1400), digest(578)]).unwrap();
    for (start, end) in [(0, 1500), (578, 1500), (579, 1500), (901, 1500), (901, 1400)] {
        check(&mut card, &targets, start, end);
    }
}

#[test]
fn what_only_looks_like_an_answer_is_passed_over() {
    let mut card = Interpreted::new(Sums::Multiplier);
    // At the first and the last candidate of a launch, next to each other, and in front of another answer.
    for lookalikes in [&[0][..], &[699, 1399], &[350, 351, 352], &[0, 699, 700, 1399]] {
        for answers in [&[1][..], &[800, 353], &[1400], &[2099], &[2100]] {
            let digests: Vec<_> = answers.iter().copied().map(digest).collect();
            let mut targets = Targets::new(digests).unwrap();
            let expected = sha256::scan(Engine::Portable, &targets, 0..2100, &Interrupt::new());
            targets.wanted.extend(lookalikes.iter().copied().map(judged));
            assert_eq!(scan(&mut card, &targets, 0..2100, &Interrupt::new()), Ok(expected), "{lookalikes:?}");
        }
    }
}

#[test]
fn a_kernel_that_is_stopped_says_what_it_has_left() {
    // One block of threads goes round more than 16 times, so they read the flag twice.
    let count = 4400;
    for (looks, answer) in [(0, 0), (100, 4100), (256, 4099), (256, 4399), (400, 4390), (512, 4390)] {
        let mut card = Interpreted { looks, blocks: 1, ..Interpreted::new(Sums::Multiplier) };
        let report = card.run(&launch(0, count, &[judged(answer)]));
        match (looks, report) {
            (0, _) => assert_eq!(report, Report::Cut(0)),
            (512, _) => assert_eq!(report, Report::Match(4390)),
            (_, Report::Cut(at)) => assert!(u64::from(at) <= answer, "{looks} readings: {at} but {answer}"),
            _ => assert_eq!(report, Report::Match(answer as u32)),
        }
    }
}

#[test]
fn a_search_that_is_interrupted_can_go_on_from_there() {
    for (pauses, answer) in [(0, 100), (0, 799), (0, 800), (1, 800), (1, 1499), (1, 1500), (1, 2300)] {
        let interrupt = Interrupt::new();
        let targets = Targets::one(digest(answer));
        let mut card =
            Interpreted { interrupt: Some((pauses, &interrupt)), ..Interpreted::new(Sums::Multiplier) };
        let outcome = scan(&mut card, &targets, 100..2_500, &interrupt);
        // Each launch takes one pause. The one after that in which the flag is raised tests nothing.
        let at = 100 + 700 * (pauses as u64 + 1);
        if answer < at {
            assert_eq!(outcome, Ok(Outcome::Found { value: answer, target: 0 }));
        } else {
            assert_eq!(outcome, Ok(Outcome::Stopped { at }));
            card.interrupt = None;
            check(&mut card, &targets, at, 2_500);
        }
    }
}

#[test]
fn an_interrupt_that_is_raised_before_lets_nothing_begin() {
    let interrupt = Interrupt::new();
    interrupt.raise();
    let mut card = Interpreted { launches_left: 0, ..Interpreted::new(Sums::Multiplier) };
    let targets = Targets::one(digest(9));
    assert_eq!(scan(&mut card, &targets, 5..10, &interrupt), Ok(Outcome::Stopped { at: 5 }));
    assert_eq!(scan(&mut card, &targets, 5..5, &interrupt), Ok(Outcome::Absent));
}

#[test]
fn a_failure_of_the_card_is_an_error() {
    for launches_left in 0..3 {
        let mut card = Interpreted { launches_left, ..Interpreted::new(Sums::Multiplier) };
        let error = scan(&mut card, &Targets::one(digest(9_000)), 0..10_000, &Interrupt::new()).unwrap_err();
        assert_eq!(error.to_string(), "the graphics card failed to launch: it was removed");
    }
}
