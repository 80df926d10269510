//! How numbers, laws and lists of `key=value` are written in one word of the command line.

use std::str::FromStr;

use kendall_station::{Kind, Law};
use kendall_stats::quantity;

/// The pairs of `key=value,key=value`.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    text.split(',').map(|pair| match pair.split_once('=') {
        Some((key, value)) => Ok((key.trim(), value.trim())),
        None => Err(format!("{pair:?} is not key=value")),
    })
}

/// A finite number that is not negative.
pub(crate) fn number(key: &str, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("{key} is {text:?}; it must be a number, and not negative")),
    }
}

/// A finite number above zero.
pub(crate) fn positive(key: &str, text: &str) -> Result<f64, String> {
    above_zero(key, text, number(key, text)?)
}

/// A time in seconds that is not negative: 3, 3s or 100ms.
pub(crate) fn time_s(key: &str, text: &str) -> Result<f64, String> {
    let must = || format!("{key} is {text:?}; it must be a number of seconds or a time such as 100ms");
    quantity::time_s(text).ok_or_else(must)
}

/// Reads a time above zero.
pub(crate) fn positive_time_s(key: &str, text: &str) -> Result<f64, String> {
    above_zero(key, text, time_s(key, text)?)
}

/// A rate per second that is not negative: 100, 100/s, 2k or 600/min.
pub(crate) fn rate(key: &str, text: &str) -> Result<f64, String> {
    let must =
        || format!("{key} is {text:?}; it must be a number per second or a rate such as 2k or 600/min");
    quantity::rate_per_s(text).ok_or_else(must)
}

/// Reads a rate above zero.
pub(crate) fn positive_rate(key: &str, text: &str) -> Result<f64, String> {
    above_zero(key, text, rate(key, text)?)
}

fn above_zero(key: &str, text: &str, value: f64) -> Result<f64, String> {
    if value > 0.0 { Ok(value) } else { Err(format!("{key} is {text:?}; it must be above zero")) }
}

/// A law as `[KIND:]MEAN[:SCV]`: 2 and M:2 are exponential with a mean of 2 s, D:2 is constant, LN:2:4 log-normal with a
/// squared coefficient of variation of 4.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WrittenLaw(pub(crate) Law);

impl FromStr for WrittenLaw {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').map(str::trim).collect();
        let (kind, mean, scv) = match parts[..] {
            [mean] => ("M", mean, None),
            [kind, mean] => (kind, mean, None),
            [kind, mean, scv] => (kind, mean, Some(scv)),
            _ => {
                return Err(format!(
                    "{text:?} is not a distribution; write KIND:MEAN or KIND:MEAN:SCV, such as D:2 or LN:2:4"
                ));
            }
        };
        let kind: Kind = kind.parse().map_err(|error| format!("{error}"))?;
        let mean_s = time_s("the mean of a distribution", mean)?;
        let scv = scv.map(|scv| number("the squared coefficient of variation", scv)).transpose()?;
        let law = kind.law(mean_s, scv).map_err(|error| error.to_string())?;
        law.validate().map_err(|error| error.to_string())?;
        Ok(Self(law))
    }
}

/// Reads a law where it stands as a value.
pub(crate) fn law(text: &str) -> Result<Law, String> {
    text.parse().map(|WrittenLaw(law)| law)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_read_by_their_letters() {
        assert_eq!(law("2"), Ok(Law::Exponential { mean_s: 2.0 }));
        assert_eq!(law("M:2"), law("2"));
        assert_eq!(law("D:2000ms"), law("D:2"));
        assert_eq!(law("D:0"), Ok(Law::Constant { mean_s: 0.0 }));
        assert_eq!(law("E3:0.5"), Ok(Law::Erlang { shape: 3, mean_s: 0.5 }));
        assert_eq!(law("LN:2:4"), Ok(Law::LogNormal { mean_s: 2.0, scv: 4.0 }));
        for (text, part) in [
            ("", "a number"),
            ("M:-1", "a number"),
            ("M:0", "positive"),
            ("Q:1", "not a law"),
            ("H2:1", "coefficient of variation"),
            ("M:1:1:1", "KIND:MEAN"),
        ] {
            let why = law(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
