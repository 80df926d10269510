//! Stages of a load, as they are written: `10s: 0→500/s, 30s: 500/s, 10s: 500→0/s`.
//!
//! Stages are separated by commas. Each is a time, a colon, and a rate that holds for that time, or two with an arrow (`→`
//! or `->`) between which the rate moves in a line. `/s`, requests per second, is understood; `/min` may be said instead.
//! After the last stage nobody comes.

use std::time::Duration;

use kendall_station::{Between, Profile, Spacing};

use crate::parameter::read_time;

/// The most stages, so that an experiment file stays a thing to read.
const MOST: usize = 1000;

/// Reads stages.
///
/// # Errors
/// Says in words what is wrong, to stand after the parameter's name.
pub(super) fn read(text: &str, spacing: Spacing) -> Result<Profile, String> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut end = Duration::ZERO;
    let stages: Vec<&str> = text.split(',').map(str::trim).filter(|stage| !stage.is_empty()).collect();
    if stages.len() > MOST {
        return Err(format!("must be at most {MOST} stages, not {}", stages.len()));
    }
    for stage in stages {
        let (time, rates) = stage.split_once(':').ok_or_else(|| refuse(stage))?;
        let time = read_time(time.trim()).map_err(|_| refuse(stage))?;
        if time.is_zero() {
            return Err(format!("must have stages longer than nothing, not {stage:?}"));
        }
        let (from_per_s, to_per_s) = read_rates(rates.trim()).ok_or_else(|| refuse(stage))?;
        points.push((end.as_secs_f64(), from_per_s));
        end = end.checked_add(time).ok_or_else(|| refuse(stage))?;
        points.push((end.as_secs_f64(), to_per_s));
    }
    let Some(&last) = points.last() else { return Err(refuse(text)) };
    if last.1 > 0.0 {
        points.push((last.0, 0.0));
    }
    points.dedup();
    let profile = Profile { points, between: Between::Lines, period_s: None, spacing };
    profile.validate().map_err(|error| format!("cannot be: {error}"))?;
    Ok(profile)
}

fn refuse(stage: &str) -> String {
    format!(
        "must be stages such as \"10s: 0→500/s, 30s: 500/s, 10s: 500→0/s\", each a time, a colon and a rate or two, not {stage:?}"
    )
}

/// The rates at the beginning and at the end of a stage, in 1/s.
fn read_rates(text: &str) -> Option<(f64, f64)> {
    let (numbers, unit_s) = match (text.strip_suffix("/s"), text.strip_suffix("/min")) {
        (Some(numbers), _) => (numbers, 1.0),
        (None, Some(numbers)) => (numbers, 60.0),
        (None, None) => (text, 1.0),
    };
    let rate = |number: &str| {
        let rate: f64 = number.trim().parse().ok()?;
        (0.0..=1e9).contains(&rate).then_some(rate / unit_s)
    };
    match numbers.split_once('→').or_else(|| numbers.split_once("->")) {
        Some((from, to)) => Some((rate(from)?, rate(to)?)),
        None => rate(numbers).map(|rate| (rate, rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_become_a_profile_that_ends() {
        let profile =
            read("10s: 0→500/s, 30s: 500/s, 500ms: 500 -> 60, 1m: 1200/min,", Spacing::Even).unwrap();
        let points = [
            (0.0, 0.0),
            (10.0, 500.0),
            (40.0, 500.0),
            (40.5, 60.0),
            (40.5, 20.0),
            (100.5, 20.0),
            (100.5, 0.0),
        ];
        assert_eq!(profile.points, points);
        assert_eq!((profile.ends_s(), profile.spacing), (Some(100.5), Spacing::Even));
        assert!((profile.expected(200.0) - (2500.0 + 15_000.0 + 140.0 + 1200.0)).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_stage_is_named() {
        for text in
            ["", "10s", "10s: x/s", "10s: 5→/s", "0s: 5/s", "10: 5/s", "10s: -5/s", "10s: 5/h", "1s: 1e99/s"]
        {
            let why = read(text, Spacing::Poisson).unwrap_err();
            assert!(why.starts_with("must "), "{text}: {why}");
        }
        assert!(read("10s: 0/s", Spacing::Poisson).unwrap_err().contains("zero all the time"));
        assert!(read(&"1s: 1/s,".repeat(MOST + 1), Spacing::Poisson).unwrap_err().contains("1001"));
    }
}
