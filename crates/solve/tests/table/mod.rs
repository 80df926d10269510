//! Reads the reference table.

use kendall_station::{Law, Part};
use serde_json::Value;

/// One reference value.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) model: String,
    pub(crate) quantity: String,
    pub(crate) value: f64,
    inputs: Value,
    tolerance: f64,
}

/// The rows of one model.
pub(crate) fn rows(model: &str) -> Vec<Row> {
    let table = include_str!("../../testdata/queueing.tsv");
    table.lines().skip(1).map(Row::read).filter(|row| row.model == model).collect()
}

impl Row {
    fn read(line: &str) -> Self {
        let fields: Vec<&str> = line.split('\t').collect();
        let tolerance = match fields[4].split_once(' ') {
            Some(("rel", relative)) => relative.parse().unwrap(),
            None if fields[4] == "exact" => 0.0,
            _ => panic!("unknown tolerance {:?}", fields[4]),
        };
        Self {
            model: fields[0].into(),
            inputs: serde_json::from_str(fields[1]).unwrap(),
            quantity: fields[2].into(),
            value: fields[3].parse().unwrap(),
            tolerance,
        }
    }

    pub(crate) fn number(&self, key: &str) -> f64 {
        self.optional(key).unwrap_or_else(|| panic!("{key} in {self:?}"))
    }

    pub(crate) fn optional(&self, key: &str) -> Option<f64> {
        self.inputs.get(key)?.as_f64()
    }

    #[allow(dead_code, reason = "each test binary reads other columns")]
    pub(crate) fn numbers(&self, key: &str) -> Vec<f64> {
        self.inputs[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    }

    #[allow(dead_code, reason = "each test binary reads other columns")]
    pub(crate) fn text(&self, key: &str) -> &str {
        self.inputs[key].as_str().unwrap()
    }

    /// What is wrong with a computed value, if anything.
    #[allow(dead_code, reason = "each test binary reads other columns")]
    pub(crate) fn wrong(&self, computed: f64) -> Option<String> {
        let error = (computed - self.value).abs();
        let fits = error <= self.tolerance * self.value.abs();
        (!fits).then(|| format!("{computed} for {self:?}"))
    }

    #[allow(dead_code, reason = "each test binary reads other columns")]
    pub(crate) fn law(&self, key: &str) -> Law {
        let law = &self.inputs[key];
        let number = |key: &str| law[key].as_f64().unwrap();
        let list = |key: &str| law[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
        match law["dist"].as_str().unwrap() {
            "deterministic" => Law::Constant { mean_s: number("mean") },
            "exponential" => Law::Exponential { mean_s: number("mean") },
            "erlang" => Law::Erlang { shape: number("k") as u32, mean_s: number("mean") },
            "uniform" => Law::Uniform { low_s: number("a"), high_s: number("b") },
            "hyperexp" => Law::Hyperexponential { parts: list("p").zip(list("means")).collect() },
            "mixture" => Law::Mixture {
                parts: vec![
                    Part { probability: number("p_zero"), of: Law::Constant { mean_s: 0.0 } },
                    Part {
                        probability: 1.0 - number("p_zero"),
                        of: Law::Uniform { low_s: 0.0, high_s: number("uniform_b") },
                    },
                ],
            },
            other => panic!("unknown law {other}"),
        }
    }
}
