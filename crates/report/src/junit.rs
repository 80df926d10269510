//! What was expected, as JUnit XML, for whatever shows the results of tests: a test case an expectation.

use std::fmt::Write;

use kendall_evidence::expect::{Judged, Verdict};

use crate::model::Report;
use crate::svg::escaped;

/// What was expected of one run.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// The name of the experiment, or what was loaded.
    pub name: String,
    /// When it began, in UTC: "2026-11-21T04:15:00Z", or with a space for the T.
    pub started_utc: String,
    /// Where, and what was expected there: one test case each.
    pub cases: Vec<(String, &'a Judged)>,
    /// Every reason to doubt the run, as sentences or clauses.
    pub doubts: Vec<String>,
}

impl<'a> Suite<'a> {
    /// What was expected of an experiment.
    pub fn of(report: &'a Report) -> Self {
        let place = |settings: &[(String, String)]| -> String {
            let settings: Vec<String> =
                settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            settings.join(",")
        };
        let cases = report.expected.iter().map(|expected| (place(&expected.settings), &expected.judged));
        let of_trials = report.trials.iter().flat_map(|trial| {
            trial.limits.iter().chain(&trial.doubts).map(move |doubt| format!("trial {}: {doubt}", trial.id))
        });
        Self {
            name: report.name.clone(),
            started_utc: report.started_utc.clone(),
            cases: cases.collect(),
            doubts: report.doubts.iter().cloned().chain(of_trials).collect(),
        }
    }

    /// As XML. An expectation that failed is a failure; one that cannot be decided is skipped, with the reason; reasons to
    /// doubt the run are its system-out.
    pub fn to_xml(&self) -> String {
        let count =
            |verdict: Verdict| self.cases.iter().filter(|(_, judged)| judged.verdict == verdict).count();
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
            self.cases.len(),
            count(Verdict::Failed),
            count(Verdict::Undecided)
        );
        let name = escaped(&self.name);
        let timestamp = escaped(self.started_utc.replace(' ', "T").trim_end_matches('Z'));
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kendall\" {counts}>\n\
             <testsuite name=\"{name}\" {counts} timestamp=\"{timestamp}\">\n"
        );
        for (place, judged) in &self.cases {
            let class = if place.is_empty() { name.clone() } else { format!("{name}.{}", escaped(place)) };
            let outcome = match judged.verdict {
                Verdict::Met => String::new(),
                Verdict::Failed => {
                    format!("<failure type=\"expectation\" message=\"{}\"/>", escaped(&judged.to_string()))
                }
                Verdict::Undecided => format!("<skipped message=\"{}\"/>", escaped(&judged.to_string())),
            };
            let expected = escaped(&judged.expected.to_string());
            let line = format!(
                "<testcase classname=\"{class}\" name=\"{expected}\">{outcome}<system-out>{}</system-out></testcase>\n",
                escaped(&judged.to_string())
            );
            xml.push_str(&line);
        }
        if !self.doubts.is_empty() {
            xml.push_str("<system-out>");
            for doubt in &self.doubts {
                writeln!(xml, "{}", escaped(doubt)).expect("writing to a string never fails");
            }
            xml.push_str("</system-out>\n");
        }
        xml.push_str("</testsuite>\n</testsuites>\n");
        xml
    }
}
