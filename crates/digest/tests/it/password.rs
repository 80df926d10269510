//! Every engine of this machine compared with the whole hash functions, for passwords.

use std::ops::Range;

use kendall_digest::password::{
    Algorithm, Marks, Mask, Outcome, Search, Targets, md5, scan, sha1, sha1_mark, sha256,
};
use kendall_digest::{Engine, Interrupt};
use proptest::prelude::*;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// The digests of these candidates, which may lie outside the mask.
fn targets(algorithm: Algorithm, passwords: &[Vec<u8>]) -> Targets {
    let targets = match algorithm {
        Algorithm::Sha1 => Targets::sha1(passwords.iter().map(|word| sha1(word)).collect::<Vec<_>>()),
        Algorithm::Sha256 => Targets::sha256(passwords.iter().map(|word| sha256(word)).collect::<Vec<_>>()),
        Algorithm::Md5 => Targets::md5(passwords.iter().map(|word| md5(word)).collect::<Vec<_>>()),
    };
    targets.unwrap()
}

/// Looks for the candidates of these numbers in the range.
fn check(mask: &Mask, numbers: &[u64], range: Range<u64>) {
    let passwords: Vec<_> = numbers.iter().map(|number| mask.password(*number)).collect();
    let inside = numbers.iter().copied().filter(|number| range.contains(number));
    let expected = match inside.min() {
        Some(value) => {
            Outcome::Found { value, target: numbers.iter().position(|number| *number == value).unwrap() }
        }
        None => Outcome::Absent,
    };
    for algorithm in [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Md5] {
        let targets = targets(algorithm, &passwords);
        for engine in Engine::available() {
            let outcome = scan(engine, &targets, mask, range.clone(), &Interrupt::new());
            assert_eq!(outcome, expected, "{engine}, {algorithm:?}, {numbers:?} in {range:?} of {mask:?}");
        }
    }
}

fn charset() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::btree_set(any::<u8>(), 1..40);
    bytes.prop_map(|set| set.into_iter().collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_engine_finds_what_there_is_in_any_mask(
        charsets in prop::collection::vec(charset(), 1..12),
        start: u64,
        length in 0u64..3000,
        offsets in prop::collection::vec(0u64..3500, 1..6),
    ) {
        let mask = Mask::new(charsets).unwrap();
        let start = start % mask.size();
        let end = (start + length).min(mask.size());
        let numbers: Vec<_> = offsets.iter().map(|offset| start.saturating_add(*offset).min(mask.size() - 1)).collect();
        check(&mask, &numbers[..1], start..end);
        check(&mask, &numbers, start..end);
    }

    #[test]
    fn every_engine_marks_candidates_as_their_digests_say(
        charsets in prop::collection::vec(charset(), 1..12), rows in 0u64..1000, length in 0u64..3000,
    ) {
        let mask = Mask::new(charsets).unwrap();
        for engine in Engine::available() {
            let of_mask = Marks::sha1(engine, &mask);
            let start = (rows * of_mask.grain()) % mask.size() / of_mask.grain() * of_mask.grain();
            let range = start..(start + length).min(mask.size());
            let mut marks = vec![1, 2, 3];
            of_mask.fill(range.clone(), &mut marks);
            let expected = range.map(|number| sha1_mark(&sha1(&mask.password(number))));
            prop_assert!(marks.into_iter().eq(expected), "{}", engine);
        }
    }

    #[test]
    fn every_length_up_to_the_longest_is_hashed_as_it_should(
        length in 1usize..=Mask::LONGEST, fixed: u8, number: u64
    ) {
        let varying = length.min(9);
        let charsets = (0..length).map(|i| if i < varying { LETTERS.to_vec() } else { vec![fixed] });
        let mask = Mask::new(charsets).unwrap();
        let number = number % mask.size();
        check(&mask, &[number], number..number + 1);
        check(&mask, &[number, number], number..number + 1);
    }
}

