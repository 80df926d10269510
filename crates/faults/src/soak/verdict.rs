//! What the samples of a soak show: whether memory grows, response times drift, descriptors or threads remain, or logs fill a
//! disk. Pure functions of numbers.

use kendall_stats::number::{percent, significant, time};
use kendall_stats::{Trend, median, median_difference, trend};
use serde::{Deserialize, Serialize};

use super::watch::Sample;

/// The share of the time that is left out at the beginning, while caches fill, and its bound.
const WARM_UP: f64 = 1.0 / 6.0;
const LONGEST_WARM_UP_S: f64 = 600.0;
/// Growth below this, from the warm-up to the end, is that of an allocator.
const LEAST_GROWTH_BYTES: f64 = 262_144.0;
/// The memory of a load generator may grow by this more, because its histograms fill: those of up to 128 parts of the requests and up to
/// 2,048 parts of the time.
const HISTOGRAMS_BYTES: u64 = 2 << 20;
/// The 99th percentile of the last quarter may exceed that of the first by this share.
const MOST_DRIFT: f64 = 0.1;
/// The most bytes of logs.
const MOST_LOG_BYTES: u64 = 1 << 20;
/// The parts of a quarter, of minutes in an hour: their medians count as independent.
const PARTS: usize = 8;

/// Response times in a short part of a soak.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The beginning of the part, in seconds since the load began.
    pub at_s: f64,
    /// The median.
    pub p50_s: f64,
    /// The 99th percentile; of fewer than a hundred requests, the longest.
    pub p99_s: f64,
}

/// All that a soak of a system measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// How long the load lasted, in seconds.
    pub length_s: f64,
    /// The memory that caches of the system may take meanwhile.
    pub cache_bytes: u64,
    /// Samples during the load.
    pub samples: Vec<Sample>,
    /// Before the load and after it, with no client.
    pub idle: (Sample, Sample),
    /// Response times along the load.
    pub bins: Vec<Bin>,
    /// Requests with the correct answer.
    pub answered: u64,
    /// Requests without an answer.
    pub failed: u64,
    /// Answers that were not correct.
    pub wrong: u64,
    /// Why a request failed, or what was wrong.
    pub failure: Option<String>,
}

/// How the 99th percentile of the response time changed from the first quarter to the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The medians of the parts of the first quarter and of the last, in seconds.
    pub quarters_s: (f64, f64),
    /// The relative change.
    pub change: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
}

impl Measured {
    fn warm_s(&self) -> f64 {
        (WARM_UP * self.length_s).min(LONGEST_WARM_UP_S)
    }

