//! The inputs of a row, read by name.

use kendall_station::{Law, Part, Servers};
use serde_json::{Map, Value};

use super::BatchError;

/// A JSON object of inputs.
#[derive(Clone, Debug)]
pub struct Inputs(Map<String, Value>);

const NUMBER: &str = "a number";

impl Inputs {
    /// Parses the column of a row.
    ///
    /// # Errors
    /// Fails on text that is not a JSON object.
    pub fn read(text: &str) -> Result<Self, BatchError> {
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(other) => Err(BatchError::NotAnObject(other.to_string())),
            Err(error) => Err(BatchError::NotAnObject(error.to_string())),
        }
    }

    /// Parses `key=value` pairs. A value is a number, several with commas between them, JSON, or otherwise text.
    ///
    /// # Errors
    /// Fails on a word without `=`.
    pub fn pairs<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, BatchError> {
        let pair = |word: &str| {
            let (key, value) = word.split_once('=').filter(|(key, _)| !key.trim().is_empty())?;
            Some((key.trim().to_owned(), written(value.trim())))
        };
        let pairs = words.into_iter().map(|word| pair(word).ok_or_else(|| BatchError::NotAPair(word.into())));
        pairs.collect::<Result<_, _>>().map(Self)
    }

    /// The inputs as a JSON object.
    pub fn as_json(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Whether the input is given.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The names of all inputs.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A finite number, if it is given.
    pub fn optional(&self, key: &str) -> Result<Option<f64>, BatchError> {
        self.0.get(key).map(|value| finite(key, value)).transpose()
    }

    /// A finite number.
    pub fn number(&self, key: &str) -> Result<f64, BatchError> {
        finite(key, self.get(key, NUMBER)?)
    }

    /// A number above zero.
    pub fn positive(&self, key: &str) -> Result<f64, BatchError> {
        let value = self.number(key)?;
        if value > 0.0 { Ok(value) } else { Err(odd(key, &self.0[key], "above zero")) }
    }

    /// A whole number that is not negative.
    pub fn whole(&self, key: &str) -> Result<u64, BatchError> {
        const MUST: &str = "a whole number that is not negative";
        let value = self.get(key, MUST)?;
        let number = value.as_u64().or_else(|| {
            let number = value.as_f64().filter(|x| *x >= 0.0 && *x < 2f64.powi(53) && x.fract() == 0.0)?;
            Some(number as u64)
        });
        number.ok_or_else(|| odd(key, value, MUST))
    }

    /// The number of servers: 1 by default.
    pub fn servers(&self, key: &str) -> Result<Servers, BatchError> {
        if !self.has(key) {
            return Ok(Servers::MIN);
        }
        let number = u32::try_from(self.whole(key)?).ok().and_then(Servers::new);
        number.ok_or_else(|| odd(key, &self.0[key], "at least one server"))
    }

    /// Numbers; a single one is a list of one.
    pub fn numbers(&self, key: &str) -> Result<Vec<f64>, BatchError> {
        const MUST: &str = "a list of numbers";
        match self.get(key, MUST)? {
            Value::Array(values) => values.iter().map(|value| finite(key, value)).collect(),
            value @ Value::Number(_) => Ok(vec![finite(key, value)?]),
            value => Err(odd(key, value, MUST)),
        }
    }

    /// Rows of numbers.
    pub fn rows(&self, key: &str) -> Result<Vec<Vec<f64>>, BatchError> {
        const MUST: &str = "a list of lists of numbers";
        let row = |row: &Value| -> Result<Vec<f64>, BatchError> {
            list(key, row, MUST)?.iter().map(|value| finite(key, value)).collect()
        };
        list(key, self.get(key, MUST)?, MUST)?.iter().map(row).collect()
    }

    /// Text.
    pub fn text(&self, key: &str) -> Result<&str, BatchError> {
        const MUST: &str = "a text";
        let value = self.get(key, MUST)?;
        value.as_str().ok_or_else(|| odd(key, value, MUST))
    }

    /// A law of times, as an object with its kind under `dist`, or as text such as "exp mean 1".
    pub fn law(&self, key: &str) -> Result<Law, BatchError> {
        const MUST: &str = "a law such as {\"dist\": \"exponential\", \"mean\": 1}";
        let value = self.get(key, MUST)?;
        let inner = match value {
            Value::Object(object) => Self(object.clone()),
            Value::String(text) => return in_words(text).ok_or_else(|| odd(key, value, MUST)),
            _ => return Err(odd(key, value, MUST)),
        };
        let pairs = |means: &str| -> Result<Vec<(f64, f64)>, BatchError> {
            Ok(inner.numbers("p")?.into_iter().zip(inner.numbers(means)?).collect())
        };
        let law = match inner.text("dist")? {
            "deterministic" | "constant" => Law::Constant { mean_s: inner.number("mean")? },
            "exponential" | "exp" => Law::Exponential { mean_s: inner.number("mean")? },
            "erlang" => Law::Erlang { shape: inner.servers("k")?.get(), mean_s: inner.number("mean")? },
            "uniform" => Law::Uniform { low_s: inner.number("a")?, high_s: inner.number("b")? },
            "hyperexp" | "hyperexponential" => Law::Hyperexponential { parts: pairs("means")? },
            "lognormal" => Law::LogNormal { mean_s: inner.number("mean")?, scv: inner.number("scv")? },
            "pareto" => Law::Pareto { shape: inner.number("shape")?, mean_s: inner.number("mean")? },
            "empirical" => Law::empirical(inner.numbers("samples")?)
                .map_err(|error| BatchError::NoAnswer(error.to_string()))?,
            "mixture" => {
                let zero = inner.number("p_zero")?;
                let part = |probability, of| Part { probability, of };
                Law::Mixture {
                    parts: vec![
                        part(zero, Law::Constant { mean_s: 0.0 }),
                        part(1.0 - zero, Law::Uniform { low_s: 0.0, high_s: inner.number("uniform_b")? }),
                    ],
                }
            }
            _ => return Err(odd(key, value, MUST)),
        };
        law.validate().map_err(|error| BatchError::NoAnswer(error.to_string()))?;
        Ok(law)
    }

    fn get(&self, key: &str, must: &'static str) -> Result<&Value, BatchError> {
        self.0.get(key).ok_or_else(|| BatchError::Missing { key: key.into(), must })
    }
}

