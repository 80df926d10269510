//! The requests of a trial, one lane for each: from due to over, by stage.

use kendall_analysis::Table;
use kendall_record::Outcome;

use crate::chart::ScaleLaw;
use crate::figure::Figure;
use crate::plot::{Axis, Layer, Marks, Plot};
use crate::svg::Marker;
use kendall_analysis::{Stages, TrialView, Window, WindowOf};
use kendall_stats::number::{NONE, time};

const WIDTH: f64 = 760.0;
/// A detail has lanes of this height; those of a whole trial share a height.
const LANE: f64 = 9.0;
const WHOLE_HEIGHT: f64 = 420.0;
/// Room for the axes.
const AXES: f64 = 90.0;
/// Lanes of a whole trial that are named, at most.
const NAMES: usize = 8;
/// The number of slowest requests in the table.
const ROWS: usize = 10;

/// What a request does until the instant that ends it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    ToSend,
    ToServer,
    Queued,
    Served,
    ToClient,
    /// Sent and not over, if the server sends no timestamps.
    Out,
}

impl Stage {
    const ALL: [Self; 6] =
        [Self::ToSend, Self::ToServer, Self::Queued, Self::Served, Self::ToClient, Self::Out];

    fn label(self) -> &'static str {
        match self {
            Self::ToSend => "due and not sent",
            Self::ToServer => "on its way",
            Self::Queued => "in the queue",
            Self::Served => "in service",
            Self::ToClient => "answer on its way",
            Self::Out => "sent and not over",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::ToSend => "to-send",
            Self::ToServer | Self::ToClient => "on-way",
            Self::Queued => "queued",
            Self::Served => "served",
            Self::Out => "out",
        }
    }
}

/// From when to when it was in which stage.
fn spans_s(request: &Stages) -> Vec<(Stage, f64, f64)> {
    let last = match (request.finished_s, request.queued_s, request.sent_s) {
        (Some(_), _, _) => Stage::ToClient,
        (None, Some(_), _) => Stage::Queued,
        (None, None, Some(_)) => Stage::Out,
        (None, None, None) => Stage::ToSend,
    };
    let instants = [
        (Stage::ToSend, request.sent_s),
        (Stage::ToServer, request.queued_s),
        (Stage::Queued, request.started_s),
        (Stage::Served, request.finished_s),
        (last, Some(request.ended_s)),
    ];
    let mut from_s = request.due_s;
    let mut spans = Vec::new();
    for (stage, to_s) in instants {
        let Some(to_s) = to_s else { continue };
        if to_s > from_s {
            spans.push((stage, from_s, to_s));
            from_s = to_s;
        }
    }
    spans
}

/// `None` where nothing was due.
pub(super) fn figure(view: &TrialView) -> Option<Figure> {
    let shown: Vec<&Window> = view.windows.iter().filter(|window| !window.requests.is_empty()).collect();
    let whole = shown.first()?.requests.len();
    let all = view.requests as usize;
    let thinned = match shown[0].of {
        WindowOf::Whole { slowest } if whole < all => format!(
            "The whole trial shows {whole} of its {all} requests: evenly thinned, with the {slowest} slowest. The details show every \
             request: those due before and after the slowest request, and before and after one of median response time. "
        ),
        _ => String::new(),
    };
    let plots = shown.iter().map(|window| (title(window, view), plot(window, view))).collect();
    Some(Figure::of(
        "One request a row",
        format!(
            "{thinned}Rows are in the order in which requests were due, the first on top; the colours show the stages of each. Queue \
             and service come from the server’s own stamps, where it sends them."
        ),
        plots,
        table(view),
    ))
}

fn title(window: &Window, view: &TrialView) -> String {
    match window.of {
        WindowOf::Whole { .. } if window.requests.len() < view.requests as usize => {
            format!("The whole trial: {} of {} requests", window.requests.len(), view.requests)
        }
        WindowOf::Whole { .. } => format!("All {} requests", view.requests),
        WindowOf::Slowest => "Around the slowest request".to_owned(),
        WindowOf::Median => "Around a request of median response time".to_owned(),
    }
}

