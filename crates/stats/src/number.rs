//! The format of numbers and times on screen: significant digits, a suitable unit, no exponents, never "NaN".

/// The text for a missing number.
pub const NONE: &str = "–";

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// ns
    Nanoseconds,
    /// µs
    Microseconds,
    /// ms
    Milliseconds,
    /// s
    Seconds,
    /// min
    Minutes,
    /// h
    Hours,
    /// d
    Days,
}

impl TimeUnit {
    /// The largest unit in which the time is at least 1.
    pub fn for_s(time_s: f64) -> Self {
        match time_s.abs() {
            time_s if time_s >= 1.0 => Self::Seconds,
            time_s if time_s >= 1e-3 => Self::Milliseconds,
            time_s if time_s >= 1e-6 => Self::Microseconds,
            time_s if time_s > 0.0 => Self::Nanoseconds,
            _ => Self::Seconds,
        }
    }

    /// The unit for a time in words: minutes, hours or days from two of them on.
    pub fn in_words(time_s: f64) -> Self {
        match time_s.abs() {
            time_s if time_s >= 172_800.0 => Self::Days,
            time_s if time_s >= 7200.0 => Self::Hours,
            time_s if time_s >= 120.0 => Self::Minutes,
            _ => Self::for_s(time_s),
        }
    }

    /// The number of this unit per second.
    pub fn per_s(self) -> f64 {
        match self {
            Self::Nanoseconds => 1e9,
            Self::Microseconds => 1e6,
            Self::Milliseconds => 1e3,
            Self::Seconds => 1.0,
            Self::Minutes => 1.0 / 60.0,
            Self::Hours => 1.0 / 3600.0,
            Self::Days => 1.0 / 86_400.0,
        }
    }

    /// The symbol of the unit.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Minutes => "min",
            Self::Hours => "h",
            Self::Days => "d",
        }
    }

    /// A time in this unit, without its symbol, to three significant digits.
    pub fn number(self, time_s: f64) -> String {
        significant(time_s * self.per_s(), 3)
    }
}

/// A number in plain decimals with the given significant digits; whole digits are never dropped.
pub fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent after rounding: 9.996 to three digits is 10.0, not 10.00.
    let scientific = format!("{:.*e}", (digits - 1) as usize, value);
    let exponent: i32 =
        scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).expect("e notation has an exponent");
    format!("{value:.*}", (digits - 1 - exponent).clamp(0, 12) as usize)
}

/// A whole number with commas between groups of three digits from five digits on: "9999", "29,956", "1,936,384".
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of things, in the singular for one: "1 server", "29,956 requests".
pub fn counted(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {one}s", count(number)) }
}

/// A time with a suitable unit: "12.3 ms".
pub fn time(time_s: f64) -> String {
    let unit = TimeUnit::in_words(time_s);
    format!("{} {}", unit.number(time_s), unit.symbol())
}

/// A time that is only roughly known, to two significant digits: "4 min", "1.5 h".
pub fn rough_time(time_s: f64) -> String {
    let unit = TimeUnit::in_words(time_s);
    let number = significant(time_s * unit.per_s(), 2);
    format!("{} {}", number.strip_suffix(".0").unwrap_or(&number), unit.symbol())
}

/// A time and its interval in one unit: "8.10 ms [7.20, 9.00]".
pub fn time_with_interval(time_s: f64, interval: Option<(f64, f64)>) -> String {
    let unit = TimeUnit::in_words(time_s);
    match interval {
        Some((low, high)) => format!("{} [{}, {}]", time(time_s), unit.number(low), unit.number(high)),
        None => time(time_s),
    }
}

/// A share as a percentage, to two significant digits below 100 %: "52 %".
pub fn percent(share: f64) -> String {
    match share.abs() {
        size if !size.is_finite() => NONE.to_owned(),
        // Rounding error, not a share.
        size if size < 1e-9 => "0 %".to_owned(),
        size if size < 0.0995 => format!("{} %", significant(share * 100.0, 2)),
        _ => format!("{:.0} %", share * 100.0),
    }
}

/// The difference of a prediction from the measured value, with its sign: "+52 %".
pub fn difference(predicted: f64, measured: f64) -> Option<String> {
    let relative = predicted / measured - 1.0;
    if !relative.is_finite() {
        return None;
    }
    if relative.abs() < 5e-4 {
        return Some("±0 %".to_owned());
    }
    let sign = if relative < 0.0 { '−' } else { '+' };
    Some(format!("{sign}{}", percent(relative.abs())))
}

/// The words as a list, or their number if there are more than three.
pub fn few(words: &[String]) -> String {
    if words.len() > 3 { format!("{} points", words.len()) } else { list(words) }
}

/// "a", "a and b", "a, b and c".
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_significant_and_plain() {
        let cases = [
            (9.996, "10.0"),
            (0.012_345, "0.0123"),
            (4210.4, "4210"),
            (0.0, "0"),
            (-1.5, "-1.50"),
            (f64::NAN, NONE),
            (f64::INFINITY, NONE),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value, 3), text);
        }
    }

    #[test]
    fn a_time_reads_back_within_its_digits() {
        for exponent in -9..8 {
            let time_s = 1.2345 * 10f64.powi(exponent);
            let text = time(time_s);
            let (number, symbol) = text.split_once(' ').expect("number and unit");
            let small = [TimeUnit::Nanoseconds, TimeUnit::Microseconds, TimeUnit::Milliseconds];
            let unit = [TimeUnit::Seconds, TimeUnit::Minutes, TimeUnit::Hours, TimeUnit::Days]
                .into_iter()
                .chain(small)
                .find(|unit| unit.symbol() == symbol)
                .expect("a known unit");
            let back_s = number.parse::<f64>().expect("a plain decimal") / unit.per_s();
            assert!((back_s / time_s - 1.0).abs() < 5e-3, "{time_s} reads {text}");
        }
    }

    #[test]
    fn long_times_and_large_counts_are_in_common_notation() {
        let times = [119.0, 120.0, 5400.0, 7200.0, 172_800.0].map(time);
        assert_eq!(times, ["119 s", "2.00 min", "90.0 min", "2.00 h", "2.00 d"]);
        assert_eq!([45.0, 240.0, 5460.0, 9000.0].map(rough_time), ["45 s", "4 min", "91 min", "2.5 h"]);
        let counts = [0, 9999, 29_956, 1_936_384].map(count);
        assert_eq!(counts, ["0", "9999", "29,956", "1,936,384"]);
        assert_eq!([counted(1, "server"), counted(12_000, "request")], ["1 server", "12,000 requests"]);
    }

    #[test]
    fn shares_and_differences_read_well() {
        assert_eq!(percent(0.52), "52 %");
        assert_eq!(percent(0.0049), "0.49 %");
        assert_eq!(difference(12.3, 8.1).as_deref(), Some("+52 %"));
        assert_eq!(difference(8.1, 12.3).as_deref(), Some("−34 %"));
        assert_eq!(difference(1.0, 1.0).as_deref(), Some("±0 %"));
        assert_eq!(difference(1.0, 0.0), None);
    }
}
