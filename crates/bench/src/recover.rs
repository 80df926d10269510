//! File recovery: passwords tried a second by one worker, against the limit of the processor and against a Java program
//! that does what servers of the course do; all passwords of six letters on all processors; a table of all of five; keys a second.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use kendall_digest::{Engine, Interrupt, pbkdf2};
use kendall_recover::search::TableReport;
use kendall_recover::{Finder, FinderOptions, Hash, PasswordQuery, Progress};

use crate::common::{ROUNDS, median};
use crate::measure::fastest_engine;
use crate::password::least_cycles;

pub(crate) mod copy;

/// Passes of the Java program, of which the last are counted: the first are those of a machine that warms up.
const PASSES: usize = 6;
const COUNTED: usize = 3;

pub(crate) fn section(page: &mut String) {
    let engine = fastest_engine();
    page.push_str("\n## File recovery\n\n");
    beside_java(page, engine);
    six_letters(page, engine);
    table(page, engine);
    keys(page);
}

/// A finder, and a digest of nothing that it searches.
fn finder(engine: Engine) -> Finder {
    Finder::new(FinderOptions::new(engine)).expect("a finder without a table needs no thread")
}

fn absent(length: usize, mark: u8) -> PasswordQuery {
    PasswordQuery { hash: Hash::Sha1([mark; 20]), lengths: length..=length }
}

/// Seconds for all passwords of a length, of which none is wanted.
fn exhaust_s(finder: &Finder, wanted: PasswordQuery) -> f64 {
    let mut hunt = finder.hunt(wanted).expect("it is within the bound");
    let start = Instant::now();
    let interrupt = Interrupt::new();
    while let Progress::More { .. } = hunt.advance(&interrupt, 100_000) {}
    start.elapsed().as_secs_f64()
}

fn beside_java(page: &mut String, engine: Engine) {
    let finder = finder(engine);
    let (mut ours, mut theirs, mut ghz) = (vec![], vec![], vec![]);
    for round in 0..ROUNDS as u8 {
        // Several passes, as many as the other side is granted.
        let passes = (0..COUNTED as u8).map(|pass| {
            26f64.powi(5) / exhaust_s(&finder, absent(5, 1 + round * COUNTED as u8 + pass)) / 1e6
        });
        ours.push(median(passes));
        ghz.push(crate::measure::clock_ghz());
        theirs.extend(java_m_per_s());
    }
    let (ours, ghz) = (median(ours.into_iter()), median(ghz.into_iter()));
    let _ = write!(
        page,
        "All passwords of five lower-case letters by SHA-1, one worker: {ours:.1} M/s at {ghz:.2} GHz"
    );
    if let Some(cycles) = least_cycles(engine, kendall_digest::password::Algorithm::Sha1) {
        let _ = write!(page, ", {:.0} % of the bound of {cycles:.1} cycles each", ours * cycles / ghz / 10.0);
    }
    if theirs.is_empty() {
        page.push_str(". No JDK is installed to compare with.\n\n");
        return;
    }
    let theirs = median(theirs.into_iter());
    let _ = writeln!(
        page,
        ". A Java program that makes a string and a digest for each guess, in the same rounds and warm: {theirs:.1} M/s; \
         {:.1} times as fast.\n",
        ours / theirs
    );
}

/// Million guesses a second by the Java program, if there is a JDK.
fn java_m_per_s() -> Option<f64> {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let source = folder.path().join("BruteForce.java");
    fs::write(&source, include_str!("recover/BruteForce.java")).expect("the folder can be written");
    let compiled = Command::new("javac").arg("-d").arg(folder.path()).arg(&source).status().ok()?;
    assert!(compiled.success(), "the Java program compiles");
    let output = Command::new("java")
        .arg("-cp")
        .arg(folder.path())
        .args(["BruteForce", &PASSES.to_string()])
        .output()
        .ok()?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let passes: Vec<f64> = told.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(passes.len(), PASSES, "the Java program ran: {}", String::from_utf8_lossy(&output.stderr));
    Some(median(passes.into_iter().skip(PASSES - COUNTED)) / 1e6)
}

fn six_letters(page: &mut String, engine: Engine) {
    let workers = available_parallelism().map_or(1, usize::from);
    let finder = Arc::new(finder(engine));
    let rounds = (0..ROUNDS).map(|round| {
        let start = Instant::now();
        thread::scope(|scope| {
            for worker in 0..workers {
                let finder = &finder;
                scope.spawn(move || exhaust_s(finder, absent(6, (round * workers + worker) as u8)));
            }
        });
        start.elapsed().as_secs_f64()
    });
    let all_s = median(rounds);
    let _ = writeln!(
        page,
        "All passwords of six lower-case letters, {workers} requests on {workers} workers at the same time: {all_s:.2} s, \
         so one every {:.2} s; {:.0} M/s together.\n",
        all_s / workers as f64,
        workers as f64 * 26f64.powi(6) / all_s / 1e6,
    );
}

/// A table of all passwords of up to five letters: what it takes, and when it has paid.
fn table(page: &mut String, engine: Engine) {
    let build = || {
        let start = Instant::now();
        let options = FinderOptions {
            table_memory_bytes: 64 << 20,
            table_length: NonZeroUsize::new(5),
            ..FinderOptions::new(engine)
        };
        let finder = Finder::new(options).expect("five letters fit into 64 MiB");
        // What a candidate takes in a search, which the break-even follows from.
        exhaust_s(&finder, absent(5, 7));
        loop {
            match finder.table().expect("there is one") {
                report if report.cost_ns.is_some() => return (start.elapsed().as_secs_f64(), report),
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
    };
    let rounds: Vec<(f64, TableReport)> = (0..ROUNDS).map(|_| build()).collect();
    let of = |value: fn(&(f64, TableReport)) -> f64| median(rounds.iter().map(value));
    let report = &rounds[0].1;
    let _ = writeln!(
        page,
        "A table of all passwords of up to five lower-case letters: {} passwords in {:.1} MB, {:.2} bytes each; built in \
         {:.2} s beside a search, with {:.2} s of the processors. It has paid after {:.1} requests for passwords of five \
         letters.\n",
        report.passwords,
        report.bytes as f64 / 1e6,
        report.bytes as f64 / report.passwords as f64,
        of(|(seconds, _)| *seconds),
        of(|(_, report)| report.cost_ns.unwrap_or_default() as f64 / 1e9),
        of(|(_, report)| report.break_even.unwrap_or_default()),
    );
}

fn keys(page: &mut String) {
    page.push_str(
        "Keys derived side by side by one worker (PBKDF2 with HMAC-SHA1, 65,536 rounds):\n\n\
         | keys | with | ms | keys a second |\n| ---: | --- | ---: | ---: |\n",
    );
    let most = pbkdf2::most_lanes();
    let mut counts = vec![1, 2, 4, 8, 16];
    counts.retain(|count| *count < most);
    counts.push(most);
    for keys in counts {
        let engine = pbkdf2::engine_for(keys);
        let words: Vec<[u8; 8]> = (0..keys as u64).map(u64::to_be_bytes).collect();
        let words: Vec<&[u8]> = words.iter().map(<[u8; 8]>::as_slice).collect();
        let seconds = median((0..ROUNDS).map(|_| {
            let start = Instant::now();
            black_box(pbkdf2::derive(engine, black_box(&words), b" ", 65_536));
            start.elapsed().as_secs_f64()
        }));
        let _ = writeln!(page, "| {keys} | {engine} | {:.1} | {:.0} |", seconds * 1e3, keys as f64 / seconds);
    }
}
