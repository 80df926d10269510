//! Builds the data of a report from records: the measurements of each combination, and the answers of its
//! models.

mod checks;
mod curves;
mod expectations;
mod limits;
mod links;
mod notes;
mod observe;
mod replays;
mod stations;
mod stop;

use std::path::Path;
use std::thread;

use kendall_archive::{Manifest, read_trial};
use kendall_evidence::AnswerPauses;
use kendall_experiment::{Capacity, Combination, RunError, RunFolder};
use kendall_record::RequestRow;
use kendall_station::{Answer, Arrivals, Class, Estimate};
use kendall_stats::random::{Purpose, derive};
use kendall_system::{StationShape, System};

use crate::attempts::{counted, done, usual};
use crate::axis::Axis;
use crate::bottleneck::AnswersSeen;
use crate::disturbance::Usual;
use crate::machine_limits::SettingsLimits;
use crate::models::{Observed, Precision};
use crate::report::Report;
use crate::report::link::TrialLink;
use crate::report::point::{ExpectedWidth, Growth, Point};
use crate::report::resources::Resources;
use crate::report::trial::{Counts, TrialLine, WarmupBy};
use crate::thin::{sorted, thinned};
use crate::traffic::Traffic;
use crate::trial_result::{Measured, TrialResult, row_classes};
use crate::unstamped::ServerCalibration;
use crate::{candidates, effects, scaling, spread, trial_view, warmup};

pub(crate) use observe::group_of;
pub use observe::{Points, observe};
pub use replays::{ReplayError, ReplayedPoint, replays};

/// Response times that a report draws for each point; more are thinned evenly.
const DRAWN_RESPONSES: usize = 2_000;

/// What is said of a trial whose warm-up was to be found and was not.
const UNTOLD: &str = "too few data to find the end of the warm-up: MSER-5 puts the start of the steady state in the second half of the \
                      trial, so nothing was left out";

/// Reads a run and lays measurement, formula and simulation side by side, for the trials that are done.
///
/// # Errors
/// Fails where the folder holds no run. A trial that was cut off or cannot be read is left out, with a doubt.
pub fn analyse(folder: &Path, systems: &'static [System]) -> Result<Report, RunError> {
    let run = RunFolder::open(folder, systems)?;
    let manifest = Manifest::read(folder)?;
    let capacities = run.capacities()?;
    let axis = Axis::of(&run, &capacities);
    let usual = usual(&run, &done(&run)?);
    let (mut expected, mut doubts) = (Vec::new(), Vec::from_iter(usual.doubt()));
    let (mut points, mut trials, mut measurements) = (Vec::new(), Vec::new(), Vec::new());
    let (mut checks, mut resources, mut links) = (Vec::new(), Vec::new(), Vec::new());
    let (known_limits, mut limits) = (SettingsLimits::read(&run)?, Vec::new());
    let (mut trial_views, mut warming, mut traffic) = (Vec::new(), Vec::new(), Traffic::default());
    for (index, combination) in axis.in_order(&run) {
        let sample = Sample::read(&run, index, &usual);
        trials.extend(sample.left_out.clone());
        doubts.extend(expectations::too_wide(&run, index, &axis, &sample));
        warming.extend(expectations::warming(&run, index, &axis, &sample));
        expected.extend(expectations::judged(&run, index, &axis, &sample));
        if sample.trials.is_empty() {
            continue;
        }
        let arrivals = run.load(index).arrivals(run.capacity_of(combination, &capacities));
        let view =
            |trial: &Tried| (trial.result.number, trial_view::view(&trial.id, &trial.view(), &arrivals));
        // Both read the same rows, and neither needs the other.
        let (views, measurement) = thread::scope(|scope| {
            let views = scope.spawn(|| sample.trials.iter().map(view).collect::<Vec<_>>());
            let measurement = Measurement::of(&run, index, &capacities, &sample);
            (views.join().expect("a view of any rows can be made"), measurement)
        });
        trial_views.extend(views);
        let point = measurement.as_ref().ok().map(|_| points.len());
        links.extend(sample.trials.iter().filter_map(Tried::link));
        if let Some((id, link)) =
            sample.trials.first().and_then(|one| Some((&one.id, one.result.link.as_ref()?)))
        {
            traffic.add(id, &run.folder().join("trials").join(id), &link.emulated);
        }
        trials.extend(sample.trials.iter().map(|trial| trial.line(point, measurement.as_ref().err())));
        resources.extend(sample.trials.iter().filter_map(|trial| trial.resources(&run, point)));
        if let Ok(measurement) = measurement {
            let known = SettingsLimits::of(combination, &known_limits);
            limits.extend(limits::used(points.len(), &sample, known, manifest.machine.cores));
            points.push(measurement.point(&run, &axis, index, &sample));
            checks.push(measurement.checks(&run, combination, &sample));
            measurements.push((combination, measurement));
        }
    }
    traffic.without_matrix(run.experiment().system);
    doubts.extend(warmup::doubt(&warming));
    trials.sort_by_key(|(number, _)| *number);
    links.sort_by_key(|(number, _)| *number);
    let curves = curves::curves(&run, &axis, &measurements);
    trial_views.sort_by_key(|(number, _)| *number);
    let mut report = Report {
        name: run.experiment().name.clone(),
        question: run.experiment().question.clone(),
        notes: notes::notes(&run)?,
        started_utc: manifest.started_utc.replace('T', " ").replace('Z', ""),
        command: format!("kendall run {}", folder.join("experiment.toml").display()),
        machine: notes::machine(&manifest),
        factors: axis.factors(&run),
        letters: run.experiment().letters(),
        points,
        trials: trials.into_iter().map(|(_, line)| line).collect(),
        trial_views: trial_views.into_iter().map(|(_, view)| view).collect(),
        links: links.into_iter().map(|(_, link)| link).collect(),
        traffic,
        planned_trials: run.trials().len(),
        scaling: scaling::scalings(&curves, curves::populations(&axis, &measurements)),
        effects: Vec::new(),
        curves,
        published: notes::published(&run, &axis),
        checks: Vec::new(),
        resources,
        expected,
        doubts,
        machine_limits: Vec::new(),
        experiment_toml: run.experiment().to_toml(),
    };
    report.machine_limits = limits::best(&report, limits);
    report.effects = effects::of_report(&report);
    report.checks = checks::placed(&report, checks);
    report.checks.extend(checks::between_loads(&report, &axis, &measurements));
    Ok(report)
}

