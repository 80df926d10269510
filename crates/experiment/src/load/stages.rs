//! The text form of the stages of a load: `10s: 0→500/s, 30s: 500/s, 10s: 500→0/s`.
//!
//! Stages are separated by commas. Each is a time, a colon, and a rate for that time, or two rates with an arrow (`→` or `->`),
//! between which the rate changes linearly. `/s`, requests per second, is the default; `/min` is the alternative. After the last
//! stage no requests arrive. Stages of users have no `/s`: `10s: 5, 20s: 5→50`.

use std::time::Duration;

use kendall_station::{Attendance, Between, Law, Profile, Spacing};

use kendall_stats::quantity;
use kendall_system::read_time;

/// The most stages, so that an experiment file stays readable.
const MOST: usize = 1000;

/// Reads stages.
///
/// # Errors
/// Returns the reason as a sentence that continues the parameter's name.
pub(super) fn read(text: &str, spacing: Spacing) -> Result<Profile, String> {
    let points = points(text, read_rates, &refuse)?;
    let Some(&last) = points.last() else { return Err(refuse(text)) };
    let points = if last.1 > 0.0 { [points, vec![(last.0, 0.0)]].concat() } else { points };
    let profile = Profile { points, between: Between::Lines, period_s: None, spacing };
    profile.validate().map_err(|error| format!("cannot be: {error}"))?;
    Ok(profile)
}

/// Reads stages of users with this think time.
///
/// # Errors
/// As [`read`].
pub(super) fn read_users(text: &str, think: Law) -> Result<Attendance, String> {
    let attendance = Attendance { points: points(text, read_counts, &refuse_users)?, think };
    attendance.validate().map_err(|error| format!("cannot be: {error}"))?;
    Ok(attendance)
}

/// The points of stages; `levels` parses the part behind each colon.
fn points(
    text: &str,
    levels: fn(&str) -> Option<(f64, f64)>,
    refuse: &dyn Fn(&str) -> String,
) -> Result<Vec<(f64, f64)>, String> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut end = Duration::ZERO;
    let stages: Vec<&str> = text.split(',').map(str::trim).filter(|stage| !stage.is_empty()).collect();
    if stages.len() > MOST {
        return Err(format!("must be at most {MOST} stages, not {}", stages.len()));
    }
    for stage in stages {
        let (time, written) = stage.split_once(':').ok_or_else(|| refuse(stage))?;
        let time = read_time(time.trim()).map_err(|_| refuse(stage))?;
        if time.is_zero() {
            return Err(format!("must have stages with a time greater than 0, such as 10s, not {stage:?}"));
        }
        let (from, to) = levels(written.trim()).ok_or_else(|| refuse(stage))?;
        points.push((end.as_secs_f64(), from));
        end = end.checked_add(time).ok_or_else(|| refuse(stage))?;
        points.push((end.as_secs_f64(), to));
    }
    points.dedup();
    if points.is_empty() { Err(refuse(text)) } else { Ok(points) }
}

fn refuse(stage: &str) -> String {
    format!(
        "must be stages such as \"10s: 0→500/s, 30s: 500/s, 10s: 500→0/s\", each a time, a colon and a rate or two, not {stage:?}"
    )
}

fn refuse_users(stage: &str) -> String {
    format!(
        "must be stages such as \"10s: 5, 20s: 5→50\", each a time, a colon and a number of users or two, not {stage:?}"
    )
}

/// The numbers of users at the beginning and at the end of a stage.
fn read_counts(text: &str) -> Option<(f64, f64)> {
    let count = |number: &str| number.trim().parse::<u32>().ok().map(f64::from);
    from_to(text, count)
}

/// One level, or two with an arrow.
fn from_to(text: &str, level: impl Fn(&str) -> Option<f64>) -> Option<(f64, f64)> {
    match text.split_once('→').or_else(|| text.split_once("->")) {
        Some((from, to)) => Some((level(from)?, level(to)?)),
        None => level(text).map(|level| (level, level)),
    }
}

/// The rates at the beginning and at the end of a stage, in 1/s.
fn read_rates(text: &str) -> Option<(f64, f64)> {
    // The second rate has the unit of both.
    let (numbers, unit) = text.rfind('/').map_or((text, ""), |at| text.split_at(at));
    let rate =
        |number: &str| quantity::rate_per_s(&format!("{}{unit}", number.trim())).filter(|rate| *rate <= 1e9);
    from_to(numbers, rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_become_a_profile_that_ends() {
        let profile =
            read("10s: 0→0.5k/s, 30s: 500/s, 500ms: 500 -> 60, 1m: 1200/min,", Spacing::Even).unwrap();
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
    fn stages_of_users_are_whole_numbers() {
        let think = || Law::Constant { mean_s: 1.0 };
        let users = read_users("10s: 5, 20s: 5→50, 5s: 20", think()).unwrap();
        let points = [(0.0, 5.0), (10.0, 5.0), (30.0, 50.0), (30.0, 20.0), (35.0, 20.0)];
        assert_eq!((users.points.as_slice(), users.most(), users.ends_s()), (&points[..], 50, 35.0));
        for text in ["", "10s: 5/s", "10s: 2.5", "10s: -1", "0s: 5"] {
            assert!(read_users(text, think()).unwrap_err().starts_with("must "), "{text}");
        }
        assert!(read_users("10s: 0", think()).unwrap_err().contains("0 all the time"));
    }

    #[test]
    fn what_is_no_stage_is_named() {
        for text in
            ["", "10s", "10s: x/s", "10s: 5→/s", "0s: 5/s", "x: 5/s", "10s: -5/s", "10s: 5/d", "1s: 1e99/s"]
        {
            let why = read(text, Spacing::Poisson).unwrap_err();
            assert!(why.starts_with("must "), "{text}: {why}");
        }
        assert!(read("10s: 0/s", Spacing::Poisson).unwrap_err().contains("zero all the time"));
        assert!(read(&"1s: 1/s,".repeat(MOST + 1), Spacing::Poisson).unwrap_err().contains("1001"));
    }
}