fn plot(window: &Window, view: &TrialView) -> Plot {
    let requests = &window.requests;
    let lanes = requests.len();
    // The first due stands on top, and lanes count upwards.
    let lane = |place: usize| (lanes - 1 - place) as f64;
    let mut spans: Vec<(Stage, f64, f64, f64)> = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        spans.extend(spans_s(request).into_iter().map(|(stage, from, to)| (stage, lane(place), from, to)));
    }
    let layer = |stage: Stage| {
        let of = || spans.iter().filter(move |span| span.0 == stage);
        let marks = Marks::Spans {
            lane: of().map(|span| span.1).collect(),
            from: of().map(|span| span.2).collect(),
            to: of().map(|span| span.3).collect(),
        };
        of().next().map(|_| Layer::new(stage.label(), stage.class(), marks))
    };
    let mut layers: Vec<Layer> = Stage::ALL.into_iter().filter_map(layer).collect();
    let failed = requests.iter().enumerate().filter(|(_, request)| request.outcome != Outcome::Answered);
    let ends: Vec<(f64, f64)> = failed.map(|(place, request)| (request.ended_s, lane(place) + 0.5)).collect();
    if !ends.is_empty() {
        layers.push(Layer::new("no right answer", "simulation model1", Marks::points(Marker::Cross, ends)));
    }
    let is_whole = matches!(window.of, WindowOf::Whole { .. });
    let range = if is_whole { (0.0, view.length_s) } else { span_s(requests) };
    // In a detail each is named, so that the script of the page can say which one it is.
    let every = if is_whole { lanes.div_ceil(NAMES).max(1) } else { 1 };
    let named = requests.iter().enumerate().step_by(every);
    let names = named.map(|(place, request)| (lane(place) + 0.5, request.index.to_string())).collect();
    let mut y = Axis::numbers("request number", ScaleLaw::Linear, (0.0, lanes as f64));
    y.names = names;
    let height = if is_whole { WHOLE_HEIGHT } else { AXES + LANE * lanes as f64 };
    Plot {
        title: format!("{} of trial {}, by stage", title(window, view), view.trial),
        x: Axis::times("time since the start", ScaleLaw::Linear, range),
        y,
        layers,
        size: (WIDTH, height),
    }
}

/// From the first due to the last over.
fn span_s(requests: &[Stages]) -> (f64, f64) {
    let low = requests.iter().map(|request| request.due_s).fold(f64::INFINITY, f64::min);
    let high = requests.iter().map(|request| request.ended_s).fold(low, f64::max);
    let room = 0.02 * (high - low);
    ((low - room).max(0.0), high + room)
}

/// The slowest requests that are shown.
fn table(view: &TrialView) -> Table {
    let head = [
        "request",
        "due",
        "until sent",
        "until queued",
        "in the queue",
        "in service",
        "until over",
        "in all",
        "outcome",
    ];
    let mut requests: Vec<&Stages> =
        view.windows.first().map_or(Vec::new(), |window| window.requests.iter().collect());
    requests.sort_by(|a, b| b.out_s().total_cmp(&a.out_s()));
    let row = |request: &&Stages| {
        let between = |from: Option<f64>, to: Option<f64>| {
            from.zip(to).map_or_else(|| NONE.to_owned(), |(from_s, to_s)| time((to_s - from_s).max(0.0)))
        };
        let Stages { due_s, sent_s, queued_s, started_s, finished_s, ended_s, .. } = **request;
        vec![
            request.index.to_string(),
            // To a microsecond, for it is to be found again.
            format!("{due_s:.6} s"),
            between(Some(due_s), sent_s),
            between(sent_s, queued_s),
            between(queued_s, started_s),
            between(started_s, finished_s),
            between(finished_s.or(sent_s), Some(ended_s)),
            time(request.out_s()),
            request.outcome.name().replace('-', " "),
        ]
    };
    Table { head: head.map(str::to_owned).to_vec(), rows: requests.iter().take(ROWS).map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Stages = Stages {
        index: 7,
        due_s: 1.0,
        sent_s: Some(1.1),
        queued_s: Some(1.2),
        started_s: Some(1.5),
        finished_s: Some(1.9),
        ended_s: 2.0,
        outcome: Outcome::Answered,
    };

    #[test]
    fn stages_follow_upon_each_other_from_due_to_over() {
        let untold = Stages { queued_s: None, started_s: None, finished_s: None, ..KNOWN };
        let never = Stages { sent_s: None, ..untold };
        let turned_away = Stages { started_s: None, finished_s: None, ..KNOWN };
        // A stamp that is earlier than the one before it, as clocks are read one after the other.
        let crossed = Stages { queued_s: Some(1.05), ..KNOWN };
        for stages in [KNOWN, untold, never, turned_away, crossed] {
            let spans = spans_s(&stages);
            assert_eq!((spans[0].1, spans[spans.len() - 1].2), (1.0, 2.0));
            assert!(spans.windows(2).all(|pair| pair[0].2 == pair[1].1), "no gap and no overlap");
        }
        assert_eq!(spans_s(&KNOWN).len(), 5);
    }
}
