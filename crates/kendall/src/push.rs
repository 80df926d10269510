//! `--otlp` and `--remote-write` of `kendall run` and `kendall load`.

use std::convert::Infallible;
use std::path::Path;

use anyhow::bail;
use clap::Args;
use kendall_lab::Lab;
use kendall_push::{Push, PushError, Target};
use kendall_system::conceal_url;

use crate::print;

#[derive(Args)]
pub(crate) struct PushOptions {
    /// Send rates, response times and processor use to OpenTelemetry while it runs: OTLP over HTTP as JSON, such as
    /// http://127.0.0.1:4318
    #[arg(long, value_name = "URL", value_parser = |text: &str| read("otlp", text, Target::otlp))]
    otlp: Vec<Receiver>,

    /// Send the same by Prometheus' remote write while it runs, such as http://127.0.0.1:9090/api/v1/write
    #[arg(long, value_name = "URL", value_parser = |text: &str| read("remote-write", text, Target::remote_write))]
    remote_write: Vec<Receiver>,
}

/// A receiver, or why its URL is invalid: an error of the option's parser would print the URL, and a password in it.
#[derive(Clone)]
struct Receiver(Result<Target, String>);

fn read(
    option: &str,
    text: &str,
    target: fn(&str) -> Result<Target, PushError>,
) -> Result<Receiver, Infallible> {
    let hidden = |why: PushError| format!("--{option} {}", why.to_string().replace(text, &conceal_url(text)));
    Ok(Receiver(target(text).map_err(hidden)))
}

/// What is sent while a run goes on.
pub(crate) struct Pushing(Vec<Push>);

impl PushOptions {
    /// Whether there is a receiver.
    pub(crate) fn is_asked(&self) -> bool {
        !self.otlp.is_empty() || !self.remote_write.is_empty()
    }

    /// The receivers.
    ///
    /// # Errors
    /// Fails where a URL is invalid. Called before a run creates its folder, so that an invalid URL leaves nothing behind.
    pub(crate) fn targets(&self) -> anyhow::Result<Vec<Target>> {
        let receivers = self.otlp.iter().chain(&self.remote_write);
        receivers.map(|Receiver(target)| target.clone().map_err(anyhow::Error::msg)).collect()
    }

    /// Begins to send what a run of an experiment says of itself.
    pub(crate) fn of_run(&self, lab: &Lab) -> anyhow::Result<Pushing> {
        if self.is_asked() && lab.crosses_link() {
            bail!(
                "a run over an emulated link has no other network, so --otlp and --remote-write cannot reach their servers"
            );
        }
        let run = lab.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.start(lab.folder(), &[("experiment", &lab.experiment().name), ("run", &run)])
    }

    /// Starts to send the progress in a folder, under these labels.
    pub(crate) fn start(&self, folder: &Path, labels: &[(&str, &str)]) -> anyhow::Result<Pushing> {
        let labels: Vec<(String, String)> =
            labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let start = |target: Target| Push::start(target, folder, labels.clone());
        Ok(Pushing(self.targets()?.into_iter().map(start).collect::<Result<_, _>>()?))
    }
}

impl Pushing {
    /// Sends what is left, and says what became of it.
    pub(crate) fn end(self) {
        for push in self.0 {
            print::note(&format!("{}.", push.end()));
        }
    }
}
