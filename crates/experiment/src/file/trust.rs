//! The settings of trust in an experiment file: the width of intervals, the limit for a disturbed trial, whether processors may sleep, and
//! expectations.

use std::time::Duration;

use kendall_evidence::expect::{Expectation, Measure};
use kendall_station::QUANTILES;
use toml::Spanned;
use toml::de::DeValue;

use super::Reader;
use super::items::in_order;
use crate::experiment::{ExpectedAt, Experiment};
use crate::fault::Fault;
use crate::precision::Precision;
use kendall_system::{Kind, Value};

/// The share of the machine's processor time, beyond the usual share in a run, from which on other programs disturb a trial.
/// `disturbed-over` overrides it.
pub const DISTURBED_OVER: f64 = 0.02;
/// The repeats of an experiment without a precision.
const REPEATS: u32 = 3;

impl Reader<'_> {
    /// The number of repeats of each combination, and the precision for which there are more.
    pub(super) fn repeats<'v>(
        &self,
        repeats: Option<u64>,
        at_most: Option<u64>,
        find: impl Fn(&str) -> Option<&'v Spanned<DeValue<'v>>>,
    ) -> Result<(u32, Option<Precision>), Fault> {
        let Some(item) = find("precision") else {
            for name in ["precision-of", "repeats-at-most", "time-at-most"] {
                if let Some(item) = find(name) {
                    let message = format!("{name} has no effect without a precision; set precision = \"5%\"");
                    return Err(self.fault(item.span(), message));
                }
            }
            return Ok((repeats.map_or(REPEATS, |repeats| repeats as u32), None));
        };
        let relative = self.share("precision", item, 1.0)?;
        let of = find("precision-of").map_or(Ok(Measure::Mean), |item| self.precision_of(item))?;
        let time_at_most = find("time-at-most").map(|item| self.time("time-at-most", item)).transpose()?;
        let repeats = repeats.map_or(Precision::REPEATS_AT_LEAST, |repeats| repeats as u32);
        let default = Precision::REPEATS_AT_MOST.max(repeats);
        let repeats_at_most = at_most.map_or(default, |most| most as u32);
        if repeats_at_most < repeats {
            let place = find("repeats-at-most").map_or(0..0, Spanned::span);
            let message =
                format!("repeats-at-most is less than the {repeats} repeats that are run in any case");
            return Err(self.fault(place, message));
        }
        Ok((repeats, Some(Precision { relative, of, repeats_at_most, time_at_most })))
    }

    fn precision_of(&self, item: &Spanned<DeValue<'_>>) -> Result<Measure, Fault> {
        let name = self.text_of("precision-of", item)?;
        match name.parse::<Measure>() {
            Ok(Measure::Mean) => Ok(Measure::Mean),
            Ok(Measure::Quantile(p)) if QUANTILES.contains(&p) => Ok(Measure::Quantile(p)),
            _ => Err(self.fault(
                item.span(),
                format!("precision-of must be mean, p50, p90, p95, p99 or p99.9, not {name:?}"),
            )),
        }
    }

    pub(super) fn disturbed_over(&self, item: Option<&Spanned<DeValue<'_>>>) -> Result<f64, Fault> {
        item.map_or(Ok(DISTURBED_OVER), |item| self.share("disturbed-over", item, 1.0))
    }

    pub(super) fn keep_awake(&self, item: Option<&Spanned<DeValue<'_>>>) -> Result<bool, Fault> {
        match item.map(|item| (item.get_ref(), item.span())) {
            None => Ok(false),
            Some((DeValue::Boolean(awake), _)) => Ok(*awake),
            Some((_, place)) => Err(self.fault(place, "keep-awake must be true or false")),
        }
    }

    /// The expectations: one section for all combinations, or a list of sections, each with optional levels `at` which it
    /// applies.
    pub(super) fn expected(
        &self,
        item: &Spanned<DeValue<'_>>,
        experiment: &Experiment,
    ) -> Result<Vec<ExpectedAt>, Fault> {
        let sections: Vec<&Spanned<DeValue<'_>>> = match item.get_ref().as_array() {
            Some(list) => list.iter().collect(),
            None => vec![item],
        };
        let mut expected = Vec::new();
        for section in sections {
            let items = in_order(self.table("expect", section)?);
            let at = match items.iter().find(|item| item.0 == "at") {
                Some((_, _, levels)) => self.levels("at", levels, experiment)?,
                None => Vec::new(),
            };
            for (key, place, value) in items.into_iter().filter(|item| item.0 != "at") {
                let limit = self.text_of(key, value)?;
                let expectation = format!("{key}{limit}").parse::<Expectation>().map_err(|_| {
                    let known = key.parse::<Measure>().is_ok();
                    let (place, message) = match known {
                        true => (value.span(), format!("{key} must be a limit such as \"<50ms\", \">990/s\" or \"<1%\", not {limit:?}")),
                        false => (place, format!("{key:?} cannot be expected; known are mean, p50 to p99.99, throughput and errors")),
                    };
                    self.fault(place, message)
                })?;
                expected.push(ExpectedAt { at: at.clone(), expectation });
            }
        }
        Ok(expected)
    }

    /// A share above 0 and up to `most`, as "5%" or 0.05.
    fn share(&self, name: &str, item: &Spanned<DeValue<'_>>, most: f64) -> Result<f64, Fault> {
        let share = match self.value(name, &Kind::Rate, item)? {
            Value::Share(share) | Value::Number(share) => share,
            other => unreachable!("a rate is a share or a number, not {other:?}"),
        };
        if share <= most {
            return Ok(share);
        }
        Err(self.fault(
            item.span(),
            format!("{name} must be a share such as \"5%\", and at most {} %", most * 100.0),
        ))
    }

    fn time(&self, name: &str, item: &Spanned<DeValue<'_>>) -> Result<Duration, Fault> {
        match self.value(name, &Kind::Time, item)? {
            Value::Time(time) => Ok(time),
            other => unreachable!("a time is a time, not {other:?}"),
        }
    }
}
