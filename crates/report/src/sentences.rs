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
