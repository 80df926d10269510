//! The factors of an experiment as a report shows them: their order, names, units, and the place of each value.

use kendall_experiment::{self as experiment, Capacity, Combination, Experiment, RunFolder, Section};
use kendall_system::Value;

use crate::report::factor::{Factor, FactorKind};

/// How the factors' values are written, and in which order the factors stand.
pub(crate) struct Axis {
    factors: Vec<experiment::Factor>,
    layout: Layout,
    /// What 100 % is, where it is the same for every combination: shares are then shown as rates.
    capacity_per_s: Option<f64>,
}

/// The factors that structure a report.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// The first factor is an axis of numbers: one of the load, where there is one, because response against load is the first thing to
    /// read.
    Line,
    /// Some factors are words, and none is a number of the load. Factors of the workload come first and those of the server last, so
    /// that ways to serve are neighbours under each workload.
    Categories,
}

impl Layout {
    fn of(factors: &[experiment::Factor]) -> Self {
        let words = factors.iter().any(experiment::Factor::is_of_words);
        if words && !factors.iter().any(is_number_of_load) { Self::Categories } else { Self::Line }
    }

    fn rank(self, factor: &experiment::Factor) -> u8 {
        match (self, factor.section) {
            (Self::Line, _) => u8::from(!is_number_of_load(factor)),
            (Self::Categories, None) => 0,
            (Self::Categories, Some(Section::Load)) => 1,
            (Self::Categories, Some(Section::Workload)) => 2,
            (Self::Categories, Some(Section::Link)) => 3,
            (Self::Categories, Some(Section::System)) => 4,
        }
    }
}

fn is_number_of_load(factor: &experiment::Factor) -> bool {
    factor.section == Some(Section::Load) && !factor.is_of_words()
}

impl Axis {
    pub(crate) fn of(run: &RunFolder, capacities: &[Capacity]) -> Self {
        let experiment = run.experiment();
        let mut factors = experiment.factors();
        let layout = Layout::of(&factors);
        factors.sort_by_key(|factor| layout.rank(factor));
        if factors.is_empty() {
            factors.extend(only_place(experiment));
        }
        let given = |combination: &Combination| combination.load.number("capacity");
        let first = given(&run.combinations()[0]);
        let one_for_all = run.combinations().iter().all(|combination| given(combination) == first);
        let capacity_per_s = match (first, capacities) {
            (Some(first), _) if one_for_all => Some(first),
            (None, [only]) => Some(only.capacity_per_s),
            _ => None,
        };
        Self { factors, layout, capacity_per_s }
    }

    pub(crate) fn factors(&self, run: &RunFolder) -> Vec<Factor> {
        let factor = |factor: &experiment::Factor| {
            let mut values: Vec<String> = Vec::new();
            for combination in run.combinations() {
                let text = self.text(combination, factor.name);
                if !values.contains(&text) {
                    values.push(text);
                }
            }
            let category = self.layout == Layout::Categories || factor.is_of_words();
            let kind = if category { FactorKind::Category } else { FactorKind::Number };
            let is_load = factor.section == Some(Section::Load);
            Factor { name: factor.name.into(), unit: self.unit(factor).into(), kind, is_load, values }
        };
        self.factors.iter().map(factor).collect()
    }

    /// The combinations in the order in which a report shows them.
    pub(crate) fn in_order<'l>(&self, run: &'l RunFolder) -> Vec<(usize, &'l Combination)> {
        let mut all: Vec<_> = run.combinations().iter().enumerate().collect();
        if self.layout == Layout::Categories {
            all.sort_by_cached_key(|(_, combination)| {
                let place = |factor| place(factor, value(combination, factor.name));
                self.factors.iter().map(place).collect::<Vec<_>>()
            });
        }
        all
    }

    /// The factors and their values in a combination, without units.
    pub(crate) fn settings(&self, combination: &Combination) -> Vec<(String, String)> {
        let setting =
            |factor: &experiment::Factor| (factor.name.to_owned(), self.text(combination, factor.name));
        self.factors.iter().map(setting).collect()
    }

    fn text(&self, combination: &Combination, name: &str) -> String {
        match (value(combination, name), self.capacity_per_s) {
            (Some(Value::Share(share)), Some(capacity)) => significant(share * capacity),
            (Some(value), _) => value.to_string(),
            (None, _) => String::new(),
        }
    }

    /// The place of a combination on the axis; for categories, that in the list of them.
    pub(crate) fn x(&self, combination: &Combination) -> f64 {
        let Some(first) = self.factors.first() else { return 0.0 };
        let value = value(combination, first.name);
        match (value, self.capacity_per_s) {
            _ if self.layout == Layout::Categories => place(first, value) as f64,
            (Some(Value::Share(share)), Some(capacity)) => share * capacity,
            (Some(Value::Share(share)), None) => share * 100.0,
            (Some(Value::Whole(number)), _) => *number as f64,
            (Some(Value::Number(number)), _) => *number,
            (Some(Value::Time(time)), _) => time.as_secs_f64(),
            (Some(Value::Word(_)) | None, _) => place(first, value) as f64,
        }
    }

    /// Whether the axis is the rate in requests per second, so that a formula can be drawn along it.
    pub(crate) fn is_rate(&self) -> bool {
        self.layout == Layout::Line && self.factors.first().is_some_and(|factor| self.is_per_second(factor))
    }

    fn unit(&self, factor: &experiment::Factor) -> &'static str {
        if self.is_per_second(factor) { "/s" } else { "" }
    }

    /// Whether the factor is the rate in requests per second. Shares of capacities that differ are not one.
    fn is_per_second(&self, factor: &experiment::Factor) -> bool {
        let is_share = |value: &Value| matches!(value, Value::Share(_));
        factor.name == "rate"
            && factor.section == Some(Section::Load)
            && (self.capacity_per_s.is_some() || !factor.values.iter().any(is_share))
    }
}

