//! The bodies of the fuzz targets on their seeds, on inputs that once failed, on mutations of both, and on random bytes.
//!
//! `make fuzz` runs the same bodies under libFuzzer. An input that it finds goes to `testdata/fuzz/TARGET`.

use crate::fuzzing::{TARGETS, Target};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use std::path::Path;

/// Inputs per target.
const INPUTS: u32 = if cfg!(debug_assertions) { 300 } else { 3_000 };

/// Flips, repeats, removes and replaces some bytes.
fn mutated(seed: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=input.len());
        let length = rng.random_range(0..=(input.len() - at).min(32));
        match rng.random_range(0..4) {
            0 => input[at..at + length].iter_mut().for_each(|byte| *byte = rng.random()),
            1 => drop(input.drain(at..at + length)),
            2 => drop(input.splice(at..at, seed[..length].to_vec())),
            _ => input[at..at + length.min(1)].iter_mut().for_each(|byte| *byte ^= 1 << (at % 8)),
        }
    }
    input
}

fn check(target: &Target) {
    let mut inputs = (target.seeds)();
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz").join(target.name);
    if let Ok(folder) = found.read_dir() {
        inputs.extend(folder.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()));
    }
    inputs.iter().for_each(|input| (target.run)(input));
    let mut rng = StdRng::seed_from_u64(5);
    for number in 0..INPUTS {
        let mut input = mutated(&inputs[number as usize % inputs.len()], &mut rng);
        if number % 4 == 0 {
            input = vec![0; rng.random_range(0..600)];
            rng.fill_bytes(&mut input);
        }
        (target.run)(&input);
    }
}

#[test]
fn packets_of_any_content() {
    check(&TARGETS[0]);
}

#[test]
fn messages_of_any_content() {
    check(&TARGETS[1]);
}

#[test]
fn boxes_of_any_content() {
    check(&TARGETS[2]);
}

#[test]
fn scripts_for_the_message_layer() {
    check(&TARGETS[3]);
}

#[test]
fn scripts_for_whole_endpoints() {
    check(&TARGETS[4]);
}
