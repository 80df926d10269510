//! The report as one HTML page that holds all it needs: it opens offline, reads without script, prints, and follows
//! the reader's choice of light or dark.
//!
//! What stands where is in `templates/page.html`; this module prepares the words and numbers. All text is escaped by
//! the template; only our own drawings and styles go in as they are.

use askama::Template;
use kendall_analysis::Table;
use kendall_analysis::table::time_cell;
use kendall_record::Outcome;
use kendall_station::{Answer, Estimate};

use crate::figure::{self, Figure, Named};
use crate::resources::Section;
use crate::sentences::Sentences;
use crate::terminal;
use crate::traffic::link_figures;
use crate::trial_view;
use kendall_analysis::ExpectedWidth;
use kendall_analysis::comparison::{Comparison, comparisons};
use kendall_analysis::finding::assumption;
use kendall_analysis::link;
use kendall_analysis::machine_limits;
use kendall_analysis::relative::relative;
use kendall_analysis::replay;
use kendall_analysis::{LeftOut, Modelled, Modelling, Point, Report, TrialLine, WarmupBy};
use kendall_stats::number::{NONE, difference, list, percent, significant, time};

/// The page of a report, as HTML.
pub fn page(report: &Report) -> String {
    let (mut loads, mut spreads) = (Vec::new(), Vec::new());
    let mut first = None;
    let mut candidates = replay::table(report);
    let matters = figure::that_matters(report);
    for Named { name, figure, left } in figure::all(report) {
        let candidates = if name == "replay" { candidates.take() } else { None };
        let place = if name == matters { "response " } else { "" };
        let shown = Shown { class: format!("{place}{name}-figure"), figure, left, candidates };
        match name {
            _ if name == matters => first = Some(shown),
            "quantiles" | "slower" | "ecdf" | "services" => spreads.push(shown),
            _ => loads.push(shown),
        }
    }
    let view = View {
        report,
        style: crate::style::STYLE,
        sentences: Sentences::of(report),
        first: first.expect("the figure that matters is one of all"),
        loads,
        spreads,
        quantities: quantities(report).map(|quantity| quantity.name).collect(),
        place_head: report.place_head(),
        rows: rows(report),
        notes: paragraphs(&report.notes),
        relative: relative(report),
        comparisons: comparisons(report),
        assumptions: assumption::table(&report.checks),
        expected: kendall_analysis::expected::table(report),
        limits: machine_limits::table(report),
        limits_missing: machine_limits::missing(report),
        links: link::table(report),
        link_lateness: link::lateness(report),
        traffic: link_figures(report),
        trials_head: trials_head(),
        trials: report.trials.iter().map(Tried::of).collect(),
        trial_views: trial_view::Section::of(report),
        resources: Section::of(report),
    };
    view.render().expect("rendering to a string fails only where a value's Display does")
}

/// The figures of a report as files: those of its page.
pub fn page_figures(report: &Report) -> Vec<Named> {
    let cores = Section::of(report).and_then(|section| section.over_time);
    let cores = cores.map(|figure| Named { name: "cores", figure, left: 1 });
    figure::all(report).into_iter().chain(cores).chain(link_figures(report)).collect()
}

/// What the template reads.
#[derive(Template)]
#[template(path = "page.html")]
struct View<'a> {
    report: &'a Report,
    style: &'static str,
    sentences: Sentences,
    /// The one figure of the first screen.
    first: Shown,
    /// What the load and other factors do.
    loads: Vec<Shown>,
    /// How times spread.
    spreads: Vec<Shown>,
    quantities: Vec<&'static str>,
    place_head: Vec<String>,
    rows: Vec<Row>,
    notes: Vec<&'a str>,
    relative: Option<Comparison>,
    comparisons: Vec<Comparison>,
    assumptions: Table,
    expected: Table,
    limits: Table,
    limits_missing: Vec<String>,
    links: Table,
    link_lateness: Option<String>,
    traffic: Vec<Named>,
    trials_head: Vec<String>,
    trials: Vec<Tried>,
    trial_views: Option<String>,
    resources: Option<Section>,
}

