//! Parameters: the settings of an experiment file, a target's URL and a command line, parsed the same way for all three.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use kendall_stats::quantity;

use crate::secret::{conceal_body, conceal_header, conceal_url};

/// One parameter of a server, a workload or a load.
#[derive(Debug)]
pub struct Parameter {
    /// The parameter's name, in kebab case.
    pub name: &'static str,
    /// The parameter's description, for `--help` and the documentation.
    pub help: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The parameter's default value; `None` leaves it unset.
    pub default: Option<&'static str>,
}

/// The kind of a parameter's values.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number.
    Whole {
        /// The least value.
        least: u64,
        /// The largest value.
        most: u64,
    },
    /// A number.
    Number {
        /// The least value.
        least: f64,
        /// The largest value.
        most: f64,
    },
    /// A time: "250ms", "1.5s", "2m".
    Time,
    /// A time, or this word.
    TimeOr(&'static str),
    /// A positive rate per second, or a share of the machine's capacity: 20, "20%".
    Rate,
    /// A word; the function returns the error of an invalid one.
    Word(fn(&str) -> Result<(), String>),
    /// A text, with every blank; the function returns the error of an invalid one.
    Text(fn(&str) -> Result<(), String>),
    /// Lines of text, one per repetition of the option on a command line; the function returns the error of an invalid line.
    Lines(fn(&str) -> Result<(), String>),
    /// Headers of HTTP, "name: value" each, one per repetition of the option on a command line. A reference replaces a header with
    /// a secret; `@FILE` stands for the headers in a file.
    Headers,
    /// The body of a request, with every blank; references replace secrets in the fields of a form or of JSON.
    Body,
    /// A URL; references replace secrets in its query.
    Url,
    /// A file, relative to the experiment's folder in an experiment, and to the current folder on a command line.
    File,
    /// On or off; on a command line the option alone means on.
    Switch,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A number, or a rate per second.
    Number(f64),
    /// A share of the capacity; 1 is all of it.
    Share(f64),
    /// A time.
    Time(Duration),
    /// A word.
    Word(String),
}

impl Parameter {
    /// A value of this kind, with files relative to a folder.
    pub fn rooted(&self, value: &Value, folder: &Path) -> Value {
        let joined = |file: &str| folder.join(file).to_string_lossy().into_owned();
        match (self.kind, value) {
            (Kind::File, Value::Word(file)) => Value::Word(joined(file)),
            (Kind::Headers, Value::Word(lines)) => {
                let rooted = |line: &str| match line.strip_prefix('@') {
                    Some(file) => format!("@{}", joined(file)),
                    None => line.to_owned(),
                };
                Value::Word(lines.lines().map(rooted).collect::<Vec<_>>().join("\n"))
            }
            _ => value.clone(),
        }
    }
}

impl Kind {
    /// Parses a value.
    ///
    /// # Errors
    /// Returns a message to follow the parameter's name.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let text = if matches!(self, Self::Text(_) | Self::Body) { text } else { text.trim() };
        match *self {
            Self::Whole { least, most } => {
                let refuse = || format!("must be a whole number from {least} to {most}, not {text:?}");
                let value = text.parse::<u64>().map_err(|_| refuse())?;
                if (least..=most).contains(&value) { Ok(Value::Whole(value)) } else { Err(refuse()) }
            }
            Self::Number { least, most } => {
                let refuse = || format!("must be a number from {least} to {most}, not {text:?}");
                let value = text.parse::<f64>().map_err(|_| refuse())?;
                if (least..=most).contains(&value) { Ok(Value::Number(value)) } else { Err(refuse()) }
            }
            Self::Time => read_time(text).map(Value::Time),
            Self::TimeOr(word) if text == word => Ok(Value::Word(word.into())),
            Self::TimeOr(word) => {
                read_time(text).map(Value::Time).map_err(|why| format!("{why}; or {word:?}"))
            }
            Self::Rate => read_rate(text),
            Self::Word(check) | Self::Text(check) => check(text).map(|()| Value::Word(text.into())),
            Self::Lines(check) => text.lines().try_for_each(check).map(|()| Value::Word(text.into())),
            // An invalid header may still be a secret, and a message here would show it.
            Self::Headers => Ok(Value::Word(text.lines().map(conceal_header).collect::<Vec<_>>().join("\n"))),
            Self::Body => Ok(Value::Word(conceal_body(text))),
            Self::Url if text.is_empty() => Err("must not be empty".into()),
            Self::Url => Ok(Value::Word(conceal_url(text))),
            Self::File if text.is_empty() => Err("must name a file".into()),
            Self::File => Ok(Value::Word(text.into())),
            Self::Switch => match text {
                "on" | "off" => Ok(Value::Word(text.into())),
                _ => Err(format!("must be on or off, not {text:?}")),
            },
        }
    }
}

/// Parses "250ms", "1.5s", "2m" or "1h"; a number alone is in seconds.
///
/// # Errors
/// Returns a message to follow the parameter's name.
pub fn read_time(text: &str) -> Result<Duration, String> {
    let refuse = || format!("must be a time such as 250ms, 1.5s or 2m, not {text:?}");
    let seconds = quantity::time_s(text).ok_or_else(refuse)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| refuse())
}

