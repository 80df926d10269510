//! Reading an experiment file: TOML in which a list is a factor. Unknown keys, impossible values and missing
//! files are faults that name the line, and the nearest valid key.

mod case;
mod items;
mod link;
mod probe;
mod published;
mod trust;

use std::ops::Range;
use std::path::{Path, PathBuf};

use kendall_station::Notation;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::experiment::{Calibration, Experiment, Model, Section, Variable};
use crate::fault::Fault;
use crate::probing::Probing;
pub use trust::DISTURBED_OVER;

use items::{in_order, value_in};
use kendall_system::{Kind, Parameter, System, Value, nearest};

/// Combinations above this are refused: such an experiment would not end.
const MOST_COMBINATIONS: usize = 10_000;

/// The reason why an experiment file cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ExperimentError {
    #[error("cannot read the experiment file {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// No experiment file is longer.
const MOST_BYTES: u64 = 1 << 20;

/// Reads an experiment file.
///
/// # Errors
/// Fails where the file cannot be read, or with the first fault in it.
pub fn read(path: &Path, systems: &'static [System]) -> Result<Experiment, ExperimentError> {
    read_with_text(path, systems).map(|(experiment, _)| experiment)
}

/// The same, and the text that was read.
pub(crate) fn read_with_text(
    path: &Path,
    systems: &'static [System],
) -> Result<(Experiment, String), ExperimentError> {
    let text = kendall_files::read_text(path, MOST_BYTES)
        .map_err(|source| ExperimentError::Read { path: path.into(), source })?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("experiment");
    Ok((parse(&path.display().to_string(), stem, &text, folder, systems)?, text))
}

/// Reads the text of an experiment file. `stem` is its name where it states none.
///
/// # Errors
/// Fails with the first fault in the text.
pub fn parse(
    file: &str,
    stem: &str,
    text: &str,
    folder: PathBuf,
    systems: &'static [System],
) -> Result<Experiment, Fault> {
    let document = DeTable::parse(text).map_err(|error| {
        Fault::at(file, text, error.span().unwrap_or(0..0), error.message().trim_end().replace('\n', "; "))
    })?;
    Reader { file, text, systems }.experiment(document.get_ref(), stem, folder)
}

/// The keys at the top of the file.
const KEYS: [&str; 21] = [
    "name",
    "question",
    "notes",
    "repeats",
    "precision",
    "precision-of",
    "repeats-at-most",
    "time-at-most",
    "disturbed-over",
    "keep-awake",
    "calibrate",
    "seed",
    "system",
    "workload",
    "link",
    "load",
    "case",
    "model",
    "published",
    "expect",
    "probe",
];

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    systems: &'static [System],
}

