//! Watching the server of a load, if it is on this machine.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use clap::Args;
use kendall_analysis::generator::GeneratorVerdict;
use kendall_lab::{Probing, Seen, Watching};
use kendall_load::RunSummary;
use kendall_probe::{Bottleneck, Profile, Summary, listener};
use kendall_report::resources;
use serde::{Deserialize, Serialize};

#[derive(Args)]
pub(super) struct ProbeOptions {
    /// Watch the server while it is loaded, if it is on this machine: what it uses, and what limits it. It is the process
    /// that listens at the URL's address, or the one that is named
    #[arg(long, value_name = "PID", num_args = 0..=1, require_equals = true, default_missing_value = AUTO)]
    probe: Option<Process>,

    /// Watch the server, and sample its stacks: in which functions its time goes
    #[arg(long)]
    profile: bool,
}

const AUTO: &str = "auto";

/// The process to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// The one that listens at the URL's address.
    Listening,
    Named(u32),
}

impl FromStr for Process {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(pid @ 1..) => Ok(Self::Named(pid)),
            _ if text == AUTO => Ok(Self::Listening),
            _ => Err(format!("must be the number of a process, or {AUTO}")),
        }
    }
}

/// As it is written for a shell.
impl fmt::Display for ProbeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.probe {
            Some(Process::Named(pid)) => write!(f, " --probe={pid}")?,
            Some(Process::Listening) => f.write_str(" --probe")?,
            None => {}
        }
        if self.profile { f.write_str(" --profile") } else { Ok(()) }
    }
}

impl ProbeOptions {
    /// The process to watch, if one is to be, of a server at an address.
    pub(super) fn process(&self, server: SocketAddr) -> anyhow::Result<Option<u32>> {
        match self.probe {
            Some(Process::Named(pid)) => Ok(Some(pid)),
            Some(Process::Listening) => Ok(Some(listener(server)?)),
            None if self.profile => Ok(Some(listener(server)?)),
            None => Ok(None),
        }
    }

    /// Begins to watch it, and this process, which sends; keeps every reading in the folder of the record, if there is one.
    pub(super) fn watch(&self, process: Option<u32>, record: Option<&Path>) -> anyhow::Result<Watching> {
        let probing = match process {
            None => Probing::OFF,
            Some(_) if self.profile => Probing::default().with_profile(),
            Some(_) => Probing::default(),
        };
        Ok(probing.watch(process, record)?)
    }
}

/// What the server, the generator and the machine used during a load.
#[derive(Serialize, Deserialize)]
pub(crate) struct Watched {
    /// The process that was taken for the server.
    pub(crate) process: u32,
    pub(crate) summary: Summary,
    /// What limited the server.
    pub(crate) limit: Option<Bottleneck>,
    /// The stacks, if they were sampled; in a record they are beside this.
    pub(crate) profile: Option<Profile>,
}

impl Watched {
    pub(super) fn new(
        process: u32,
        seen: Seen,
        run: &RunSummary,
        verdict: &GeneratorVerdict,
        response_s: Option<f64>,
    ) -> Self {
        let limit = seen.limit(run, verdict, response_s);
        Self { process, summary: seen.summary, limit, profile: seen.profile }
    }

    /// The same as the record has it: with its stacks in a file of the folder.
    pub(super) fn keep(self, folder: &Path) -> anyhow::Result<Self> {
        let Seen { summary, profile } = Seen { summary: self.summary, profile: self.profile }.keep(folder)?;
        Ok(Self { summary, profile, ..self })
    }

    /// The same as it was seen, from the record.
    pub(super) fn kept(self, folder: &Path) -> Self {
        let Seen { summary, profile } = Seen { summary: self.summary, profile: self.profile }.kept(folder);
        Self { summary, profile, ..self }
    }

    /// What was seen, for a page.
    pub(super) fn shown(&self) -> resources::Watched<'_> {
        let Self { summary, limit, profile, .. } = self;
        resources::Watched { summary, limit: limit.as_ref(), profile: profile.as_ref() }
    }

    /// What was seen, for a terminal.
    pub(super) fn text(&self) -> String {
        let profile = self.profile.as_ref().map_or_else(String::new, resources::profile_text);
        format!(
            "Process {} while it was loaded\n{}{profile}",
            self.process,
            resources::text(&self.summary, self.limit.as_ref())
        )
    }
}