/// A report of one combination still has an axis to put it on.
fn only_place(experiment: &Experiment) -> Option<experiment::Factor> {
    let set = |name: &&str| experiment.variables.iter().find(|variable| variable.parameter.name == *name);
    let variable = ["rate", "gap", "users", "trace"].iter().find_map(set)?;
    Some(experiment::Factor {
        name: variable.parameter.name,
        section: Some(variable.section),
        values: variable.values.clone(),
    })
}

/// The value of a factor or parameter in a combination.
fn value<'c>(combination: &'c Combination, name: &str) -> Option<&'c Value> {
    let level = combination.levels.iter().find(|(factor, _)| *factor == name).map(|(_, level)| level);
    let all = [&combination.load, &combination.server, &combination.workload];
    level.or_else(|| all.into_iter().find_map(|settings| settings.get(name)))
}

/// The place of a value among those of its factor.
fn place(factor: &experiment::Factor, value: Option<&Value>) -> usize {
    factor.values.iter().position(|known| Some(known) == value).unwrap_or(0)
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
    use super::*;

    #[test]
    fn rates_are_written_short() {
        let cases =
            [(813.27, "813"), (81.327, "81.3"), (8.0, "8"), (0.0123456, "0.0123"), (12345.6, "12300")];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn rates_are_per_second_unless_they_are_shares_of_capacities_that_differ() {
        let is_rate = |values: &[Value], capacity_per_s| {
            let section = Some(Section::Load);
            let factors = vec![experiment::Factor { name: "rate", section, values: values.to_vec() }];
            let axis = Axis { factors, layout: Layout::Line, capacity_per_s };
            assert_eq!(axis.unit(&axis.factors[0]), if axis.is_rate() { "/s" } else { "" });
            axis.is_rate()
        };
        let (rates, shares) =
            ([Value::Number(200.0), Value::Number(800.0)], [Value::Share(0.5), Value::Share(0.9)]);
        assert!(is_rate(&rates, None) && is_rate(&rates, Some(400.0)) && is_rate(&shares, Some(400.0)));
        assert!(!is_rate(&shares, None));
    }

    #[test]
    fn ways_to_serve_stand_side_by_side_under_what_is_asked() {
        let words = ["a", "b"].map(|word| Value::Word(word.into())).to_vec();
        let numbers = vec![Value::Whole(1), Value::Whole(2)];
        let factor =
            |name, section, values: &[Value]| experiment::Factor { name, section, values: values.to_vec() };
        let order = |mut factors: Vec<experiment::Factor>| {
            let layout = Layout::of(&factors);
            factors.sort_by_key(|factor| layout.rank(factor));
            factors.iter().map(|factor| factor.name).collect::<Vec<_>>()
        };
        let discipline = factor("discipline", Some(Section::System), &words);
        let workers = factor("workers", Some(Section::System), &numbers);
        let difficulty = factor("difficulty", Some(Section::Workload), &numbers);
        let users = factor("users", Some(Section::Load), &numbers);
        let cases = factor(experiment::CASE, None, &words);
        assert_eq!(order(vec![discipline.clone(), difficulty.clone()]), ["difficulty", "discipline"]);
        assert_eq!(order(vec![cases, discipline.clone()]), ["case", "discipline"]);
        assert_eq!(order(vec![discipline, users]), ["users", "discipline"]);
        assert_eq!(order(vec![workers, difficulty]), ["workers", "difficulty"]);
    }
}