/// A law in a few words: "exp mean 1" or "exp 1", "det 1", "erlang 4 1" with its shape and mean, "H2 .9@.5 .1@5.5"
/// with the probability and mean of each part, "uniform 0 2".
fn in_words(text: &str) -> Option<Law> {
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "mean").collect();
    let (kind, rest) = words.split_first()?;
    let number = |i: usize| rest.get(i)?.parse::<f64>().ok();
    let kind = kind.to_lowercase();
    let law = match kind.as_str() {
        "exp" | "exponential" | "m" => Law::Exponential { mean_s: number(0)? },
        "det" | "deterministic" | "constant" | "d" => Law::Constant { mean_s: number(0)? },
        "uniform" | "u" => Law::Uniform { low_s: number(0)?, high_s: number(1)? },
        "erlang" => Law::Erlang { shape: rest.first()?.parse().ok()?, mean_s: number(1)? },
        _ => match kind.split_at_checked(1)? {
            ("e", shape) => Law::Erlang { shape: shape.parse().ok()?, mean_s: number(0)? },
            ("h", _) => {
                let part = |word: &&str| {
                    let (chance, mean_s) = word.split_once('@')?;
                    Some((chance.parse().ok()?, mean_s.parse().ok()?))
                };
                Law::Hyperexponential { parts: rest.iter().map(part).collect::<Option<_>>()? }
            }
            _ => return None,
        },
    };
    law.validate().ok().map(|()| law)
}

/// The value of a `key=value` pair.
fn written(value: &str) -> Value {
    let json = |text: &str| serde_json::from_str(text).ok();
    json(value)
        .or_else(|| json(&format!("[{}]", value.trim_end_matches(','))))
        .unwrap_or_else(|| Value::String(value.to_owned()))
}

fn finite(key: &str, value: &Value) -> Result<f64, BatchError> {
    value.as_f64().filter(|number| number.is_finite()).ok_or_else(|| odd(key, value, NUMBER))
}

fn list<'a>(key: &str, value: &'a Value, must: &'static str) -> Result<&'a Vec<Value>, BatchError> {
    value.as_array().ok_or_else(|| odd(key, value, must))
}

fn odd(key: &str, value: &Value, must: &'static str) -> BatchError {
    BatchError::Odd { key: key.into(), value: value.to_string(), must }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_read_as_their_json() {
        let pairs = ["D=0.05,0.03,0.08", "Z = 1", "N=20", "series=10-k, k=0..99", "p=[[1],[2]]", "S=0.2,"];
        let json = r#"{"D": [0.05, 0.03, 0.08], "Z": 1, "N": 20, "series": "10-k, k=0..99", "p": [[1], [2]], "S": [0.2]}"#;
        assert_eq!(Inputs::pairs(pairs).unwrap().0, Inputs::read(json).unwrap().0);
        for word in ["lam", "=3", ""] {
            assert_eq!(Inputs::pairs([word]).unwrap_err(), BatchError::NotAPair(word.into()));
        }
    }

    #[test]
    fn a_number_alone_is_a_list_of_one() {
        let inputs = Inputs::pairs(["D=0.05", "name=web"]).unwrap();
        assert_eq!(inputs.numbers("D"), Ok(vec![0.05]));
        assert!(matches!(inputs.numbers("name"), Err(BatchError::Odd { .. })));
        assert!(matches!(inputs.numbers("Z"), Err(BatchError::Missing { .. })));
    }

    proptest! {
        /// Any text is inputs or an error, and the result of a model is a number or an error.
        #[test]
        fn no_text_panics(
            words in prop::collection::vec("(lam|mu|m|K|D|Z|N|x|service)?=?[0-9eE.,+\\-\\[\\]{}\":]{0,8}", 0..5),
        ) {
            drop(Inputs::read(&words.concat()));
            if let Ok(inputs) = Inputs::pairs(words.iter().map(String::as_str)) {
                for model in ["mm1", "mmmk", "erlang_b", "closed_mva", "autocorrelation"] {
                    let model = crate::batch::model(model).unwrap();
                    for quantity in model.quantities() {
                        prop_assert!(!model.value(&inputs, quantity).is_ok_and(f64::is_nan));
                    }
                }
            }
        }
    }
}
