//! Quantities of a station on the command line: one value for all stations, one for each (`5,10`), or a range that is gone
//! through (`0.1..0.95`, `1..8:1`).

use std::fmt;

use anyhow::{bail, ensure};
use clap::Args;
use kendall_stats::number::{percent, time};
use kendall_stats::quantity::{positive_seconds, rate};

/// Values of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    /// One value for all stations, or one for each.
    Each(Vec<f64>),
    /// The values of a range, one after the other.
    Range {
        from: f64,
        to: f64,
        /// The distance of two values; `None` for a round number that gives about twenty.
        step: Option<f64>,
    },
}

/// No range has more values: each is a question for every station.
const MOST_VALUES: f64 = 1_000.0;
/// How many values a range has that names no step.
const USUAL_VALUES: f64 = 20.0;

/// A quantity that a station has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    ArrivalRate,
    Utilisation,
    ThinkTime,
    ServiceRate,
    ServiceTime,
    ServiceScv,
    ArrivalScv,
    Servers,
    Users,
}

impl Quantity {
    /// The option that states it.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::ArrivalRate => "--arrival-rate",
            Self::Utilisation => "--rho",
            Self::ThinkTime => "--think-time",
            Self::ServiceRate => "--service-rate",
            Self::ServiceTime => "--service-time",
            Self::ServiceScv => "--service-scv",
            Self::ArrivalScv => "--arrival-scv",
            Self::Servers => "--servers",
            Self::Users => "--users",
        }
    }

    /// The quantity's name and its unit, as an axis or the head of a column has them.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ArrivalRate => "arrival rate [1/s]",
            Self::Utilisation => "utilisation",
            Self::ThinkTime => "think time [s]",
            Self::ServiceRate => "service rate [1/s]",
            Self::ServiceTime => "service time [s]",
            Self::ServiceScv => "service SCV",
            Self::ArrivalScv => "arrival SCV",
            Self::Servers => "servers",
            Self::Users => "users",
        }
    }

    /// The name without its unit.
    fn name(self) -> &'static str {
        self.title().split(" [").next().unwrap_or_default()
    }

    /// A value with its unit.
    fn shown(self, value: f64) -> String {
        match self {
            Self::ArrivalRate | Self::ServiceRate => format!("{value}/s"),
            Self::Utilisation => percent(value),
            Self::ThinkTime | Self::ServiceTime => time(value),
            Self::ServiceScv | Self::ArrivalScv | Self::Servers | Self::Users => value.to_string(),
        }
    }

    fn is_whole(self) -> bool {
        matches!(self, Self::Servers | Self::Users)
    }
}

/// The quantities that Kendall's notation leaves open, and those of it that may be given in addition.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "The station")]
pub(crate) struct QuantityOptions {
    /// Requests per second, such as 100, 2k or 600/min. This and each quantity below may be a range, FROM..TO[:STEP], or have a
    /// value for each of several stations: 5,10
    #[arg(long, visible_alias = "lambda", value_name = "RATE", allow_negative_numbers = true, value_parser = rates)]
    arrival_rate: Option<Values>,

    /// Utilisation, from which the arrival rate follows: 0.8 or 80%. Without a service time that is 1 s, so that times are multiples of it
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = shares, conflicts_with_all = ["arrival_rate", "think_time"])]
    rho: Option<Values>,

    /// Mean think time of each user of a closed population, such as 3, 3s or 100ms
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = times, conflicts_with = "arrival_rate")]
    think_time: Option<Values>,

    /// Requests per second that one busy server completes
    #[arg(long, visible_alias = "mu", value_name = "RATE", allow_negative_numbers = true, value_parser = rates)]
    service_rate: Option<Values>,

    /// Mean service time, such as 0.1 or 100ms, in place of a rate
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true, value_parser = times, conflicts_with = "service_rate")]
    service_time: Option<Values>,

    /// Squared coefficient of variation of the service time, for G, LN, H2, Pa and U
    #[arg(long, value_name = "SCV", allow_negative_numbers = true, value_parser = variations)]
    service_scv: Option<Values>,

    /// Squared coefficient of variation of the gaps between arrivals, for the same
    #[arg(long, value_name = "SCV", allow_negative_numbers = true, value_parser = variations)]
    arrival_scv: Option<Values>,

    /// How many servers, in place of the number in the notation
    #[arg(long, value_name = "N", value_parser = counts)]
    servers: Option<Values>,

    /// How many users, in place of the population in the notation
    #[arg(long, value_name = "N", value_parser = counts)]
    users: Option<Values>,
}

/// The quantities of one station, each a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Quantities {
    pub(crate) arrival_rate: Option<f64>,
    pub(crate) rho: Option<f64>,
    pub(crate) think_time: Option<f64>,
    pub(crate) service_rate: Option<f64>,
    pub(crate) service_time: Option<f64>,
    pub(crate) service_scv: Option<f64>,
    pub(crate) arrival_scv: Option<f64>,
    pub(crate) servers: Option<u32>,
    pub(crate) users: Option<u32>,
}

/// A range that is gone through.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sweep {
    pub(crate) quantity: Quantity,
    /// Ascending.
    pub(crate) values: Vec<f64>,
}

