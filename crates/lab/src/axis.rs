//! The factors of an experiment as a report shows them: names, units, and the place of each value on the axis.

use kendall_report::Factor;

use crate::experiment::{Combination, Section, Variable};
use crate::lab::{Capacity, Lab};
use crate::parameter::Value;

/// How the factors' values are written. The first is the horizontal axis: a factor of the load, where there is one,
/// for response against load is what one looks at first.
pub(crate) struct Axis {
    names: Vec<&'static str>,
    /// What 100 % is, where it is the same for every combination: shares are then shown as rates.
    capacity_per_s: Option<f64>,
}

impl Axis {
    pub(crate) fn of(lab: &Lab, capacities: &[Capacity]) -> Self {
        let experiment = lab.experiment();
        let factors = experiment.factors();
        let (load, other): (Vec<_>, Vec<_>) = factors.partition(|factor| factor.section == Section::Load);
        let mut names: Vec<&'static str> =
            load.iter().chain(&other).map(|factor| factor.parameter.name).collect();
        // A report of one combination still has an axis to put it on.
        if names.is_empty() {
            let set = |name: &&'static str| {
                experiment.variables.iter().any(|variable| variable.parameter.name == *name)
            };
            names.extend(["rate", "gap", "users", "trace"].into_iter().find(set));
        }
        let given = lab.combinations()[0].load.number("capacity");
        let capacity_per_s = match (given, capacities) {
            (Some(given), _) if !names.contains(&"capacity") => Some(given),
            (None, [only]) => Some(only.capacity_per_s),
            _ => None,
        };
        Self { names, capacity_per_s }
    }

    pub(crate) fn factors(&self, lab: &Lab) -> Vec<Factor> {
        let factor = |&name: &&'static str| {
            let mut values: Vec<String> = Vec::new();
            for combination in lab.combinations() {
                let (_, text) = self
                    .settings(combination)
                    .into_iter()
                    .find(|setting| setting.0 == name)
                    .expect("a factor is set");
                if !values.contains(&text) {
                    values.push(text);
                }
            }
            Factor { name: name.into(), unit: self.unit(name).into(), values }
        };
        self.names.iter().map(factor).collect()
    }

    /// The factors and their values in a combination, without units.
    pub(crate) fn settings(&self, combination: &Combination) -> Vec<(String, String)> {
        let text = |name: &'static str| match (self.value(combination, name), self.capacity_per_s) {
            (Some(Value::Share(share)), Some(capacity)) => significant(share * capacity),
            (Some(value), _) => value.to_string(),
            (None, _) => String::new(),
        };
        self.names.iter().map(|&name| (name.to_owned(), text(name))).collect()
    }

    /// The place of a combination on the axis; for words, that of the word in the list of them.
    pub(crate) fn x(&self, lab: &Lab, combination: &Combination) -> f64 {
        let first = self.names.first().and_then(|&name| self.value(combination, name));
        match (first, self.capacity_per_s) {
            (Some(Value::Share(share)), Some(capacity)) => share * capacity,
            (Some(Value::Share(share)), None) => share * 100.0,
            (Some(Value::Whole(number)), _) => *number as f64,
            (Some(Value::Number(number)), _) => *number,
            (Some(Value::Time(time)), _) => time.as_secs_f64(),
            (Some(word @ Value::Word(_)), _) => {
                let own = |factor: &&Variable| Some(&factor.parameter.name) == self.names.first();
                let factor = lab.experiment().factors().find(own);
                factor.and_then(|factor| factor.values.iter().position(|value| value == word)).unwrap_or(0)
                    as f64
            }
            (None, _) => 0.0,
        }
    }

    /// Whether the axis is the rate in requests per second, so that a formula can be drawn along it.
    pub(crate) fn is_rate(&self) -> bool {
        self.names.first() == Some(&"rate") && self.capacity_per_s.is_some()
    }

    fn unit(&self, name: &str) -> &'static str {
        if name == "rate" && self.capacity_per_s.is_some() { "/s" } else { "" }
    }

    fn value<'c>(&self, combination: &'c Combination, name: &str) -> Option<&'c Value> {
        let all = [&combination.load, &combination.server, &combination.workload];
        all.into_iter().find_map(|settings| settings.get(name))
    }
}

/// Three significant digits, as a plain number.
fn significant(value: f64) -> String {
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let scale = 10f64.powi(2 - value.abs().log10().floor() as i32);
    let text = format!("{:.decimals$}", (value * scale).round() / scale);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn rates_are_written_short() {
        let cases =
            [(813.27, "813"), (81.327, "81.3"), (8.0, "8"), (0.0123456, "0.0123"), (12345.6, "12300")];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
    }
}
