//! How fast passwords are searched on one core: the best of many short slices, and their median, beside the clock
//! as measured right before and after each slice.

use std::hint::black_box;
use std::time::Instant;

use kendall_digest::password::{Algorithm, Mask, Outcome, Search, Targets};
use kendall_digest::{Engine, Interrupt};

/// How long a slice should take.
const SLICE_SECONDS: f64 = 0.004;
const SLICES: usize = 200;

fn main() {
    let letters: Vec<u8> = (b'a'..=b'z').collect();
    let printable: Vec<u8> = (b' '..=b'~').collect();
    let alphanumeric: Vec<u8> = (b'0'..=b'9').chain(b'a'..=b'z').chain(b'A'..=b'Z').collect();
    println!(
        "{:10} {:6} {:8} {:>9} {:>9} {:>6} {:>9} {:>9}",
        "engine", "digest", "mask", "best MH/s", "median", "GHz", "MH/s/GHz", "of bound"
    );
    let chosen: Vec<Engine> = std::env::args().skip(1).map(|name| name.parse().expect("an engine")).collect();
    for engine in Engine::available().filter(|engine| chosen.is_empty() || chosen.contains(engine)) {
        for algorithm in [Algorithm::Sha1, Algorithm::Md5] {
            for (name, charset, length) in [
                ("8 of 26", &letters, 8),
                ("5 of 26", &letters, 5),
                ("8 of 62", &alphanumeric, 8),
                ("8 of 95", &printable, 8),
            ] {
                let mask = Mask::uniform(charset, length).expect("the mask is small");
                let targets = match algorithm {
                    Algorithm::Sha1 => Targets::sha1([[0x5a; 20]]),
                    Algorithm::Md5 => Targets::md5([[0x5a; 16]]),
                };
                let search = Search::new(engine, &targets.expect("one target"), &mask);
                let [best, median] = measure(&search, mask.size());
                let per_ghz = best.0 / best.1 * 1e3;
                let share = bound_per_ghz(engine, algorithm)
                    .map_or(String::new(), |bound| format!("{:.1} %", 100.0 * per_ghz / bound));
                println!(
                    "{:10} {:6} {:8} {:9.1} {:9.1} {:6.2} {:9.2} {:>9}",
                    engine.name(),
                    format!("{algorithm:?}"),
                    name,
                    best.0 / 1e6,
                    median.0 / 1e6,
                    best.1 / 1e9,
                    per_ghz,
                    share
                );
            }
        }
    }
}

/// How many million candidates a second and GHz the four vector units of Zen 5 have room for, where their operations
/// were counted: 509 for SHA-1 and 218 for MD5, of 16 candidates.
fn bound_per_ghz(engine: Engine, algorithm: Algorithm) -> Option<f64> {
    let operations = match (engine, algorithm) {
        (Engine::Avx512, Algorithm::Sha1) => 509.0,
        (Engine::Avx512, Algorithm::Md5) => 218.0,
        _ => return None,
    };
    Some(16.0 / (operations / 4.0) * 1e3)
}

/// Candidates a second and cycles a second, of the slice with the most candidates per cycle and of the middle one.
fn measure(search: &Search, size: u64) -> [(f64, f64); 2] {
    let interrupt = Interrupt::new();
    let mut count = search.grain().min(size);
    let mut start = 0;
    let mut slice = |count: u64| {
        if start + count > size {
            start = 0;
        }
        let before = Instant::now();
        assert_eq!(search.scan(start..start + count, &interrupt), Outcome::Absent);
        start += count;
        before.elapsed().as_secs_f64()
    };
    let mut seconds = slice(count);
    while seconds < SLICE_SECONDS && count < size {
        count = (count * 2).min(size);
        seconds = slice(count);
    }
    let mut slices: Vec<_> = (0..SLICES)
        .map(|_| {
            let before = clock_hz();
            let seconds = slice(count);
            (count as f64 / seconds, before.max(clock_hz()))
        })
        .collect();
    slices.sort_by(|a, b| (b.0 / b.1).total_cmp(&(a.0 / a.1)));
    [slices[0], slices[SLICES / 2]]
}

/// The clock, by a chain of multiplications that each take three cycles.
fn clock_hz() -> f64 {
    const STEPS: u32 = 20_000;
    let before = Instant::now();
    let mut x = black_box(3u64);
    for _ in 0..STEPS {
        x = x.wrapping_mul(black_box(5));
    }
    black_box(x);
    f64::from(STEPS) * 3.0 / before.elapsed().as_secs_f64()
}
