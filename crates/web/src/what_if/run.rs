//! A measured run, as `kendall predict` computes it: from single requests, or from the curve through means for users and for runs without
//! an open load.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kendall_analysis::{LowLoads, MeasuredLoad, low_loads, observe, recorded_loads};
use kendall_evidence::fit::{Fit, KnownParameters, Load, Question as FitQuestion, fit};
use kendall_prediction::{Effort, NoPrediction, Prediction, Predictor, Question as Predicted};
use kendall_station::{Estimate, Servers};
use kendall_stats::number::{count, counted, list, percent, significant, time};
use kendall_system::{System, quoted};

use super::curve::along;
use super::question::{AnsweredValues, DURATION_S, Detail, Question};
use super::shown::{Axis, CurvePoint, SHARES, TABLED, TableRow, WhatIf, number_cell, share_cell, time_cell};

/// The seed of the predictions, as on the command line.
const SEED: u64 = 1;
/// The share of the capacity at which a view without a rate begins.
const FIRST_SHARE: f64 = 0.7;
/// The work of a preview, within a tenth of a second together.
const PREVIEW: Effort = Effort { draws: 40, most_simulated: 4_000 };
const CURVE_PREVIEW: Effort = Effort { draws: 24, most_simulated: 1_000 };
/// The work of the curves of a full answer.
const CURVE: Effort = Effort { draws: 60, most_simulated: 6_000 };
/// The shares of the capacity at which a curve is computed.
const CURVE_SHARES: [f64; 11] = [0.05, 0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.85, 0.9, 0.94, 0.97];
/// The most groups of a run that are offered.
const MOST_GROUPS: usize = 200;

/// What the trials of a run that differ in their load only say, ready for questions.
pub(crate) struct FittedRun {
    folder: PathBuf,
    /// The groups of the run's trials.
    groups: Vec<String>,
    /// The group of these.
    group: String,
    predictor: Result<Predictor, String>,
    measured: Vec<MeasuredLoad>,
    doubts: Vec<String>,
    systems: &'static [System],
    /// The curve through means, made when first needed.
    means: OnceLock<Result<Fit, String>>,
}

impl FittedRun {
    /// Reads the trials of a run and fits the candidate stations.
    ///
    /// # Errors
    /// Fails where there is no finished trial, and where the run has no such group.
    pub(crate) fn read(
        folder: &Path,
        group: Option<&str>,
        systems: &'static [System],
    ) -> Result<Self, String> {
        let is_run = folder.join("experiment.toml").exists();
        let mut all: Vec<LowLoads> = if is_run {
            low_loads(folder, systems).map_err(|error| error.to_string())?
        } else {
            vec![recorded_loads(&[folder], None).map_err(|error| error.to_string())?]
        };
        if all.is_empty() {
            return Err("no trial of this run is finished yet".into());
        }
        let mut groups: Vec<String> = all.iter().map(|loads| loads.group.clone()).collect();
        let place = match group {
            None => 0,
            Some(group) => groups.iter().position(|known| known == group).ok_or_else(|| {
                format!("group: the run has no trials with {group:?}; choose one of {}", list(&groups))
            })?,
        };
        let loads = all.swap_remove(place);
        groups.truncate(MOST_GROUPS);
        let left_out = loads.left_out.iter().map(|why| format!("Left out: {why}."));
        let doubts = left_out.chain(loads.doubts.iter().map(|doubt| format!("Doubt: {doubt}."))).collect();
        let observed = loads.observed.map_err(|why| why.to_string());
        Ok(Self {
            folder: folder.to_owned(),
            groups,
            group: loads.group,
            predictor: observed.map(|observed| Predictor::new(&observed, SEED)),
            measured: loads.measured,
            doubts,
            systems,
            means: OnceLock::new(),
        })
    }

    /// Whether these are the trials of a group; without a name, those of the first one.
    pub(super) fn is_of(&self, group: Option<&str>) -> bool {
        let first = self.groups.first().map(String::as_str);
        group.or(first) == Some(&self.group)
    }

