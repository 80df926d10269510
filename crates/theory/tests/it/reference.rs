//! Every row of the reference table, through the batch interface.

use kendall_theory::batch::{self, BatchError, Inputs};

/// The error of a row, if there is one.
fn wrong(line: &str) -> Option<String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [model, inputs, quantity, value, tolerance, ..] = fields[..] else { panic!("columns of {line}") };
    let expected: f64 = value.parse().unwrap();
    let within = match tolerance.split_once(' ') {
        Some(("rel", relative)) => relative.parse::<f64>().unwrap() * expected.abs(),
        Some(("abs", absolute)) => absolute.parse().unwrap(),
        _ => 0.0,
    };
    match Inputs::read(inputs).and_then(|inputs| batch::value(model, &inputs, quantity)) {
        Ok(computed) if (computed - expected).abs() <= within => None,
        Ok(computed) => Some(format!("{model} {inputs} {quantity}: {computed}, not {expected} ± {within:e}")),
        Err(why) => Some(format!("{model} {inputs} {quantity}: {why}")),
    }
}

#[test]
fn every_row_of_the_reference_table_is_answered_within_its_tolerance() {
    let table = include_str!("../../testdata/queueing.tsv");
    let wrong: Vec<String> = table.lines().skip(1).filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_model_knows_each_quantity_that_it_names() {
    let mut seen = Vec::new();
    for line in include_str!("../../testdata/queueing.tsv").lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        if seen.contains(&fields[0]) {
            continue;
        }
        seen.push(fields[0]);
        let model = batch::model(fields[0]).unwrap();
        let inputs = Inputs::read(fields[1]).unwrap();
        for quantity in model.quantities() {
            let asked = quantity.strip_suffix('*');
            let asked = asked.map_or_else(|| quantity.to_owned(), |prefix| format!("{prefix}1"));
            let answer = model.value(&inputs, &asked);
            let unknown = matches!(answer, Err(BatchError::UnknownQuantity { .. }));
            assert!(!unknown || quantity.ends_with('*'), "{} {} {quantity}", fields[0], fields[1]);
        }
        assert!(matches!(model.value(&inputs, "nothing"), Err(BatchError::UnknownQuantity { .. })), "{line}");
    }
}
