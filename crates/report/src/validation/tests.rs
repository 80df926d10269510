//! The page and the text of a validation: one that was recorded, of an exponential server.

use kendall_analysis::ValidationReport;

use super::*;

fn recorded() -> ValidationReport {
    serde_json::from_str(include_str!("../../../analysis/testdata/validation.json")).unwrap()
}

#[test]
fn the_page_has_the_answer_every_value_and_the_simple_methods() {
    let found = recorded();
    let page = validation_page(&found).replace('\u{a0}', " ");
    assert!(page.contains(&found.answer()), "{}", found.answer());
    for table in [compared(&found), methods(&found), written(&found)] {
        assert!(!table.rows.is_empty());
        for row in &table.rows {
            assert_eq!(row.len(), table.head.len());
            for cell in row {
                assert!(!cell.is_empty() && page.contains(cell.as_str()), "{cell:?}");
            }
        }
    }
    // Three loads of four values; kendall and five methods.
    assert_eq!((compared(&found).rows.len(), methods(&found).rows.len()), (12, 18));
    for part in ["Reasons to doubt", "The machine", "a + b/(1 − ρ)", "Response time against the rate"] {
        assert!(page.contains(part), "{part}");
    }
    // Four quantities against the rate, and the distribution at three loads.
    assert_eq!(page.matches("class=\"plot\"").count(), 7);
    assert_eq!(validation_figures(&found).len(), 2);
}

#[test]
fn text_from_elsewhere_is_escaped() {
    let doubts = vec!["a <b> is no tag".to_owned()];
    let found = ValidationReport { target: "http://x/<script>alert(1)".into(), doubts, ..recorded() };
    let page = validation_page(&found);
    assert!(!page.contains("<script>alert") && !page.contains("<b> is"));
    assert!(page.contains("A &#60;b&#62; is no tag.") || page.contains("A &lt;b&gt; is no tag."));
}

#[test]
fn every_figure_shows_the_predictions_and_the_measurements_of_each_load() {
    let found = recorded();
    for Named { figure, .. } in validation_figures(&found) {
        let labels: Vec<&str> = figure.legend.iter().map(|key| key.label.as_str()).collect();
        assert!(labels[0].starts_with("measured afterwards"), "{labels:?}");
        assert!(labels.iter().any(|label| label.starts_with("predicted")), "{labels:?}");
        for load in &found.loads {
            let rate = significant(load.predicted.prediction.rate_per_s, 4);
            assert!(figure.table.rows.iter().any(|row| row[0] == load.name() || row[1] == rate));
        }
    }
}

#[test]
fn a_validation_without_predictions_has_a_page_that_says_so() {
    let no_prediction = vec!["the rate exceeds the capacity".to_owned()];
    let found = ValidationReport { loads: Vec::new(), no_prediction, ..recorded() };
    let page = validation_page(&found);
    assert!(page.contains("No load was predicted and measured."));
    assert!(page.contains("No prediction: the rate exceeds the capacity."));
    assert_eq!(page.matches("class=\"plot\"").count(), 0);
}

#[test]
fn the_text_shows_errors_with_and_without_the_noise_of_the_measurement() {
    let text = validation_text(&recorded());
    let line = text.lines().find(|line| line.starts_with("85 %")).unwrap();
    assert!(line.contains("−27 %") && line.ends_with("±0 %"), "{line}");
    for part in
        ["beyond noise", "simple predictions of p99: stays the same", "The capacity differed by 3.0 %"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}
