//! The bodies of the fuzz targets on their seeds, on inputs that once failed, on mutations of both, and on random bytes.
//!
//! `make fuzz` runs the same bodies under libFuzzer. An input that it finds goes to `testdata/fuzz/TARGET`.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

use crate::fuzzing::{TARGETS, Target};

fn check(target: &Target) {
    let mut inputs = (target.seeds)();
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz").join(target.name);
    if let Ok(folder) = found.read_dir() {
        inputs.extend(folder.map(|entry| fs::read(entry.unwrap().path()).unwrap()));
    }
    inputs.iter().for_each(|input| (target.run)(input));
    let change = (any::<Index>(), any::<Index>(), any::<u8>(), 0..4_u8);
    let changed = (any::<Index>(), prop::collection::vec(change, 1..6)).prop_map(|(seed, changes)| {
        let mut input = seed.get(&inputs).clone();
        for (at, end, byte, kind) in changes {
            let (at, end) = (at.index(input.len() + 1), end.index(input.len() + 1));
            let range = at.min(end)..at.max(end);
            match kind {
                0 => input[range].fill(byte),
                1 => drop(input.drain(range)),
                2 => input.insert(at, byte),
                _ => drop(input.splice(at..at, input[range].to_vec())),
            }
        }
        input
    });
    let strategy = prop_oneof![3 => changed, 1 => prop::collection::vec(any::<u8>(), 0..600)];
    let mut runner = TestRunner::new(Config { cases: 1_000, failure_persistence: None, ..Config::default() });
    let result = runner.run(&strategy, |input| {
        (target.run)(&input);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{}: {error}", target.name));
}

#[test]
fn frames_of_any_content() {
    check(&TARGETS[0]);
}

#[test]
fn conversations_with_any_peer() {
    check(&TARGETS[1]);
}

#[test]
fn relays_with_any_packets() {
    check(&TARGETS[2]);
}