/// A trial, read back.
struct Tried {
    id: String,
    result: TrialResult,
    rows: Vec<RequestRow>,
    /// Requests that were due before this are not in the answers.
    warmup_ns: i64,
}

impl Tried {
    /// The trial's rows with its warm-up.
    fn view(&self) -> kendall_evidence::Trial<'_> {
        kendall_evidence::Trial { rows: &self.rows, warmup_ns: self.warmup_ns }
    }

    /// The requests that are in the answers.
    fn counted(&self) -> impl Iterator<Item = &RequestRow> {
        self.rows.iter().filter(|row| row.scheduled >= self.warmup_ns)
    }

    /// The trial's number and the emulated link that it crossed, if it did.
    fn link(&self) -> Option<(usize, TrialLink)> {
        Some((self.result.number, links::link(&self.id, self.result.link.as_ref()?)))
    }

    /// Processor time of the server per second, where it is known.
    fn server_cpu_cores(&self) -> Option<f64> {
        Some(self.result.server?.cpu_s / self.result.run.wall_s)
    }

    /// The trial's number and the line that the report shows for it. `why` is the reason why its combination
    /// has no answer, if it has none.
    fn line(&self, point: Option<usize>, why: Option<&String>) -> (usize, TrialLine) {
        let Self { id, result, rows, .. } = self;
        let mut counts = Counts::default();
        rows.iter().for_each(|row| counts.add(row.outcome));
        let remarks = result.verdict.remarks.iter().map(|remark| remark.brief().to_owned());
        let doubts = result.verdict.doubts.iter().map(ToString::to_string).chain(remarks);
        let untold =
            result.left_out.filter(|left_out| left_out.by == WarmupBy::Untold).map(|_| UNTOLD.to_owned());
        let answer = match &result.measured {
            Measured::Answer(answer) => Some(answer),
            Measured::NoAnswer(_) => None,
        };
        let line = TrialLine {
            id: id.clone(),
            point,
            seed: result.seed,
            response_s: answer.map(|answer| answer.response.mean_s.value),
            response_p99_s: answer.and_then(|answer| Some(answer.response.quantile(0.99)?.value)),
            weighted_response_s: answer.and_then(|answer| Some(answer.weighted_response_s?.value)),
            counts,
            little_gap: kendall_evidence::little(rows).map(|check| check.relative_gap),
            send_lag_p99_s: Some(result.run.lag.p99_ns as f64 / 1e9),
            server_cpu_cores: self.server_cpu_cores(),
            left_out: result.left_out,
            doubts: doubts.chain(untold).chain(result.hopeless.clone()).chain(why.cloned()).collect(),
            limits: result.verdict.limits.iter().map(ToString::to_string).collect(),
            is_replaced: false,
        };
        (result.number, line)
    }
}

