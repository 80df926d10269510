//! Which assumptions of the models hold in the trials.

use kendall_evidence::check::{Finding, Hosts, Load, RunQueue, Setting, check, check_loads, send_lateness};
use kendall_load::RequestClass;
use kendall_station::{Class, Law, Station};
use kendall_system::StationShape;

use super::{Measurement, Sample, Tried};
use crate::axis::Axis;
use crate::generator::sends;
use crate::report::Report;
use crate::report::point::Point;
use kendall_experiment::Combination;
use kendall_experiment::RunFolder;

impl Measurement {
    /// Checks the assumptions with the rows of a combination's trials; their place is the caller's.
    pub(super) fn checks(&self, run: &RunFolder, combination: &Combination, sample: &Sample) -> Vec<Finding> {
        let StationShape { servers, discipline, capacity } =
            (run.experiment().system.station)(&combination.server);
        // The distribution matters only without service times from the server; a model then assumes exponential ones.
        let service = Law::Exponential { mean_s: self.answer.response.mean_s.value };
        let classes = workload_classes(sample).unwrap_or_default();
        let station = Station {
            discipline,
            capacity,
            classes,
            ..Station::new(self.arrivals.clone(), service, servers)
        };
        let views = sample.views();
        let verdicts = sample.trials.iter().map(|trial| &trial.result.verdict);
        let setting = Setting {
            place: String::new(),
            cpu_cores: sample.server_cpu_cores(),
            run_queue: run_queue(sample),
            // The laboratory starts its servers on the machine that loads them.
            hosts: Hosts::Same,
            sends: Some(sends(verdicts, send_lateness(&views).as_ref())),
        };
        check(&views, &station, &setting)
    }
}

/// How the server's threads queued for cores, on average over the trials; `None` where one was not watched.
fn run_queue(sample: &Sample) -> Option<RunQueue> {
    let seen = |trial: &Tried| {
        let summary = &trial.result.resources.as_ref()?.summary;
        Some((summary.cores, summary.server.as_ref()?.waiting_threads))
    };
    let seen: Vec<(f64, f64)> = sample.trials.iter().map(seen).collect::<Option<_>>()?;
    let (cores, _) = *seen.first()?;
    let waiting_threads = seen.iter().map(|&(_, waiting)| waiting).sum::<f64>() / seen.len() as f64;
    Some(RunQueue { cores, waiting_threads })
}

/// The classes in the shares in which the workload draws them; `None` where it does not.
fn workload_classes(sample: &Sample) -> Option<Vec<Class>> {
    let class = |class: &RequestClass| {
        Some(Class { name: class.name.clone(), share: class.share?, weight: class.weight, service: None })
    };
    sample.trials.first()?.result.classes.iter().map(class).collect()
}

/// The findings of each point, with its place.
pub(super) fn placed(report: &Report, checks: Vec<Vec<Finding>>) -> Vec<Finding> {
    let at = |(point, found): (&Point, Vec<Finding>)| {
        let place = report.place(point);
        found.into_iter().map(move |finding| Finding { place: place.clone(), ..finding })
    };
    report.points.iter().zip(checks).flat_map(at).collect()
}

/// What differs between the loads of each group of points that differ in their rate only.
pub(super) fn between_loads(
    report: &Report,
    axis: &Axis,
    measured: &[(&Combination, Measurement)],
) -> Vec<Finding> {
    if !axis.is_rate() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (_, points) in report.groups() {
        let of_group = report.points.iter().zip(measured).filter(|(point, _)| points.contains(point));
        let places: Vec<String> = of_group.clone().map(|(point, _)| report.place(point)).collect();
        let loads: Vec<Load<'_>> = of_group
            .zip(&places)
            .filter_map(|((point, (_, measurement)), place)| {
                let services_s = measurement.services_s.as_slice();
                Some(Load { place, utilisation: point.utilisation_offered?, services_s })
            })
            .collect();
        findings.extend(check_loads(&loads));
    }
    findings
}