/// A figure on the page.
struct Shown {
    class: String,
    figure: Figure,
    /// The number of columns of the table that are words.
    left: usize,
    /// What stands under the replay: how well each candidate explains the requests.
    candidates: Option<(String, Table)>,
}

/// What stands between empty lines.
fn paragraphs(text: &str) -> Vec<&str> {
    text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()).collect()
}

/// A column group of the table of numbers.
struct Quantity {
    name: &'static str,
    of: fn(&Answer) -> Option<Estimate>,
    text: fn(Option<Estimate>) -> String,
    /// Half the width of the interval that theory expects.
    expected: fn(&ExpectedWidth) -> Option<f64>,
}

const QUANTITIES: [Quantity; 6] = [
    Quantity { name: WEIGHTED, of: |answer| answer.weighted_response_s, text: time_cell, expected: |_| None },
    Quantity {
        name: "mean response",
        of: |answer| Some(answer.response.mean_s),
        text: time_cell,
        expected: |expected| Some(expected.response_s),
    },
    Quantity {
        name: "mean waiting",
        of: |answer| Some(answer.waiting.mean_s),
        text: time_cell,
        expected: |expected| expected.waiting_s,
    },
    Quantity {
        name: "p99 response",
        of: |answer| answer.response.quantile(0.99),
        text: plain_time_cell,
        expected: |_| None,
    },
    Quantity {
        name: "utilisation",
        of: |answer| Some(answer.utilisation),
        text: share_cell,
        expected: |_| None,
    },
    Quantity { name: LOST, of: |answer| Some(answer.lost), text: lost_cell, expected: |_| None },
];

/// The quantity that is shown only where weights differ.
const WEIGHTED: &str = "weighted response";
/// The quantity that is shown only where a station may reject requests.
const LOST: &str = "lost requests";

/// The quantities that a report shows.
fn quantities(report: &Report) -> impl Iterator<Item = &'static Quantity> {
    let (weighted, limited) = (report.is_weighted(), report.is_limited());
    let is_shown = move |name| (weighted || name != WEIGHTED) && (limited || name != LOST);
    QUANTITIES.iter().filter(move |quantity| is_shown(quantity.name))
}

/// A time without its interval, where the column has no room for it.
fn plain_time_cell(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| NONE.to_owned(), |estimate| time(estimate.value))
}

fn lost_cell(share: Option<Estimate>) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| terminal::lost(share.value))
}

fn share_cell(share: Option<Estimate>) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| significant(share.value, 3))
}

/// One point and one model in the table of numbers.
struct Row {
    /// The settings; empty on all but the first row of a point.
    place: Vec<String>,
    notation: String,
    /// For each quantity: measured, formula, simulation.
    cells: Vec<[Cell; 3]>,
    /// After the last row of a point: why models have no formula here.
    reasons: Vec<String>,
}

#[derive(Default)]
struct Cell {
    text: String,
    difference: Option<String>,
}

fn rows(report: &Report) -> Vec<Row> {
    let mut rows = Vec::new();
    for point in &report.points {
        let from = rows.len();
        match point.models.as_slice() {
            [] => rows.push(row(report, point, None)),
            models => rows.extend(models.iter().map(|model| row(report, point, Some(model)))),
        }
        rows[from].place = report.place_cells(point);
        // What the first row says the others need not repeat.
        for repeating in &mut rows[from + 1..] {
            repeating.place = vec![String::new(); report.factors.len()];
            for cells in &mut repeating.cells {
                cells[0] = Cell::default();
            }
        }
        rows.last_mut().expect("a point has a row").reasons = reasons(point);
    }
    // What holds at every point need not be said at each.
    if report.points.windows(2).all(|pair| reasons(&pair[0]) == reasons(&pair[1])) {
        let last = rows.len().saturating_sub(1);
        rows[..last].iter_mut().for_each(|row| row.reasons.clear());
    }
    rows
}

