//! Stations of limited capacity: what becomes of more work than their servers can do, and whether models predict the share of lost
//! requests.

use std::fmt;

use kendall_station::{Answer, Estimate};
use kendall_stats::number::{percent, significant, time};
use serde::{Deserialize, Serialize};

use crate::finding::agreement::{Agreement, answers, compare};
use crate::finding::reason::Trend;
use crate::report::Report;
use crate::report::point::{Point, is_of_runs};

/// A share of lost requests below this changes no mean, and too few are lost to compare it.
pub(super) const RARE: f64 = 1e-3;
/// The number of stations that a sentence names.
const MOST: usize = 4;

/// What stations of limited capacity do with the highest load, where it is more than their servers can do. Worded by `Display`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence")]
pub struct Overload {
    pub load: String,
    /// The highest utilisation that the load would need.
    pub offered: f64,
    pub stations: Vec<Overloaded>,
}

/// One of the stations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence")]
pub struct Overloaded {
    pub group: String,
    pub lost: f64,
    pub response_s: f64,
    /// Whether its queue was still filling.
    pub growth: Trend,
}

/// The verdict of the measurement on the shares of lost requests that a model predicts. Worded by `Display`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence")]
pub struct Losses {
    pub model: String,
    pub agreeing: usize,
    pub of: usize,
    /// The points whose interval is too wide to decide.
    pub untold: usize,
    /// The largest difference: the place, the predicted share and the measured one.
    pub worst: Option<(String, f64, f64)>,
}

/// The highest load under which stations of limited capacity were measured, if it is more than they can do.
pub(super) fn overload(report: &Report) -> Option<Overload> {
    let offered = |point: &Point| point.utilisation_offered.unwrap_or(0.0);
    let limited = || report.points.iter().filter(|point| point.is_overloaded() && point.capacity.is_some());
    let most = limited().max_by(|a, b| offered(a).total_cmp(&offered(b)))?;
    let load = report.place_in_group(most);
    let station = |point: &Point| Overloaded {
        group: report.group_name(&point.settings),
        lost: point.measured.lost.value,
        response_s: point.measured.response.mean_s.value,
        growth: if point.growing.is_some() { Trend::Rising } else { Trend::Steady },
    };
    let stations = limited().filter(|point| report.place_in_group(point) == load).map(station).collect();
    Some(Overload { load, offered: offered(most), stations })
}

/// The verdict on one model; `None` where no request was lost, nor was to be.
pub(super) fn losses(report: &Report, notation: &str) -> Option<Losses> {
    let (mut agreeing, mut of, mut untold) = (0, 0, 0);
    let mut worst: Option<(&Point, f64)> = None;
    for point in report.points.iter().filter(|point| point.capacity.is_some()) {
        let measured = point.measured.lost;
        let predicted: Vec<Estimate> = predictions(point, Some(notation)).collect();
        if !predicted.iter().chain([&measured]).any(|lost| lost.value >= RARE) {
            continue;
        }
        let verdicts: Vec<Agreement> = predicted.iter().map(|&lost| verdict(measured, lost)).collect();
        if verdicts.iter().all(|verdict| matches!(verdict, Agreement::CannotTell)) {
            untold += 1;
            continue;
        }
        of += 1;
        let missed =
            predicted.iter().zip(&verdicts).filter(|(_, verdict)| matches!(verdict, Agreement::Misses));
        let off = |point: &Point, lost: f64| (lost - point.measured.lost.value).abs();
        let miss =
            missed.map(|(lost, _)| lost.value).max_by(|a, b| off(point, *a).total_cmp(&off(point, *b)));
        match miss {
            None => agreeing += 1,
            Some(lost) if worst.is_none_or(|(other, least)| off(point, lost) > off(other, least)) => {
                worst = Some((point, lost));
            }
            Some(_) => {}
        }
    }
    let worst = worst.map(|(point, lost)| (report.place(point), lost, point.measured.lost.value));
    (of > 0).then(|| Losses { model: notation.to_owned(), agreeing, of, untold, worst })
}

/// Whether a model of the station expects that the share of requests is lost that was.
pub(super) fn is_expected(point: &Point) -> bool {
    let agrees = |lost| !matches!(verdict(point.measured.lost, lost), Agreement::Misses);
    point.capacity.is_some() && predictions(point, None).any(agrees)
}

/// The shares that one model predicts, or all; none where the measured one depends on the length of the trials.
fn predictions<'p>(point: &'p Point, notation: Option<&'p str>) -> impl Iterator<Item = Estimate> + 'p {
    let models =
        point.models.iter().filter(move |model| notation.is_none_or(|named| model.notation == named));
    let comparable = |answer: &&Answer| point.is_steady() || is_of_runs(answer);
    models.flat_map(answers).map(|(_, answer)| answer).filter(comparable).map(|answer| answer.lost)
}

fn verdict(measured: Estimate, predicted: Estimate) -> Agreement {
    if measured.value < RARE && predicted.value < RARE {
        return Agreement::Agrees;
    }
    compare(measured, predicted)
}

/// The first station has a whole clause, and each further one its two numbers only. [`Losses`] says what models predict.
impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "At {}, {} times what the servers can do, ", self.load, significant(self.offered, 2))?;
        for (at, Overloaded { group, lost, response_s, growth }) in
            self.stations.iter().take(MOST).enumerate()
        {
            let (share, others) = match *lost > 0.0 {
                true => (percent(*lost), "the others"),
                false => ("none".to_owned(), "they"),
            };
            let with = if group.is_empty() { String::new() } else { format!(" with {group}") };
            match at {
                0 => write!(f, "{share} of the requests are lost{with}, and ")?,
                _ => write!(f, ";{with}: {share}, and ")?,
            }
            match (growth, at) {
                (Trend::Rising, _) => f.write_str("response times grow while the trials run")?,
                (Trend::Steady, 0) => write!(f, "{others} take {} on average", time(*response_s))?,
                (Trend::Steady, _) => f.write_str(&time(*response_s))?,
            }
        }
        match self.stations.len().saturating_sub(MOST) {
            0 => f.write_str("."),
            more => write!(f, "; the table has {more} more."),
        }
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, agreeing, of, untold, worst } = self;
        let narrow = if *untold > 0 { " with a sufficiently narrow interval" } else { "" };
        let points = if *of == 1 { "the one point".to_owned() } else { format!("{agreeing} of {of} points") };
        let Some((place, predicted, measured)) = worst else {
            return write!(
                f,
                "{model}: the predicted and the measured share of lost requests agree at {points}{narrow}."
            );
        };
        let (predicted, measured) = (percent(*predicted), percent(*measured));
        let misses = of - agreeing;
        write!(
            f,
            "{model} predicts that {predicted} of the requests are lost at {place}, measured {measured}"
        )?;
        match of {
            1 => f.write_str("."),
            of => write!(f, "; it misses this share at {misses} of {of} points."),
        }
    }
}