    /// The curve through the means of the group.
    fn means(&self) -> Result<&Fit, String> {
        let made = self.means.get_or_init(|| {
            if !self.folder.join("experiment.toml").exists() {
                return Err(
                    "a single load has no curve through means; name several in kendall predict".into()
                );
            }
            let all = observe(&self.folder, self.systems).map_err(|error| error.to_string())?;
            let points = all.into_iter().find(|points| points.group == self.group);
            let points = points.ok_or("no load of this group has a mean response time")?;
            fit(&points.points, KnownParameters::default()).map_err(|error| error.to_string())
        });
        made.as_ref().map_err(Clone::clone)
    }

    /// The question with the station that the run is likeliest to be, in place of what it leaves open.
    pub(super) fn filled(&self, question: &Question) -> Question {
        let Ok(predictor) = &self.predictor else { return question.clone() };
        let asked = Predicted::at(1.0, 0);
        let capacity_per_s = predictor.capacity_per_s(&asked).map_or(1.0, |capacity| capacity.value);
        let rate_per_s = question.rate_per_s.unwrap_or(FIRST_SHARE * capacity_per_s);
        let inside = Predicted::at(rate_per_s.min(0.9 * capacity_per_s), 0);
        let Ok(found) = predictor.predict_within(&inside, CURVE_PREVIEW, &[]) else {
            return question.clone();
        };
        let likeliest = found.stations.first();
        Question {
            rate_per_s: Some(rate_per_s),
            service_s: question.service_s.or(Some(found.service_s.value)),
            servers: question.servers.or_else(|| likeliest.and_then(|station| Servers::new(station.servers))),
            discipline: question.discipline.or_else(|| likeliest.map(|station| station.discipline)),
            delay_s: question.delay_s.or(Some(found.delay_s.value)),
            ..question.clone()
        }
    }

    /// Adds what was measured.
    pub(super) fn beside(&self, mut shown: WhatIf) -> WhatIf {
        shown.measured.clone_from(&self.measured);
        shown.groups.clone_from(&self.groups);
        shown.answered.group = Some(self.group.clone());
        shown.address = shown.answered.address();
        shown
    }

    /// The answer, with a curve if one is requested.
    pub(super) fn answer(&self, question: &Question, detail: Detail, with_curve: bool) -> WhatIf {
        let shown = match &self.predictor {
            Ok(predictor) if question.users.is_none() => {
                self.by_requests(predictor, question, detail, with_curve)
            }
            _ => self.by_means(question, detail, with_curve),
        };
        let mut shown = self.beside(shown);
        shown.notes.extend(self.doubts.iter().cloned());
        shown
    }

    fn command(&self, load: Load, question: &Question) -> String {
        let mut words = vec!["kendall predict".to_owned(), quoted(&self.folder.display().to_string())];
        if self.groups.len() > 1 {
            words.push(format!("--group {}", quoted(&self.group)));
        }
        match load {
            Load::Open { rate_per_s } => words.push(format!("--rate {rate_per_s}")),
            Load::Closed { users, think_s } => words.push(format!("--users {users} --think-time {think_s}")),
        }
        words.extend(question.servers.map(|servers| format!("--with-servers {servers}")));
        words.extend(question.discipline.map(|discipline| format!("--discipline {discipline}")));
        if question.more_delay_s > 0.0 {
            words.push(format!("--more-delay {}", question.more_delay_s));
        }
        if question.duration_s != DURATION_S {
            words.push(format!("--duration {}", question.duration_s));
        }
        words.join(" ")
    }

    fn begun(&self, question: &Question, load: Load, axis: Option<Axis>) -> WhatIf {
        let answered = AnsweredValues {
            more_delay: Some(question.more_delay_s),
            duration: Some(question.duration_s),
            ..AnsweredValues::of(question, load)
        };
        WhatIf {
            answered,
            command: self.command(load, question),
            axis,
            columns: vec!["prediction"],
            ..WhatIf::default()
        }
    }

