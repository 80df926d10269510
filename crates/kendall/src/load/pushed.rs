//! Reports a load to other tools while it runs.

use std::sync::Arc;

use kendall_archive::live::LiveState;
use kendall_lab::load_view::RecentQuantiles;
use kendall_lab::{Live, LoadTrial};
use kendall_load::Progress;
use tempfile::TempDir;

use crate::push::{PushOptions, Pushing};

/// A load that is pushed to other tools, through a folder that exists while the load runs.
pub(super) struct PushedLoad {
    live: Live,
    pushing: Pushing,
    _folder: TempDir,
}

impl PushedLoad {
    /// Begins to report a load; `None` where no tool asks for it.
    pub(super) fn start(
        push: &PushOptions,
        trial: &LoadTrial<'_>,
        progress: &Arc<Progress>,
    ) -> anyhow::Result<Option<Self>> {
        if !push.is_asked() {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let live = trial.live(folder.path(), progress);
        let pushing = push.start(folder.path(), &[("target", trial.target)])?;
        Ok(Some(Self { live, pushing, _folder: folder }))
    }

    /// The quantiles of the last half second.
    pub(super) fn recent(&self) -> Option<RecentQuantiles> {
        RecentQuantiles::of(&self.live.newest()?)
    }

    /// Reports that the load is over.
    pub(super) fn end(mut self) {
        self.live.end(LiveState::Done);
        self.pushing.end();
    }
}
