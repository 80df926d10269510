//! A reader of the reference table.

use serde_json::Value;

/// One reference value.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) model: String,
    pub(crate) quantity: String,
    pub(crate) value: f64,
    inputs: Value,
}

/// The rows of one model.
pub(crate) fn rows(model: &str) -> Vec<Row> {
    let table = include_str!("../../testdata/queueing.tsv");
    table.lines().skip(1).map(Row::read).filter(|row| row.model == model).collect()
}

impl Row {
    fn read(line: &str) -> Self {
        let fields: Vec<&str> = line.split('\t').collect();
        Self {
            model: fields[0].into(),
            inputs: serde_json::from_str(fields[1]).unwrap(),
            quantity: fields[2].into(),
            value: fields[3].parse().unwrap(),
        }
    }

    pub(crate) fn number(&self, key: &str) -> f64 {
        self.optional(key).unwrap_or_else(|| panic!("{key} in {self:?}"))
    }

    pub(crate) fn optional(&self, key: &str) -> Option<f64> {
        self.inputs.get(key)?.as_f64()
    }

    pub(crate) fn numbers(&self, key: &str) -> Vec<f64> {
        self.inputs[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.inputs[key].as_str().unwrap()
    }
}
