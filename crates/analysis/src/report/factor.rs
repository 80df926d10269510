//! The factors of an experiment, and the wording of their values.

use serde::{Deserialize, Serialize};

/// A factor of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// The factor's name, as in the experiment file: "rate".
    pub name: String,
    /// The unit of its values, as it follows a number: "/s", "ms"; empty without one.
    pub unit: String,
    /// How the factor's values are shown.
    #[serde(default)]
    pub kind: FactorKind,
    /// Whether the factor is a setting of the generator, not of the system: a rate, a number of clients.
    #[serde(default)]
    pub is_load: bool,
    /// The factor's values, as text without the unit.
    pub values: Vec<String>,
}

/// How the values of a factor are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactorKind {
    /// Along a line of numbers.
    #[default]
    Number,
    /// The levels are categories, shown next to each other.
    Category,
}

impl Factor {
    /// The factor's name with its unit in brackets: "rate [1/s]".
    pub fn title(&self) -> String {
        let Self { name, unit, .. } = self;
        match unit.as_str() {
            "" => name.clone(),
            per if per.starts_with('/') => format!("{name} [1{per}]"),
            unit => format!("{name} [{unit}]"),
        }
    }
}

/// The value of a factor among settings.
pub fn value_of<'a>(settings: &'a [(String, String)], factor: &str) -> &'a str {
    settings.iter().find(|(name, _)| name == factor).map_or("", |(_, value)| value)
}

/// The values of some factors in words: "length 3 kB, cache off".
pub fn words(factors: &[Factor], settings: &[(String, String)]) -> String {
    let word = |factor: &Factor| {
        let value = value_of(settings, &factor.name);
        format!("{} {}", factor.name, with_unit(value, &factor.unit))
    };
    factors.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Where settings are, in words: "80/s", or "80/s with length 3" with several factors. The first factor needs no name where it has
/// a unit. Empty without factors.
pub fn place(factors: &[Factor], settings: &[(String, String)]) -> String {
    let Some((Factor { name, unit, .. }, others)) = factors.split_first() else { return String::new() };
    let value = with_unit(value_of(settings, name), unit);
    let first = if unit.is_empty() { format!("{name} {value}") } else { value };
    let others = words(others, settings);
    if others.is_empty() { first } else { format!("{first} with {others}") }
}

/// A value with its unit: "80/s", "20 ms".
pub fn with_unit(value: &str, unit: &str) -> String {
    let space = if unit.is_empty() || unit.starts_with(['/', '%']) { "" } else { " " };
    format!("{value}{space}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_a_factor_only_where_no_unit_does() {
        let factor = |name: &str, unit: &str| Factor {
            name: name.to_owned(),
            unit: unit.to_owned(),
            kind: FactorKind::Number,
            is_load: false,
            values: Vec::new(),
        };
        let settings =
            [("rate", "40"), ("workers", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(place(&[factor("rate", "/s"), factor("workers", "")], &settings), "40/s with workers 2");
        assert_eq!(place(&[factor("workers", "")], &settings), "workers 2");
        assert_eq!(place(&[], &settings), "");
    }
}
