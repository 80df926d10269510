//! `kendall worker`: searches for servers that run with `--cluster`.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Args;
use kendall_cluster::{WorkerOptions, WorkerReport, work};
use kendall_digest::gpu::Device;
use kendall_nats::{NatsAccess, NatsAddress, NatsFiles};
use kendall_stats::number;
use kendall_stdio::note;
use kendall_system::digest_engine;

/// Search for servers that run with --cluster: kendall worker --cluster nats://HOST:4222
///
/// Takes chunks of the searches of `kendall serve reverse` and `kendall serve recover` from the queue of a NATS server with
/// JetStream. Any number of workers can join and leave at any time; one that is stopped returns what it has not tested.
#[derive(Args)]
pub struct Worker {
    /// The NATS server, or several, comma-separated: nats://HOST:4222, nats://USER:PASSWORD@HOST:4222 or tls://HOST:4222
    #[arg(long, value_name = "URL")]
    cluster: NatsAddress,

    #[command(flatten)]
    files: NatsFiles,

    /// Number of threads that search, of which one serves the graphics card, if there is one [default: the number of cores]
    #[arg(long, value_name = "N")]
    cores: Option<NonZeroUsize>,

    /// Where to search: auto (the processor, and a graphics card if one is found), cpu or gpu (both; it is an error if no card is
    /// found). The card searches for integers, not for passwords
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: Device,
}

/// Works until SIGINT or SIGTERM.
///
/// # Errors
/// Returns errors for the user.
pub fn worker(options: Worker) -> anyhow::Result<ExitCode> {
    let Worker { cluster, files, cores, device } = options;
    let access = NatsAccess { address: cluster, files };
    let cores = cores.or_else(|| available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    let engine = digest_engine().map_err(anyhow::Error::msg)?;
    let name = access.address.to_string();
    let ready = |WorkerReport { name: worker, integers_per_s }: WorkerReport| {
        note(&format!(
            "kendall: worker {worker} takes chunks from {name}: {cores} threads, {} SHA-256/s of integers",
            number::count(integers_per_s)
        ));
    };
    work(WorkerOptions { access, engine, cores, device }, ready)?;
    Ok(ExitCode::SUCCESS)
}
