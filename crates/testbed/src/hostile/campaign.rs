//! Runs the cases of one kind on several threads and prints each failing case with the command that repeats it.

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::draw::Draw;

/// The seed of `make test`.
const SEED: u64 = 21;

/// The number of failures after which no further case runs.
const MOST_FAILURES: usize = 20;

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number, not {text:?}")))
}

/// The number of the only case to run, where `KENDALL_FAULTS_CASE` names one, such as "files 17"; all run where it is unset.
enum Only {
    All,
    Case(u64),
    OfAnotherKind,
}

fn only(kind: &str) -> Only {
    let text = env::var("KENDALL_FAULTS_CASE").unwrap_or_default();
    if text.is_empty() {
        return Only::All;
    }
    let (named, number) = text.rsplit_once(' ').expect("KENDALL_FAULTS_CASE is a kind and a number");
    match named == kind {
        true => Only::Case(number.parse().expect("KENDALL_FAULTS_CASE ends with a number")),
        false => Only::OfAnotherKind,
    }
}

/// Runs `short` cases of a kind, multiplied by `KENDALL_FAULTS_TIMES`.
///
/// # Panics
/// Where a case fails, once the others have run.
pub fn campaign(kind: &str, short: usize, case: impl Fn(u64, &mut Draw) -> Result<(), String> + Sync) {
    let seed = number("KENDALL_FAULTS_SEED").unwrap_or(SEED);
    let times = number("KENDALL_FAULTS_TIMES").unwrap_or(1);
    let (first, end) = match only(kind) {
        Only::All => (0, short as u64 * times),
        Only::Case(number) => (number, number + 1),
        Only::OfAnotherKind => return,
    };
    let next = AtomicU64::new(first);
    let failures = Mutex::new(Vec::new());
    // A case mostly waits for a process or a socket.
    let threads = 2 * thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end || failures.lock().unwrap().len() >= MOST_FAILURES {
                        return;
                    }
                    if let Err(why) = case(number, &mut Draw::of(seed, kind, number)) {
                        eprintln!(
                            "hostile case {kind} {number}: {why}\n  again: make faults SEED={seed} CASE='{kind} {number}'"
                        );
                        failures.lock().unwrap().push(number);
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort_unstable();
    println!("hostile input: {} cases of {kind}, seed {seed}, {} failed", end - first, failures.len());
    assert!(failures.is_empty(), "{kind}: these cases failed: {failures:?}");
}
