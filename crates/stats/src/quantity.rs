//! Times and rates in common notation, for command lines, files and URLs alike: `3`, `3s`, `100ms`; `100/s`, `2k`, `600/min`.

/// Parses a time in seconds: `250ms`, `1.5s`, `2m` or `2min`, `1h`, `800ns`; a number alone is in seconds. `None` for anything but
/// a finite time that is not negative.
pub fn time_s(text: &str) -> Option<f64> {
    let text = text.trim();
    let plain = text.parse::<f64>().ok();
    let with_unit = || {
        let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic() || c == 'µ')?);
        let unit_s = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        Some(number.trim().parse::<f64>().ok()? * unit_s)
    };
    plain.or_else(with_unit).filter(|time_s| time_s.is_finite() && *time_s >= 0.0)
}

/// Parses a rate per second: `20`, `100/s`, `2k`, `1.5M/s`, `600/min`, `90/h`. `None` for anything but a finite rate that is not
/// negative.
pub fn rate_per_s(text: &str) -> Option<f64> {
    let (number, per_s) = match text.trim().split_once('/') {
        None => (text.trim(), 1.0),
        Some((number, "s")) => (number, 1.0),
        Some((number, "min" | "m")) => (number, 1.0 / 60.0),
        Some((number, "h")) => (number, 1.0 / 3600.0),
        Some(_) => return None,
    };
    let number = number.trim_end();
    let (number, scale) = match (number.strip_suffix('k'), number.strip_suffix('M')) {
        (Some(thousands), _) => (thousands, 1e3),
        (None, Some(millions)) => (millions, 1e6),
        (None, None) => (number, 1.0),
    };
    let rate = number.trim().parse::<f64>().ok()? * scale * per_s;
    (rate.is_finite() && rate >= 0.0).then_some(rate)
}

/// A time of a model in seconds, which may be 0, at full precision.
///
/// # Errors
/// Fails on anything else, with examples of times.
pub fn seconds(text: &str) -> Result<f64, String> {
    let within = |seconds: &f64| *seconds <= 1e12;
    time_s(text).filter(within).ok_or_else(|| "must be a time such as 3, 3s or 100ms".into())
}

/// A time of a model in seconds, above 0.
///
/// # Errors
/// As [`seconds`], and if it is 0.
pub fn positive_seconds(text: &str) -> Result<f64, String> {
    seconds(text).and_then(|seconds| {
        if seconds >= 1e-12 { Ok(seconds) } else { Err("must be greater than 0, for example 100ms".into()) }
    })
}

/// A rate per second, above 0: 100, 100/s, 2k or 600/min.
///
/// # Errors
/// Fails on anything else, with examples of rates.
pub fn rate(text: &str) -> Result<f64, String> {
    let within = |rate: &f64| (1e-12..=1e12).contains(rate);
    rate_per_s(text)
        .filter(within)
        .ok_or_else(|| "must be a positive rate, such as 100, 100/s, 2k or 600/min".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_in_seconds() {
        let read = [
            ("3", 3.0),
            ("3s", 3.0),
            ("100ms", 0.1),
            (" 1.5 s ", 1.5),
            ("2m", 120.0),
            ("2min", 120.0),
            ("1h", 3600.0),
            ("250µs", 250e-6),
            ("800ns", 800e-9),
            ("1e-12", 1e-12),
            ("0", 0.0),
        ];
        for (text, seconds) in read {
            let found = time_s(text).unwrap();
            assert!((found - seconds).abs() <= 1e-12 * seconds, "{text}: {found}");
        }
        for text in ["", "s", "-1s", "1 day", "1s 2", "inf", "NaN", "1ms/s"] {
            assert_eq!(time_s(text), None, "{text}");
        }
    }

    #[test]
    fn rates_have_thousands_and_units_or_are_per_second() {
        let read = [
            ("20", 20.0),
            ("100/s", 100.0),
            ("2k", 2000.0),
            ("2k/s", 2000.0),
            ("1.5M", 1.5e6),
            ("600/min", 10.0),
            ("90/h", 0.025),
            ("1e3", 1000.0),
        ];
        for (text, per_s) in read {
            let found = rate_per_s(text).unwrap();
            assert!((found - per_s).abs() <= 1e-12 * per_s, "{text}: {found}");
        }
        for text in ["", "/s", "2k/day", "-1/s", "inf", "80%", "2K"] {
            assert_eq!(rate_per_s(text), None, "{text}");
        }
    }
}
