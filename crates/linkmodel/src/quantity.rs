//! Times, rates, sizes and shares in common notation, parsed without rounding.

use crate::fault::Fault;

/// Parses a time: `20ms`, `1.5s`, `100us`, `250µs`, `800ns`, `2min`, `1h`; `0` needs no unit. A link's times are of all sizes, so a
/// number alone could mean seconds or milliseconds.
///
/// # Errors
///
/// Fails if it is not a time, or longer than some 290 years.
pub fn duration_ns(text: &str) -> Result<i64, Fault> {
    let fault = || Fault::NotATime { text: text.trim().to_owned() };
    let (number, unit) = split(text);
    let unit_ns = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" if is_zero(number) => 1,
        _ => return Err(fault()),
    };
    scaled(number, unit_ns).and_then(|ns| i64::try_from(ns).ok()).ok_or_else(fault)
}

/// Parses a rate in bits per second: `10mbit`, `1.5Gbit/s`, `64kbit`, `800bit`, or in bytes: `1.25MB/s`. k, M and G are powers of
/// 1000.
///
/// # Errors
///
/// Fails if it is not a rate. `mbps` is rejected, because some programs mean bits by it and some bytes.
pub fn bits_per_s(text: &str) -> Result<u64, Fault> {
    let (number, unit) = split(text);
    let fault = || Fault::NotARate { text: text.trim().to_owned() };
    let unit = unit.to_ascii_lowercase();
    let factor = match unit.strip_suffix("/s").unwrap_or(&unit) {
        "bit" => 1,
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        "b" if unit.ends_with("/s") => 8,
        "kb" if unit.ends_with("/s") => 8_000,
        "mb" if unit.ends_with("/s") => 8_000_000,
        "gb" if unit.ends_with("/s") => 8_000_000_000,
        "" if is_zero(number) => 1,
        _ => return Err(fault()),
    };
    scaled(number, factor).and_then(|bits| u64::try_from(bits).ok()).ok_or_else(fault)
}

/// Parses a size in bytes: `1500`, `64k`, `64kB`, `1M`, `1.5MB`; k, M and G are powers of 1000, and `64KiB`, `1MiB`, `1GiB` have
/// powers of 1024.
///
/// # Errors
///
/// Fails if it is not a size.
pub fn bytes(text: &str) -> Result<u64, Fault> {
    let fault = || Fault::NotASize { text: text.trim().to_owned() };
    let (number, unit) = split(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(fault()),
    };
    scaled(number, factor).and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(fault)
}

/// Parses a share: `0.1%`, or `0.001` for the same.
///
/// # Errors
///
/// Fails if it is not a number from 0 to 1.
pub fn share(text: &str) -> Result<f64, Fault> {
    let text = text.trim();
    let fault = || Fault::NotAShare { text: text.to_owned() };
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let plain = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let share = number.parse::<f64>().ok().filter(|_| plain).ok_or_else(fault)? / divisor;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(fault()) }
}

/// A time in the largest unit of which it is a whole number: [`duration_ns`] parses it back to the nanosecond.
pub(crate) fn time_words(ns: i64) -> String {
    in_units(ns as u64, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
}

/// A rate in the largest unit of which it is a whole number.
pub(crate) fn rate_words(bits_per_s: u64) -> String {
    in_units(bits_per_s, &[("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)])
}

/// A size in the largest unit of which it is a whole number.
pub(crate) fn size_words(bytes: u64) -> String {
    in_units(bytes, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("", 1)])
}

/// A share as a percentage, if that parses back as the same number.
pub(crate) fn share_words(share_of_one: f64) -> String {
    let percent = format!("{}%", share_of_one * 100.0);
    if share(&percent) == Ok(share_of_one) { percent } else { format!("{share_of_one}") }
}

fn in_units(number: u64, units: &[(&str, u64)]) -> String {
    let (unit, factor) =
        units.iter().find(|(_, factor)| number.is_multiple_of(*factor) && number > 0).unwrap_or(&("", 1));
    format!("{}{unit}", number / factor)
}

/// The number and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn is_zero(number: &str) -> bool {
    number.contains('0') && number.chars().all(|c| c == '0' || c == '.')
}

/// A decimal number times a factor, rounded down to a whole number. `None` if it is not a number or too large.
fn scaled(number: &str, factor: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    Some(digits.checked_mul(u128::from(factor))? / 10_u128.pow(fraction.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn common_notation_is_parsed() {
        assert_eq!(duration_ns("20ms"), Ok(20_000_000));
        assert_eq!(duration_ns(" 1.5 s "), Ok(1_500_000_000));
        assert_eq!(duration_ns("250µs"), Ok(250_000));
        assert_eq!(duration_ns("0"), Ok(0));
        assert_eq!(bits_per_s("10mbit"), Ok(10_000_000));
        assert_eq!(bits_per_s("1.5Gbit/s"), Ok(1_500_000_000));
        assert_eq!(bits_per_s("1.25MB/s"), Ok(10_000_000));
        assert_eq!(bytes("64k"), Ok(64_000));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("1500"), Ok(1500));
        assert_eq!(share("0.1%"), Ok(0.001));
        assert_eq!(share("1"), Ok(1.0));
    }

    #[test]
    fn ambiguous_quantities_are_rejected() {
        for text in ["20", "ms", "-1ms", "1..2s", "1e3ms", "20 years", "", "99999999999999999999s"] {
            assert!(duration_ns(text).is_err(), "{text}");
        }
        for text in ["10", "10mbps", "10mb", "fast", ".mbit"] {
            assert!(bits_per_s(text).is_err(), "{text}");
        }
        for text in ["110%", "-1%", "nan", "inf", "1%%", "%"] {
            assert!(share(text).is_err(), "{text}");
        }
        assert!(bytes("64kbit").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(number in any::<u32>(), factor in 0_u32..9, share_of_one in 0.0..=1.0_f64) {
            let number = u64::from(number) * 10_u64.pow(factor);
            prop_assert_eq!(duration_ns(&time_words(number as i64)), Ok(number as i64));
            prop_assert_eq!(bits_per_s(&rate_words(number)), Ok(number));
            prop_assert_eq!(bytes(&size_words(number)), Ok(number));
            prop_assert_eq!(share(&share_words(share_of_one)), Ok(share_of_one));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,24}") {
            let _ = (duration_ns(&text), bits_per_s(&text), bytes(&text), share(&text));
        }
    }
}
