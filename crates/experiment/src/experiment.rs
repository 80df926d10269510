//! An experiment: what its file says, with every default filled in and every value checked.

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
    /// Its name, which its results folder bears.
    pub name: String,
    /// What it asks, in a sentence.
    pub question: String,
    /// What explains it, in plain paragraphs; empty for nothing.
    pub notes: String,
    /// How often each combination is tried; where a precision is asked for, at least.
    pub repeats: u32,
    /// How narrow intervals are to be; more blocks are run until they are.
    pub precision: Option<Precision>,
    /// A trial is disturbed, and tried again, where other programs and the host of a virtual machine took so large a share of
    /// the machine beyond what is usual in the run.
    pub disturbed_over: f64,
    /// What is expected of the system.
    pub expected: Vec<ExpectedAt>,
    /// Whose capacity 100 % is.
    pub calibration: Calibration,
    /// Where all its random numbers come from; drawn by the laboratory if the file names none.
    pub seed: Option<u64>,
    /// The system that it serves and loads.
    pub system: &'static System,
    /// Every parameter that has a value, in the order in which it is written out.
    pub variables: Vec<Variable>,
    /// Values that belong together, under a name: with more than one case, these are a factor too.
    pub cases: Vec<Case>,
    /// The stations that its measurements are compared with; empty for the one that the settings describe.
    pub models: Vec<Model>,
    /// Figures that others published of it.
    pub published: Vec<Published>,
    /// How its trials are watched.
    pub probing: Probing,
    /// The folder that the files it names are relative to.
    pub folder: PathBuf,
}

/// Whose capacity 100 % is, where rates are shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calibration {
    /// That of each way of serving and asking.
    #[default]
    Each,
    /// That of the first combination, for all: so that ways of serving are compared at one and the same rate.
    Once,
}

impl Calibration {
    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Once => "once",
        }
    }
}

/// The part of the file that a parameter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// How the system is served.
    System,
    /// What its clients ask.
    Workload,
    /// What is between them.
    Link,
    /// When they ask.
    Load,
}

impl Section {
    /// All, in the order of the file.
    pub const ALL: [Self; 4] = [Self::System, Self::Workload, Self::Link, Self::Load];

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Workload => "workload",
            Self::Link => "link",
            Self::Load => "load",
        }
    }

    /// The parameters it can hold, for a system.
    pub fn parameters(self, system: &System) -> &'static [Parameter] {
        match self {
            Self::System => system.server,
            Self::Workload => system.workload,
            Self::Link => LINK,
            Self::Load => LOAD,
        }
    }
}

/// A parameter and its values. More than one make it a factor.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Where it stands.
    pub section: Section,
    /// What it is.
    pub parameter: &'static Parameter,
    /// Its values, at least one.
    pub values: Vec<Value>,
}

/// Values that belong together. What a case does not set is as in the experiment at large.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name: a level of the factor [`CASE`].
    pub name: String,
    /// What it sets.
    pub values: Vec<(Section, &'static Parameter, Value)>,
}

/// The name of the factor whose levels are the cases.
pub const CASE: &str = "case";

/// Something that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Its name: that of a parameter, or [`CASE`].
    pub name: &'static str,
    /// Where its parameter stands; `None` for the cases.
    pub section: Option<Section>,
    /// Its levels.
    pub values: Vec<Value>,
}

impl Factor {
    /// Whether its levels are words, which have no places on a line of numbers.
    pub fn is_of_words(&self) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Word(_)))
    }
}

/// A station to compare with, as `[[model]]` names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The station without its rates; these are measured.
    pub station: Notation,
}

/// What is expected, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedAt {
    /// At combinations with these levels; empty for all.
    pub at: Vec<Level>,
    /// What.
    pub expectation: Expectation,
}

impl ExpectedAt {
    /// Whether it is expected of a combination.
    pub fn holds_for(&self, combination: &Combination) -> bool {
        let varies = |name| combination.levels.iter().any(|(factor, _)| *factor == name);
        self.at.iter().all(|level| combination.levels.contains(level) || !varies(level.0))
    }
}

/// A factor or parameter and one of its values.
pub type Level = (&'static str, Value);

/// A table of figures that others published, as `[[published]]` has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Where they stand in print.
    pub source: String,
    /// What they measure.
    pub measure: Measure,
    /// Their unit: one of the measure's.
    pub unit: String,
    /// The levels that the others are put in relation to; empty for none.
    pub baseline: Vec<Level>,
    /// The figures.
    pub rows: Vec<PublishedRow>,
}

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    /// What it holds for: a value of every factor, at least.
    pub levels: Vec<Level>,
    /// The figure, in the unit of its table.
    pub value: f64,
}

/// One value for each parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combination {
    /// How the system is served.
    pub server: Settings,
    /// What its clients ask.
    pub workload: Settings,
    /// What is between them.
    pub link: Settings,
    /// When they ask.
    pub load: Settings,
    /// The factors' values in this combination, in the order of the factors.
    pub levels: Vec<(&'static str, Value)>,
}

impl Combination {
    /// The value of a parameter, whatever letter its level has.
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
    /// What is varied, the first varying slowest: the cases, and the parameters with more than one value.
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

    /// The link of a combination; `None` where nothing is between its clients and its server.
    ///
    /// # Errors
    /// Names the parameter that is at fault, and says in words what is wrong.
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
