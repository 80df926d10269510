//! An experiment as a file again.

use super::{Experiment, Level, Model, Published, PublishedRow, Section};
use crate::measure::Measure;
use crate::probing::Probing;
use kendall_system::Value;

impl Experiment {
    /// The experiment as a file again, with every default written out.
    pub fn to_toml(&self) -> String {
        let mut lines = vec![
            "# As run: every default is written out.".to_owned(),
            format!("name = {}", quoted(&self.name)),
            format!("question = {}", quoted(&self.question)),
            format!("repeats = {}", self.repeats),
            format!("calibrate = {}", quoted(self.calibration.name())),
            format!("disturbed-over = {}", quoted(&percent(self.disturbed_over))),
            format!("keep-awake = {}", self.keep_awake),
        ];
        if let Some(precision) = &self.precision {
            lines.push(format!("precision = {}", quoted(&percent(precision.relative))));
            lines.push(format!("precision-of = {}", quoted(&precision.of.to_string())));
            lines.push(format!("repeats-at-most = {}", precision.repeats_at_most));
            let time = precision.time_at_most.map(|time| Value::Time(time).to_string());
            lines.extend(time.map(|time| format!("time-at-most = {}", quoted(&time))));
        }
        if !self.notes.is_empty() {
            lines.push(format!("notes = {}", quoted(&self.notes)));
        }
        lines.extend(self.seed.map(|seed| format!("seed = {seed}")));
        for section in Section::ALL {
            let mut own = self.variables.iter().filter(|variable| variable.section == section).peekable();
            if section == Section::Link && own.peek().is_none() {
                continue;
            }
            lines.push(format!("\n[{}]", section.name()));
            if section == Section::System {
                lines.push(format!("name = {}", quoted(self.system.name)));
            }
            lines.extend(own.map(|variable| {
                let values: Vec<String> = variable.values.iter().map(as_toml).collect();
                match values.as_slice() {
                    [value] => format!("{} = {value}", variable.parameter.name),
                    _ => format!("{} = [{}]", variable.parameter.name, values.join(", ")),
                }
            }));
        }
        for case in &self.cases {
            lines.push(format!("\n[[case]]\nname = {}", quoted(&case.name)));
            lines.extend(case.values.iter().map(|(section, parameter, value)| {
                format!("{}.{} = {}", section.name(), parameter.name, as_toml(value))
            }));
        }
        self.probing.write(&mut lines);
        for expected in &self.expected {
            let text = expected.expectation.to_string();
            // The measure ends where its side begins.
            let (measure, limit) = text.split_at(text.find(['<', '>']).unwrap_or(0));
            lines.push(format!("\n[[expect]]\n{} = {}", quoted(measure.trim()), quoted(limit)));
            if !expected.at.is_empty() {
                lines.push(format!("at = {{ {} }}", levels(&expected.at)));
            }
        }
        let model = |model: &Model| format!("\n[[model]]\nstation = {}", quoted(&model.station.to_string()));
        lines.extend(self.models.iter().map(model));
        self.published.iter().for_each(|published| published.write(&mut lines));
        lines.join("\n") + "\n"
    }
}

impl Probing {
    fn write(&self, lines: &mut Vec<String>) {
        let every = self.every.map_or_else(|| "off".to_owned(), |every| Value::Time(every).to_string());
        lines.push(format!("\n[probe]\nevery = {}", quoted(&every)));
        lines.push(format!(
            "profile = {}",
            self.profile_hz.map_or_else(|| "false".to_owned(), |hz| hz.to_string())
        ));
    }
}

impl Published {
    fn write(&self, lines: &mut Vec<String>) {
        lines.push(format!("\n[[published]]\nsource = {}", quoted(&self.source)));
        lines.push(format!("measure = {}", quoted(self.measure.name())));
        if let Measure::ClassResponse { class } = &self.measure {
            lines.push(format!("class = {}", quoted(class)));
        }
        lines.push(format!("unit = {}", quoted(&self.unit)));
        if !self.baseline.is_empty() {
            lines.push(format!("baseline = {{ {} }}", levels(&self.baseline)));
        }
        lines.push("rows = [".to_owned());
        let row = |row: &PublishedRow| {
            let separator = if row.levels.is_empty() { "" } else { ", " };
            format!("  {{ {}{separator}value = {} }},", levels(&row.levels), row.value)
        };
        lines.extend(self.rows.iter().map(row));
        lines.push("]".to_owned());
    }
}

fn levels(levels: &[Level]) -> String {
    let level = |(name, value): &Level| format!("{name} = {}", as_toml(value));
    levels.iter().map(level).collect::<Vec<_>>().join(", ")
}

fn as_toml(value: &Value) -> String {
    match value {
        // Larger whole numbers do not fit TOML's signed integers.
        Value::Whole(number) if i64::try_from(*number).is_ok() => number.to_string(),
        Value::Number(number) => number.to_string(),
        _ => quoted(&value.to_string()),
    }
}

fn percent(share: f64) -> String {
    Value::Share(share).to_string()
}

fn quoted(text: &str) -> String {
    // JSON's escapes are a subset of those of TOML's basic strings, which take no raw DEL.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
