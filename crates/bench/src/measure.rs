//! Speed in many short slices, with the clock of the processor measured around each.

use std::fmt::{self, Write as _};
use std::hint::black_box;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use kendall_digest::Engine;
use rustix::time::{ClockId, clock_gettime};

use crate::common::median;

/// Slices of each side, one after the other, each about this long: short enough for most to go undisturbed.
pub(crate) const SLICES: usize = 400;
pub(crate) const SLICE: Duration = Duration::from_millis(1);

/// How long all processors work in a round.
const TOGETHER: Duration = Duration::from_secs(1);

/// The engine that `kendall serve reverse` would choose.
pub(crate) fn fastest_engine() -> Engine {
    let start = Instant::now();
    Engine::choose(None, || start.elapsed()).expect("an engine is not forced")
}

/// Million candidates a second by this many threads together, each from its own `first` on, and the share of the
/// processors that they got.
pub(crate) fn together(
    threads: usize,
    chunk: u64,
    first: impl Fn(usize) -> u64 + Sync,
    scan: impl Fn(Range<u64>) + Sync,
) -> (f64, f64) {
    let start = Instant::now();
    let work = |thread: usize| {
        let first = first(thread);
        let mut at = first;
        while start.elapsed() < TOGETHER {
            scan(at..at + chunk);
            at += chunk;
        }
        (at - first, thread_cpu())
    };
    let done: Vec<(u64, Duration)> = thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a search does not panic")).collect()
    });
    let wall_s = start.elapsed().as_secs_f64();
    let candidates: u64 = done.iter().map(|(candidates, _)| candidates).sum();
    let cpu_s: f64 = done.iter().map(|(_, cpu)| cpu.as_secs_f64()).sum();
    (candidates as f64 / wall_s / 1e6, cpu_s / threads as f64 / wall_s)
}

/// How long this thread has run so far.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative")
}

/// A program to measure: its name, and the work, a function of the number of candidates and the first of them.
pub(crate) struct Side {
    pub(crate) name: String,
    /// The cycles that a candidate takes at least, if that is known.
    pub(crate) least_cycles: Option<f64>,
    /// Candidates come in multiples of this.
    pub(crate) grain: u64,
    pub(crate) work: Box<dyn Fn(u64, u64)>,
}

/// What came out for a side.
pub(crate) struct Speed {
    /// Million candidates a second.
    pub(crate) m_per_s: f64,
    pub(crate) ghz: f64,
    /// The median over slices of their ratio, which a changing clock does not disturb.
    pub(crate) m_per_s_per_ghz: f64,
    /// How far apart the quartiles of that ratio lie, as a share of the median.
    scatter: f64,
}

/// Why a figure is not to be trusted.
pub(crate) enum Doubt {
    /// The clock was so much lower than the highest of the run.
    LowClock { percent: f64 },
    /// The quartiles of the slices lie so far apart.
    Scatter { percent: f64 },
    /// Other programs used the processors; this is the share that was left.
    Shared { percent: f64 },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LowClock { percent } => write!(f, "disturbed: clock {percent:.0} % below the highest"),
            Self::Scatter { percent } => write!(f, "disturbed: slices scatter by {percent:.0} %"),
            Self::Shared { percent } => write!(f, "disturbed: got {percent:.0} % of the processors"),
        }
    }
}

impl Speed {
    fn doubt(&self, highest_ghz: f64) -> Option<Doubt> {
        let low = 1.0 - self.ghz / highest_ghz;
        if low > 0.03 {
            Some(Doubt::LowClock { percent: low * 100.0 })
        } else if self.scatter > 0.05 {
            Some(Doubt::Scatter { percent: self.scatter * 100.0 })
        } else {
            None
        }
    }
}

/// Measures all sides in turns and writes a table of them.
pub(crate) fn table(page: &mut String, sides: &[Side]) -> Vec<Speed> {
    page.push_str(
        "| | M/s | clock, GHz | M/s per GHz | of the bound | |\n| --- | ---: | ---: | ---: | ---: | --- |\n",
    );
    let speeds = in_turns(sides);
    let highest_ghz = speeds.iter().map(|speed| speed.ghz).fold(0.0, f64::max);
    for (side, speed) in sides.iter().zip(&speeds) {
        let Speed { m_per_s, ghz, m_per_s_per_ghz, .. } = speed;
        let share = side.least_cycles.map(|cycles| format!("{:.1} %", m_per_s_per_ghz * cycles / 10.0));
        let doubt = speed.doubt(highest_ghz).map(|doubt| doubt.to_string());
        let (name, share, doubt) = (&side.name, share.unwrap_or_default(), doubt.unwrap_or_default());
        let _ =
            writeln!(page, "| {name} | {m_per_s:.1} | {ghz:.2} | {m_per_s_per_ghz:.2} | {share} | {doubt} |");
    }
    speeds
}

fn in_turns(sides: &[Side]) -> Vec<Speed> {
    let counts: Vec<u64> = sides.iter().map(candidates_a_slice).collect();
    let mut slices: Vec<Vec<(f64, f64)>> = vec![Vec::new(); sides.len()];
    for slice in 0..SLICES as u64 {
        for ((side, &count), slices) in sides.iter().zip(&counts).zip(&mut slices) {
            let before = clock_ghz();
            let start = Instant::now();
            (side.work)(slice * count, count);
            let m_per_s = count as f64 * 1e3 / start.elapsed().as_nanos() as f64;
            slices.push((m_per_s, before.max(clock_ghz())));
        }
    }
    slices.iter().map(|slices| speed(slices)).collect()
}

fn candidates_a_slice(side: &Side) -> u64 {
    let trial = 4096_u64.next_multiple_of(side.grain);
    let start = Instant::now();
    (side.work)(0, trial);
    let slices = SLICE.as_secs_f64() / start.elapsed().as_secs_f64();
    ((trial as f64 * slices) as u64).next_multiple_of(side.grain)
}

fn speed(slices: &[(f64, f64)]) -> Speed {
    let mut ratios: Vec<f64> = slices.iter().map(|(m_per_s, ghz)| m_per_s / ghz).collect();
    ratios.sort_by(f64::total_cmp);
    let quantile = |share: f64| ratios[(ratios.len() as f64 * share) as usize];
    let m_per_s_per_ghz = quantile(0.5);
    Speed {
        m_per_s: median(slices.iter().map(|slice| slice.0)),
        ghz: median(slices.iter().map(|slice| slice.1)),
        m_per_s_per_ghz,
        scatter: (quantile(0.75) - quantile(0.25)) / m_per_s_per_ghz,
    }
}

/// The clock of this processor now, by a chain of squares, each of which takes the usual three cycles and waits for
/// the one before.
pub(crate) fn clock_ghz() -> f64 {
    const SQUARES: u32 = 30_000;
    let start = Instant::now();
    black_box((0..SQUARES).fold(black_box(3_u64), |x, _| x.wrapping_mul(x)));
    f64::from(SQUARES) * 3.0 / start.elapsed().as_nanos() as f64
}
