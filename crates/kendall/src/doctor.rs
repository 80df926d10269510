//! `kendall doctor`.

use std::env;
use std::fs;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use kendall_digest::Engine;
use kendall_digest::gpu::{Gpu, Sums};
use kendall_lab::Offer;
use kendall_link::{BackEnd, LinkError};

use crate::options::positive_time;
use crate::print::{self, Form};
use crate::quiet;

#[derive(Args)]
pub(crate) struct DoctorOptions {
    /// Wait until other programs leave the machine idle, at most this long, and report which do not. Exit status 1 if they do not
    #[arg(long, value_name = "DURATION", value_parser = positive_time)]
    wait_quiet: Option<Duration>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(options: &DoctorOptions) -> anyhow::Result<ExitCode> {
    if let Some(at_most) = options.wait_quiet {
        return quiet::wait(at_most, Form::of(options.json));
    }
    let mut offers = kendall_lab::inspect();
    offers.extend([search_engine(), card(), stacks(), links()]);
    if options.json {
        print::json(&offers)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = String::new();
    for offer in &offers {
        let mark = if offer.advice.is_some() { "!" } else { " " };
        lines += &format!("{mark} {:<12} {}\n", offer.name, offer.found);
        if let Some(advice) = &offer.advice {
            lines += &format!("  {:<12} {advice}\n", "");
        }
    }
    print::out(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// What `serve reverse` would search with.
fn search_engine() -> Offer {
    let available: Vec<_> = Engine::available().map(Engine::name).collect();
    let (found, advice) = match kendall_system::digest_engine() {
        Ok(engine) => (format!("{engine}, of {}", available.join(", ")), None),
        Err(error) => (format!("none: {error}"), Some("unset the variable to use the fastest".into())),
    };
    Offer { name: "digests", found, advice }
}

/// The graphics card that `serve reverse` would search on. A missing one is not a fault.
fn card() -> Offer {
    let found = match Gpu::find(Sums::default()) {
        Ok(card) => format!("{}, checked with known answers", card.name()),
        Err(absent) => format!("none: {absent}"),
    };
    Offer { name: "card", found, advice: None }
}

/// Whether stacks can be sampled, found out by sampling this process's own.
fn stacks() -> Offer {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let now = if level.is_empty() { String::new() } else { format!(" (it is {})", level.trim()) };
    let (found, advice) = match kendall_probe::try_profile() {
        Ok(missing) if missing.is_empty() => {
            ("stacks can be sampled, within system calls as well".to_owned(), None)
        }
        Ok(missing) => {
            let more = "run sysctl kernel.perf_event_paranoid=1";
            let or = "or give kendall CAP_PERFMON, to sample system calls as well";
            (format!("stacks can be sampled. {}", missing.join(" ")), Some(format!("{more}{now}, {or}")))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported) => {
            let advice =
                "a profile shows the CPU time of threads instead; run where the kernel has perf events";
            (format!("none: the kernel has no perf events ({error})"), Some(advice.to_owned()))
        }
        Err(error) => {
            let advice = format!(
                "a profile shows the CPU time of threads instead; run sysctl kernel.perf_event_paranoid=2{now}, or be root; \
                 in a container --cap-add PERFMON, and let its seccomp profile pass perf_event_open"
            );
            (format!("none: the kernel refuses to sample stacks ({error})"), Some(advice))
        }
    };
    Offer { name: "perf events", found, advice }
}

/// How links can be emulated here, found out by laying one each way.
fn links() -> Offer {
    let tried = env::current_exe().map(|program| kendall_link::probe(&program));
    let tried = match tried {
        Ok(tried) => tried,
        Err(error) => {
            let found = format!("not known: cannot find the kendall program ({error})");
            return Offer { name: "link", found, advice: None };
        }
    };
    let words = |(back_end, result): &(BackEnd, Result<String, LinkError>)| match result {
        Ok(described) => format!("{}: {described}", back_end.name()),
        Err(error) => format!("{}: no, {error}", back_end.name()),
    };
    let found = tried.iter().map(words).collect::<Vec<_>>().join("; ");
    let none = tried.iter().all(|(_, result)| result.is_err());
    let advice =
        "trials with [link] then use a relay, which needs no privileges; elsewhere use kendall link relay";
    let advice = none.then(|| advice.to_owned());
    Offer { name: "link", found, advice }
}
