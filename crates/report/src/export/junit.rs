//! The expectations of a run as JUnit XML, for programs that show the results of tests: a test case for each
//! expectation.

use std::path::Path;

use chrono::NaiveDateTime;
use kendall_evidence::expect::{ExpectationVerdict, Judged};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::export::format::{Export, ExportError, Exported};
use crate::export::suite::Suite;

/// The expectations of a run as JUnit XML.
#[derive(Debug)]
pub struct JUnit;

impl Export for JUnit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn about(&self) -> &'static str {
        "what was expected, a test case each"
    }

    fn file(&self) -> &'static str {
        "junit.xml"
    }

    fn needs_trials(&self) -> bool {
        false
    }

    fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError> {
        kendall_files::write(to, to_xml(&run.expected)).map_err(ExportError::write(to))
    }
}

/// Writes the suite as XML. An expectation that failed is a failure; one that cannot be decided is skipped, with the
/// reason; reasons to doubt the run are its system-out.
pub fn to_xml(expected: &Suite<'_>) -> String {
    let mut suite = TestSuite::new(&expected.name);
    let started = expected.started_utc.replace(' ', "T");
    if let Ok(started) = started.trim_end_matches('Z').parse::<NaiveDateTime>() {
        suite.set_timestamp(started.and_utc());
    }
    for (place, judged) in &expected.cases {
        let class =
            if place.is_empty() { expected.name.clone() } else { format!("{}.{place}", expected.name) };
        let mut case = TestCase::new(judged.expected.to_string(), status(judged, expected.allows_undecided));
        case.set_classname(class).set_system_out(judged.to_string());
        suite.add_test_case(case);
    }
    if !expected.doubts.is_empty() {
        suite.set_system_out(expected.doubts.join("\n") + "\n");
    }
    let mut report = quick_junit::Report::new("kendall");
    report.add_test_suite(suite);
    report.to_string().expect("text is written to memory")
}

fn status(judged: &Judged, allows_undecided: bool) -> TestCaseStatus {
    let mut status = match judged.verdict {
        ExpectationVerdict::Met => return TestCaseStatus::success(),
        ExpectationVerdict::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        ExpectationVerdict::Undecided if allows_undecided => TestCaseStatus::skipped(),
        ExpectationVerdict::Undecided => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    status.set_message(judged.to_string());
    match judged.verdict {
        ExpectationVerdict::Failed => _ = status.set_type("expectation"),
        ExpectationVerdict::Undecided if !allows_undecided => _ = status.set_type("undecided"),
        _ => {}
    }
    status
}
