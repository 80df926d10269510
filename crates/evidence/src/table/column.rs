//! The meaning of a header: a quantity, its unit, and the possible values.

use super::name::canonical;
use super::{Row, TableError};

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) enum Column {
    /// A known quantity.
    Quantity { name: String, target: Target, unit: Unit, must: Must },
    /// Any other column; it names its rows.
    Label(String),
}

/// The destination of a value.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Field(Field),
    /// A quantile of the response time.
    Quantile(f64),
}

type Field = fn(&mut Row) -> &mut Option<f64>;

/// How a value becomes one in seconds, per second, or a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit(f64);

impl Unit {
    /// Divides by whole numbers, which is exact where multiplying by 0.001 is not.
    pub(crate) fn convert(self, value: f64) -> f64 {
        if self.0 >= 1.0 { value / self.0 } else { value * (1.0 / self.0) }
    }
}

/// What a value must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Must {
    Positive,
    NotNegative,
    Whole,
    Share,
}

impl Must {
    pub(super) fn holds(self, value: f64) -> bool {
        match self {
            Self::Positive => value > 0.0,
            Self::NotNegative => value >= 0.0,
            Self::Whole => value >= 1.0 && value.fract() == 0.0,
            Self::Share => (0.0..=1.0).contains(&value),
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Positive => "above zero",
            Self::NotNegative => "zero or above",
            Self::Whole => "a whole number, at least 1",
            Self::Share => {
                "from 0 to 1 (or from 0 to 100 in a column of per cent; a number of requests is not a share)"
            }
        }
    }
}

/// Suffixes, and how many of the unit make a second, one per second, or the whole.
pub(crate) const TIME: &[(&str, f64)] =
    &[("_s", 1.0), ("_ms", 1e3), ("_us", 1e6), ("_ns", 1e9), ("_min", 1.0 / 60.0)];
pub(crate) const RATE: &[(&str, f64)] =
    &[("_per_s", 1.0), ("_per_min", 60.0), ("_per_h", 3600.0), ("_per_ms", 1e-3)];
pub(crate) const SHARE: &[(&str, f64)] = &[("", 1.0), ("_percent", 100.0), ("_pct", 100.0)];
const PLAIN: &[(&str, f64)] = &[("", 1.0)];