/// Parses "20", "100/s", "2k" or "600/min" as a rate per second, and "80%" as a share of the capacity.
fn read_rate(text: &str) -> Result<Value, String> {
    let refuse = || {
        format!(
            "must be a positive rate per second such as 20, 2k or 600/min, or a share of the capacity such as 20%, not {text:?}"
        )
    };
    let positive =
        |value: Option<f64>| value.filter(|value| *value > 0.0 && *value <= 1e9).ok_or_else(refuse);
    match text.strip_suffix('%') {
        Some(percent) => {
            positive(percent.trim().parse::<f64>().ok().map(|share| share * 0.01)).map(Value::Share)
        }
        None => positive(quantity::rate_per_s(text)).map(Value::Number),
    }
}

/// The notation in files, URLs and on command lines.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            // Rounded to thirteen digits, so that 0.07 · 100 is written as 7.
            Self::Share(share) => {
                let percent: f64 = format!("{:.12e}", share * 100.0).parse().expect("it is a number");
                write!(f, "{percent}%")
            }
            Self::Time(time) => {
                let ns = time.as_nanos();
                match ns {
                    0 => write!(f, "0s"),
                    // Beyond 11 days, microseconds lose digits as they are read, because they are converted to seconds.
                    _ if ns.is_multiple_of(1_000_000_000) || ns >= 1_000_000_000_000_000 => {
                        write!(f, "{}s", time.as_secs_f64())
                    }
                    _ if ns.is_multiple_of(1_000_000) => write!(f, "{}ms", time.as_millis()),
                    _ => write!(f, "{}us", time.as_nanos() as f64 / 1e3),
                }
            }
            Self::Word(word) => write!(f, "{word}"),
        }
    }
}

/// The name among `known` that is nearest to a mistyped one, if any is near.
pub fn nearest<'a>(mistyped: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |name: &&str| strsim::damerau_levenshtein(mistyped, name);
    known.into_iter().min_by_key(near).filter(|name| near(name) <= 2.max(name.len() / 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_and_print_back() {
        let whole = Kind::Whole { least: 0, most: u64::MAX };
        for (kind, text) in [
            (whole, "18446744073709551615"),
            (Kind::Number { least: 0.0, most: 9.0 }, "1.5"),
            (Kind::Time, "250ms"),
            (Kind::TimeOr("auto"), "auto"),
            (Kind::TimeOr("auto"), "1500ms"),
            (Kind::Time, "90s"),
            (Kind::Time, "12.5us"),
            (Kind::Rate, "20"),
            (Kind::Rate, "7%"),
            (Kind::Rate, "95%"),
        ] {
            assert_eq!(kind.read(text).unwrap().to_string(), text);
        }
        assert_eq!(Kind::Time.read("1.5 s"), Ok(Value::Time(Duration::from_millis(1500))));
        assert_eq!(Kind::Time.read("2m"), Ok(Value::Time(Duration::from_secs(120))));
        assert_eq!(Kind::Time.read("3"), Ok(Value::Time(Duration::from_secs(3))));
        for (text, per_s) in
            [("100/s", 100.0), ("2k", 2e3), ("1.5 k/s", 1.5e3), ("2M", 2e6), ("600/min", 10.0)]
        {
            assert_eq!(Kind::Rate.read(text), Ok(Value::Number(per_s)), "{text}");
        }
    }

    #[test]
    fn invalid_values_are_rejected() {
        let port = Kind::Whole { least: 1, most: 65535 };
        for text in ["0", "65536", "-1", "x", "1.5"] {
            assert!(port.read(text).unwrap_err().contains("from 1 to 65535"), "{text}");
        }
        for text in ["", "5 parsecs", "-1s", "s", "nans", "1e400s"] {
            assert!(Kind::Time.read(text).unwrap_err().contains("250ms"), "{text}");
            assert!(Kind::TimeOr("auto").read(text).unwrap_err().contains("\"auto\""), "{text}");
        }
        for text in ["0", "-5%", "NaN", "inf", "", "%", "k", "5/day", "5kk"] {
            assert!(Kind::Rate.read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_files_and_switches_are_words_with_a_separate_check() {
        let lines = Kind::Lines(|line| if line.contains(':') { Ok(()) } else { Err("needs a colon".into()) });
        assert_eq!(lines.read("a: b\nc: d"), Ok(Value::Word("a: b\nc: d".into())));
        assert!(lines.read("a: b\nc").is_err());
        assert!(Kind::File.read(" ").is_err() && Kind::Switch.read("yes").is_err());
        assert_eq!(Kind::Text(|_| Ok(())).read(" a\n"), Ok(Value::Word(" a\n".into())));
        assert_eq!(Kind::Switch.read("on"), Ok(Value::Word("on".into())));
    }

    #[test]
    fn a_mistyped_name_finds_its_neighbour() {
        assert_eq!(nearest("ratee", ["rate", "repeats"]), Some("rate"));
        assert_eq!(nearest("dificulty", ["rate", "difficulty"]), Some("difficulty"));
        assert_eq!(nearest("banana", ["rate", "users"]), None);
    }
}
