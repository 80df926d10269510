//! Every engine of this machine compared with the portable one, and that one with the whole hash function.

use std::thread;
use std::time::Duration;

use kendall_digest::sha256::{Outcome, Targets, digest, scan};
use kendall_digest::{Engine, Interrupt};
use proptest::prelude::*;

/// The answer by the whole hash function.
fn truth(targets: &Targets, start: u64, end: u64) -> Outcome {
    let find = |value| {
        let target = targets.digests().iter().position(|target| *target == digest(value))?;
        Some(Outcome::Found { value, target })
    };
    (start..end).find_map(find).unwrap_or(Outcome::Absent)
}

fn check(targets: &Targets, start: u64, end: u64) {
    let expected = truth(targets, start, end);
    for engine in Engine::available() {
        let outcome = scan(engine, targets, start..end, &Interrupt::new());
        assert_eq!(outcome, expected, "{engine}, {start}..{end}");
    }
}

proptest! {
    #[test]
    fn every_engine_finds_what_there_is(start: u64, length in 0u64..200, offsets in prop::collection::vec(0u64..250, 1..9)) {
        let end = start.saturating_add(length);
        let digests: Vec<_> = offsets.iter().map(|offset| digest(start.wrapping_add(*offset))).collect();
        check(&Targets::new(digests).unwrap(), start, end);
    }
}

#[test]
fn every_lane_finds_its_answer_at_either_end_of_all_numbers_and_across_blocks() {
    for base in [0, (1 << 32) - 40, (7 << 32) - 40, u64::MAX - 80] {
        for offset in 0..80 {
            check(&Targets::one(digest(base + offset)), base, base + 80);
        }
    }
}

#[test]
fn ranges_around_the_number_of_lanes_hold_neither_more_nor_less() {
    for start in [0, 5, 16, (1 << 32) - 3, u64::MAX - 70] {
        for length in [0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65] {
            for answer in [start, start + length / 2, (start + length).saturating_sub(1), start + length] {
                check(&Targets::one(digest(answer)), start, start + length);
            }
        }
    }
}

#[test]
fn of_several_answers_the_first_is_found() {
    let targets = Targets::new([digest(900), digest(77), digest(900)]).unwrap();
    check(&targets, 0, 1000);
    check(&targets, 78, 1000);
    check(&targets, 78, 900);
}

#[test]
fn a_raised_interrupt_stops_a_scan_that_can_go_on_from_there() {
    let interrupt = Interrupt::new();
    interrupt.raise();
    for engine in Engine::available() {
        let stopped = scan(engine, &Targets::one(digest(700)), 3..1 << 40, &interrupt);
        let Outcome::Stopped { at } = stopped else { panic!("{engine}: {stopped:?}") };
        assert!((3..=700).contains(&at));
    }
}

#[test]
fn a_running_scan_is_stopped_from_another_thread_and_goes_on_after_it() {
    let start = 1 << 33;
    for engine in Engine::available() {
        let interrupt = Interrupt::new();
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(5));
                interrupt.raise();
            });
            // Too many candidates to finish without the interrupt.
            scan(engine, &Targets::one([0; 32]), start..u64::MAX, &interrupt)
        });
        let Outcome::Stopped { at } = outcome else { panic!("{engine}: {outcome:?}") };
        assert!(at >= start);
        interrupt.lower();
        let found = scan(engine, &Targets::one(digest(at)), at..u64::MAX, &interrupt);
        assert_eq!(found, Outcome::Found { value: at, target: 0 }, "{engine}");
    }
}

#[test]
fn any_number_of_targets_is_looked_for_at_once() {
    for count in 1..=Targets::MOST as u64 {
        let digests: Vec<_> = (0..count).map(|i| digest(10_000 + i)).collect();
        for (target, value) in [(0, 10_000), (count - 1, 10_000 + count - 1)] {
            // Only this target lies in the range.
            let mut digests = digests.clone();
            digests.iter_mut().enumerate().filter(|(i, _)| *i as u64 != target).for_each(|(_, d)| d[0] ^= 1);
            let targets = Targets::new(digests).unwrap();
            check(&targets, value - 50, value + 50);
        }
    }
}

#[test]
fn no_target_and_too_many_are_refused() {
    assert!(Targets::new([]).is_err());
    assert!(Targets::new(vec![[0; 32]; Targets::MOST + 1]).is_err());
}
