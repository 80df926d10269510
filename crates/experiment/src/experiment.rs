//! An experiment: the content of its file, with every default filled in and every value checked.

mod level;
mod written;

use std::path::PathBuf;

use kendall_evidence::expect::Expectation;
use kendall_link::LinkSettings;
use kendall_station::Notation;

use crate::link::{LINK, asked};
use crate::load::{LOAD, Load};
use crate::measure::Measure;
use crate::precision::Precision;
use crate::probing::Probing;
use kendall_system::{Parameter, Value};
use kendall_system::{Settings, System};
pub use level::Letter;

/// An experiment file, read and checked.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The experiment's name, which is also that of its results folder.
    pub name: String,
    /// The experiment's question, a sentence.
    pub question: String,
    /// The experiment's explanation, in plain paragraphs; may be empty.
    pub notes: String,
    /// The number of repeats of each combination; with a precision, the least number.
    pub repeats: u32,
    /// The wanted width of the intervals; more blocks run until they are that narrow.
    pub precision: Option<Precision>,
    /// The limit for a disturbed trial, which is repeated: the share of the machine that other programs and the host of a virtual
    /// machine took, beyond the usual share in the run.
    pub disturbed_over: f64,
    /// Whether the processors of the machine are kept from sleeping during the run.
    pub keep_awake: bool,
    /// The expectations of the system.
    pub expected: Vec<ExpectedAt>,
    /// The combination whose capacity is 100 %.
    pub calibration: Calibration,
    /// The seed of all its random numbers; the laboratory draws one if the file names none.
    pub seed: Option<u64>,
    /// The system that it serves and loads.
    pub system: &'static System,
    /// Every parameter that has a value, in the order of the written file.
    pub variables: Vec<Variable>,
    /// Named sets of values. More than one case form a factor.
    pub cases: Vec<Case>,
    /// The stations to compare its measurements with; empty for the one that the settings describe.
    pub models: Vec<Model>,
    /// Published figures to compare with.
    pub published: Vec<Published>,
    /// The settings by which the experiment's trials are watched.
    pub probing: Probing,
    /// The folder to which paths in it are relative.
    pub folder: PathBuf,
}

/// The combination whose capacity is 100 %, where rates are shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calibration {
    /// Each combination of server and workload settings has a separate calibration.
    #[default]
    Each,
    /// The capacity of the first combination applies to all, so that server settings are compared at the same rate.
    Once,
}

impl Calibration {
    /// The calibration's name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Once => "once",
        }
    }
}

/// The section of the file that a parameter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The server settings.
    System,
    /// The requests of the clients.
    Workload,
    /// The link between them.
    Link,
    /// The arrivals of the requests.
    Load,
}

impl Section {
    /// Every section, in the order of the file.
    pub const ALL: [Self; 4] = [Self::System, Self::Workload, Self::Link, Self::Load];

    /// The section's name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Workload => "workload",
            Self::Link => "link",
            Self::Load => "load",
        }
    }

    /// The parameters of the section, for a system.
    pub fn parameters(self, system: &System) -> &'static [Parameter] {
        match self {
            Self::System => system.server,
            Self::Workload => system.workload,
            Self::Link => LINK,
            Self::Load => LOAD,
        }
    }
}

/// A parameter and its values. More than one value make it a factor.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The variable's section.
    pub section: Section,
    /// The parameter.
    pub parameter: &'static Parameter,
    /// The variable's values, at least one.
    pub values: Vec<Value>,
}

/// A named set of values. Parameters that a case does not set have the value of the experiment.
#[derive(Clone, Debug)]
pub struct Case {
    /// The case's name: a level of the factor [`CASE`].
    pub name: String,
    /// The values that it sets.
    pub values: Vec<(Section, &'static Parameter, Value)>,
}

/// The name of the factor whose levels are the cases.
pub const CASE: &str = "case";

/// A factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// The factor's name: that of a parameter, or [`CASE`].
    pub name: &'static str,
    /// The section of its parameter; `None` for the cases.
    pub section: Option<Section>,
    /// The factor's levels.
    pub values: Vec<Value>,
}

impl Factor {
    /// Whether the levels are words, which have no position on an axis.
    pub fn is_of_words(&self) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Word(_)))
    }
}

/// A station to compare with, from `[[model]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The station without its rates, which are measured.
    pub station: Notation,
}

