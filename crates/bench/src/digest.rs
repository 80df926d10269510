//! How many candidates a second each digest engine tests, against the limit of the processor and against others.

use std::fmt::Write as _;
use std::hint::black_box;
use std::thread;

use kendall_digest::sha256::{self, Targets};
use kendall_digest::{Engine, Interrupt};
use sha2::{Digest as _, Sha256};

use crate::common::{ROUNDS, median};
use crate::measure::{self, Doubt, SLICE, SLICES, Side, Speed, fastest_engine, table};
use crate::peers::{hashcat_m_per_s, openssl_m_per_s};

pub(crate) fn section(page: &mut String) {
    let fastest = fastest_engine();
    let _ = write!(
        page,
        "\n## Digests\n\nSHA-256 of 64-bit integers: million candidates tested a second. One thread, {SLICES} slices \
         of {} ms in turns, medians. The clock is measured around each slice by a chain of multiplications. The bound \
         is that of the widest vector units: the operations of the formula at four a cycle, of which a processor that \
         starts two of 512 bits a cycle can reach half; for sha-ni, 28 `sha256rnds2` at one every second cycle. A run is marked as disturbed if its clock was low or its slices \
         scatter.\n\n",
        SLICE.as_millis(),
    );
    let mut sides: Vec<Side> = Engine::available().map(|engine| search(engine, 1)).collect();
    sides.extend([search(fastest, 8), search(fastest, Targets::MOST), crate_sha2()]);
    let speeds = table(page, &sides);
    let alone = Engine::available().position(|engine| engine == fastest).expect("it is available");
    let sha2 = speeds.len() - 1;
    others(page, fastest, &speeds[alone], &speeds[sha2]);
}

/// All processors against one, and the fastest engine against other programs.
fn others(page: &mut String, fastest: Engine, alone: &Speed, sha2: &Speed) {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (mut one, mut all, mut openssl, mut hashcat) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        one.push(together(fastest, 1));
        openssl.extend(openssl_m_per_s());
        all.push(together(fastest, processors));
        hashcat.extend(hashcat_m_per_s("1400"));
    }
    let m_per_s = |runs: &[(f64, f64)]| median(runs.iter().map(|run| run.0));
    let (one_m_per_s, all_m_per_s) = (m_per_s(&one), m_per_s(&all));
    let got = median(all.iter().map(|run| run.1));
    let doubt = (got < 0.97).then_some(Doubt::Shared { percent: got * 100.0 });
    let _ = write!(
        page,
        "\n{processors} threads do {all_m_per_s:.0} M/s, {:.2} times what one does{}. Others, in the same rounds:\n\n\
         | | threads | M/s | {fastest}, M/s | ratio |\n\
         | --- | ---: | ---: | ---: | ---: |\n\
         | crate sha2 | 1 | {:.1} | {:.1} | {:.1} |\n",
        all_m_per_s / one_m_per_s,
        doubt.map_or(String::new(), |doubt| format!(" ({doubt})")),
        sha2.m_per_s,
        alone.m_per_s,
        alone.m_per_s_per_ghz / sha2.m_per_s_per_ghz,
    );
    let peers = [
        // Like the slices, it counts only the time for which it had a processor.
        ("OpenSSL, one call a digest", openssl, 1, alone.m_per_s),
        ("hashcat", hashcat, processors, all_m_per_s),
    ];
    for (name, theirs, threads, ours) in peers {
        let _ = if theirs.is_empty() {
            writeln!(page, "| {name} | {threads} | not installed | {ours:.1} | |")
        } else {
            let theirs = median(theirs.into_iter());
            writeln!(page, "| {name} | {threads} | {theirs:.1} | {ours:.1} | {:.1} |", ours / theirs)
        };
    }
}

/// A search for something that is not there.
fn search(engine: Engine, targets: usize) -> Side {
    let name = if targets == 1 { engine.to_string() } else { format!("{engine}, {targets} targets") };
    let targets = absent(targets);
    let work = move |start, count| {
        black_box(sha256::scan(engine, &targets, start..start + count, &Interrupt::new()));
    };
    Side { name, least_cycles: sha256::least_cycles(engine), grain: 1, work: Box::new(work) }
}

/// Digests of nothing that is searched.
fn absent(count: usize) -> Targets {
    let digests: Vec<_> = (0..count as u64).map(|i| sha256::digest(u64::MAX - i)).collect();
    Targets::new(digests).expect("the number is within bounds")
}

/// The same search by the crate that everybody uses.
fn crate_sha2() -> Side {
    let target = sha256::digest(u64::MAX);
    let work = move |start, count| {
        let digest = |value: u64| -> [u8; 32] { Sha256::digest(value.to_le_bytes()).into() };
        black_box((start..start + count).find(|&value| digest(value) == target));
    };
    Side { name: "crate sha2".into(), least_cycles: None, grain: 1, work: Box::new(work) }
}

/// Million candidates a second by this many threads together, and the share of the processors that they got.
pub(crate) fn together(engine: Engine, threads: usize) -> (f64, f64) {
    let targets = absent(1);
    let scan = |range| {
        black_box(sha256::scan(engine, &targets, range, &Interrupt::new()));
    };
    measure::together(threads, 1 << 16, |thread| (thread as u64) << 40, scan)
}