impl Sweep {
    /// Values between the ends, for a line.
    pub(crate) fn finely(&self, steps: u32) -> Vec<f64> {
        let (Some(&from), Some(&to)) = (self.values.first(), self.values.last()) else { return Vec::new() };
        if self.quantity.is_whole() {
            return self.values.clone();
        }
        (0..=steps).map(|step| from + (to - from) * f64::from(step) / f64::from(steps)).collect()
    }
}

impl QuantityOptions {
    fn all(&self) -> impl Iterator<Item = (Quantity, &Values)> {
        let all = [
            (Quantity::ArrivalRate, &self.arrival_rate),
            (Quantity::Utilisation, &self.rho),
            (Quantity::ThinkTime, &self.think_time),
            (Quantity::ServiceRate, &self.service_rate),
            (Quantity::ServiceTime, &self.service_time),
            (Quantity::ServiceScv, &self.service_scv),
            (Quantity::ArrivalScv, &self.arrival_scv),
            (Quantity::Servers, &self.servers),
            (Quantity::Users, &self.users),
        ];
        all.into_iter().filter_map(|(quantity, values)| Some((quantity, values.as_ref()?)))
    }

    /// The range that is to be gone through, if there is one.
    ///
    /// # Errors
    /// Fails on two ranges, and on one of too many values.
    pub(crate) fn sweep(&self) -> anyhow::Result<Option<Sweep>> {
        let ranges: Vec<_> =
            self.all().filter(|(_, values)| matches!(values, Values::Range { .. })).collect();
        if let [(one, _), (other, _), ..] = ranges[..] {
            bail!("{} and {} are both ranges; give one of them a single value", one.option(), other.option());
        }
        let Some((quantity, values)) = ranges.first() else { return Ok(None) };
        Ok(Some(Sweep { quantity: *quantity, values: values.listed(*quantity)? }))
    }

    /// What distinguishes the station at this place from others with the same notation, in words.
    pub(crate) fn distinction(&self, place: usize) -> String {
        let own = self.all().filter_map(|(quantity, values)| match values {
            Values::Each(each) if each.len() > 1 => {
                Some(format!(", {} {}", quantity.name(), quantity.shown(*each.get(place)?)))
            }
            _ => None,
        });
        own.collect()
    }

    /// The quantities of one of the stations, at the value `swept` of the range, if there is a range.
    ///
    /// # Errors
    /// Fails where a list has another length than there are stations, and on a range where there can be none.
    pub(crate) fn at(&self, place: usize, stations: usize, swept: Option<f64>) -> anyhow::Result<Quantities> {
        let mut found = Quantities::default();
        for (quantity, values) in self.all() {
            let value = match values {
                Values::Each(each) if each.len() == 1 => each[0],
                Values::Each(each) => {
                    ensure!(
                        each.len() == stations,
                        "{} has {} values, and there {}; give one value for all, or one for each",
                        quantity.option(),
                        each.len(),
                        if stations == 1 {
                            "is 1 station".to_owned()
                        } else {
                            format!("are {stations} stations")
                        }
                    );
                    each[place]
                }
                Values::Range { .. } => match swept {
                    Some(value) => value,
                    None => bail!("{} is a range; here it must be a single value", quantity.option()),
                },
            };
            found.set(quantity, value);
        }
        Ok(found)
    }

    /// Whether nothing says how long a service takes.
    pub(crate) fn lacks_service(&self) -> bool {
        self.service_time.is_none() && self.service_rate.is_none()
    }

    /// Whether the variation of the service time is stated.
    pub(crate) fn states_service_scv(&self) -> bool {
        self.service_scv.is_some()
    }

    /// Whether the utilisation is stated.
    pub(crate) fn states_utilisation(&self) -> bool {
        self.rho.is_some()
    }
}

impl Quantities {
    fn set(&mut self, quantity: Quantity, value: f64) {
        let place = match quantity {
            Quantity::ArrivalRate => &mut self.arrival_rate,
            Quantity::Utilisation => &mut self.rho,
            Quantity::ThinkTime => &mut self.think_time,
            Quantity::ServiceRate => &mut self.service_rate,
            Quantity::ServiceTime => &mut self.service_time,
            Quantity::ServiceScv => &mut self.service_scv,
            Quantity::ArrivalScv => &mut self.arrival_scv,
            Quantity::Servers => return self.servers = Some(value as u32),
            Quantity::Users => return self.users = Some(value as u32),
        };
        *place = Some(value);
    }

    /// The mean service time, where it is given. With a utilisation alone it is the unit of time.
    pub(crate) fn service_s(&self) -> Option<f64> {
        let given = self.service_time.or_else(|| Some(1.0 / self.service_rate?));
        given.or_else(|| self.rho.map(|_| 1.0))
    }
}

