//! The speed of the search on this machine's graphics card: both kernels, narrow and wide, and the time to
//! stop.
//!
//! ```console
//! $ cargo run --release -p kendall-digest --example card
//! ```

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use kendall_digest::Interrupt;
use kendall_digest::gpu::{Gpu, Sums};
use kendall_digest::sha256::{Targets, digest};

/// Candidates in a timed scan: some seconds on a large card.
const CANDIDATES: u64 = 1 << 34;

/// The number of measurements of each figure; the median counts.
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let multiplier = find(Sums::Multiplier)?;
    let adder = find(Sums::Adder)?;
    for (kernel, mut gpu) in [("multiplier", multiplier), ("adder", adder)] {
        for targets in [1, 8, 64] {
            let targets = absent(targets);
            let rate = median(|| rate(&mut gpu, &targets, CANDIDATES))?;
            println!("sums by the {kernel}, {:2} targets: {:6.2} G/s", targets.digests().len(), rate / 1e9);
        }
        let targets = absent(1);
        for batches in [1, 2, 4, 16, 64] {
            let count = u64::from(gpu.batch()) * batches;
            let rate = median(|| rate(&mut gpu, &targets, count))?;
            println!("sums by the {kernel}, scans of {batches:2} launches: {:6.2} G/s", rate / 1e9);
        }
        let shortest = median(|| Ok(1.0 / rate(&mut gpu, &targets, 1)?))?;
        println!("sums by the {kernel}, a scan of one candidate: {:.0} µs", shortest * 1e6);
        let stop = median(|| seconds_to_stop(&mut gpu, &targets))?;
        println!("sums by the {kernel}, from the interrupt to the end of a scan: {:.0} µs", stop * 1e6);
    }
    Ok(())
}

/// The card, and the time it took to open it.
fn find(sums: Sums) -> Result<Gpu, Box<dyn Error>> {
    let start = Instant::now();
    let gpu = Gpu::find(sums)?;
    println!("{}, {sums:?}: opened and tried on known answers in {:.2?}", gpu.name(), start.elapsed());
    Ok(gpu)
}

/// Digests of candidates outside the searched range.
fn absent(count: u64) -> Targets {
    Targets::new((0..count).map(|i| digest(u64::MAX - i)).collect::<Vec<_>>()).expect("there are at most 64")
}

/// Candidates per second of a scan without an answer.
fn rate(gpu: &mut Gpu, targets: &Targets, candidates: u64) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    gpu.scan(targets, 0..candidates, &Interrupt::new())?;
    Ok(candidates as f64 / start.elapsed().as_secs_f64())
}

/// The time from the interrupt to the end of a scan, in seconds.
fn seconds_to_stop(gpu: &mut Gpu, targets: &Targets) -> Result<f64, Box<dyn Error>> {
    let interrupt = Interrupt::new();
    let (raised, ended) = thread::scope(|scope| {
        let search = scope.spawn(|| {
            let outcome = gpu.scan(targets, 0..u64::MAX, &interrupt);
            outcome.map(|_| Instant::now())
        });
        thread::sleep(Duration::from_millis(50));
        let raised = Instant::now();
        interrupt.raise();
        (raised, search.join().expect("a search does not panic"))
    });
    Ok((ended? - raised).as_secs_f64())
}

fn median(mut measure: impl FnMut() -> Result<f64, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut values = (0..ROUNDS).map(|_| measure()).collect::<Result<Vec<_>, _>>()?;
    values.sort_by(f64::total_cmp);
    Ok(values[ROUNDS / 2])
}
