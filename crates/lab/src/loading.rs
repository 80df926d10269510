//! The code that loads and measures a server: for a trial of an experiment, for a separate load, and for each probe of a search
//! for the peak.
//!
//! The calling thread sends, or agents on other machines do. One other thread takes the rows in batches, and others watch the resources. Starting a server,
//! setting up a link and reading stamps belong to the callers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kendall_agents::{Fleet, Target};
use kendall_analysis::generator::{GeneratorVerdict, judge};
use kendall_analysis::{ResourceRecord, Surroundings};
use kendall_experiment::{Load, Probing, Threads};
use kendall_load::{Plan, Progress, RowBatches, RunSummary, Workload, run};

use kendall_record::RecordError;

use crate::collect::{RowSinks, collect};
use crate::cores::OnCores;
use crate::hopeless;
use crate::stop::StopRule;
use crate::surroundings::{LoadedServers, SurroundingsWatch};
use crate::trial_error::TrialError;
use crate::watching::watch;

/// The requests, the end of the load, and the watched server.
pub(crate) struct Loading<'a> {
    pub(crate) workload: &'a dyn Workload,
    pub(crate) plan: &'a Plan,
    pub(crate) stop: StopRule<'a>,
    pub(crate) probing: Probing,
    /// The process of the server, where it is known.
    pub(crate) server: Option<u32>,
    /// The folder of the record, if one is kept.
    pub(crate) folder: Option<&'a Path>,
    /// The agents that send instead of this process, and their target.
    pub(crate) agents: Option<&'a SentByAgents<'a>>,
    /// The servers of a load that is judged alone; `None` for a trial, which is compared with others of its run.
    pub(crate) alone: Option<&'a LoadedServers>,
}

/// A load that agents send.
pub(crate) struct SentByAgents<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) target: Target,
    /// The threads of each agent; `None` for one on each of its cores.
    pub(crate) threads: Option<u32>,
}

impl<'a> SentByAgents<'a> {
    /// A load of a target by a fleet.
    pub(crate) fn new(fleet: &'a Fleet, target: Target, load: &Load) -> Self {
        let threads = match load.threads {
            Threads::Number(threads) => Some(threads),
            Threads::Auto => None,
        };
        Self { fleet, target, threads }
    }
}

/// The result of a load.
pub(crate) struct Loaded {
    /// The generator's summary.
    pub(crate) run: RunSummary,
    /// The verdict on the generator.
    pub(crate) verdict: GeneratorVerdict,
    /// The sinks, which have received every row.
    pub(crate) sinks: RowSinks,
    /// The reason why the load was stopped as hopeless, if it was.
    pub(crate) hopeless: Option<String>,
    /// The resources used, if they were watched.
    pub(crate) resources: Option<ResourceRecord>,
    /// What other work the machine did, for a load that is judged alone.
    pub(crate) surroundings: Option<Surroundings>,
}

impl Loading<'_> {
    /// The processes of the servers, where they are known.
    fn servers(&self) -> Vec<u32> {
        match self.alone {
            Some(LoadedServers::Known(servers)) => servers.clone(),
            _ => self.server.into_iter().collect(),
        }
    }

    /// Sends the requests of the plan. Setting `cancel` stops at once.
    ///
    /// # Errors
    /// Fails where the generator or the watching cannot be set up, or where the record cannot be written.
    pub(crate) fn run(
        &self,
        sinks: RowSinks,
        progress: &Progress,
        cancel: &AtomicBool,
    ) -> Result<Loaded, TrialError> {
        let stop = AtomicBool::new(false);
        let stop_watch = self.stop.watch(progress, &stop);
        let watching = watch(self.probing, self.server, self.folder)?;
        let surroundings = self.alone.map(SurroundingsWatch::start);
        let collected = |collected: Result<_, RecordError>| {
            // Requests that cannot be recorded are not worth sending.
            collected.inspect_err(|_| stop.store(true, Ordering::Relaxed))
        };
        let (run, collected) = hopeless::either(cancel, &stop, |either| match self.agents {
            None => {
                let rows = |batches: RowBatches| collected(collect(sinks, stop_watch, batches));
                let _apart = OnCores::apart_from(&self.servers());
                run(self.plan, self.workload, progress, either, rows).map_err(TrialError::from)
            }
            Some(SentByAgents { fleet, target, threads }) => {
                let rows = |batches| collected(collect(sinks, stop_watch, batches));
                fleet.run(target, self.plan, *threads, progress, either, rows).map_err(TrialError::from)
            }
        })?;
        let surroundings = surroundings.and_then(SurroundingsWatch::end);
        let (sinks, hopeless) = collected?;
        let resources = watching.end(run.start_ns)?;
        let summary = resources.as_ref().map(|seen| &seen.summary);
        let verdict = judge(&run, &self.plan.arrivals, summary, surroundings.as_ref());
        Ok(Loaded { run, verdict, sinks, hopeless, resources, surroundings })
    }
}
