//! The text for the formats: its lines, and its JSON if it is that.

use kendall_stats::quantity::time_s;
use serde_json::Value;

/// A missing part of an output, as the end of a sentence: "it has no line \"Requests/sec:\"".
pub(crate) struct Missing(pub(crate) String);

/// A text, and its JSON.
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    /// The value, if the text is one value of JSON.
    pub(crate) json: Option<Value>,
}

impl<'a> Source<'a> {
    /// Parses the JSON of a text that begins like an object; `Err` with the line at which it ends too early.
    pub(crate) fn of(text: &'a str) -> Result<Self, usize> {
        let json = match text.starts_with('{').then(|| serde_json::from_str::<Value>(text)) {
            Some(Ok(value)) => Some(value),
            Some(Err(error)) if error.is_eof() => return Err(error.line()),
            // An object for each line, or no JSON at all.
            Some(Err(_)) | None => None,
        };
        Ok(Self { text, json })
    }

    /// Whether a line begins with these words, after its blanks.
    pub(crate) fn has_line(&self, words: &str) -> bool {
        self.line(words).is_some()
    }

    /// The text after these words at the beginning of a line.
    pub(crate) fn line(&self, words: &str) -> Option<&'a str> {
        self.text.lines().find_map(|line| line.trim_start().strip_prefix(words)).map(str::trim)
    }

    /// Returns the value, which must exist.
    pub(crate) fn needed(&self, words: &str) -> Result<&'a str, Missing> {
        self.line(words).ok_or_else(|| Missing(format!("it has no line {words:?}")))
    }

    /// Whether the JSON has all of these members.
    pub(crate) fn has_members(&self, pointers: &[&str]) -> bool {
        self.json.as_ref().is_some_and(|json| pointers.iter().all(|pointer| json.pointer(pointer).is_some()))
    }

    /// The JSON of a format that has recognised it.
    pub(crate) fn value(&self) -> Result<&Value, Missing> {
        self.json.as_ref().ok_or_else(|| Missing("it is not JSON".to_owned()))
    }
}

/// A number of a JSON value, which must exist and not be negative.
pub(crate) fn number(json: &Value, pointer: &str) -> Result<f64, Missing> {
    optional(json, pointer).ok_or_else(|| Missing(format!("it has no number {:?}", &pointer[1..])))
}

/// A number of a JSON value that is not negative, if it exists.
pub(crate) fn optional(json: &Value, pointer: &str) -> Option<f64> {
    json.pointer(pointer)?.as_f64().filter(|number| *number >= 0.0)
}

/// A number of a text that is finite and not negative.
pub(crate) fn plain(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// The first word of a text as a number.
pub(crate) fn first(text: &str, of: &str) -> Result<f64, Missing> {
    let word = text.split([' ', '\t', ',']).next().unwrap_or_default();
    plain(word).ok_or_else(|| Missing(format!("{word:?} in the line {of:?} is not a number")))
}

/// A time with its unit, such as "12.5ms".
pub(crate) fn time(text: &str, of: &str) -> Result<f64, Missing> {
    let has_unit = text.ends_with(char::is_alphabetic);
    time_s(text)
        .filter(|_| has_unit)
        .ok_or_else(|| Missing(format!("{text:?} in the line {of:?} is not a time with a unit")))
}

/// The level of a quantile in per cent: "99.9%" is 0.999. `None` for the extremes, which are not quantiles.
pub(crate) fn level(percent: &str) -> Option<f64> {
    let percent = percent.trim().trim_end_matches('%');
    let number = plain(percent).filter(|number| 0.0 < *number && *number < 100.0)?;
    // Parsed as text, so that 99.9 % is the same number as 0.999.
    format!("{:.7}", number / 100.0).parse().ok()
}

/// The kind of an error by the status of HTTP, if it is one.
pub(crate) fn status_error(status: &str) -> Option<String> {
    let is_success = matches!(status.as_bytes(), [b'1'..=b'3', _, _]);
    (!is_success).then(|| if status == "0" { "no answer".to_owned() } else { format!("status {status}") })
}

/// The errors among the counts by status, and the sum of all counts.
pub(crate) fn by_status<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> (Vec<(String, u64)>, u64) {
    let (mut errors, mut all) = (Vec::new(), 0);
    for (status, count) in counts {
        all = u64::saturating_add(all, count);
        errors.extend(status_error(status).map(|kind| (kind, count)));
    }
    (errors, all)
}

/// Counts by name in a JSON object.
pub(crate) fn counts<'a>(json: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, u64)> {
    let object = json.pointer(pointer).and_then(Value::as_object);
    object.into_iter().flatten().filter_map(|(name, count)| Some((name.as_str(), count.as_u64()?)))
}