/// A quantity: its name, the units it may have, what its values must be, and where they go.
type Known = (&'static str, &'static [(&'static str, f64)], Must, Field);

const KNOWN: &[Known] = &[
    ("rate", RATE, Must::Positive, |row| &mut row.rate_per_s),
    ("users", PLAIN, Must::Whole, |row| &mut row.users),
    ("think", TIME, Must::NotNegative, |row| &mut row.think_s),
    ("response_mean", TIME, Must::Positive, |row| &mut row.response_mean_s),
    ("response_half_width", TIME, Must::NotNegative, |row| &mut row.response_half_width_s),
    ("response_model", TIME, Must::Positive, |row| &mut row.response_model_s),
    ("waiting_mean", TIME, Must::NotNegative, |row| &mut row.waiting_mean_s),
    ("throughput", RATE, Must::Positive, |row| &mut row.throughput_per_s),
    ("throughput_half_width", RATE, Must::NotNegative, |row| &mut row.throughput_half_width_per_s),
    ("utilisation", SHARE, Must::NotNegative, |row| &mut row.utilisation),
    ("cpu_cores", PLAIN, Must::NotNegative, |row| &mut row.cpu_cores),
    ("service_mean", TIME, Must::Positive, |row| &mut row.service_mean_s),
    ("service_rate", RATE, Must::Positive, |row| &mut row.service_rate_per_s),
    ("service_scv", PLAIN, Must::NotNegative, |row| &mut row.service_scv),
    ("servers", PLAIN, Must::Whole, |row| &mut row.servers),
    ("capacity", PLAIN, Must::Whole, |row| &mut row.capacity),
    ("backlog", PLAIN, Must::Whole, |row| &mut row.backlog),
    ("delay", TIME, Must::NotNegative, |row| &mut row.delay_s),
    ("lost", SHARE, Must::Share, |row| &mut row.lost),
    ("requests", PLAIN, Must::Whole, |row| &mut row.requests),
    ("duration", TIME, Must::Positive, |row| &mut row.duration_s),
];

/// The known headers, each with its first unit. `response_pNN_s` stands for every quantile.
pub fn quantities() -> String {
    let named = |&(name, units, ..): &Known| format!("{name}{}", units[0].0);
    let mut names: Vec<String> = KNOWN.iter().map(named).collect();
    names.insert(4, "response_pNN_s".into());
    names.join(", ")
}

impl Column {
    /// Reads a header. Case, spaces and brackets do not matter: "Response mean (ms)" is `response_mean_ms`, as `mean_ms` is.
    pub(super) fn of(header: &str, line: u64) -> Result<Self, TableError> {
        let name = canonical(header);
        let no_unit = |quantity: &str, units: &[(&str, f64)]| {
            let units: Vec<&str> = units.iter().map(|(suffix, _)| *suffix).collect();
            let quantity = quantity.trim_start_matches("response_").to_owned();
            TableError::Unit { line, column: header.into(), quantity, units: units.join(", ") }
        };
        if let Some((quantity, unit)) = split(&name, TIME)
            && let Some(quantile) = quantity.strip_prefix("response_p")
            && quantile.starts_with(|c: char| c.is_ascii_digit())
        {
            let wrong = || TableError::Quantile { line, column: header.into() };
            let target = Target::Quantile(share(quantile).ok_or_else(wrong)?);
            return Ok(Self::Quantity { name, target, unit, must: Must::Positive });
        }
        if name.strip_prefix("response_p").and_then(share).is_some() {
            return Err(no_unit(&name, &TIME[..4]));
        }
        for &(quantity, units, must, field) in KNOWN {
            if split(&name, units).is_some_and(|(stem, _)| stem == quantity) {
                let (_, unit) = split(&name, units).expect("it was just found");
                return Ok(Self::Quantity { name, target: Target::Field(field), unit, must });
            }
            if name == quantity {
                return Err(no_unit(quantity, units));
            }
        }
        Ok(Self::Label(header.to_owned()))
    }

    /// Whether values of this column go there, too.
    pub(super) fn is(&self, other: &Target) -> bool {
        match (self, other) {
            (Self::Quantity { target: Target::Quantile(p), .. }, Target::Quantile(q)) => p == q,
            (Self::Quantity { target: Target::Field(field), .. }, Target::Field(other)) => {
                let mut row = Row::default();
                *other(&mut row) = Some(1.0);
                field(&mut row).is_some()
            }
            _ => false,
        }
    }
}

/// A name without its unit, and the unit. The longest suffix wins.
pub(crate) fn split<'n>(name: &'n str, units: &[(&str, f64)]) -> Option<(&'n str, Unit)> {
    let fits = |(suffix, per): &(&str, f64)| Some((name.strip_suffix(suffix)?, Unit(*per)));
    units.iter().filter_map(fits).min_by_key(|(stem, _)| stem.len())
}

/// The share that a quantile's name means: "50" is 0.5, "99.9", "99_9" and "999" are 0.999. Without a separator a third digit is
/// read only after a 9: 200 is more likely a mistake than 20.0. A name has at most six digits after the separator, which all are shown.
pub(crate) fn share(name: &str) -> Option<f64> {
    let (whole, part) = match name.split_once(['.', '_']) {
        Some(parts) => parts,
        None if name.len() > 2 && name.starts_with('9') && name.is_ascii() => name.split_at(2),
        None => (name, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_share = (1..=2).contains(&whole.len()) && digits(whole) && digits(part) && part.len() <= 6;
    format!("0.{whole:0>2}{part}").parse().ok().filter(|p| is_share && *p > 0.0)
}