impl Reader<'_> {
    fn experiment(&self, top: &DeTable<'_>, stem: &str, folder: PathBuf) -> Result<Experiment, Fault> {
        let items = in_order(top);
        for (key, place, _) in &items {
            if !KEYS.contains(key) {
                return Err(self.unknown(key, place, "at the top of the file", KEYS));
            }
        }
        let find = |name: &str| items.iter().find(|item| item.0 == name).map(|item| item.2);
        let word = |name, default: &str| match find(name) {
            Some(item) => self.text_of(name, item),
            None => Ok(default.to_owned()),
        };
        let whole = |name, least, most| match find(name) {
            Some(item) => self.value(name, &Kind::Whole { least, most }, item).map(|value| match value {
                Value::Whole(number) => Some(number),
                _ => None,
            }),
            None => Ok(None),
        };
        let (system, mut variables) = self.system(find("system"))?;
        for section in [Section::Workload, Section::Link, Section::Load] {
            variables.extend(self.section(section, system, find(section.name()))?);
        }
        let cases = find("case").map_or(Ok(Vec::new()), |item| self.cases(item, system, &variables))?;
        let mut experiment = Experiment {
            name: word("name", stem)?,
            question: word("question", "")?,
            notes: word("notes", "")?,
            repeats: 1,
            precision: None,
            disturbed_over: self.disturbed_over(find("disturbed-over"))?,
            keep_awake: self.keep_awake(find("keep-awake"))?,
            expected: Vec::new(),
            calibration: self.calibration(find("calibrate"))?,
            seed: whole("seed", 0, i64::MAX as u64)?,
            system,
            variables,
            cases,
            models: find("model").map_or(Ok(Vec::new()), |item| self.models(item))?,
            published: Vec::new(),
            probing: find("probe").map_or_else(|| Ok(Probing::default()), |item| self.probe(item))?,
            folder,
        };
        (experiment.repeats, experiment.precision) =
            self.repeats(whole("repeats", 1, 1000)?, whole("repeats-at-most", 1, 1000)?, find)?;
        if let Some(item) = find("expect") {
            experiment.expected = self.expected(item, &experiment)?;
        }
        if let Some(item) = find("published") {
            experiment.published = self.published(item, &experiment)?;
        }
        if let (Some(item), false) = (find("name"), is_folder_name(&experiment.name)) {
            return Err(self.fault(
                item.span(),
                "name becomes a folder's name: it must not be empty, nor hold slashes or control characters",
            ));
        }
        self.check(&experiment, find("load"), find("case"))?;
        self.check_link(&experiment, find("link"), find("case"))?;
        Ok(experiment)
    }

    fn calibration(&self, item: Option<&Spanned<DeValue<'_>>>) -> Result<Calibration, Fault> {
        let Some(item) = item else { return Ok(Calibration::default()) };
        let name = self.text_of("calibrate", item)?;
        let known = [Calibration::Each, Calibration::Once].into_iter().find(|one| one.name() == name);
        known.ok_or_else(|| self.fault(item.span(), format!("calibrate must be each or once, not {name:?}")))
    }

    /// The system, and the variables of its section.
    fn system(&self, item: Option<&Spanned<DeValue<'_>>>) -> Result<(&'static System, Vec<Variable>), Fault> {
        let known = || self.systems.iter().map(|system| system.name);
        let list = || known().collect::<Vec<_>>().join(", ");
        let Some(item) = item else {
            let end = self.text.len()..self.text.len();
            return Err(self.fault(end, format!("no [system] is named; known are {}", list())));
        };
        let table = self.table("system", item)?;
        let Some(name) = table.iter().find(|(key, _)| key.get_ref() == "name").map(|(_, value)| value) else {
            return Err(self.fault(item.span(), format!("[system] needs a name; known are {}", list())));
        };
        let wanted = self.text_of("name", name)?;
        let Some(system) = self.systems.iter().find(|system| system.name == wanted) else {
            let hint = match nearest(&wanted, known()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("known are {}", list()),
            };
            let message = format!("unknown system {wanted:?}; {hint}");
            return Err(self.fault(name.span(), message));
        };
        Ok((system, self.section(Section::System, system, Some(item))?))
    }

    /// The variables of one section, defaults included.
    fn section(
        &self,
        section: Section,
        system: &'static System,
        item: Option<&Spanned<DeValue<'_>>>,
    ) -> Result<Vec<Variable>, Fault> {
        let parameters = section.parameters(system);
        let items = match item {
            Some(item) => in_order(self.table(section.name(), item)?),
            None => Vec::new(),
        };
        let mut variables = Vec::new();
        for (key, place, value) in items {
            if section == Section::System && key == "name" {
                continue;
            }
            let parameter = self.parameter(parameters, key, &place, section.name())?;
            variables.push(Variable { section, parameter, values: self.values(parameter, value)? });
        }
        // A key that marks a name as secret may follow the one with the value.
        for Variable { parameter, values, .. } in &mut variables {
            if let Kind::Headers | Kind::Url | Kind::Body = parameter.kind {
                for value in values {
                    if let Ok(concealed) = parameter.kind.read(&value.to_string()) {
                        *value = concealed;
                    }
                }
            }
        }
        for parameter in parameters {
            let given = variables.iter().any(|variable| variable.parameter.name == parameter.name);
            if let (false, Some(default)) = (given, parameter.default) {
                let value = parameter.kind.read(default).expect("a default is a valid value");
                variables.push(Variable { section, parameter, values: vec![value] });
            }
        }
        Ok(variables)
    }

    /// The parameter that a key of a section names.
    fn parameter(
        &self,
        known: &'static [Parameter],
        key: &str,
        place: &Range<usize>,
        section: &str,
    ) -> Result<&'static Parameter, Fault> {
        known.iter().find(|parameter| parameter.name == key).ok_or_else(|| {
            let names = known.iter().map(|parameter| parameter.name);
            self.unknown(key, place, &format!("in [{section}]"), names)
        })
    }

    /// One value, or each value of a list.
    fn values(&self, parameter: &Parameter, item: &Spanned<DeValue<'_>>) -> Result<Vec<Value>, Fault> {
        let read = |item| self.value(parameter.name, &parameter.kind, item);
        let Some(list) = item.get_ref().as_array() else { return Ok(vec![read(item)?]) };
        let values = list.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            return Err(self.fault(item.span(), format!("{} needs at least one value", parameter.name)));
        }
        for (i, value) in values.iter().enumerate() {
            if values[..i].contains(value) {
                let place = list[i].span();
                return Err(self.fault(place, format!("{} has the value {value} twice", parameter.name)));
            }
        }
        Ok(values)
    }

    fn value(&self, name: &str, kind: &Kind, item: &Spanned<DeValue<'_>>) -> Result<Value, Fault> {
        let written = match item.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(_) | DeValue::Float(_) => self.text[item.span()].replace('_', ""),
            other => {
                let message = format!("{name} must be a number or a text, not {}", a(other.type_str()));
                return Err(self.fault(item.span(), message));
            }
        };
        // Checked before a record copies it: a text that is not a header may be a secret, and only header values become
        // references.
        let is_header = |line: &str| line.trim().is_empty() || line.starts_with('@') || line.contains(':');
        if matches!(kind, Kind::Headers) && !written.lines().all(is_header) {
            let message = format!(
                "{name} must have a line \"name: value\" for each header, or @FILE for those in a file"
            );
            return Err(self.fault(item.span(), message));
        }
        kind.read(&written).map_err(|message| self.fault(item.span(), format!("{name} {message}")))
    }

    fn models(&self, item: &Spanned<DeValue<'_>>) -> Result<Vec<Model>, Fault> {
        let Some(list) = item.get_ref().as_array() else {
            return Err(self.fault(item.span(), "a model is written [[model]], with double brackets"));
        };
        list.iter().map(|item| self.model(item)).collect()
    }

    fn model(&self, item: &Spanned<DeValue<'_>>) -> Result<Model, Fault> {
        let mut station = None;
        for (key, place, value) in in_order(self.table("model", item)?) {
            if key != "station" {
                return Err(self.unknown(key, &place, "in [[model]]", ["station"]));
            }
            let notation: Notation = self
                .text_of("station", value)?
                .parse()
                .map_err(|error| self.fault(value.span(), format!("station: {error}")))?;
            station = Some(notation);
        }
        let missing = || self.fault(item.span(), "a model needs a station, such as station = \"M/G/1\"");
        Ok(Model { station: station.ok_or_else(missing)? })
    }

    /// Checks that need whole combinations: loads that are inconsistent, and too many combinations.
    fn check(
        &self,
        experiment: &Experiment,
        load: Option<&Spanned<DeValue<'_>>>,
        cases: Option<&Spanned<DeValue<'_>>>,
    ) -> Result<(), Fault> {
        let end = self.text.len()..self.text.len();
        let section = load.or(cases).map_or(end, Spanned::span);
        let levels = experiment.factors().into_iter().map(|factor| factor.values.len());
        let count = levels.fold(1usize, usize::saturating_mul);
        if count > MOST_COMBINATIONS {
            let message =
                format!("{count} combinations are too many; at most {MOST_COMBINATIONS} can be run");
            return Err(self.fault(0..0, message));
        }
        for combination in experiment.combinations() {
            experiment.load(&combination).map_err(|(name, message)| {
                let place = load
                    .and_then(|load| value_in(load, name))
                    .or_else(|| self.place_in_case(cases, &combination, Section::Load, name))
                    .unwrap_or_else(|| section.clone());
                self.fault(place, format!("{name}: {message}"))
            })?;
        }
        Ok(())
    }

    fn table<'t>(&self, name: &str, item: &'t Spanned<DeValue<'_>>) -> Result<&'t DeTable<'t>, Fault> {
        let refuse = || {
            let found = a(item.get_ref().type_str());
            self.fault(item.span(), format!("{name} must be a section, not {found}; write [{name}]"))
        };
        item.get_ref().as_table().ok_or_else(refuse)
    }

    fn text_of(&self, name: &str, item: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
        let refuse = || self.fault(item.span(), format!("{name} must be a text in quotes"));
        item.get_ref().as_str().map(str::to_owned).ok_or_else(refuse)
    }

    fn unknown<'k>(
        &self,
        key: &str,
        place: &Range<usize>,
        at: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Fault {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known are {}", known.join(", ")),
        };
        self.fault(place.clone(), format!("unknown key {key:?} {at}; {hint}"))
    }

    fn fault(&self, place: Range<usize>, message: impl Into<String>) -> Fault {
        Fault::at(self.file, self.text, place, message)
    }
}

/// Whether a folder can have this name, in any folder.
fn is_folder_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.contains(|char: char| matches!(char, '/' | '\\') || char.is_control())
}

/// The name of a TOML type with its article.
fn a(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {type_name}")
}
