//! The end of the warm-up of a trial by its measurements, and whether the warm-up of the experiment is long enough.
//!
//! MSER-5 reads three series along time: the response times, the answers and, where the server was watched, its processor time. The
//! warm-up lasts until the last of them is steady. A server may well answer as fast as ever while it still fills a cache at the cost of
//! a core.

use std::collections::HashMap;
use std::time::Duration;

use kendall_archive::series::Series;
use kendall_evidence::streamed::{Stream, Warmup, cut_ns};
use kendall_record::RequestRow;
use kendall_stats::median;

use crate::report::trial::{LeftOut, WarmupBy};
use crate::trial_result::TrialResult;

/// A suggestion that exceeds what was left out by less than this share of the trial is noise.
const LONGER: f64 = 0.05;
/// Fewer spans of time than this say nothing of the processor.
const SPANS: i64 = 40;
/// And there are no more than this.
const SPANS_AT_MOST: i64 = 600;

/// Where MSER-5 ends the warm-up of a trial, in nanoseconds since its start: the last of the ends by response time, by throughput and,
/// with readings of its resources, by the processor time of its server. `None` where one of them has its least standard error in the
/// second half of the trial: then there are too few data.
pub fn suggested_ns(rows: &[RequestRow], readings: Option<&Series>) -> Option<i64> {
    let mut stream = Stream::new(Warmup::Until(0));
    rows.iter().for_each(|row| stream.add(row));
    let clients_ns = stream.suggested_ns()?;
    let last_due_ns = rows.iter().map(|row| row.scheduled).max()?;
    match readings.and_then(|readings| server_cpu(readings, last_due_ns)) {
        Some(cpu) => Some(clients_ns.max(cut_ns(&cpu)?)),
        None => Some(clients_ns),
    }
}

/// The processor time of the server in equal spans until an instant, each with the instant at which it begins. `None` where it
/// was not read, or too seldom.
fn server_cpu(readings: &Series, end_ns: i64) -> Option<Vec<(i64, f64)>> {
    let mut instants_ns = readings.time_ns.clone();
    instants_ns.dedup();
    let read = instants_ns.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    let every_ns = read.iter().sum::<i64>() / (read.len() as i64).max(1);
    let width_ns = (end_ns / SPANS_AT_MOST).max(every_ns).max(1);
    let spans = end_ns / width_ns;
    if spans < SPANS {
        return None;
    }
    let mut cpu_s = vec![0.0; spans as usize];
    for (from_ns, to_ns, used_s) in uses(readings) {
        share_out(&mut cpu_s, width_ns, (from_ns, to_ns), used_s);
    }
    let starts = (0..spans).map(|span| span * width_ns);
    cpu_s.iter().any(|used_s| *used_s > 0.0).then(|| starts.zip(cpu_s).collect())
}

/// What each thread of the server used between two readings. One that used nothing has no row, so a row covers the time since the
/// previous reading of any thread.
fn uses(readings: &Series) -> Vec<(i64, i64, f64)> {
    let (roles, processes, threads) =
        (readings.label("role"), readings.label("process"), readings.label("thread"));
    let values = readings.time_ns.iter().zip(readings.values("cpu_s"));
    let (mut before_ns, mut now_ns) = (i64::MIN, i64::MIN);
    let mut last_s: HashMap<(&str, &str), f64> = HashMap::new();
    let mut uses = Vec::new();
    for (((role, process), thread), (&at_ns, cpu_s)) in roles.zip(processes).zip(threads).zip(values) {
        if at_ns != now_ns {
            (before_ns, now_ns) = (now_ns, at_ns);
        }
        let (true, Some(cpu_s)) = (role == "server" && !thread.is_empty(), *cpu_s) else { continue };
        if let Some(last_s) = last_s.insert((process, thread), cpu_s) {
            uses.push((before_ns, now_ns, cpu_s - last_s));
        }
    }
    uses
}

/// Shares an amount out evenly over the spans that an interval touches.
fn share_out(spans: &mut [f64], width_ns: i64, (from_ns, to_ns): (i64, i64), amount: f64) {
    let length_ns = (to_ns - from_ns).max(1);
    let mut at_ns = from_ns.max(0);
    while at_ns < to_ns {
        let Some(span) = spans.get_mut((at_ns / width_ns) as usize) else { return };
        let until_ns = to_ns.min((at_ns / width_ns + 1) * width_ns);
        *span += amount * (until_ns - at_ns) as f64 / length_ns as f64;
        at_ns = until_ns;
    }
}