impl Tried {
    /// What was used in it, if it was watched.
    fn resources(&self, run: &RunFolder, point: Option<usize>) -> Option<Resources> {
        let answers = match &self.result.measured {
            Measured::Answer(answer) => AnswersSeen {
                response_s: Some(answer.response.mean_s.value),
                request_s: None,
                throughput_per_s: Some(answer.throughput_per_s.value),
                pauses: Some(AnswerPauses::of(&self.rows)),
            },
            Measured::NoAnswer(_) => AnswersSeen::default(),
        };
        let seen = self.result.resources.clone()?.judged(&self.result.run, &self.result.verdict, answers);
        Some(seen.resources(&self.id, point, &run.folder().join("trials").join(&self.id)))
    }
}

/// The line of a trial that is in no answer, and why.
fn cut_off(id: String, seed: u64, rows: &[RequestRow], doubt: String) -> TrialLine {
    let mut counts = Counts::default();
    rows.iter().for_each(|row| counts.add(row.outcome));
    TrialLine {
        id,
        point: None,
        seed,
        response_s: None,
        response_p99_s: None,
        weighted_response_s: None,
        counts,
        little_gap: None,
        send_lag_p99_s: None,
        server_cpu_cores: None,
        left_out: None,
        doubts: vec![doubt],
        limits: Vec::new(),
        is_replaced: false,
    }
}

/// Of each trial the attempt that counts; the others are lines that say why they do not.
fn undisturbed(
    attempts: Vec<(usize, Tried)>,
    usual: &Usual,
    left_out: &mut Vec<(usize, TrialLine)>,
) -> Vec<Tried> {
    let mut kept = Vec::new();
    let mut attempts = attempts.into_iter().peekable();
    while let Some((number, first)) = attempts.next() {
        let mut same = vec![first];
        while let Some((_, next)) = attempts.next_if(|next| next.0 == number) {
            same.push(next);
        }
        let counts = counted(&same.iter().map(|tried| &tried.result).collect::<Vec<_>>(), usual);
        for (place, tried) in same.into_iter().enumerate() {
            if place == counts {
                kept.push(tried);
                continue;
            }
            let why = tried.result.disturbance.map_or_else(
                || "another attempt counts in its place".to_owned(),
                |seen| format!("{}; another attempt counts in its place", usual.words(&seen)),
            );
            let line = cut_off(tried.id, tried.result.seed, &tried.rows, why);
            left_out.push((number, TrialLine { is_replaced: true, ..line }));
        }
    }
    kept
}

/// The trials of one combination.
struct Sample {
    /// Those that are done.
    trials: Vec<Tried>,
    /// Number and line of those that were cut off or cannot be read.
    left_out: Vec<(usize, TrialLine)>,
}

impl Sample {
    fn read(run: &RunFolder, combination: usize, usual: &Usual) -> Self {
        let (mut trials, mut left_out) = (Vec::new(), Vec::new());
        for (folder, trial) in run.begun().filter(|(_, trial)| trial.combination == combination) {
            let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (rows, doubt) = match (read_trial(&folder), TrialResult::read(&folder)) {
                (Ok(rows), Ok(Some(result))) => {
                    let warmup_ns = result.warmup_ns(run.load(combination));
                    trials.push((trial.number, Tried { id, result, rows, warmup_ns }));
                    continue;
                }
                (Ok(rows), Ok(None)) => (
                    rows,
                    "it was cut off; its requests until then are kept, but not counted in the answers"
                        .to_owned(),
                ),
                (Ok(rows), Err(error)) => (rows, error.to_string()),
                (Err(error), _) => (Vec::new(), error.to_string()),
            };
            let line = cut_off(id, trial.seed, &rows, doubt);
            left_out.push((trial.number, line));
        }
        let trials = undisturbed(trials, usual, &mut left_out);
        Self { trials, left_out }
    }