    fn by_requests(
        &self,
        predictor: &Predictor,
        question: &Question,
        detail: Detail,
        with_curve: bool,
    ) -> WhatIf {
        let at = |rate_per_s: f64| Predicted {
            servers: question.servers.map(Servers::get),
            discipline: question.discipline,
            more_delay_s: question.more_delay_s,
            ..Predicted::at(rate_per_s, (rate_per_s * question.duration_s) as u64)
        };
        let capacity_per_s = predictor.capacity_per_s(&at(1.0)).map_or(1.0, |capacity| capacity.value);
        let rate_per_s = question.rate_per_s.unwrap_or_else(|| rounded(FIRST_SHARE * capacity_per_s));
        let axis = Axis::of_rates(rate_per_s, capacity_per_s);
        let mut shown = self.begun(question, Load::Open { rate_per_s }, Some(axis));
        let effort = if detail == Detail::Full { Effort::FULL } else { PREVIEW };
        match predictor.predict_within(&at(rate_per_s), effort, &SHARES) {
            Ok(found) => {
                shown.mean = Some(found.mean_s);
                shown.distribution.clone_from(&found.quantiles);
                shown.rows = rows(&found);
                shown.notes.extend(predictor.arrival_scv().map(|scv| {
                    format!(
                        "Requests arrive as in the measured loads: their gaps have a squared coefficient of variation of {} (a Poisson \
                         process: 1).",
                        significant(scv, 2)
                    )
                }));
                if found.steady < 1.0 {
                    let share = percent(1.0 - found.steady);
                    shown.notes.push(format!("With probability {share} the rate exceeds the capacity."));
                }
                shown.notes.extend(found.advice.map(|advice| advice.to_string()));
                shown.effort.push(amount(&found, effort, detail));
            }
            Err(why @ NoPrediction::Overload { .. }) => shown.unstable = Some(why.to_string()),
            Err(why) => shown.no_answer.push(format!("No answer: {why}.")),
        }
        if with_curve {
            let effort = if detail == Detail::Full { CURVE } else { CURVE_PREVIEW };
            let point = |share: f64| {
                let rate_per_s = share * capacity_per_s;
                let found = predictor.predict_within(&at(rate_per_s), effort, &[0.5, 0.99]).ok()?;
                let [(_, p50), (_, p99)] = found.quantiles[..] else { return None };
                Some(CurvePoint { at: rate_per_s, mean: found.mean_s, p50: Some(p50), p99: Some(p99) })
            };
            shown.curve = Some(CURVE_SHARES.into_iter().filter_map(point).collect());
            shown.effort.push(format!(
                "Curves: {} draws of at most {} requests at each of {} rates.",
                effort.draws,
                count(effort.most_simulated),
                CURVE_SHARES.len()
            ));
        }
        shown
    }

    /// Only means: for users, and for runs without an open load to predict from.
    fn by_means(&self, question: &Question, detail: Detail, with_curve: bool) -> WhatIf {
        let fit = self.means();
        let measured_think_s = fit.as_ref().ok().and_then(|fit| fit.measured_think_s());
        let highest = self.measured.iter().map(|load| load.rate_per_s).fold(1.0, f64::max);
        let load = question.load(rounded(FIRST_SHARE * highest), measured_think_s.unwrap_or(0.0));
        let axis = match load {
            Load::Open { rate_per_s } => Axis { capacity: None, ..Axis::of_rates(rate_per_s, highest) },
            Load::Closed { users, .. } => Axis::of_users(users),
        };
        let mut shown = self.begun(question, load, Some(axis));
        if let Err(why) = &self.predictor {
            shown.notes.push(format!("There is no prediction from single requests: {why}."));
        }
        let fit = match fit {
            Ok(fit) => fit,
            Err(why) => {
                shown.no_answer.push(format!("No answer: {why}."));
                return shown;
            }
        };
        if question.discipline.is_some() || question.more_delay_s > 0.0 {
            shown.notes.push(
                "This is the curve through mean response times: discipline and link stay as measured. Choose a law of service times to \
                 change them."
                    .into(),
            );
        }
        let servers = question.servers.map(Servers::get);
        let asked = FitQuestion { load: Some(load), servers, slo: None };
        let found = fit.predict(&asked);
        if let Some(forecast) = &found.forecast {
            let response = &forecast.response;
            shown.mean = Some(response.mean_s);
            shown.distribution = super::shown::pairs(&response.quantiles, 0.0);
            let time_row = |name: String, time_s| TableRow::new(name, vec![time_cell(time_s)]);
            shown.rows.push(time_row("response time, mean".into(), Some(response.mean_s)));
            let quantiles = TABLED.iter().filter_map(|(name, p)| Some((name, response.quantile(*p)?)));
            shown.rows.extend(
                quantiles.map(|(name, time_s)| time_row(format!("response time, {name}"), Some(time_s))),
            );
            let throughput = number_cell(Some(forecast.throughput_per_s));
            shown.rows.push(TableRow::new("throughput, 1/s", vec![throughput]));
            shown.rows.push(TableRow::new("utilisation", vec![share_cell(forecast.utilisation)]));
            shown
                .notes
                .extend(forecast.no_quantiles.iter().map(|why| format!("There are no quantiles: {why}.")));
        }
        let reasons = found.no_answer.iter().map(|why| format!("No answer: {why}."));
        if found.is_overload() {
            shown.unstable = Some(found.no_answer.join("; "));
        } else {
            shown.no_answer.extend(reasons);
        }
        shown.notes.push(format!("Model: {}, through the mean response times.", found.model));
        if with_curve {
            shown.curve = Some(curve_of(fit, load, axis, servers, detail));
        }
        shown
    }
}