/// The warm-up that a trial leaves out: the one of its load, or the suggested one.
pub fn left_out(rows: &[RequestRow], warmup: Warmup, suggested_ns: Option<i64>) -> LeftOut {
    let (until_ns, by) = match (warmup, suggested_ns) {
        (Warmup::Until(until_ns), _) => (until_ns, WarmupBy::Set),
        (Warmup::Auto, Some(cut_ns)) => (cut_ns, WarmupBy::Found),
        (Warmup::Auto, None) => (0, WarmupBy::Untold),
    };
    let requests = rows.iter().filter(|row| row.scheduled < until_ns).count() as u64;
    LeftOut { until_ns, requests, by }
}

/// The first part of a trial that may be warm-up, while it still runs; its length is zero where it is unknown. A warm-up that must be
/// found lies in the first half.
pub fn at_most(warmup: Warmup, length: Duration) -> Duration {
    match warmup {
        Warmup::Until(until_ns) => Duration::from_nanos(until_ns.unsigned_abs()),
        Warmup::Auto if length.is_zero() => Duration::from_nanos(i64::MAX.unsigned_abs()),
        Warmup::Auto => length / 2,
    }
}

/// A combination whose warm-up is too short, by the median of what its trials suggest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TooShort {
    place: String,
    cut_s: f64,
    left_out_s: f64,
}

impl TooShort {
    pub(crate) fn of(place: String, trials: &[&TrialResult], warmup: Warmup) -> Option<Self> {
        let Warmup::Until(until_ns) = warmup else { return None };
        let left_out_s = until_ns as f64 / 1e9;
        // Of a single trial a cut is as likely noise; and one that has no steady state has no warm-up either.
        let suggested: Vec<f64> =
            trials.iter().filter(|trial| !trial.grows).filter_map(|trial| trial.warmup_suggested_s).collect();
        let length_s = trials.iter().map(|trial| trial.run.sending_s).fold(0.0, f64::max);
        let cut_s = median(&suggested);
        let many = suggested.len() >= 2 && 2 * suggested.len() > trials.len();
        (many && cut_s > left_out_s + LONGER * length_s).then_some(Self { place, cut_s, left_out_s })
    }

    /// By how much.
    fn missing_s(&self) -> f64 {
        self.cut_s - self.left_out_s
    }
}

/// What is to be said of combinations whose warm-up is too short: the worst, and how many more there are.
pub(crate) fn doubt(too_short: &[TooShort]) -> Option<String> {
    let worst = too_short.iter().max_by(|a, b| a.missing_s().total_cmp(&b.missing_s()))?;
    let the = if worst.place.is_empty() { "The".to_owned() } else { format!("At {} the", worst.place) };
    let also = match too_short.len() - 1 {
        0 => String::new(),
        1 => "; it is too short at one more point".to_owned(),
        more => format!("; it is too short at {more} more points"),
    };
    Some(format!(
        "{the} warm-up lasts {:.1} s by MSER-5 (median of the trials), but only {:.1} s were left out{also}",
        worst.cut_s, worst.left_out_s
    ))
}

#[cfg(test)]
mod tests {
    use kendall_archive::series::{Layout, SeriesWriter};
    use kendall_record::Outcome;
    use kendall_station::Law;
    use kendall_stats::random::{Purpose, stream};

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    #[test]
    fn the_worst_of_too_short_warm_ups_is_told_and_the_others_counted() {
        let too_short = |place: &str, cut_s| TooShort { place: place.to_owned(), cut_s, left_out_s: 0.5 };
        assert_eq!(doubt(&[]), None);
        let one = doubt(&[too_short("", 1.0)]).unwrap();
        assert_eq!(
            one,
            "The warm-up lasts 1.0 s by MSER-5 (median of the trials), but only 0.5 s were left out"
        );
        let three = [too_short("20/s", 1.0), too_short("40/s", 2.0), too_short("60/s", 1.5)];
        let three = doubt(&three).unwrap();
        assert!(three.starts_with("At 40/s the warm-up lasts 2.0 s"), "{three}");
        assert!(three.ends_with("; it is too short at 2 more points"), "{three}");
    }

    /// A thousand requests a second for ten seconds, whose mean is five times as long until an instant.
    fn rows(warm_from_s: f64) -> Vec<RequestRow> {
        let (mut rng, law) = (stream(7, Purpose::Trial, 0), Law::Exponential { mean_s: 0.002 });
        let row = |index: u64| {
            let scheduled = index as i64 * 1_000_000;
            let slow = if (scheduled as f64) < warm_from_s * 1e9 { 5.0 } else { 1.0 };
            let completed = scheduled + (slow * law.sample(&mut rng) * 1e9) as i64;
            RequestRow {
                bytes_out: 1,
                bytes_in: 1,
                ..RequestRow::due(index, scheduled).sent_at(scheduled, 1).ended(Outcome::Answered, completed)
            }
        };
        (0..10_000).map(row).collect()
    }