/// The answer of one model and the measurement; its place is the caller's.
fn row(report: &Report, point: &Point, model: Option<&Modelled>) -> Row {
    let cells = |quantity: &Quantity| {
        let measured = (quantity.of)(&point.measured);
        let modelled = |modelling: Option<&Modelling>| {
            let estimate = modelling.and_then(Modelling::answer).and_then(quantity.of);
            let pair = estimate.zip(measured);
            let difference = pair.and_then(|(estimate, measured)| difference(estimate.value, measured.value));
            // Only measurements show their intervals: those of simulations are as narrow as one likes.
            Cell {
                text: (quantity.text)(estimate.map(|estimate| Estimate::exact(estimate.value))),
                difference,
            }
        };
        let expected_s = point.expected.as_ref().and_then(quantity.expected);
        let expected = measured.and_then(|measured| replay::expected_share(measured.value, expected_s));
        let measured = Cell { text: (quantity.text)(measured), difference: expected };
        [
            measured,
            modelled(model.map(|model| &model.formula)),
            modelled(model.map(|model| &model.simulation)),
        ]
    };
    let notation = model.map_or_else(String::new, |model| model.notation.clone());
    Row { place: Vec::new(), notation, cells: quantities(report).map(cells).collect(), reasons: Vec::new() }
}

/// The reason why models have no formula at a point: each reason once, with the models that it holds for.
fn reasons(point: &Point) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for model in &point.models {
        let Modelling::NoAnswer(why) = &model.formula else { continue };
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, models)) => models.push(model.notation.clone()),
            None => reasons.push((why, vec![model.notation.clone()])),
        }
    }
    reasons.into_iter().map(|(why, models)| format!("No formula for {}: {why}.", list(&models))).collect()
}

/// How many requests a trial leaves out, and until when.
fn warmup(left_out: LeftOut) -> String {
    match (left_out.by, left_out.requests) {
        (WarmupBy::Untold, _) => "not enough data".to_owned(),
        (_, 0) => "0".to_owned(),
        (_, requests) => format!("{requests}, {}", time(left_out.until_ns as f64 / 1e9)),
    }
}

/// What a trial that was finished left on disk: what it is, and where it lies from the page.
fn files(trial: &TrialLine) -> Vec<(&'static str, String)> {
    if trial.point.is_none() {
        return Vec::new();
    }
    let folder: String = trial.id.bytes().map(in_address).collect();
    [("requests", "requests.parquet"), ("answer", "answer.json")]
        .map(|(what, file)| (what, format!("trials/{folder}/{file}")))
        .into()
}

/// A byte of a file's name as it stands in an address.
fn in_address(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    }
}

fn trials_head() -> Vec<String> {
    let mut head = vec!["trial".to_owned(), "seed".to_owned(), "sent".to_owned()];
    head.extend(Outcome::ALL.map(|outcome| outcome.name().replace('-', " ")));
    head.extend(
        ["left out as warm-up", "Little’s law off by", "send lag p99", "server CPU [cores]"]
            .map(str::to_owned),
    );
    head
}

/// A trial in the table of them.
struct Tried {
    cells: Vec<String>,
    /// The trial's files: what they are, and where they lie from the page.
    files: Vec<(&'static str, String)>,
}

impl Tried {
    fn of(trial: &TrialLine) -> Self {
        let mut cells = vec![trial.id.clone(), trial.seed.to_string(), trial.counts.sent.to_string()];
        cells.extend(Outcome::ALL.map(|outcome| trial.counts.of(outcome).to_string()));
        let known = |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| NONE.to_owned(), text);
        cells.push(trial.left_out.map_or_else(|| NONE.to_owned(), warmup));
        cells.push(known(trial.little_gap, |gap| percent(gap.abs())));
        cells.push(known(trial.send_lag_p99_s, time));
        cells.push(known(trial.server_cpu_cores, |cores| significant(cores, 2)));
        Self { cells, files: files(trial) }
    }
}