/// An expectation and the combinations that it applies to.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedAt {
    /// At combinations with these levels; empty for all.
    pub at: Vec<Level>,
    /// The expectation.
    pub expectation: Expectation,
}

impl ExpectedAt {
    /// Whether the expectation applies to a combination.
    pub fn holds_for(&self, combination: &Combination) -> bool {
        let varies = |name| combination.levels.iter().any(|(factor, _)| *factor == name);
        self.at.iter().all(|level| combination.levels.contains(level) || !varies(level.0))
    }
}

/// A factor or parameter and one of its values.
pub type Level = (&'static str, Value);

/// A table of published figures, from `[[published]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The source.
    pub source: String,
    /// The measure.
    pub measure: Measure,
    /// The unit of the figures: one of the measure's.
    pub unit: String,
    /// The levels of the baseline, to which the other figures are relative; empty for none.
    pub baseline: Vec<Level>,
    /// The figures.
    pub rows: Vec<PublishedRow>,
}

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// The values that it holds for: at least one of every factor.
    pub levels: Vec<Level>,
    /// The figure, in the unit of its table.
    pub value: f64,
}

/// A combination: one value for each parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combination {
    /// The server settings.
    pub server: Settings,
    /// The requests of the clients.
    pub workload: Settings,
    /// The link between them.
    pub link: Settings,
    /// The arrivals of the requests.
    pub load: Settings,
    /// The levels of this combination, in the order of the factors.
    pub levels: Vec<(&'static str, Value)>,
}

impl Combination {
    /// The value of a parameter, also where its level is a letter.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        [&self.server, &self.workload, &self.link, &self.load]
            .into_iter()
            .find_map(|settings| settings.get(name))
    }

    fn set(&mut self, section: Section, name: &'static str, value: Value) {
        match section {
            Section::System => self.server.set(name, value),
            Section::Workload => self.workload.set(name, value),
            Section::Link => self.link.set(name, value),
            Section::Load => self.load.set(name, value),
        }
    }
}

impl Experiment {
    /// The factors, the first varying slowest: the cases, and the parameters with more than one value.
    pub fn factors(&self) -> Vec<Factor> {
        let names = self.cases.iter().map(|case| Value::Word(case.name.clone())).collect();
        let cases = Factor { name: CASE, section: None, values: names };
        let variables = self.variables.iter().map(|variable| Factor {
            name: variable.parameter.name,
            section: Some(variable.section),
            values: variable.levels(),
        });
        std::iter::once(cases).chain(variables).filter(|factor| factor.values.len() > 1).collect()
    }

    /// Every combination of the factors' values, in the order of the file.
    pub fn combinations(&self) -> Vec<Combination> {
        if self.cases.is_empty() {
            return self.combinations_from(Combination::default());
        }
        let of_case = |case: &Case| {
            let mut named = Combination::default();
            if self.cases.len() > 1 {
                named.levels.push((CASE, Value::Word(case.name.clone())));
            }
            let mut all = self.combinations_from(named);
            for combination in &mut all {
                for (section, parameter, value) in &case.values {
                    combination.set(*section, parameter.name, value.clone());
                }
            }
            all
        };
        self.cases.iter().flat_map(of_case).collect()
    }

    /// Every combination of the variables' values, added to one that has none of them.
    fn combinations_from(&self, start: Combination) -> Vec<Combination> {
        let mut all = vec![start];
        for variable in &self.variables {
            let name = variable.parameter.name;
            let levels = variable.levels();
            let with = |mut combination: Combination, value: &Value, level: &Value| {
                combination.set(variable.section, name, value.clone());
                if variable.values.len() > 1 {
                    combination.levels.push((name, level.clone()));
                }
                combination
            };
            let pairs = || variable.values.iter().zip(&levels);
            let extend = |combination: Combination| {
                pairs().map(move |(value, level)| with(combination.clone(), value, level))
            };
            all = all.into_iter().flat_map(extend).collect();
        }
        all
    }

    /// The link of a combination; `None` where it has none.
    ///
    /// # Errors
    /// Returns the name of the invalid parameter, and the reason as a sentence.
    pub fn link(&self, combination: &Combination) -> Result<Option<LinkSettings>, (&'static str, String)> {
        asked(&combination.link)
    }

    /// The load of a combination.
    ///
    /// # Errors
    /// As [`Load::new`].
    pub fn load(&self, combination: &Combination) -> Result<Load, (&'static str, String)> {
        Load::new(&combination.load, &self.folder)
    }
}
