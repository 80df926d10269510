//! `kendall solve MODEL`: all quantities of a named model for its inputs; and the list of the models.

use std::process::ExitCode;

use anyhow::bail;
use kendall_theory::batch::{self, BatchError, Inputs, Model};
use serde_json::{Map, Value, json};

/// The quantiles that a model reports, if it has any.
const PER_CENTS: [&str; 4] = ["50", "90", "95", "99"];
/// No more values than this of a quantity that has one for every whole number.
const MOST_NUMBERED: usize = 10;

/// Lists all models.
pub(crate) fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        let model = |model: &Model| {
            json!({
                "model": model.name, "about": model.about, "inputs": model.inputs, "quantities": model.quantities,
            })
        };
        kendall_stdio::json(&batch::models().map(model).collect::<Vec<_>>())?;
    } else {
        let model = |model: &Model| {
            let Model { name, about, inputs, quantities, .. } = model;
            format!("{name}\n    {about}\n    takes {inputs}\n    gives {quantities}\n")
        };
        kendall_stdio::out(&batch::models().map(model).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints every quantity of a model.
///
/// # Errors
/// Fails on inputs that cannot be read, or for which the model has no quantity. Prints a note for unknown inputs.
pub(crate) fn solve(model: &Model, words: &[String], as_json: bool) -> anyhow::Result<ExitCode> {
    let inputs = read(words)?;
    for key in inputs.keys().filter(|key| !model.takes(key)) {
        kendall_stdio::note(&format!("kendall: {}", unknown(model, key)));
    }
    let quantities = found(model, &inputs)?;
    if as_json {
        kendall_stdio::json(&answer(model, &inputs, &quantities))?;
    } else {
        kendall_stdio::out(&text(model, &inputs, &quantities))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every quantity of a model for inputs that are a JSON object, in the form of `--json`.
///
/// # Errors
/// Fails on inputs that are unknown or cannot be read, or for which the model has no quantity.
pub(crate) fn solved(model: &Model, inputs: &str) -> anyhow::Result<Value> {
    let inputs = Inputs::read(inputs)?;
    if let Some(key) = inputs.keys().find(|key| !model.takes(key)) {
        bail!(unknown(model, key));
    }
    Ok(answer(model, &inputs, &found(model, &inputs)?))
}

fn unknown(model: &Model, key: &str) -> String {
    format!("the model {} has no input {key:?}; it takes {}", model.name, model.inputs)
}

/// # Errors
/// Fails where the model has no quantity for these inputs.
fn found(model: &Model, inputs: &Inputs) -> anyhow::Result<Quantities> {
    let quantities = Quantities::of(model, inputs);
    if quantities.values.is_empty()
        && let Some((_, why)) = quantities.without.first()
    {
        bail!("{}: {why}", model.name);
    }
    Ok(quantities)
}

fn answer(model: &Model, inputs: &Inputs, quantities: &Quantities) -> Value {
    json!({
        "model": model.name,
        "about": model.about,
        "inputs": inputs.as_json(),
        "quantities": quantities.values.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>(),
        "without": quantities.without.iter().map(|(name, why)| (name.clone(), json!(why.to_string()))).collect::<Map<_, _>>(),
    })
}

/// Inputs as one JSON object, or as `key=value` words.
fn read(words: &[String]) -> Result<Inputs, BatchError> {
    match words {
        [object] if object.trim_start().starts_with('{') => Inputs::read(object),
        words => Inputs::pairs(words.iter().map(String::as_str)),
    }
}

/// The quantities that a model gives, and those that it does not give and why.
#[derive(Default)]
struct Quantities {
    values: Vec<(String, f64)>,
    without: Vec<(String, BatchError)>,
}

impl Quantities {
    fn of(model: &Model, inputs: &Inputs) -> Self {
        let mut quantities = Self::default();
        for quantity in model.quantities() {
            match quantity.strip_suffix('*') {
                None => quantities.ask(model, inputs, quantity.to_owned()),
                Some(prefix) if prefix.ends_with("_p") => {
                    for per_cent in PER_CENTS {
                        quantities.ask(model, inputs, format!("{prefix}{per_cent}"));
                    }
                }
                Some(prefix) => quantities.numbered(model, inputs, prefix),
            }
        }
        quantities
    }

    fn ask(&mut self, model: &Model, inputs: &Inputs, quantity: String) {
        if self.values.iter().any(|(known, _)| *known == quantity) {
            return;
        }
        match model.value(inputs, &quantity) {
            Ok(value) => self.values.push((quantity, value)),
            Err(why) => self.without.push((quantity, why)),
        }
    }

    /// The values for 0, 1, 2 and so on, until the first missing one; some begin with 1.
    fn numbered(&mut self, model: &Model, inputs: &Inputs, prefix: &str) {
        let name = |n: usize| format!("{prefix}{n}");
        let value = |n| Some((name(n), model.value(inputs, &name(n)).ok()?));
        let first = (0..2).find(|&n| value(n).is_some());
        match first {
            Some(first) => self.values.extend((first..first + MOST_NUMBERED).map_while(value)),
            None => self
                .without
                .extend(model.value(inputs, &name(1)).err().map(|why| (format!("{prefix}*"), why))),
        }
    }
}

fn text(model: &Model, inputs: &Inputs, quantities: &Quantities) -> String {
    let given = inputs.as_json().iter().map(|(key, value)| format!("{key} = {}", plain(value)));
    let mut lines = vec![model.about.to_owned(), given.collect::<Vec<_>>().join("; "), String::new()];
    let names =
        quantities.values.iter().map(|(name, _)| name).chain(quantities.without.iter().map(|(name, _)| name));
    let width = names.map(|name| words(name).chars().count()).max().unwrap_or(0).max(24);
    lines.extend(
        quantities.values.iter().map(|(name, value)| format!("{:<width$} {}", words(name), rounded(*value))),
    );
    if !quantities.without.is_empty() {
        lines.push(String::new());
    }
    lines.extend(quantities.without.iter().map(|(name, why)| format!("{:<width$} –  {why}", words(name))));
    lines.join("\n") + "\n"
}

/// A quantity in words: "P_N_ge_3" of batches and JSON is "P(3 or more present)".
fn words(name: &str) -> String {
    let of_times = |time: &str, of: &str| match of {
        "var" => format!("{time}, variance"),
        "sf_at_t" => format!("P({time} > t)"),
        of => format!("{time}, {}", of.replace('_', " ")),
    };
    match name {
        "L" => return "present, mean number".to_owned(),
        "Lq" => return "waiting, mean number".to_owned(),
        "P_wait" => return "P(wait)".to_owned(),
        "P_block" => return "P(turned away)".to_owned(),
        _ => {}
    }
    if let Some(n) = name.strip_prefix("P_N_ge_") {
        return format!("P({n} or more present)");
    }
    let times = [("R_", "response time"), ("Wq_", "waiting time")];
    let others = [
        ("Q_", "present"),
        ("L_", "present"),
        ("Lq_", "waiting"),
        ("U_", "utilisation"),
        ("X_", "throughput"),
    ];
    let of = |(prefix, what): &(&str, &'static str)| Some((*what, name.strip_prefix(prefix)?.to_owned()));
    if let Some((time, of)) = times.iter().find_map(of) {
        return of_times(time, &of);
    }
    match others.iter().find_map(of) {
        Some((what, of)) => format!("{what}, {}", of.replace('_', " ")),
        None => name.replace('_', " "),
    }
}

/// JSON as it reads in a line: lists with a space after the comma, text without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// To twelve significant digits, and no more of them than there are.
fn rounded(value: f64) -> String {
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    format!("{rounded:?}").trim_end_matches(".0").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_shown_in_words() {
        let shown =
            ["R_mean", "R_p99", "Wq_sf_at_t", "P_N_ge_3", "U_db", "L", "min_servers", "speedup"].map(words);
        let expected = [
            "response time, mean",
            "response time, p99",
            "P(waiting time > t)",
            "P(3 or more present)",
            "utilisation, db",
            "present, mean number",
            "min servers",
            "speedup",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn numbers_lose_their_noise_only() {
        for (value, text) in
            [(0.1 + 0.2, "0.3"), (20.0, "20"), (1e-300, "1e-300"), (1.0 / 3.0, "0.333333333333")]
        {
            assert_eq!(rounded(value), text);
        }
    }

    #[test]
    fn each_quantity_is_told_or_excused() {
        let model = batch::model("mm1").unwrap();
        let quantities = Quantities::of(model, &Inputs::pairs(["lam=1", "mu=2"]).unwrap());
        let value =
            |name: &str| quantities.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        assert_eq!(
            (value("R_mean"), value("P_N_ge_0"), value("P_N_ge_3")),
            (Some(1.0), Some(1.0), Some(0.125))
        );
        let excused: Vec<&str> = quantities.without.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(excused, ["Wq_sf_at_t", "R_sf_at_t"], "they need t");
    }
}
