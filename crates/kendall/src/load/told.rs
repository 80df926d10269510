//! What other programs are told of a load while it goes on.

use std::sync::Arc;

use kendall_archive::live::LiveState;
use kendall_lab::Live;
use kendall_load::{Plan, Progress};
use tempfile::TempDir;

use super::view::{Goal, Quantiles};
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
        target: &str,
        goal: Goal,
        plan: &Plan,
        server: Option<u32>,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<Option<Self>> {
        if !push.is_asked() {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let live = Live::start(folder.path().into(), 0);
        live.begin(1, target, goal.duration.unwrap_or_default(), progress);
        live.loaded(server, plan.arrivals.rate_per_s());
        let pushing = push.start(folder.path(), &[("target", target)])?;
        Ok(Some(Self { live, pushing, _folder: folder }))
    }

    /// The quantiles of the last half second.
    pub(super) fn recent(&self) -> Option<Quantiles> {
        let sample = self.live.newest()?;
        Some(Quantiles { p50_s: sample.p50_s?, p99_s: sample.p99_s? })
    }

    /// Says that the load is over.
    pub(super) fn end(mut self) {
        self.live.end(LiveState::Done);
        self.pushing.end();
    }
}
