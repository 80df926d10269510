//! Runs an experiment: first the calibration that it needs, then trial after trial, until no trial is left.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kendall_analysis::unstamped::{CALIBRATION_FILE, ServerCalibration};
use kendall_archive::live::LiveState;
use kendall_archive::{Manifest, utc_now, write_json};
use kendall_experiment::{ANSWER, Capacity, Combination, RELAY, Schedule, Trial, settings};
use kendall_files::append;
use kendall_load::Progress;
use kendall_record::RecordError;
use kendall_stats::random::{Purpose, derive};
use kendall_system::{COMMAND, Home, System, Value};

use crate::lab::{Lab, LabError, RunEnd};
use crate::link::Bed;
use crate::live::Live;
use crate::processor::Awake;
use crate::sequence::{Next, next};
use crate::trial::{Bench, Task};
use crate::trial_error::TrialError;
use crate::view::View;

/// The time that a trial takes in addition to its load: for starting and stopping the server and writing the record.
const AROUND: Duration = Duration::from_millis(250);
/// The time that measuring the capacity takes.
const CALIBRATION: Duration = Duration::from_millis(2300);

impl Lab {
    /// Runs every trial that is not done. Then runs more blocks while intervals are too wide, and repeats disturbed trials.
    /// `program` is the program that serves the system. Setting `cancel` stops at once; the current trial then counts as not
    /// done.
    ///
    /// # Errors
    /// Fails where a server or the record fails; finished trials are kept.
    pub fn run(&mut self, program: &Path, cancel: &AtomicBool) -> Result<RunEnd, LabError> {
        let _alone = self.alone()?;
        let _awake = self.run.experiment().keep_awake.then(Awake::keep).transpose()?;
        // This needs a process with a single thread.
        let bed = self.set_up_link(program)?;
        let mut view = View::new(Live::start(self.run.folder().into(), self.run.trials_done()));
        let ended = self.run_on(program, bed.as_ref(), &view, cancel);
        view.live.end(match &ended {
            Ok(RunEnd::Complete) => LiveState::Done,
            Ok(RunEnd::Interrupted) => LiveState::Interrupted,
            Err(why) => LiveState::Failed(why.to_string()),
        });
        ended
    }

