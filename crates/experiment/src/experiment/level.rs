//! The levels of factors: short values unchanged, and a letter for each that is too long for a table, such as a whole command.

use kendall_system::Value;
use serde::{Deserialize, Serialize};

use super::{Experiment, Variable};

/// Longer values do not fit the cells of a table.
const LONGEST: usize = 32;

/// The short name of a long value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The factor.
    pub factor: String,
    /// The name: "A".
    pub letter: String,
    /// The value that the letter abbreviates.
    pub value: String,
}

fn is_long(value: &Value) -> bool {
    matches!(value, Value::Word(text) if text.chars().count() > LONGEST || text.contains('\n'))
}

/// A to Z, and numbers after that.
fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index @ ..26) => char::from(b'A' + index).to_string(),
        _ => format!("#{}", index + 1),
    }
}

impl Variable {
    /// The levels of its values, in order.
    pub fn levels(&self) -> Vec<Value> {
        if self.values.len() < 2 {
            return self.values.clone();
        }
        // A letter must not be another value.
        let is_taken = (0..self.values.len()).any(|index| self.values.contains(&Value::Word(letter(index))));
        let name = |index: usize| if is_taken { format!("#{}", index + 1) } else { letter(index) };
        let level = |(index, value): (usize, &Value)| {
            if is_long(value) { Value::Word(name(index)) } else { value.clone() }
        };
        self.values.iter().enumerate().map(level).collect()
    }

    /// The level of a value, or of a level in its displayed form.
    pub(crate) fn level_of(&self, value: &Value) -> Option<Value> {
        let levels = self.levels();
        let index = self
            .values
            .iter()
            .position(|own| own == value)
            .or_else(|| levels.iter().position(|own| own == value));
        index.map(|index| levels[index].clone())
    }
}

impl Experiment {
    /// The letters that abbreviate long values.
    pub fn letters(&self) -> Vec<Letter> {
        let of_variable = |variable: &Variable| -> Vec<Letter> {
            let named =
                variable.levels().into_iter().zip(&variable.values).filter(|(level, value)| level != *value);
            let letter = |(level, value): (Value, &Value)| Letter {
                factor: variable.parameter.name.to_owned(),
                letter: level.to_string(),
                value: value.to_string(),
            };
            named.map(letter).collect()
        };
        self.variables.iter().flat_map(of_variable).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LOAD, Section};

    fn variable(values: &[&str]) -> Variable {
        let values = values.iter().map(|value| Value::Word((*value).into())).collect();
        Variable { section: Section::Load, parameter: &LOAD[0], values }
    }

    #[test]
    fn long_values_have_letters_and_short_ones_their_own_names() {
        let (long, lines) = ("x".repeat(250), "a: b\nc: d");
        let levels =
            |values: &[&str]| variable(values).levels().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(levels(&[&long, "nginx", lines]), ["A", "nginx", "C"]);
        assert_eq!(levels(&["A", &long]), ["A", "#2"]);
        assert_eq!(levels(&[&long]), std::slice::from_ref(&long));
        let varied = variable(&[&long, "nginx"]);
        let word = |text: &str| Value::Word(text.into());
        assert_eq!(varied.level_of(&word(&long)), Some(word("A")));
        assert_eq!(varied.level_of(&word("A")), Some(word("A")));
        assert_eq!(
            (varied.level_of(&word("nginx")), varied.level_of(&word("B"))),
            (Some(word("nginx")), None)
        );
    }
}
