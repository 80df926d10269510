//! Conditions of the customers and servers of a station, as options.

use std::str::FromStr;

use clap::Args;
use kendall_station::{
    Batch, Between, Breakdown, Clock, Conditions, Delays, Interrupted, Profile, Retry, Setup,
};

use crate::written::{self, WrittenLaw};

/// Conditions of a station. Times are laws as `[KIND:]MEAN[:SCV]` in seconds, exponential where no kind is given.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(
    next_help_heading = "Conditions of customers and servers, by simulation (a LAW is 2, D:2 or LN:2:4)"
)]
pub(crate) struct ConditionOptions {
    /// A customer that has waited this long leaves
    #[arg(long, value_name = "LAW")]
    patience: Option<WrittenLaw>,

    /// A customer that was rejected or left comes back after this time: after=LAW or after=1/2/4, and probability=0.9, most=5
    #[arg(long, value_name = "KEY=VALUE,…")]
    retry: Option<RetryOption>,

    /// Servers break down: up=LAW,repair=LAW, then=resume (or restart, lose), clock=operating (or calendar)
    #[arg(long, value_name = "KEY=VALUE,…")]
    breakdown: Option<BreakdownOption>,

    /// An idle server needs this time before it serves again: LAW, or time=LAW,off-after=LAW
    #[arg(long, value_name = "LAW|KEY=VALUE,…")]
    setup: Option<SetupOption>,

    /// Customers that arrive at once: 5, geometric:3, or each size with its probability as in 1:0.5/4:0.5
    #[arg(long, value_name = "SIZES")]
    batch_size: Option<BatchOption>,
}

impl ConditionOptions {
    pub(crate) fn conditions(&self) -> Conditions {
        Conditions {
            patience: self.patience.clone().map(|WrittenLaw(law)| law),
            retry: self.retry.clone().map(|RetryOption(retry)| retry),
            breakdown: self.breakdown.clone().map(|BreakdownOption(breakdown)| breakdown),
            setup: self.setup.clone().map(|SetupOption(setup)| setup),
            batch: self.batch_size.clone().map(|BatchOption(batch)| batch),
        }
    }
}

fn unknown(what: &str, key: &str, known: &str) -> String {
    format!("{what} has no {key:?}; it has {known}")
}

#[derive(Clone, Debug, PartialEq)]
struct RetryOption(Retry);

impl FromStr for RetryOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut after, mut probability, mut most) = (None, 1.0, None);
        for pair in written::pairs(text) {
            match pair? {
                ("after", value) if value.contains('/') => {
                    let delays =
                        value.split('/').map(|delay| written::positive_time_s("a delay of retry", delay));
                    after = Some(Delays::Listed(delays.collect::<Result<_, _>>()?));
                }
                ("after", value) => after = Some(Delays::Law(written::law(value)?)),
                ("probability", value) => probability = written::number("the probability of retry", value)?,
                ("most", value) => {
                    let must = |_| format!("most is {value:?}; it must be a whole number");
                    most = Some(value.parse().map_err(must)?);
                }
                (key, _) => return Err(unknown("retry", key, "after, probability and most")),
            }
        }
        let after = after
            .ok_or("it has no after; write after=2, or after=1/2/4 for the first, second and further")?;
        Ok(Self(Retry { probability, after, most }))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct BreakdownOption(Breakdown);

impl FromStr for BreakdownOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut up, mut repair) = (None, None);
        let (mut then, mut clock) = (Interrupted::default(), Clock::default());
        for pair in written::pairs(text) {
            match pair? {
                ("up", value) => up = Some(written::law(value)?),
                ("repair", value) => repair = Some(written::law(value)?),
                ("then", "resume") => then = Interrupted::Resume,
                ("then", "restart") => then = Interrupted::Restart,
                ("then", "lose") => then = Interrupted::Lose,
                ("then", other) => {
                    return Err(format!("then is {other:?}; it must be resume, restart or lose"));
                }
                ("clock", "operating") => clock = Clock::Operating,
                ("clock", "calendar") => clock = Clock::Calendar,
                ("clock", other) => {
                    return Err(format!("clock is {other:?}; it must be operating or calendar"));
                }
                (key, _) => return Err(unknown("breakdown", key, "up, repair, then and clock")),
            }
        }
        match (up, repair) {
            (Some(up), Some(repair)) => Ok(Self(Breakdown { up, repair, then, clock })),
            _ => Err("it needs both up and repair, such as up=3600,repair=60".into()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct SetupOption(Setup);

impl FromStr for SetupOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains('=') {
            return Ok(Self(Setup { time: written::law(text)?, off_after: None }));
        }
        let (mut time, mut off_after) = (None, None);
        for pair in written::pairs(text) {
            match pair? {
                ("time", value) => time = Some(written::law(value)?),
                ("off-after", value) => off_after = Some(written::law(value)?),
                (key, _) => return Err(unknown("setup", key, "time and off-after")),
            }
        }
        Ok(Self(Setup { time: time.ok_or("it has no time; write time=D:0.5")?, off_after }))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct BatchOption(Batch);

impl FromStr for BatchOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = |text: &str| {
            let must = |_| format!("{text:?} is not a valid batch; write 5, geometric:3, or 1:0.5/4:0.5");
            text.trim().parse::<u32>().map_err(must)
        };
        let listed = |part: &str| match part.split_once(':') {
            Some((n, chance)) => {
                Ok((size(n)?, written::positive("the probability of a batch", chance.trim())?))
            }
            None => Err(format!(
                "{part:?} has no probability; write each size with its probability, as in 1:0.5/4:0.5"
            )),
        };
        Ok(Self(match text.trim().strip_prefix("geometric:") {
            Some(mean) => Batch::Geometric { mean: written::positive("the mean batch", mean)? },
            None if text.contains(':') => {
                Batch::Listed { sizes: text.split('/').map(listed).collect::<Result<_, _>>()? }
            }
            None => Batch::Fixed { size: size(text)? },
        }))
    }
}