    /// Readings every 10 ms of a server with two threads; one of them works twice as much until an instant, and then falls
    /// silent now and then, so that it has no row.
    fn readings(busy_until_s: f64) -> Series {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resources.parquet");
        let layout = Layout::new("a reading").label("role").label("process").label("thread");
        let mut writer = SeriesWriter::create(&path, layout.quantity("cpu_s", "CPU time so far")).unwrap();
        let (mut rng, law) = (stream(8, Purpose::Trial, 0), Law::Exponential { mean_s: 0.001 });
        let mut used_s = [3.0, 4.0];
        for tick in 0..1100 {
            let at_ns = (tick - 50) * 10_000_000;
            writer.append(at_ns, &["generator", "load", "t"], &[Some(tick as f64 * 0.001)]).unwrap();
            for (thread, used_s) in used_s.iter_mut().enumerate() {
                let busy = if thread == 0 && (at_ns as f64) < busy_until_s * 1e9 { 4.0 } else { 1.0 };
                *used_s += busy * law.sample(&mut rng);
                if thread == 0 || tick % 3 > 0 {
                    let name = format!("t{thread}");
                    writer.append(at_ns, &["server", "server", &name], &[Some(*used_s)]).unwrap();
                }
            }
        }
        writer.finish(0).unwrap();
        Series::read(&path).unwrap()
    }

    #[test]
    fn the_last_of_the_three_decides() {
        let cut_s = |warm_from_s: f64, readings: Option<&Series>| {
            let cut_ns = suggested_ns(&rows(warm_from_s), readings);
            cut_ns.map(|cut_ns| cut_ns as f64 / 1e9).expect("there is enough data")
        };
        // MSER-5 cuts whole batches, of a twelfth of a second here, and now and then some more.
        let (steady_s, warming_s) = (cut_s(0.0, None), cut_s(1.5, None));
        assert!(steady_s < warming_s && (1.2..3.0).contains(&warming_s), "{steady_s} {warming_s}");
        let (steady, late) = (readings(0.0), readings(3.0));
        let (of_steady_s, of_late_s) = (cut_s(0.0, Some(&steady)), cut_s(0.0, Some(&late)));
        assert!(of_steady_s < 2.7 && (2.7..5.0).contains(&of_late_s), "{of_steady_s} {of_late_s}");
        assert_eq!(cut_s(1.5, Some(&steady)), warming_s.max(of_steady_s));
        assert_eq!(cut_s(1.5, Some(&late)), warming_s.max(of_late_s));
    }

    #[test]
    fn what_is_not_steady_before_the_middle_is_not_enough_data() {
        let (warm, endless) = (rows(0.0), readings(7.0));
        assert_eq!(suggested_ns(&rows(7.0), None), None);
        assert_eq!(suggested_ns(&warm, Some(&endless)), None);
        assert_eq!(suggested_ns(&warm[..5], None), None);
        let untold = left_out(&warm, Warmup::Auto, None);
        assert_eq!((untold.until_ns, untold.requests, untold.by), (0, 0, WarmupBy::Untold));
    }

    /// No processor time is lost or made when readings fall across spans.
    #[test]
    fn the_processor_time_of_the_spans_is_that_of_the_readings() {
        let readings = readings(3.0);
        let spans = server_cpu(&readings, 10 * SECOND_NS).unwrap();
        let within: f64 = uses(&readings)
            .iter()
            .filter(|(from_ns, to_ns, _)| *from_ns >= 0 && *to_ns <= 10 * SECOND_NS)
            .map(|(.., used_s)| used_s)
            .sum();
        let spanned: f64 = spans.iter().map(|(_, used_s)| used_s).sum();
        assert!(
            (spanned / within - 1.0).abs() < 1e-3 && spans.len() == 600,
            "{spanned} {within} {}",
            spans.len()
        );
        assert!(server_cpu(&readings, 20 * 10_000_000).is_none(), "twenty readings say nothing");
    }

    #[test]
    fn left_out_is_what_was_due_before() {
        let rows = rows(0.0);
        let set = left_out(&rows, Warmup::Until(SECOND_NS), Some(5 * SECOND_NS));
        assert_eq!((set.until_ns, set.requests, set.by), (SECOND_NS, 1000, WarmupBy::Set));
        let found = left_out(&rows, Warmup::Auto, Some(SECOND_NS / 2));
        assert_eq!((found.until_ns, found.requests, found.by), (SECOND_NS / 2, 500, WarmupBy::Found));
        assert_eq!(at_most(Warmup::Auto, Duration::from_secs(8)), Duration::from_secs(4));
    }
}