    /// The samples after the warm-up.
    fn warm(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.at_s >= self.warm_s())
    }

    /// The instants and sizes of a memory after the warm-up. A process that has ended already has none.
    fn sizes(&self, of: fn(&Sample) -> u64) -> (Vec<f64>, Vec<f64>) {
        let sizes = self.warm().map(|sample| (sample.at_s, of(sample) as f64));
        sizes.filter(|(_, bytes)| *bytes > 0.0).unzip()
    }

    /// How many bytes of memory a second are added. `None` for too few samples.
    pub fn memory(&self, of: fn(&Sample) -> u64) -> Option<Trend> {
        let (at, bytes) = self.sizes(of);
        trend(&at, &bytes)
    }

    /// The bytes of memory at the end of the warm-up and at the end.
    pub fn memory_ends(&self, of: fn(&Sample) -> u64) -> Option<(f64, f64)> {
        let (_, bytes) = self.sizes(of);
        Some((*bytes.first()?, *bytes.last()?))
    }

    /// The growth of memory in a second, if it grows by more than caches take.
    fn growth(&self, of: fn(&Sample) -> u64, cache_bytes: u64) -> Option<f64> {
        let found = self.memory(of)?;
        let least = LEAST_GROWTH_BYTES + cache_bytes as f64;
        let grows = found.interval.0 > 0.0 && found.slope * (self.length_s - self.warm_s()) >= least;
        grows.then_some(found.slope)
    }

    fn system_growth(&self) -> Option<f64> {
        self.growth(|sample| sample.memory_bytes, self.cache_bytes)
    }

    /// The bytes that a request leaves in the memory of the system, if it grows.
    pub fn bytes_a_request(&self) -> Option<f64> {
        Some(self.system_growth()? * self.length_s / self.answered.max(1) as f64)
    }

    /// The drift of the 99th percentile. `None` for too few response times.
    pub fn drift(&self) -> Option<Drift> {
        let quarter_s = (self.length_s - self.warm_s()) / 4.0;
        let within = |from_s: f64| {
            let inside = self.bins.iter().filter(|bin| (from_s..from_s + quarter_s).contains(&bin.at_s));
            let logs: Vec<f64> = inside.map(|bin| bin.p99_s.ln()).collect();
            logs.chunks(logs.len().div_ceil(PARTS).max(1)).map(median).collect::<Vec<_>>()
        };
        let (first, last) = (within(self.warm_s()), within(self.length_s - quarter_s));
        let found = median_difference(&first, &last, 1)?;
        let change = |log: f64| log.exp() - 1.0;
        Some(Drift {
            quarters_s: (median(&first).exp(), median(&last).exp()),
            change: change(found.value),
            interval: (change(found.interval.0), change(found.interval.1)),
        })
    }

    /// The shares of the machine's time that other programs had, in the first and in the last quarter, and that other virtual
    /// machines had.
    pub fn disturbance(&self) -> Option<[(f64, f64); 2]> {
        let quarter_s = (self.length_s - self.warm_s()) / 4.0;
        let within = |from_s: f64, to_s: f64| {
            let mut inside = self.samples.iter().filter(|sample| (from_s..=to_s).contains(&sample.at_s));
            let first = inside.next()?.machine;
            Some(inside.next_back()?.machine.disturbance_since(&first))
        };
        let (from_s, to_s) = (self.warm_s(), self.length_s);
        Some([within(from_s, from_s + quarter_s)?, within(to_s - quarter_s, to_s)?])
    }

    /// What is wrong, in sentences.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.wrong > 0 || self.failed > 0 || self.answered == 0 {
            let why = self.failure.as_deref().unwrap_or("no reason is known");
            problems.push(format!(
                "of its requests {} were answered, {} failed and {} answers were wrong: {why}",
                self.answered, self.failed, self.wrong
            ));
        }
        let grown = |growth: f64| format!("grows by {} MB an hour", significant(growth * 3600.0 / 1e6, 2));
        if let (Some(growth), Some(bytes)) = (self.system_growth(), self.bytes_a_request()) {
            problems.push(format!("memory {}, {} bytes a request", grown(growth), significant(bytes, 2)));
        }
        if let Some(growth) = self.growth(|sample| sample.generator_bytes, HISTOGRAMS_BYTES) {
            problems.push(format!("the memory of the generator {}", grown(growth)));
        }
        if let Some(drift) = self.drift().filter(|drift| drift.interval.0 > MOST_DRIFT) {
            let (first, last) = drift.quarters_s;
            let others = self.disturbance().map(|[(first, _), (last, _)]| (percent(first), percent(last)));
            let others = others.map_or(String::new(), |(first, last)| {
                format!("; other programs had {first} of the processors' time in the first quarter and {last} in the last")
            });
            problems.push(format!("the 99th percentile went from {} to {}{others}", time(first), time(last)));
        }
        let (before, after) = &self.idle;
        for (what, before, after) in [
            ("descriptors", before.descriptors, after.descriptors),
            ("threads", before.threads, after.threads),
        ] {
            if after > before {
                problems.push(format!("{before} {what} became {after}, with no client before and after"));
            }
        }
        if after.log_bytes > MOST_LOG_BYTES {
            problems.push(format!("its logs have {} bytes", after.log_bytes));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use kendall_stats::random::{seeded, unit};

    use super::*;

    /// An hour of samples every five seconds and of response times every eight, with noise of which each value contains nine tenths
    /// of the one before. Memory also grows by this many bytes a second, and response times to this multiple.
    fn measured(seed: u64, bytes_per_s: f64, times: f64) -> Measured {
        let mut rng = seeded(seed);
        let mut noise = 0.0;
        let mut next = || {
            noise = 0.9 * noise + unit(&mut rng) - 0.5;
            noise
        };
        let sample = |at: u32, noise: f64| {
            let at_s = 5.0 * f64::from(at);
            let memory = 40e6 + 100e3 * noise + bytes_per_s * at_s;
            Sample { at_s, memory_bytes: memory as u64, descriptors: 20, threads: 5, ..Sample::default() }
        };
        let samples = (0..720).map(|at| sample(at, next())).collect();
        let bins = (0..450).map(|at| {
            let (at_s, p50_s) = (8.0 * f64::from(at), 0.001);
            Bin { at_s, p50_s, p99_s: 0.005 * (0.05 * next()).exp() * times.powf(at_s / 3600.0) }
        });
        let bins = bins.collect();
        Measured { length_s: 3600.0, samples, bins, answered: 36_000, ..Measured::default() }
    }

    /// Of 60 soaks with noise alone, an interval of 97.5 % on its side misses in more than 7 less than once in a thousand; and what
    /// misses still has to exceed the bounds.
    #[test]
    fn noise_is_neither_a_leak_nor_a_drift() {
        let alarms: Vec<_> = (0..60).flat_map(|seed| measured(seed, 0.0, 1.0).problems()).collect();
        assert!(alarms.len() <= 2, "{alarms:?}");
    }

    #[test]
    fn a_leak_is_found_with_its_bytes_a_request() {
        for seed in 0..20 {
            // 64 bytes for each of ten requests a second are 2.3 MB an hour.
            let leaks = measured(seed, 640.0, 1.0);
            let bytes = leaks.bytes_a_request().unwrap();
            assert!((40.0..90.0).contains(&bytes), "{bytes}");
            let problems = leaks.problems();
            assert!(problems.iter().any(|problem| problem.starts_with("memory grows by 2.")), "{problems:?}");
        }
    }

    #[test]
    fn a_leak_of_the_generator_is_found() {
        let of_generator = |bytes_per_s| {
            let mut leaks = measured(3, bytes_per_s, 1.0);
            for sample in &mut leaks.samples {
                (sample.memory_bytes, sample.generator_bytes) = (40_000_000, sample.memory_bytes);
            }
            leaks.problems()
        };
        // A byte for each of 2,000 requests a second; less is that of histograms.
        let problems = of_generator(2000.0);
        assert!(
            matches!(&problems[..], [only] if only.starts_with("the memory of the generator")),
            "{problems:?}"
        );
        assert_eq!(of_generator(640.0), [""; 0]);
    }

    #[test]
    fn memory_that_grows_during_the_warm_up_alone_is_no_leak() {
        let mut fills = measured(4, 0.0, 1.0);
        for sample in fills.samples.iter_mut().filter(|sample| sample.at_s < 600.0) {
            sample.memory_bytes -= ((600.0 - sample.at_s) * 30e3) as u64;
        }
        assert_eq!(fills.problems(), [""; 0]);
    }

    #[test]
    fn a_cache_may_grow_up_to_its_size() {
        // 2.3 MB an hour, of which the warm-up takes a sixth.
        let fills = |cache_bytes| Measured { cache_bytes, ..measured(5, 640.0, 1.0) };
        assert_eq!(fills(4 << 20).problems(), [""; 0]);
        assert_eq!(fills(1 << 20).problems().len(), 1);
    }

    #[test]
    fn requests_that_failed_say_how() {
        let mut some = measured(6, 0.0, 1.0);
        some.add_load(serde_json::json!({ "run": { "ended": [90, 0, 3, 0, 2] } }));
        let [problem] = &some.problems()[..] else { panic!("{:?}", some.problems()) };
        assert!(problem.ends_with("5 failed and 0 answers were wrong: 3 refused, 2 unanswered"), "{problem}");
    }

    #[test]
    fn a_drift_is_found_with_its_size() {
        for seed in 0..20 {
            let drifts = measured(seed, 0.0, 1.6);
            let drift = drifts.drift().unwrap();
            // From the middle of the first quarter to that of the last, five eighths of an hour pass.
            assert!((0.28..0.41).contains(&drift.change), "{drift:?}");
            assert!(drift.interval.0 < drift.change && drift.change < drift.interval.1, "{drift:?}");
            let problems = drifts.problems();
            assert!(
                matches!(&problems[..], [only] if only.starts_with("the 99th percentile")),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn what_remains_is_found() {
        let mut remains = measured(5, 0.0, 1.0);
        remains.idle.1 = Sample { descriptors: 21, threads: 6, log_bytes: 2_000_000, ..remains.idle.0 };
        remains.failed = 1;
        remains.failure = Some("refused".into());
        let problems = remains.problems();
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(problems[0].ends_with("refused") && problems[1].contains("descriptors"), "{problems:?}");
        remains.idle = (remains.idle.1, remains.idle.0);
        remains.failed = 0;
        assert_eq!(remains.problems(), [""; 0]);
    }

    #[test]
    fn few_samples_have_no_verdict() {
        let few = Measured { length_s: 3.0, answered: 5, ..Measured::default() };
        assert_eq!(
            (few.memory(|sample| sample.memory_bytes), few.drift(), few.disturbance()),
            (None, None, None)
        );
        assert_eq!(few.problems(), [""; 0]);
    }
}
