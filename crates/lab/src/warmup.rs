//! Whether the warm-up that an experiment leaves out is long enough.

use kendall_record::RequestRow;
use kendall_solve::statistics::median;
use kendall_solve::streamed::{Stream, Warmup};

use crate::trial::TrialResult;

/// A suggestion that exceeds what was left out by less than this share of the trial is noise.
const LONGER: f64 = 0.05;

/// Where MSER-5 would cut the rows of a trial, in seconds since its start; `None` where the trial is too short to tell.
pub(crate) fn suggested_s(rows: &[RequestRow], end_ns: i64) -> Option<f64> {
    let mut stream = Stream::new(Warmup::Until(0));
    rows.iter().for_each(|row| stream.add(row));
    stream.end(end_ns);
    stream.seen().ok()?.warmup.suggested_s
}

/// That the warm-up of a combination is too short, by the median of what its trials suggest.
pub(crate) fn too_short(place: &str, trials: &[&TrialResult], warmup_s: f64) -> Option<String> {
    // Of a single trial a cut is as likely noise; and one that has no steady state has no warm-up either.
    let suggested: Vec<f64> =
        trials.iter().filter(|trial| !trial.grows).filter_map(|trial| trial.warmup_suggested_s).collect();
    let length_s = trials.iter().map(|trial| trial.run.sending_s).fold(0.0, f64::max);
    let cut_s = median(&suggested);
    (suggested.len() >= 2 && 2 * suggested.len() > trials.len() && cut_s > warmup_s + LONGER * length_s).then(|| {
        let the = if place.is_empty() { "The".to_owned() } else { format!("At {place} the") };
        format!(
            "{the} warm-up lasts {cut_s:.1} s by MSER-5, in the median of {} trials, and {warmup_s:.1} s were left out",
            suggested.len()
        )
    })
}
