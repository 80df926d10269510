//! The page, of two servers with one recorded validation.

use kendall_analysis::AtSpeed;

use super::*;

fn validation(name: &str, note: Option<&str>) -> Validation {
    let report = serde_json::from_str(include_str!("../../../../analysis/testdata/validation.json")).unwrap();
    Validation {
        name: name.into(),
        question: "Does it hold?".into(),
        versions: vec!["node v18.0".into()],
        note: note.map(str::to_owned),
        report,
    }
}

#[test]
fn every_server_and_load_has_its_row_and_every_table_its_columns() {
    let text = page(&[validation("one", None), validation("two", Some("Its pool binds.\n"))]);
    for name in ["one", "two"] {
        assert_eq!(text.lines().filter(|line| line.starts_with(&format!("| {name} |"))).count(), 3);
        assert!(text.contains(&format!("### {name}\n\nDoes it hold?")));
    }
    assert_eq!(text.matches("Its pool binds.").count(), 1);
    assert!(
        text.contains("24 measured values (means and quantiles of 2 servers), 24 (100 %) lie within"),
        "{text}"
    );
    assert!(text.contains("2 rounds of 4.00 s, predicted loads of 12.0 s"), "{text}");
    crate::common::check_tables(&text);
}

#[test]
fn a_method_without_a_prediction_has_a_dash() {
    let text = page(&[validation("one", None)]);
    let usl = text.lines().find(|line| line.starts_with("| USL |")).unwrap();
    assert!(usl.contains(NONE), "{usl}");
    let kendall = text.lines().find(|line| line.starts_with("| kendall |")).unwrap();
    assert!(kendall.contains("| 25 % | 1 |"), "{kendall}");
}

#[test]
fn the_errors_for_the_speed_of_the_machine_have_tables_of_their_own() {
    let mut known = validation("one", None);
    let load = &mut known.report.loads[0];
    let baselines = load.baselines.clone();
    let measured =
        load.compared.iter().map(|one| Compared::new(&one.quantity, one.measured_s, one.measured_s));
    load.at_speed = Some(AtSpeed { slower: 1.03, compared: measured.collect(), baselines });
    let text = page(&[known]);
    assert!(
        text.contains("work took 3.0 % longer or shorter than in the full loads (median over 1 load)"),
        "{text}"
    );
    let tables = text.split("## At the speed of the machine").nth(1).unwrap();
    assert!(tables.contains("| mean | 70 % | 1 | 0 % | 0 % |"), "{tables}");
    assert!(tables.contains("work took 3.0 % more time than in the full loads"), "{tables}");
    assert!(!page(&[validation("one", None)]).contains("At the speed"));
    crate::common::check_tables(&text);
}

#[test]
fn a_load_that_the_generator_limited_is_named_and_does_not_count() {
    let mut limited = validation("two", None);
    limited.report.loads[0].generator_limited = true;
    let text = page(&[validation("one", None), limited]);
    assert!(text.contains("The generator limited 1 load ("), "{text}");
    assert!(text.contains("% GENERATOR-LIMITED |"), "{text}");
    let left = 24 - validation("one", None).report.loads[0].compared.len();
    assert!(text.contains(&format!("Of {left} measured values")), "{text}");
}
