//! Questions by the name of a model, as rows `model,inputs,quantity`: the way in for other tools and for tables.
//!
//! A model's inputs are a JSON object in the units that its formula is written in (rates in 1/s and times in s, or any
//! other consistent unit). Each part of the crate lists its own models; this module finds the one that a row names,
//! and reads its inputs so that a missing or odd one is an error in words.

mod closed;
mod inputs;
mod open;
mod scalability;
mod statistics;

pub use inputs::Inputs;

/// Why a row has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum BatchError {
    #[error("no model is called {0:?}; known are {known}", known = models().collect::<Vec<_>>().join(", "))]
    UnknownModel(String),
    #[error("the model {model} has no quantity {quantity:?}; it has {known}")]
    UnknownQuantity { model: String, quantity: String, known: String },
    #[error("the inputs are not a JSON object: {0}")]
    NotAnObject(String),
    #[error("the inputs need {key:?}, {must}")]
    Missing { key: String, must: &'static str },
    #[error("the input {key:?} is {value}; it must be {must}")]
    Odd { key: String, value: String, must: &'static str },
    #[error("{0}")]
    NoAnswer(String),
}

/// One model: its name, the quantities it can tell, and how.
struct Model {
    name: &'static str,
    /// As they are named in errors; a trailing `*` stands for any number, as in `R_p*`.
    quantities: &'static str,
    value: fn(&Inputs, &str) -> Result<Option<f64>, BatchError>,
}

/// The parts' lists.
const PARTS: &[&[Model]] = &[open::MODELS, closed::MODELS, scalability::MODELS, statistics::MODELS];

/// The names of all models.
pub fn models() -> impl Iterator<Item = &'static str> {
    PARTS.iter().copied().flatten().map(|model| model.name)
}

/// The value of one quantity of a model.
///
/// # Errors
/// Fails on an unknown model or quantity, on inputs that are missing or impossible, and where theory has no answer.
pub fn value(model: &str, inputs: &Inputs, quantity: &str) -> Result<f64, BatchError> {
    let found = PARTS.iter().copied().flatten().find(|known| known.name == model);
    let found = found.ok_or_else(|| BatchError::UnknownModel(model.into()))?;
    (found.value)(inputs, quantity)?.ok_or_else(|| BatchError::UnknownQuantity {
        model: model.into(),
        quantity: quantity.into(),
        known: found.quantities.into(),
    })
}