#[test]
fn every_lane_of_every_row_finds_its_answer() {
    let mask = Mask::uniform(b"0123456789", 3).unwrap();
    for number in (0..mask.size()).step_by(3) {
        check(&mask, &[number], 0..mask.size());
    }
}

#[test]
fn ranges_around_the_number_of_lanes_hold_neither_more_nor_less() {
    let mask = Mask::uniform(LETTERS, 6).unwrap();
    for start in [0, 5, 16, 670, mask.size() - 70] {
        for length in [0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65] {
            for answer in [start, start + length / 2, (start + length).saturating_sub(1), start + length] {
                check(&mask, &[answer], start..start + length);
            }
        }
    }
}

#[test]
fn both_ends_of_the_largest_mask_are_searched() {
    let mask = Mask::uniform(&(1..=255).collect::<Vec<_>>(), 8).unwrap();
    let last = mask.size() - 1;
    check(&mask, &[0], 0..1000);
    check(&mask, &[last], last - 1000..last + 1);
    check(&mask, &[last], last - 1000..last);
}

#[test]
fn of_several_answers_the_first_is_found() {
    let mask = Mask::uniform(LETTERS, 5).unwrap();
    // In rows that are tested together, the answer of a later row is in an earlier vector.
    let [early, late] = [600, 676 + 3];
    check(&mask, &[late, early, late], 0..10_000);
    check(&mask, &[late, early], early + 1..10_000);
    check(&mask, &[late, early], early + 1..late);
}

#[test]
fn masks_of_one_candidate_and_of_one_position_are_searched() {
    check(&Mask::new([b"x"]).unwrap(), &[0], 0..1);
    check(&Mask::new([b"p", b"a", b"s", b"s"]).unwrap(), &[0], 0..1);
    let bytes: Vec<u8> = (0..=255).collect();
    check(&Mask::new([bytes]).unwrap(), &[200], 0..256);
}

#[test]
fn a_raised_interrupt_stops_a_scan_that_can_go_on_from_there() {
    let mask = Mask::uniform(LETTERS, 8).unwrap();
    let interrupt = Interrupt::new();
    interrupt.raise();
    for engine in Engine::available() {
        for algorithm in [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Md5] {
            let targets = targets(algorithm, &[mask.password(50_000)]);
            let search = Search::new(engine, &targets, &mask);
            let stopped = search.scan(40_000..mask.size(), &interrupt);
            assert_eq!(stopped, Outcome::Stopped { at: 40_000 }, "{engine}");
        }
    }
}

#[test]
fn a_scan_stopped_from_another_thread_says_how_far_it_came() {
    let mask = Mask::uniform(LETTERS, 8).unwrap();
    for engine in Engine::available() {
        let interrupt = Interrupt::new();
        let search = Search::new(engine, &Targets::sha1([[0; 20]]).unwrap(), &mask);
        let outcome = std::thread::scope(|scope| {
            let scan = scope.spawn(|| search.scan(1000..mask.size(), &interrupt));
            std::thread::sleep(std::time::Duration::from_millis(20));
            interrupt.raise();
            scan.join().unwrap()
        });
        let Outcome::Stopped { at } = outcome else { panic!("{engine}: {outcome:?}") };
        assert!((1000..mask.size()).contains(&at));
    }
}

#[test]
fn the_position_of_a_word_in_the_targets_is_found() {
    for algorithm in [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Md5] {
        let targets = targets(algorithm, &[b"f**k".to_vec(), b"&amp;".to_vec(), vec![b'x'; 200]]);
        assert_eq!(targets.algorithm(), algorithm);
        assert_eq!(targets.position_of(b"&amp;"), Some(1));
        assert_eq!(targets.position_of(&[b'x'; 200]), Some(2));
        assert_eq!(targets.position_of(b"x"), None);
    }
}

#[test]
fn no_target_and_too_many_are_refused() {
    assert!(Targets::sha1([]).is_err());
    assert!(Targets::sha256([]).is_err());
    assert!(Targets::md5([]).is_err());
    assert!(Targets::md5(vec![[0; 16]; Targets::MOST + 1]).is_err());
}
