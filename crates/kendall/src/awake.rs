//! `--keep-awake`.

use anyhow::Context;
use clap::Args;
use kendall_lab::Awake;

#[derive(Args)]
pub(crate) struct AwakeOption {
    /// Keep the processors of this machine from sleeping meanwhile, which takes root. One that slept is slower for a while, so a server at
    /// low load would take longer for each request
    #[arg(long)]
    keep_awake: bool,
}

impl AwakeOption {
    /// Whether it was given.
    pub(crate) fn is_given(&self) -> bool {
        self.keep_awake
    }

    /// Keeps the processors awake, if asked to, until the result is dropped.
    pub(crate) fn keep(&self) -> anyhow::Result<Option<Awake>> {
        self.keep_awake.then(Awake::keep).transpose().context("--keep-awake")
    }
}
