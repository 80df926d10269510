//! What other programs are told of a load while it goes on.

use std::sync::Arc;

use kendall_archive::live::LiveState;
use kendall_lab::load_view::{Goal, RecentQuantiles};
use kendall_lab::{Live, LoadTrial};
use kendall_load::Progress;
use tempfile::TempDir;

use crate::push::{PushOptions, Pushing};

/// A load that says what it does, as a trial of its own, in a folder that is there as long as it goes on.
pub(super) struct Told {
    live: Live,
    pushing: Pushing,
    _folder: TempDir,
}

impl Told {
    /// Begins to tell of a load; `None` where nobody is to be told.
    pub(super) fn start(
        push: &PushOptions,
        trial: &LoadTrial<'_>,
        goal: Goal,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<Option<Self>> {
        if !push.is_asked() {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let live = Live::start(folder.path().into(), 0);
        live.begin(1, trial.target, goal.duration.unwrap_or_default(), progress);
        live.loaded(trial.server, trial.load.arrivals(trial.capacity_per_s).rate_per_s());
        let pushing = push.start(folder.path(), &[("target", trial.target)])?;
        Ok(Some(Self { live, pushing, _folder: folder }))
    }

    /// The quantiles of the last half second.
    pub(super) fn recent(&self) -> Option<RecentQuantiles> {
        let sample = self.live.newest()?;
        Some(RecentQuantiles { p50_s: sample.p50_s?, p99_s: sample.p99_s? })
    }

    /// Says that the load is over.
    pub(super) fn end(mut self) {
        self.live.end(LiveState::Done);
        self.pushing.end();
    }
}