    /// The rows of each trial with its warm-up.
    fn views(&self) -> Vec<kendall_evidence::Trial<'_>> {
        self.trials.iter().map(Tried::view).collect()
    }

    /// Processor time of the server per second over all trials, where it is known of all.
    fn server_cpu_cores(&self) -> Option<f64> {
        let cores: Option<f64> = self.trials.iter().map(Tried::server_cpu_cores).sum();
        Some(cores? / self.trials.len() as f64)
    }

    /// The rows after the warm-up.
    fn rows(&self) -> impl Iterator<Item = &RequestRow> {
        self.trials.iter().flat_map(Tried::counted)
    }

    /// Times of the rows after the warm-up, ascending, in seconds.
    fn sorted_s(&self, of: impl Fn(&RequestRow) -> Option<i64>) -> Vec<f64> {
        sorted(self.rows().filter_map(|row| Some(of(row)? as f64 / 1e9)))
    }

    /// The classes that came, with the shares in which they came; none where there is only one.
    fn classes(&self) -> Vec<Class> {
        let known = &self.trials[0].result.classes;
        let mut counts = vec![0u64; known.len()];
        for row in self.rows() {
            if let Some(count) = counts.get_mut(row.class as usize) {
                *count += 1;
            }
        }
        let all: u64 = counts.iter().sum();
        let classes: Vec<Class> = known
            .iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| Class {
                name: class.name.clone(),
                share: count as f64 / all as f64,
                weight: class.weight,
                service: None,
            })
            .collect();
        if classes.len() > 1 { classes } else { Vec::new() }
    }

    /// From the first request due to the last answer of a trial, over the trials in which there was one.
    fn total_time_s(&self) -> Option<Estimate> {
        let total_s = |trial: &Tried| {
            let first = trial.rows.iter().map(|row| row.scheduled).min()?;
            let last =
                trial.rows.iter().filter(|row| row.response_ns().is_some()).filter_map(|row| row.completed);
            Some((last.max()? - first) as f64 / 1e9)
        };
        let totals_s: Vec<f64> = self.trials.iter().filter_map(total_s).collect();
        match (totals_s.as_slice(), kendall_stats::t_interval(&totals_s)) {
            (_, Some((mean_s, half_width))) => Some(Estimate::within(mean_s, half_width)),
            (&[only_s], None) => Some(Estimate::exact(only_s)),
            _ => None,
        }
    }

    /// The growth of response times after the warm-up, if they grew in most trials.
    fn growth(&self) -> Option<Growth> {
        let grows = |trial: &&Tried| {
            kendall_evidence::trend(&trial.rows, trial.warmup_ns).is_some_and(|trend| trend.grows)
        };
        if 2 * self.trials.iter().filter(grows).count() <= self.trials.len() {
            return None;
        }
        let mut halves = [(0.0, 0u64); 2];
        for trial in &self.trials {
            let last = trial.rows.iter().map(|row| row.scheduled).max().unwrap_or(0);
            for (row, response_ns) in trial.counted().filter_map(|row| Some((row, row.response_ns()?))) {
                let half = &mut halves[usize::from(row.scheduled > (trial.warmup_ns + last) / 2)];
                *half = (half.0 + response_ns as f64 / 1e9, half.1 + 1);
            }
        }
        let [first, second] = halves.map(|(sum, n)| (n > 0).then(|| sum / n as f64));
        Some(Growth { first_half_s: first?, second_half_s: second? })
    }
}

/// What was measured in one combination, over all its trials.
struct Measurement {
    answer: Answer,
    services_s: Vec<f64>,
    fixed_s: Option<f64>,
    delay_s: f64,
    arrivals: Arrivals,
    classes: Vec<Class>,
    stop: kendall_simulation::StopRule,
    replay: Option<kendall_evidence::Candidates>,
}