/// A rate that changes over time: `0=20,60=80,period=120,between=lines`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProfileOption(pub(crate) Profile);

impl FromStr for ProfileOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut profile = Profile::default();
        for pair in written::pairs(text) {
            match pair? {
                ("period", value) => profile.period_s = Some(written::positive_time_s("the period", value)?),
                ("between", "steps") => profile.between = Between::Steps,
                ("between", "lines") => profile.between = Between::Lines,
                ("between", other) => return Err(format!("between is {other:?}; it must be steps or lines")),
                (at_s, rate) => {
                    profile.points.push((written::time_s("a time", at_s)?, written::rate("a rate", rate)?))
                }
            }
        }
        profile.validate().map_err(|error| error.to_string())?;
        Ok(Self(profile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::Law;

    fn second(mean_s: f64) -> Law {
        Law::Exponential { mean_s }
    }

    #[test]
    fn conditions_read_as_they_are_written() {
        let BreakdownOption(breakdown) = "up=3600, repair=D:60,then=restart,clock=calendar".parse().unwrap();
        assert_eq!((breakdown.up, breakdown.repair), (second(3600.0), Law::Constant { mean_s: 60.0 }));
        assert_eq!((breakdown.then, breakdown.clock), (Interrupted::Restart, Clock::Calendar));
        let RetryOption(syn) = "after=1/2/4,most=6".parse().unwrap();
        assert_eq!(
            syn,
            Retry { probability: 1.0, after: Delays::Listed(vec![1.0, 2.0, 4.0]), most: Some(6) }
        );
        let RetryOption(drawn) = "after=M:2,probability=0.5".parse().unwrap();
        assert_eq!(drawn, Retry { probability: 0.5, after: Delays::Law(second(2.0)), most: None });
        let SetupOption(plain) = "3".parse().unwrap();
        let SetupOption(keyed) = "time=3".parse().unwrap();
        assert_eq!(plain, keyed);
        let sizes =
            ["5", "geometric:3", "1:0.5/4:0.5"].map(|text| text.parse::<BatchOption>().unwrap().0.mean());
        assert_eq!(sizes, [5.0, 3.0, 2.5]);
        let ProfileOption(day) = "0=20,60=80,period=120,between=lines".parse().unwrap();
        assert_eq!(day.mean_rate_per_s(), 50.0);
        let ProfileOption(same) = "0=20/s,1m=4.8k/min,period=2m,between=lines".parse().unwrap();
        assert_eq!(same, day);
    }

    #[test]
    fn faults_are_named() {
        let faults = [
            ("up=1".parse::<BreakdownOption>().unwrap_err(), "both up and repair"),
            ("up=1,repair=1,then=cry".parse::<BreakdownOption>().unwrap_err(), "restart"),
            ("up=1,repare=1".parse::<BreakdownOption>().unwrap_err(), "\"repare\""),
            ("most=3".parse::<RetryOption>().unwrap_err(), "no after"),
            ("after=1/x".parse::<RetryOption>().unwrap_err(), "a number"),
            ("off-after=1".parse::<SetupOption>().unwrap_err(), "no time"),
            ("many".parse::<BatchOption>().unwrap_err(), "geometric"),
            ("1:0.5/2".parse::<BatchOption>().unwrap_err(), "no probability"),
            ("60=1".parse::<ProfileOption>().unwrap_err(), "at 0 s"),
            ("0=1,period=soon".parse::<ProfileOption>().unwrap_err(), "a number"),
        ];
        for (why, part) in faults {
            assert!(why.contains(part), "{why} should say {part:?}");
        }
    }
}