impl Values {
    /// The values of a range, with its ends.
    fn listed(&self, quantity: Quantity) -> anyhow::Result<Vec<f64>> {
        let (from, to, step) = match self {
            Self::Each(each) => return Ok(each.clone()),
            Self::Range { from, to, step } => (*from, *to, *step),
        };
        let mut step = step.unwrap_or_else(|| round_step((to - from) / USUAL_VALUES));
        if quantity.is_whole() {
            ensure!(
                step.fract() == 0.0 || step < 1.0,
                "{}: {step} is not a step between whole numbers",
                quantity.option()
            );
            step = step.max(1.0);
        }
        let steps = (to - from) / step;
        ensure!(
            steps <= MOST_VALUES,
            "{}: a range has at most {MOST_VALUES} values, and {self} has {steps:.0}; give a longer step",
            quantity.option()
        );
        // Rounding must neither lose the end nor reach beyond it.
        let mut values: Vec<f64> =
            (0..=(steps + 1e-9) as u32).map(|count| rounded(from + f64::from(count) * step)).collect();
        if values.last().is_some_and(|last| to - last > 1e-9 * to) {
            values.push(to);
        }
        Ok(values)
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each(each) => {
                write!(f, "{}", each.iter().map(f64::to_string).collect::<Vec<_>>().join(","))
            }
            Self::Range { from, to, step: None } => write!(f, "{from}..{to}"),
            Self::Range { from, to, step: Some(step) } => write!(f, "{from}..{to}:{step}"),
        }
    }
}

/// 1, 2 or 5 times a power of ten, and at least as large.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= least * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

/// Without the last digits, in which 0.1 + 2 · 0.05 is not 0.2.
fn rounded(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

fn values(text: &str, read: impl Fn(&str) -> Result<f64, String>) -> Result<Values, String> {
    let Some((from, rest)) = text.split_once("..") else {
        let each = text.split(',').map(|value| read(value.trim()));
        return Ok(Values::Each(each.collect::<Result<_, _>>()?));
    };
    let (to, step) = match rest.split_once(':') {
        None => (rest, None),
        Some((to, step)) => (to, Some(step)),
    };
    let (from, to) = (read(from.trim())?, read(to.trim())?);
    let step = step.map(|step| read(step.trim())).transpose()?;
    match step {
        _ if from >= to => Err("a range goes upwards, such as 0.1..0.9".into()),
        Some(step) if step <= 0.0 || step > to - from => {
            Err("the step of a range is above 0 and no longer than the range".into())
        }
        step => Ok(Values::Range { from, to, step }),
    }
}

fn rates(text: &str) -> Result<Values, String> {
    values(text, rate)
}

fn times(text: &str) -> Result<Values, String> {
    values(text, positive_seconds)
}

fn shares(text: &str) -> Result<Values, String> {
    values(text, |text| {
        let (number, per) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        match number.trim().parse::<f64>() {
            Ok(value) if (1e-6..=1e3).contains(&(value / per)) => Ok(value / per),
            _ => Err("must be a share above 0, such as 0.8 or 80%".into()),
        }
    })
}

fn variations(text: &str) -> Result<Values, String> {
    values(text, |text| match text.parse::<f64>() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("must be a number from 0 to 1e6".into()),
    })
}

fn counts(text: &str) -> Result<Values, String> {
    values(text, |text| match text.parse::<u32>() {
        Ok(count) if count > 0 => Ok(f64::from(count)),
        _ => Err("must be a whole number from 1 on".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str, quantity: Quantity) -> Vec<f64> {
        shares(text).unwrap().listed(quantity).unwrap()
    }

    #[test]
    fn a_range_has_both_ends_and_round_steps() {
        let values = listed("0.1..0.95", Quantity::Utilisation);
        assert_eq!((values.len(), values[1], values[17]), (18, 0.15, 0.95));
        assert_eq!(listed("10%..20%:4%", Quantity::Utilisation), [0.1, 0.14, 0.18, 0.2]);
        assert_eq!(counts("1..4").unwrap().listed(Quantity::Servers).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        let range = counts("1..2000:1").unwrap();
        assert!(range.listed(Quantity::Users).unwrap_err().to_string().contains("at most 1000 values"));
    }

    #[test]
    fn a_list_has_a_value_for_each_station() {
        let options = QuantityOptions { service_rate: Some(rates("5, 2k").unwrap()), ..Default::default() };
        assert_eq!(options.at(1, 2, None).unwrap().service_rate, Some(2000.0));
        let why = options.at(0, 3, None).unwrap_err().to_string();
        assert_eq!(
            why,
            "--service-rate has 2 values, and there are 3 stations; give one value for all, or one for each"
        );
        assert_eq!(options.distinction(0), ", service rate 5/s");
    }

    #[test]
    fn what_is_no_range_is_said() {
        for (text, part) in [
            ("0.9..0.1", "upwards"),
            ("0.5..0.5", "upwards"),
            ("0.1..0.9:2", "no longer than"),
            ("0.1..", "a share above 0"),
            ("0.1..x", "a share above 0"),
            ("0.1,,0.2", "a share above 0"),
        ] {
            let why = shares(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
        let two = QuantityOptions {
            rho: Some(shares("0.1..0.9").unwrap()),
            servers: Some(counts("1..4").unwrap()),
            ..Default::default()
        };
        assert!(two.sweep().unwrap_err().to_string().contains("--rho and --servers are both ranges"));
    }
}
