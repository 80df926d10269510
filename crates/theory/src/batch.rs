//! Queries by the name of a model, as rows `model,inputs,quantity`: the interface for other tools and for tables.
//!
//! A model's inputs are a JSON object in the units of its formula (rates in 1/s and times in s, or any other consistent
//! unit). Each part of the crate lists its models; this module finds the one that a row names, and parses its inputs
//! with an error message for a missing or invalid one.

mod closed;
mod inputs;
mod open;
mod plan;
mod scalability;
mod statistics;

pub use inputs::Inputs;

/// The reason why a row has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum BatchError {
    #[error("there is no model {0:?}; the models are {known}", known = names())]
    UnknownModel(String),
    #[error("the model {model} has no quantity {quantity:?}; it has {known}")]
    UnknownQuantity { model: String, quantity: String, known: String },
    #[error("the inputs are not a JSON object: {0}")]
    NotAnObject(String),
    #[error("{0:?} is not an input; write key=value, such as lam=20 or D=0.05,0.03")]
    NotAPair(String),
    #[error("the inputs need {key:?}, {must}")]
    Missing { key: String, must: &'static str },
    #[error("the input {key:?} is {value}; it must be {must}")]
    Odd { key: String, value: String, must: &'static str },
    #[error("{0}")]
    NoAnswer(String),
}

/// One model: its name, a description, its inputs, its quantities, and its function.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The model's name in batch rows.
    pub name: &'static str,
    /// A description, in one line.
    pub about: &'static str,
    /// The model's inputs, separated by commas, with a description after a colon where necessary: `m=1` defaults to 1,
    /// `t?` is needed for some quantities only, `slo_R_p*` has a number at its end.
    pub inputs: &'static str,
    /// The model's quantities, separated by commas, as they are named in errors; a trailing `*` stands for any number,
    /// as in `R_p*`.
    pub quantities: &'static str,
    value: fn(&Inputs, &str) -> Result<Option<f64>, BatchError>,
}

impl Model {
    /// The names of its quantities, those with `*` unchanged.
    pub fn quantities(&self) -> impl Iterator<Item = &'static str> {
        self.quantities.split(',').map(str::trim)
    }

    /// Whether the model has an input of this name.
    pub fn takes(&self, key: &str) -> bool {
        let name = |input: &'static str| input.split(['=', '?', ':']).next().unwrap_or(input).trim();
        self.inputs.split(',').map(name).any(|known| match known.strip_suffix('*') {
            Some(prefix) => key.starts_with(prefix),
            None => key == known,
        })
    }

    /// The value of one of its quantities.
    ///
    /// # Errors
    /// Fails on an unknown quantity, on missing or invalid inputs, and if theory has no answer.
    pub fn value(&self, inputs: &Inputs, quantity: &str) -> Result<f64, BatchError> {
        (self.value)(inputs, quantity)?.ok_or_else(|| BatchError::UnknownQuantity {
            model: self.name.into(),
            quantity: quantity.into(),
            known: self.quantities.into(),
        })
    }
}

/// The lists of the parts.
const PARTS: &[&[Model]] =
    &[open::MODELS, closed::MODELS, plan::MODELS, scalability::MODELS, statistics::MODELS];

/// The models, those of one part after the other.
pub fn models() -> impl Iterator<Item = &'static Model> {
    PARTS.iter().copied().flatten()
}

fn names() -> String {
    models().map(|model| model.name).collect::<Vec<_>>().join(", ")
}

/// The model of this name.
///
/// # Errors
/// Fails on an unknown name, with all that are known.
pub fn model(name: &str) -> Result<&'static Model, BatchError> {
    models().find(|known| known.name == name).ok_or_else(|| BatchError::UnknownModel(name.into()))
}

/// The value of one quantity of a model.
///
/// # Errors
/// Fails on an unknown model or quantity, on missing or invalid inputs, and if theory has no answer.
pub fn value(name: &str, inputs: &Inputs, quantity: &str) -> Result<f64, BatchError> {
    model(name)?.value(inputs, quantity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_a_one_line_description_and_a_unique_name() {
        for Model { name, about, inputs, quantities, .. } in models() {
            assert!(!about.is_empty() && !about.contains('\n') && !about.ends_with('.'), "{name}: {about}");
            assert!(!inputs.is_empty() && !quantities.is_empty(), "{name}");
            assert_eq!(models().filter(|model| model.name == *name).count(), 1, "{name}");
        }
    }
}
