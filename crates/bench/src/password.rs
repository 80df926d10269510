//! How many passwords a second are tested, against the limit of the processor and against hashcat.

use std::fmt::Write as _;
use std::hint::black_box;
use std::thread::available_parallelism;

use kendall_digest::password::{Algorithm, Mask, Search, Targets};
use kendall_digest::{Engine, Interrupt};

use crate::common::{ROUNDS, median};
use crate::measure::{self, SLICE, SLICES, Side, fastest_engine, table};
use crate::peers::hashcat_m_per_s;

pub(crate) fn section(page: &mut String) {
    let fastest = fastest_engine();
    let _ = write!(
        page,
        "\n## Passwords\n\nMillion passwords tested a second by {fastest}, as above: one thread, {SLICES} slices of {} ms \
         in turns, medians. The bound is counted as above.\n\n",
        SLICE.as_millis(),
    );
    let lowercase: Vec<u8> = (b'a'..=b'z').collect();
    let printable: Vec<u8> = (b' '..=b'~').collect();
    let masks = [
        ("8 of 26 letters", Mask::uniform(&lowercase, 8)),
        ("5 of 26 letters", Mask::uniform(&lowercase, 5)),
        ("8 of 95 characters", Mask::uniform(&printable, 8)),
    ];
    let of_mask = |(name, mask): &(&str, Result<Mask, _>)| {
        let mask = mask.as_ref().expect("the mask is small");
        [Algorithm::Sha1, Algorithm::Sha256, Algorithm::Md5]
            .map(|algorithm| side(fastest, algorithm, name, mask))
    };
    let sides: Vec<Side> = masks.iter().flat_map(of_mask).collect();
    table(page, &sides);
    let mask = masks[0].1.as_ref().expect("the mask is small");
    beside_hashcat(page, fastest, mask);
}

fn beside_hashcat(page: &mut String, engine: Engine, mask: &Mask) {
    let threads = available_parallelism().map_or(1, usize::from);
    let _ = write!(
        page,
        "\nOn {threads} threads, 8 lowercase letters, in the same rounds:\n\n\
         | | {engine}, M/s | hashcat, M/s | ratio |\n| --- | ---: | ---: | ---: |\n"
    );
    for (algorithm, mode) in [(Algorithm::Sha1, "100"), (Algorithm::Md5, "0")] {
        let (mut ours, mut theirs) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            ours.push(together(engine, algorithm, mask, threads));
            theirs.extend(hashcat_m_per_s(mode));
        }
        let ours = median(ours.into_iter());
        let _ = if theirs.is_empty() {
            writeln!(page, "| {algorithm:?} | {ours:.0} | not installed | |")
        } else {
            let theirs = median(theirs.into_iter());
            writeln!(page, "| {algorithm:?} | {ours:.0} | {theirs:.0} | {:.2} |", ours / theirs)
        };
    }
}

/// How many cycles a candidate takes at least, as long as a processor begins four operations on vectors a cycle. AVX2
/// has no rotation, for which it needs three operations, nor functions of three words.
pub(crate) fn least_cycles(engine: Engine, algorithm: Algorithm) -> Option<f64> {
    let (operations, lanes) = match (engine, algorithm) {
        (Engine::Avx512, Algorithm::Sha1) => (509.0, 16.0),
        (Engine::Avx512, Algorithm::Sha256) => (1263.0, 16.0),
        (Engine::Avx512, Algorithm::Md5) => (218.0, 16.0),
        // With the SHA extensions, passwords by SHA-1 are still searched by vectors.
        (Engine::Avx2 | Engine::ShaNi, Algorithm::Sha1) => (934.0, 8.0),
        (Engine::Avx2, Algorithm::Sha256) => (2568.0, 8.0),
        // 28 `sha256rnds2`, one every second cycle.
        (Engine::ShaNi, Algorithm::Sha256) => return Some(56.0),
        _ => return None,
    };
    Some(operations / 4.0 / lanes)
}

/// A digest of nothing that is searched.
fn absent(algorithm: Algorithm) -> Targets {
    let targets = match algorithm {
        Algorithm::Sha1 => Targets::sha1([[0x5a; 20]]),
        Algorithm::Sha256 => Targets::sha256([[0x5a; 32]]),
        Algorithm::Md5 => Targets::md5([[0x5a; 16]]),
    };
    targets.expect("it is one target")
}

fn side(engine: Engine, algorithm: Algorithm, mask_name: &str, mask: &Mask) -> Side {
    let search = Search::new(engine, &absent(algorithm), mask);
    let (size, grain) = (mask.size(), search.grain());
    let work = move |from: u64, count| {
        // Round and round where the mask is small.
        let start = if from + count <= size { from } else { (from % (size - count)) / grain * grain };
        black_box(search.scan(start..start + count, &Interrupt::new()));
    };
    Side {
        name: format!("{algorithm:?}, {mask_name}"),
        least_cycles: least_cycles(engine, algorithm),
        grain,
        work: Box::new(work),
    }
}

/// Million passwords a second by this many threads together.
fn together(engine: Engine, algorithm: Algorithm, mask: &Mask, threads: usize) -> f64 {
    let search = Search::new(engine, &absent(algorithm), mask);
    let chunk = search.grain() * 64;
    let scan = |range| {
        black_box(search.scan(range, &Interrupt::new()));
    };
    let first = |thread| thread as u64 * (mask.size() / threads as u64 / chunk) * chunk;
    measure::together(threads, chunk, first, scan).0
}