    /// Runs the trials that are not done, until none is left.
    fn run_on(
        &mut self,
        program: &Path,
        bed: Option<&Bed>,
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<RunEnd, LabError> {
        let (system, files) = (self.run.experiment().system, self.run.experiment().folder.clone());
        let bench = Bench { program, system, bed, files: &files, fleet: self.fleet.as_ref() };
        let began = Instant::now();
        if let Some(relay) = bed.filter(|bed| bed.is_relay()) {
            view.line(&format!("The link is a {}.", relay.described()));
        }
        let mut left: Vec<Trial> =
            self.run.trials().iter().filter(|trial| !self.run.is_done(trial)).copied().collect();
        loop {
            if self.run_all(bench, &left, view, cancel)? == RunEnd::Interrupted {
                return Ok(RunEnd::Interrupted);
            }
            left = match next(&self.run, began.elapsed())? {
                Next::Block { wide } => {
                    let points = if wide == 1 { "point is" } else { "points are" };
                    view.line(&format!("{wide} {points} not as precise as asked; another block"));
                    self.run.plan_block()
                }
                Next::Again(trials) => {
                    let them = if trials.len() == 1 { "trial was" } else { "trials were" };
                    view.line(&format!("{} {them} disturbed by other load; once more", trials.len()));
                    trials
                }
                Next::Nothing => break,
            };
        }
        let mut manifest = Manifest::read(self.run.folder())?;
        manifest.ended_utc = Some(utc_now());
        manifest.write(self.run.folder())?;
        Ok(RunEnd::Complete)
    }

    /// Runs these trials.
    fn run_all(
        &self,
        bench: Bench<'_>,
        left: &[Trial],
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<RunEnd, LabError> {
        let capacities = self.calibrate(bench, left, view, cancel)?;
        let unstamped = self.calibrate_servers(bench, left, &capacities, view, cancel)?;
        self.measure_limits(bench, left, view, cancel)?;
        let expected = left.iter().map(|trial| self.expected(trial, &capacities));
        view.plan(
            self.run.trials().len(),
            left.len(),
            expected.fold(Duration::ZERO, Duration::saturating_add),
        );
        for trial in left {
            if cancel.load(Ordering::Relaxed) {
                return Ok(RunEnd::Interrupted);
            }
            let folder = self.run.trial_folder(trial);
            let combination = &self.run.combinations()[trial.combination];
            let capacity_per_s = self.run.capacity_of(combination, &capacities);
            // Removes the files of an interrupted trial.
            drop(fs::remove_dir_all(&folder));
            let progress = Arc::new(Progress::default());
            let load = self.run.load(trial.combination);
            let aims = self.run.experiment().expected.iter().filter(|aim| aim.holds_for(combination));
            let expected = aims.map(|aim| aim.expectation).collect();
            let link = self.run.link(trial.combination);
            let probing = self.run.experiment().probing;
            let unstamped = ServerCalibration::of(combination, &unstamped);
            let folder = folder.as_path();
            let live = Some(&view.live);
            let task = Task {
                trial,
                combination,
                load,
                link,
                capacity_per_s,
                unstamped,
                folder,
                expected,
                probing,
                live,
            };
            let takes = self.expected(trial, &capacities);
            let result = view.watch(trial, &name(&combination.levels), takes, &progress, || {
                bench.trial(&task, &progress, cancel)
            });
            let result = result.map_err(|source| self.failed(folder, source))?;
            if cancel.load(Ordering::Relaxed) {
                return Ok(RunEnd::Interrupted);
            }
            write_json(&folder.join(ANSWER), &result)?;
            view.done(&result, folder, takes);
        }
        Ok(RunEnd::Complete)
    }

    /// Sets up the link if any of its trials crosses one, and moves this process to the client's end of it.
    fn set_up_link(&self, program: &Path) -> Result<Option<Bed>, LabError> {
        if !self.run.crosses_link() {
            return Ok(None);
        }
        let system = self.run.experiment().system;
        if self.run.combinations().iter().any(|combination| is_out_of_reach(system, combination)) {
            return Err(LabError::RunningOverLink);
        }
        let combinations = self.run.combinations().iter().enumerate();
        let asked = combinations
            .filter_map(|(index, of)| Some(((system.transport)(&of.workload), self.run.link(index)?)));
        let bed = Bed::set_up(program, &self.run.combinations()[0].link, &asked.collect::<Vec<_>>())?;
        let mut manifest = Manifest::read(self.run.folder())?;
        manifest.link = bed.described();
        manifest.write(self.run.folder())?;
        Ok(Some(bed))
    }

    /// Locks the run's folder for this process until the file is closed.
    fn alone(&self) -> Result<File, LabError> {
        let path = self.run.folder().join(".lock");
        let file = append(&path, 0o600).map_err(|source| RecordError::Write { path, source })?;
        file.try_lock().map_err(|_| LabError::Busy(self.run.folder().into()))?;
        Ok(file)
    }

    /// Measures the capacity once a run for each combination of server and workload settings whose rate is a share of it.
    fn calibrate(
        &self,
        bench: Bench<'_>,
        left: &[Trial],
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<Vec<Capacity>, LabError> {
        let file = self.run.folder().join("calibration.json");
        let mut capacities = self.run.capacities()?;
        for trial in left {
            let combination = &self.run.combinations()[trial.combination];
            let asks = matches!(self.run.load(trial.combination).schedule, Schedule::Share(..));
            if !asks
                || self.run.capacity_of(combination, &capacities).is_some()
                || cancel.load(Ordering::Relaxed)
            {
                continue;
            }
            view.show_activity("finding what the machine can do …");
            let folder = self.run.folder().join(format!("calibration-{}", capacities.len() + 1));
            let seed = derive(self.run.experiment().seed.unwrap_or_default(), Purpose::Trial, u64::MAX);
            let calibrated = self.run.calibrated(combination);
            let found = bench.off_link(|| bench.capacity_per_s(calibrated, &folder, seed, cancel));
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let capacity_per_s = found.map_err(|source| self.failed(&folder, source))?;
            drop(fs::remove_dir_all(&folder));
            view.line(&format!("The machine can do {capacity_per_s:.0} requests per second; that is 100 %."));
            capacities.push(Capacity { settings: settings(calibrated), capacity_per_s });
            write_json(&file, &capacities)?;
        }
        Ok(capacities)
    }

    /// Calibrates a server that writes no stamps, once a run for each combination of server and workload settings.
    fn calibrate_servers(
        &self,
        bench: Bench<'_>,
        left: &[Trial],
        capacities: &[Capacity],
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<Vec<ServerCalibration>, LabError> {
        let mut known = ServerCalibration::read(&self.run)?;
        if let Home::Here = self.run.experiment().system.home {
            return Ok(known);
        }
        for trial in left {
            let combination = &self.run.combinations()[trial.combination];
            if ServerCalibration::of(combination, &known).is_some() || cancel.load(Ordering::Relaxed) {
                continue;
            }
            view.show_activity("finding out how long a lone request takes …");
            let folder = self.run.folder().join(format!("beforehand-{}", known.len() + 1));
            let seed = derive(self.run.experiment().seed.unwrap_or_default(), Purpose::Trial, u64::MAX - 1);
            // The capacity of this combination itself; the capacity that defines 100 % may be that of another combination.
            let own = capacities.iter().find(|capacity| capacity.settings == settings(combination));
            let full_per_s =
                combination.load.number("capacity").or_else(|| own.map(|capacity| capacity.capacity_per_s));
            let found = bench.unstamped(combination, full_per_s, &folder, seed, cancel);
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let found = found.map_err(|source| self.failed(&folder, source))?;
            drop(fs::remove_dir_all(&folder));
            known.push(ServerCalibration { settings: settings(combination), found });
            write_json(&self.run.folder().join(CALIBRATION_FILE), &known)?;
        }
        Ok(known)
    }

    fn expected(&self, trial: &Trial, capacities: &[Capacity]) -> Duration {
        let combination = &self.run.combinations()[trial.combination];
        let load = self.run.load(trial.combination);
        let capacity = self.run.capacity_of(combination, capacities);
        let known = capacity.is_some() || !matches!(load.schedule, Schedule::Share(..));
        let sending = if known { load.expected(capacity) } else { load.duration.unwrap_or(CALIBRATION) };
        sending.saturating_add(AROUND)
    }

    pub(crate) fn failed(&self, folder: &Path, source: TrialError) -> LabError {
        let trial = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        LabError::Trial { trial, folder: self.run.folder().into(), source }
    }
}

/// Whether a link between namespaces hides the server of a combination: one that kendall does not start is in neither of them.
fn is_out_of_reach(system: &System, combination: &Combination) -> bool {
    let runs_already =
        matches!(system.home, Home::Anywhere { .. }) && combination.server.get(COMMAND).is_none();
    runs_already && combination.link.word("back-end") != Some(RELAY)
}

fn name(levels: &[(&'static str, Value)]) -> String {
    levels.iter().map(|(name, value)| format!(" {name}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_linkmodel::Transport;
    use kendall_station::{Discipline, Servers};
    use kendall_system::{StationShape, Subcommands, no_limits};

    const SYSTEM: System = System {
        name: "web",
        about: "a system for this test",
        default_port: 1,
        home: Home::Anywhere { schemes: &["http"], address: |_| Err("not resolved in this test".into()) },
        server: &[],
        workload: &[],
        station: |_| StationShape::unlimited(Servers::new(1).unwrap(), Discipline::Fifo),
        transport: |_| Transport::TCP,
        load: |_, _, _| Err("not loaded in this test".into()),
        serve: |_, _| Err("not served in this test".into()),
        limits: no_limits,
        subcommands: Subcommands::NONE,
    };

    #[test]
    fn a_server_that_runs_already_is_reached_through_a_relay_only() {
        let mut combination = Combination::default();
        assert!(is_out_of_reach(&SYSTEM, &combination));
        combination.link.set("back-end", Value::Word("veth".into()));
        assert!(is_out_of_reach(&SYSTEM, &combination));
        combination.link.set("back-end", Value::Word(RELAY.into()));
        assert!(!is_out_of_reach(&SYSTEM, &combination));
        let mut started = Combination::default();
        started.server.set(COMMAND, Value::Word("nginx".into()));
        assert!(!is_out_of_reach(&SYSTEM, &started));
        let own = System { home: Home::Here, ..SYSTEM };
        assert!(!is_out_of_reach(&own, &Combination::default()));
    }
}
