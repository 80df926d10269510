//! The findings of a report in words, by where a page shows them.

use kendall_analysis::{Report, Severity, findings};

/// How many reasons to doubt stand on the first screen; the rest unfold there.
const DOUBTS_AT_ONCE: usize = 6;
/// How many sentences answer the question on the first screen.
const ANSWER_SENTENCES: usize = 3;

/// The findings of a report in words, by where a page shows them.
#[derive(Default)]
pub struct Sentences {
    /// The first sentences, which answer the question.
    pub answers: Vec<String>,
    /// Further answers.
    pub more: Vec<String>,
    /// What helps to understand the answers.
    pub notes: Vec<String>,
    /// Reasons to doubt the answers: those of the whole run come before those of single trials.
    pub doubts: Vec<String>,
}

impl Sentences {
    /// The sentences of a report.
    pub fn of(report: &Report) -> Self {
        let mut sentences = Self::default();
        for finding in findings(report) {
            let place = match finding.severity() {
                Severity::Answer if sentences.answers.len() < ANSWER_SENTENCES => &mut sentences.answers,
                Severity::Answer => &mut sentences.more,
                Severity::Note => &mut sentences.notes,
                Severity::Doubt => &mut sentences.doubts,
            };
            place.push(finding.to_string());
        }
        sentences
    }

    /// The doubts that are read at once.
    pub fn doubts_at_once(&self) -> &[String] {
        &self.doubts[..self.doubts.len().min(DOUBTS_AT_ONCE)]
    }

    /// The doubts that are shown only on request.
    pub fn doubts_unfolded(&self) -> &[String] {
        &self.doubts[self.doubts_at_once().len()..]
    }
}

/// Units that never begin a line.
const UNITS: [&str; 15] =
    ["%", "ns", "µs", "ms", "s", "min", "h", "d", "B", "kB", "MB", "GB", "kbit/s", "Mbit/s", "Gbit/s"];

/// The sentence with a no-break space between each number and its unit.
pub(crate) fn unbroken(sentence: &str) -> String {
    let mut bound = String::with_capacity(sentence.len());
    for (at, word) in sentence.split(' ').enumerate() {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')', ']']));
        match bound.ends_with(|last: char| last.is_ascii_digit()) && is_unit {
            true => bound.push('\u{a0}'),
            false if at > 0 => bound.push(' '),
            false => {}
        }
        bound.push_str(word);
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit_stay_on_one_line() {
        let bound = unbroken("1.25 ms at 89 % (12 s, 3 d), 4 of 5 s. 6 seconds [1, 2] s");
        assert_eq!(bound.replace('\u{a0}', "_"), "1.25_ms at 89_% (12_s, 3_d), 4 of 5_s. 6 seconds [1, 2] s");
        assert_eq!(unbroken(""), "");
    }
}
