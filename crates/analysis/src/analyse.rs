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
mod sample;
mod stations;
mod stop;

use std::path::Path;
use std::thread;

use kendall_archive::Manifest;
use kendall_evidence::check::Finding;
use kendall_experiment::{Capacity, Combination, RunError, RunFolder};
use kendall_record::RequestRow;
use kendall_station::{Answer, Arrivals, Class};
use kendall_stats::random::{Purpose, derive};
use kendall_system::{StationShape, System};

use crate::attempts::{done, usual};
use crate::axis::Axis;
use crate::machine_limits::SettingsLimits;
use crate::models::{Observed, Precision};
use crate::report::Report;
use crate::report::expected::ExpectedAt;
use crate::report::limits::LimitsUsed;
use crate::report::link::TrialLink;
use crate::report::point::{ExpectedWidth, Point};
use crate::report::resources::Resources;
use crate::report::trial::TrialLine;
use crate::report::trial_view::TrialView;
use crate::thin::thinned;
use crate::traffic::Traffic;
use crate::trial_result::row_classes;
use crate::unstamped::ServerCalibration;
use crate::warmup::TooShort;
use crate::{candidates, effects, scaling, spread, trial_view, warmup};
use sample::{Sample, Tried};

pub(crate) use observe::group_of;
pub use observe::{Points, observe};
pub use replays::{ReplayError, ReplayedPoint, replays};

/// Response times that a report draws for each point; more are thinned evenly.
const DRAWN_RESPONSES: usize = 2_000;

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
    let context = Context {
        run: &run,
        axis: &axis,
        capacities: &capacities,
        limits: SettingsLimits::read(&run)?,
        cores: manifest.machine.cores,
    };
    let mut collected = Collected { doubts: Vec::from_iter(usual.doubt()), ..Collected::default() };
    for (index, combination) in axis.in_order(&run) {
        collected.add(&context, index, combination, &Sample::read(&run, index, &usual));
    }
    collected.report(&context, &manifest)
}

/// What is known of a run before its trials are read.
struct Context<'a> {
    run: &'a RunFolder,
    axis: &'a Axis,
    capacities: &'a [Capacity],
    limits: Vec<SettingsLimits>,
    cores: usize,
}

/// The data of a report, combination by combination.
#[derive(Default)]
struct Collected<'a> {
    points: Vec<Point>,
    measurements: Vec<(&'a Combination, Measurement)>,
    checks: Vec<Vec<Finding>>,
    limits: Vec<LimitsUsed>,
    expected: Vec<ExpectedAt>,
    warming: Vec<TooShort>,
    doubts: Vec<String>,
    resources: Vec<Resources>,
    traffic: Traffic,
    /// These three with the number of their trial.
    trials: Vec<(usize, TrialLine)>,
    views: Vec<(usize, TrialView)>,
    links: Vec<(usize, TrialLink)>,
}

impl<'a> Collected<'a> {
    /// Adds a combination with its trials.
    fn add(&mut self, context: &Context<'_>, index: usize, combination: &'a Combination, sample: &Sample) {
        let &Context { run, axis, capacities, .. } = context;
        self.trials.extend(sample.left_out.clone());
        self.doubts.extend(expectations::too_wide(run, index, axis, sample));
        self.warming.extend(expectations::warming(run, index, axis, sample));
        self.expected.extend(expectations::judged(run, index, axis, sample));
        let Some(first) = sample.trials.first() else { return };
        let arrivals = run.load(index).arrivals(run.capacity_of(combination, capacities));
        let view =
            |trial: &Tried| (trial.result.number, trial_view::view(&trial.id, &trial.view(), &arrivals));
        // Both read the same rows, and neither needs the other.
        let (views, measurement) = thread::scope(|scope| {
            let views = scope.spawn(|| sample.trials.iter().map(view).collect::<Vec<_>>());
            let measurement = Measurement::of(run, index, capacities, sample);
            (views.join().expect("a view of any rows can be made"), measurement)
        });
        self.views.extend(views);
        let point = measurement.as_ref().ok().map(|_| self.points.len());
        self.links.extend(sample.trials.iter().filter_map(Tried::link));
        if let Some(link) = &first.result.link {
            self.traffic.add(&first.id, &run.folder().join("trials").join(&first.id), &link.emulated);
        }
        self.trials.extend(sample.trials.iter().map(|trial| trial.line(point, measurement.as_ref().err())));
        self.resources.extend(sample.trials.iter().filter_map(|trial| trial.resources(run, point)));
        if let Ok(measurement) = measurement {
            let known = SettingsLimits::of(combination, &context.limits);
            self.limits.extend(limits::used(self.points.len(), sample, known, context.cores));
            self.points.push(measurement.point(run, axis, index, sample));
            self.checks.push(measurement.checks(run, combination, sample));
            self.measurements.push((combination, measurement));
        }
    }

    /// The report of all combinations.
    fn report(mut self, context: &Context<'_>, manifest: &Manifest) -> Result<Report, RunError> {
        let &Context { run, axis, .. } = context;
        let experiment = run.experiment();
        self.traffic.without_matrix(experiment.system);
        self.doubts.extend(warmup::doubt(&self.warming));
        let curves = curves::curves(run, axis, &self.measurements);
        let mut report = Report {
            name: experiment.name.clone(),
            question: experiment.question.clone(),
            notes: notes::notes(run)?,
            started_utc: manifest.started_utc.replace('T', " ").replace('Z', ""),
            command: format!("kendall run {}", run.folder().join("experiment.toml").display()),
            machine: notes::machine(manifest),
            factors: axis.factors(run),
            letters: experiment.letters(),
            points: self.points,
            trials: in_order(self.trials),
            trial_views: in_order(self.views),
            links: in_order(self.links),
            traffic: self.traffic,
            planned_trials: run.trials().len(),
            scaling: scaling::scalings(&curves, curves::populations(axis, &self.measurements)),
            effects: Vec::new(),
            curves,
            published: notes::published(run, axis),
            checks: Vec::new(),
            resources: self.resources,
            expected: self.expected,
            doubts: self.doubts,
            machine_limits: Vec::new(),
            experiment_toml: experiment.to_toml(),
        };
        report.machine_limits = limits::best(&report, self.limits);
        report.effects = effects::of_report(&report);
        report.checks = checks::placed(&report, self.checks);
        report.checks.extend(checks::between_loads(&report, axis, &self.measurements));
        Ok(report)
    }
}

/// In the order of the trials.
fn in_order<T>(mut numbered: Vec<(usize, T)>) -> Vec<T> {
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, one)| one).collect()
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
