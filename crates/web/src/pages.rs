//! The data of the templates. They escape all text; the frame and the style are those of the report.

use std::borrow::Borrow;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kendall_analysis::versus::{self, Tabled};
use kendall_report::picture::Style;
use kendall_report::versus::shift;
use kendall_station::{Discipline, Knows};
use kendall_stats::number::{NONE, significant, time};

use crate::analysis::Compared;
use crate::files::RunFiles;
use crate::id::{RunId, encoded};
use crate::run::Run;
use crate::runs::Page;
use crate::watch::RunStatus;

/// The list of runs, as a page.
#[derive(Template)]
#[template(path = "runs.html")]
pub(crate) struct ListPage<'a> {
    pub(crate) build: &'a str,
    pub(crate) results: String,
    pub(crate) list: List,
}

/// The list of runs, as the part of that page that is fetched again and again.
#[derive(Template)]
#[template(path = "list.html")]
pub(crate) struct List {
    pub(crate) page: Page,
    pub(crate) search: String,
}

impl List {
    /// The address of another page of the same search.
    fn at(&self, number: usize) -> String {
        format!("/?q={}&page={number}", encoded(&self.search))
    }

    /// The number of runs, in words.
    fn count(&self) -> String {
        let runs = |n: usize| if n == 1 { "1 run".to_owned() } else { format!("{n} runs") };
        match (self.page.found, self.page.all) {
            (found, all) if found == all => runs(all),
            (found, all) => format!("{found} of {}", runs(all)),
        }
    }
}

/// The page of a run, during and after it.
#[derive(Template)]
#[template(path = "run.html")]
pub(crate) struct RunPage<'a> {
    pub(crate) build: &'a str,
    pub(crate) run: &'a Run,
    pub(crate) seen: &'a RunStatus,
    pub(crate) files: RunFiles,
    pub(crate) experiment: String,
    /// The first choices for a comparison: the newest runs of its name.
    pub(crate) others: Vec<RunId>,
}

impl RunPage<'_> {
    /// The reason why the run failed, if it did.
    fn why(&self) -> Option<&str> {
        match &self.seen.state {
            crate::run::State::Failed(why) => Some(why),
            _ => self.seen.note.as_deref(),
        }
    }

    /// The share of its trials that is done.
    fn share_done(&self) -> f64 {
        self.run
            .trials_planned
            .filter(|&planned| planned > 0)
            .map_or(0.0, |planned| self.run.trials_done as f64 / planned as f64)
    }

    fn is_running(&self) -> bool {
        self.seen.state == crate::run::State::Running
    }
}

/// The command that resuming the run would start.
#[derive(Template)]
#[template(path = "resume.html")]
pub(crate) struct ResumePage<'a> {
    pub(crate) build: &'a str,
    pub(crate) id: RunId,
    /// Whether this user started the run on this machine.
    pub(crate) is_ours: bool,
    pub(crate) command: String,
    pub(crate) experiment: String,
}

/// The page of a comparison.
#[derive(Template)]
#[template(path = "compare.html")]
pub(crate) struct ComparePage<'a> {
    pub(crate) build: &'a str,
    pub(crate) sides: [Option<String>; 2],
    /// The choices, the newest first.
    pub(crate) known: Vec<String>,
    pub(crate) tables: Vec<Tabled>,
    pub(crate) method: Vec<String>,
    pub(crate) left_out: Vec<String>,
    /// How each quantile is shifted, as an image.
    pub(crate) shift: Option<String>,
    /// The reason why there is no comparison to show.
    pub(crate) why: Option<String>,
}

impl<'a> ComparePage<'a> {
    /// The page without a comparison, or with the reason why it is missing.
    pub(crate) fn empty(
        build: &'a str,
        sides: [Option<String>; 2],
        known: Vec<String>,
        why: Option<String>,
    ) -> Self {
        let (tables, method, left_out) = Default::default();
        Self { build, sides, known, tables, method, left_out, shift: None, why }
    }

    /// The page with the result.
    #[must_use]
    pub(crate) fn with(mut self, compared: &Compared) -> Self {
        let Compared { comparison, terms, left_out } = compared;
        self.tables = versus::tables(comparison, terms);
        self.method = versus::method(comparison);
        self.left_out.clone_from(left_out);
        let image = |svg: String| format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg));
        self.shift = shift(comparison).map(|picture| image(picture.svg(Style::Screen)));
        self
    }

    fn side(&self, index: usize) -> &str {
        self.sides[index].as_deref().unwrap_or_default()
    }
}

/// The page of a what-if view, whose script fills it in.
#[derive(Template)]
#[template(path = "what-if.html")]
pub(crate) struct WhatIfPage<'a> {
    pub(crate) build: &'a str,
    pub(crate) run: Option<RunId>,
    /// The laws that are offered: the letter and the name.
    pub(crate) laws: [(&'static str, &'static str); 9],
    /// The disciplines that are offered: without classes, an order by weight is that of arrival.
    pub(crate) disciplines: Vec<Discipline>,
}

impl<'a> WhatIfPage<'a> {
    pub(crate) fn new(build: &'a str, run: Option<RunId>) -> Self {
        let laws = [
            ("M", "exponential"),
            ("D", "constant"),
            ("E2", "Erlang, 2 stages"),
            ("E4", "Erlang, 4 stages"),
            ("U", "uniform"),
            ("LN", "log-normal"),
            ("H2", "hyperexponential"),
            ("Pa", "Pareto"),
            ("G", "any, by two moments"),
        ];
        let by_weight =
            |discipline: &Discipline| matches!(discipline.knows(), Knows::Weight | Knows::WeightAndMean);
        let disciplines = Discipline::ALL.into_iter().filter(|discipline| !by_weight(discipline)).collect();
        Self { build, run, laws, disciplines }
    }
}

/// The page of an error.
#[derive(Template)]
#[template(path = "message.html")]
pub(crate) struct Message<'a> {
    pub(crate) build: &'a str,
    pub(crate) title: &'a str,
    pub(crate) text: &'a str,
}

/// A time for a table, where it is known.
fn shown_s(time_s: impl Borrow<Option<f64>>) -> String {
    time_s.borrow().map_or_else(|| NONE.to_owned(), time)
}

/// A rate for a table, where it is known.
fn shown_per_s(rate_per_s: impl Borrow<Option<f64>>) -> String {
    rate_per_s.borrow().map_or_else(|| NONE.to_owned(), |rate| format!("{}/s", significant(rate, 3)))
}