/// The curve through means, at up to 24 loads.
fn curve_of(fit: &Fit, load: Load, axis: Axis, servers: Option<u32>, detail: Detail) -> Vec<CurvePoint> {
    let is_closed = matches!(load, Load::Closed { .. });
    let place = |step: u32| axis.most * f64::from(step) / 24.0;
    let mut loads: Vec<f64> = (1..=24).map(place).collect();
    if is_closed {
        loads.iter_mut().for_each(|users| *users = users.round().max(1.0));
        loads.dedup();
    }
    along(&loads, detail, |at| {
        let load = match load {
            Load::Open { .. } => Load::Open { rate_per_s: at },
            Load::Closed { think_s, .. } => Load::Closed { users: at as u32, think_s },
        };
        Some(CurvePoint::of(at, &fit.forecast(load, servers).ok()?.response))
    })
}

/// A rate of three digits, for a control.
fn rounded(rate_per_s: f64) -> f64 {
    significant(rate_per_s, 3).parse().unwrap_or(rate_per_s)
}

/// The numbers that `kendall predict` prints, in its order.
fn rows(found: &Prediction) -> Vec<TableRow> {
    let row = |name: &str, cell: String| TableRow::new(name, vec![cell]);
    let mut rows = vec![row("response time, mean", time_cell(Some(found.mean_s)))];
    let quantile = |p: f64| found.quantiles.iter().find(|(share, _)| *share == p).map(|(_, time_s)| *time_s);
    rows.extend(
        TABLED.iter().map(|(name, p)| row(&format!("response time, {name}"), time_cell(quantile(*p)))),
    );
    let plain = |estimate: Estimate| number_cell(Some(estimate));
    rows.push(row("capacity, 1/s", plain(found.capacity_per_s)));
    rows.push(row("utilisation", share_cell(Some(found.utilisation))));
    rows.push(row("service time, mean", time_cell(Some(found.service_s))));
    rows.push(row("delay outside", time_cell(Some(found.delay_s))));
    let likely = found.stations.iter().filter(|allowed| allowed.share >= 0.05);
    let stations: Vec<String> =
        likely.map(|allowed| format!("{} ({})", allowed.station, percent(allowed.share))).collect();
    rows.push(row("station", stations.join("; ")));
    rows
}

fn amount(found: &Prediction, effort: Effort, detail: Detail) -> String {
    let simulated = found.requests.min(effort.most_simulated);
    let length = if found.rate_per_s > 0.0 { found.requests as f64 / found.rate_per_s } else { 0.0 };
    match detail {
        Detail::Full => format!(
            "The intervals are those of a run of {} ({}): {} draws, seed {SEED}, as the command.",
            time(length),
            counted(found.requests, "request"),
            effort.draws
        ),
        Detail::Preview => format!(
            "Preview: {} draws of {}; the full prediction follows when the controls rest.",
            effort.draws,
            counted(simulated, "request")
        ),
    }
}
