//! `kendall serve`.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::{Args, Subcommand};
use kendall_station::Discipline;
use rustix::process::{Signal, getpid, kill_process};

#[derive(Subcommand)]
pub(crate) enum System {
    /// Find the 64-bit integer behind a SHA-256 digest, by search within a range
    Reverse(Reverse),
}

#[derive(Args)]
pub(crate) struct Reverse {
    #[command(flatten)]
    common: Common,

    /// Threads that search; all cores if left out
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,

    /// Order of service: fifo, lifo, priority, preemptive-priority, processor-sharing, shortest-remaining, cmu,
    /// gittins
    #[arg(long, value_name = "NAME", default_value = "gittins")]
    discipline: Discipline,
}

/// What every server takes.
#[derive(Args)]
struct Common {
    /// Listen on this address; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5003")]
    listen: SocketAddr,

    /// Answer GET /metrics in Prometheus' text format on this address
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,

    /// Write the server's own stamps of each request to this file
    #[arg(long, value_name = "FILE")]
    stamps: Option<PathBuf>,

    /// Stop when standard input ends, so as not to outlive whoever started this server
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

pub(crate) fn serve(system: System) -> anyhow::Result<ExitCode> {
    match system {
        System::Reverse(reverse) => {
            reverse.common.prepare();
            let mut options = kendall_reverse::Options {
                discipline: reverse.discipline,
                metrics: reverse.common.metrics,
                stamps: reverse.common.stamps,
                ..kendall_reverse::Options::new(reverse.common.listen)
            };
            options.workers = reverse.workers.unwrap_or(options.workers);
            kendall_reverse::serve(options, ready)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Common {
    fn prepare(&self) {
        if self.until_stdin_ends {
            thread::spawn(|| {
                // Ends at end of file, and as well where it cannot be read.
                drop(io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink()));
                let _ = kill_process(getpid(), Signal::TERM);
            });
        }
    }
}

/// Says where the server listens; the laboratory waits for this line.
fn ready(address: SocketAddr) {
    let mut out = io::stdout().lock();
    // Whoever closed standard output does not want to know.
    drop(writeln!(out, "{}{address}", kendall_lab::LISTENING).and_then(|()| out.flush()));
}
