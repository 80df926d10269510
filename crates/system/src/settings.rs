//! Settings: values of parameters, by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::parameter::{Kind, Parameter, Value};

/// The values of some parameters, by name. Callers read them by the type that the parameter's kind
/// guarantees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(BTreeMap<&'static str, Value>);

impl Settings {
    /// The defaults of the given parameters.
    pub fn defaults(parameters: &[Parameter]) -> Self {
        let value = |parameter: &Parameter| {
            let default = parameter.default?;
            Some((parameter.name, parameter.kind.read(default).expect("a default is a valid value")))
        };
        Self(parameters.iter().filter_map(value).collect())
    }

    /// Sets one value.
    pub fn set(&mut self, name: &'static str, value: Value) {
        self.0.insert(name, value);
    }

    /// One value, if it is set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All values that are set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// Returns the settings, with files relative to a folder.
    #[must_use]
    pub fn rooted(&self, parameters: &[Parameter], folder: &Path) -> Self {
        let rooted = |(name, value): (&&'static str, &Value)| {
            let parameter = parameters.iter().find(|parameter| parameter.name == *name);
            (*name, parameter.map_or_else(|| value.clone(), |parameter| parameter.rooted(value, folder)))
        };
        Self(self.0.iter().map(rooted).collect())
    }

    /// Replaces secrets by references whose names were marked after the values had been read.
    pub fn conceal(&mut self, parameters: impl IntoIterator<Item = &'static Parameter>) {
        for Parameter { name, kind, .. } in parameters {
            if let (Kind::Headers | Kind::Url | Kind::Body, Some(Value::Word(text))) = (kind, self.get(name))
                && let Ok(concealed) = kind.read(text)
            {
                self.set(name, concealed);
            }
        }
    }

    /// A whole number, if it is set.
    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Whole(value) => Some(*value),
            other => unreachable!("{name} is a whole number, not {other:?}"),
        }
    }

    /// A number, if it is set.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Number(value) => Some(*value),
            other => unreachable!("{name} is a number, not {other:?}"),
        }
    }

    /// A time, if it is set.
    pub fn time(&self, name: &str) -> Option<Duration> {
        match self.get(name)? {
            Value::Time(value) => Some(*value),
            other => unreachable!("{name} is a time, not {other:?}"),
        }
    }

    /// Whether a switch is set, and on.
    pub fn is_on(&self, name: &str) -> bool {
        self.word(name) == Some("on")
    }

    /// A word, if it is set.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Word(value) => Some(value),
            other => unreachable!("{name} is a word, not {other:?}"),
        }
    }
}