impl Measurement {
    /// Fails, in words, where nothing of it makes an answer.
    fn of(run: &RunFolder, index: usize, capacities: &[Capacity], sample: &Sample) -> Result<Self, String> {
        let combination = &run.combinations()[index];
        let StationShape { servers, discipline, .. } = (run.experiment().system.station)(&combination.server);
        let views = sample.views();
        let classes = row_classes(&sample.trials[0].result.classes);
        if let Some(known) = ServerCalibration::found(run, combination).map_err(|why| why.to_string())? {
            let answer = kendall_evidence::calibrated(&views, servers, &classes, known.calibrated());
            return Ok(Self {
                answer: answer.map_err(|why| why.to_string())?,
                services_s: known.services_s,
                fixed_s: None,
                delay_s: known.delay_s,
                arrivals: run.load(index).arrivals(run.capacity_of(combination, capacities)),
                classes: sample.classes(),
                stop: stop::stop(run.load(index)),
                replay: None,
            });
        }
        let answer = kendall_evidence::measured(&views, servers, &classes).map_err(|why| why.to_string())?;
        // The usual delay: what comes on top now and then is for the measurement to show, not for the models.
        let fixed_s = sample.sorted_s(|row| row.fixed);
        let outside = sample.sorted_s(|row| Some(row.response_ns()? - (row.finished? - row.queued?)));
        Ok(Self {
            answer,
            services_s: sample.sorted_s(|row| row.service),
            fixed_s: (!fixed_s.is_empty()).then(|| fixed_s.iter().sum::<f64>() / fixed_s.len() as f64),
            delay_s: outside.get(outside.len() / 2).copied().unwrap_or(0.0),
            arrivals: run.load(index).arrivals(run.capacity_of(combination, capacities)),
            classes: sample.classes(),
            stop: stop::stop(run.load(index)),
            replay: candidates::replayed(&views, servers, discipline, &classes),
        })
    }

    fn observed(&self, run: &RunFolder, combination: &Combination) -> Observed<'_> {
        let shape = (run.experiment().system.station)(&combination.server);
        let &Self { delay_s, stop, .. } = self;
        let Self { arrivals, services_s, classes, .. } = self;
        Observed { arrivals, services_s, classes, shape, delay_s, stop }
    }

    fn point(&self, run: &RunFolder, axis: &Axis, index: usize, sample: &Sample) -> Point {
        let combination = &run.combinations()[index];
        let observed = self.observed(run, combination);
        let notations = observed.notations(&stations::named(run));
        let seed = derive(run.experiment().seed.unwrap_or_default(), Purpose::Trial, run.asks(index) as u64);
        let service = observed.service();
        let responses_s = sample.sorted_s(RequestRow::response_ns);
        let offered_per_s = self.arrivals.rate_per_s();
        let servers = f64::from(observed.shape.servers.get());
        let utilisation_offered =
            offered_per_s.zip(service).map(|(rate_per_s, service)| rate_per_s * service.mean_s / servers);
        let growing = sample.growth();
        // The queue was still filling: the trials do not show the station that theory knows.
        let fills = growing.is_some() && utilisation_offered.is_some_and(|utilisation| utilisation >= 1.0);
        Point {
            settings: axis.settings(combination),
            x: axis.x(combination),
            offered_per_s,
            measured: self.answer.clone(),
            delay_s: self.delay_s,
            models: observed.answers(&notations, stations::varied(run), seed),
            responses_s: thinned(&responses_s, DRAWN_RESPONSES),
            tail_s: spread::tail(&responses_s),
            spread: service.and_then(|seen| spread::spread(&self.services_s, seen.scv, &notations)),
            service,
            fixed_s: self.fixed_s,
            utilisation_offered,
            capacity: observed.shape.capacity,
            growing,
            total_time_s: sample.total_time_s(),
            replay: self.replay.clone(),
            expected: if fills { None } else { self.expected(&observed) },
        }
    }

    /// How wide theory expects the intervals to be, of the station that the settings describe.
    fn expected(&self, observed: &Observed<'_>) -> Option<ExpectedWidth> {
        let own = observed.notations(&[]);
        let station = observed.station(own.first()?, Precision::Full).ok()?;
        candidates::expected(&station, &self.answer, self.stop)
    }
}
