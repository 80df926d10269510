//! `kendall curve copy`: files and trees from and to a server.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use indicatif::{HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use kendall_curve::KeyDirectory;
use kendall_remote::copy::protocol::CopyOptions;
use kendall_remote::copy::{CopyReport, CopySettings, Progress, download, upload};
use kendall_remote::{Host, Operand, RemoteError, dial};
use terminal_size::{Height, Width, terminal_size_of};
use tokio::sync::watch;
use tokio::time::{interval, timeout};

use crate::host::{ClientOptions, silence_limit};
use crate::run::{run, signalled};
use kendall_stdio::note;

/// Columns from which the whole bar fits.
const LEAST_WIDE: u16 = 100;
/// How often the bar is drawn, and a line is printed where there is no terminal.
const BAR: Duration = Duration::from_millis(200);
const LINE: Duration = Duration::from_secs(5);
/// How long the end of the connection may take once everything is in its place.
const FAREWELL: Duration = Duration::from_secs(1);

/// Copy files and folders from or to a server: kendall curve copy photos backup:
#[derive(Args)]
#[command(
    long_about = "Copy files and folders from or to a server (kendall curve serve-files).\n\n\
        A file of the server is written HOST:PATH. HOST is a table of the hosts file, or the name given with --server; PATH is \
        within the folder that the server serves. As with cp, sources go into the target where it is a folder; otherwise \
        the target is the new name of the only source. FOLDER/. is the content of a folder. Folders are always copied with all \
        that is in them.\n\n\
        Permissions, times, symbolic links, hard links and holes are kept. A file gets its name once it is whole and its BLAKE3 \
        digest is right. After an interruption, run the same command again: it continues where the last one ended.",
    after_long_help = "Examples:\n  kendall curve copy report.pdf backup:\n  kendall curve copy photos music backup:archive/\n  \
        kendall curve copy backup:archive/photos .\n  kendall curve copy --server server.example KEY 192.0.2.7:10000 a \
        server.example:b\n\nThe hosts file has a table for each server:\n  [backup]\n  name = \"server.example\"\n  \
        key = \"64 hexadecimal digits, from kendall curve show\"\n  address = \"192.0.2.7:10000\"\n\n\
        Exit status: 0 where everything was copied, 1 where something was not, 130 after Ctrl-C."
)]
pub(crate) struct Copy {
    /// The sources, and last the target: PATH here or HOST:PATH at a server; either the sources or the target are at a server
    #[arg(value_names = ["SRC", "DST"], num_args = 2.., required = true)]
    operands: Vec<OsString>,

    /// Keep owners and groups by number; for root at the target
    #[arg(long)]
    owner: bool,

    /// Keep the set-user-ID, set-group-ID and sticky bits, which are removed otherwise
    #[arg(long)]
    special_bits: bool,

    /// Wait until the disk has each file before the file gets its name
    #[arg(long)]
    sync: bool,

    /// Give up if the server has sent nothing for this time; a working server sends at least every 10 s
    #[arg(long, value_name = "DURATION", value_parser = silence_limit, default_value = "60s")]
    silence_limit: Duration,

    /// Show no progress and no summary
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    client: ClientOptions,
}

/// The two ways of a copy.
enum Direction {
    Upload { sources: Vec<PathBuf>, target: Vec<u8> },
    Download { sources: Vec<Vec<u8>>, target: PathBuf },
}

pub(crate) fn copy(options: Copy) -> anyhow::Result<ExitCode> {
    let (host, direction) = direction(&options.operands)?;
    let (host, keys) = options.client.resolve(&host)?;
    run(async move {
        let (end, mut ended) = watch::channel(None);
        tokio::spawn(async move {
            let code = signalled().await.unwrap_or(ExitCode::FAILURE);
            end.send_replace(Some(code));
            // Held, so that the channel stays open.
            std::future::pending::<()>().await;
        });
        let begun = Instant::now();
        let mut stop = ended.clone();
        let stopped = async move { _ = stop.wait_for(Option::is_some).await };
        match transfer(&options, &host, &keys, direction, stopped).await {
            Ok(report) => Ok(summarise(&report, begun.elapsed(), options.quiet)),
            Err(RemoteError::Interrupted) => {
                note(&format!("kendall: {}", RemoteError::Interrupted));
                Ok(ended.borrow_and_update().unwrap_or(ExitCode::FAILURE))
            }
            Err(error) => Err(error.into()),
        }
    })
}

fn direction(operands: &[OsString]) -> anyhow::Result<(String, Direction)> {
    let operands: Vec<Operand> = operands.iter().map(|text| Operand::new(text)).collect();
    let (target, sources) = operands.split_last().context("name a source and a target")?;
    let only_local = |operand: &Operand| match operand {
        Operand::Local(path) => Some(path.clone()),
        Operand::Remote { .. } => None,
    };
    match target {
        Operand::Remote { host, path } => {
            let sources: Option<Vec<PathBuf>> = sources.iter().map(only_local).collect();
            let sources = sources.context(
                "sources and target are at servers: copy to this machine first, then to the other server",
            )?;
            Ok((host.clone(), Direction::Upload { sources, target: path.clone() }))
        }
        Operand::Local(target) => {
            let mut hosts = Vec::new();
            let mut paths = Vec::new();
            for source in sources {
                let Operand::Remote { host, path } = source else {
                    bail!(
                        "neither a source nor the target is at a server, or only some sources are: write HOST:PATH for a file at \
                         a server, and copy files of this machine with cp"
                    )
                };
                hosts.push(host.clone());
                paths.push(path.clone());
            }
            hosts.dedup();
            ensure!(hosts.len() == 1, "the sources are at several servers: copy from one after another");
            Ok((hosts.remove(0), Direction::Download { sources: paths, target: target.clone() }))
        }
    }
}

/// Copies while the progress is drawn.
async fn transfer(
    options: &Copy,
    host: &Host,
    keys: &KeyDirectory,
    direction: Direction,
    stopped: impl Future<Output = ()>,
) -> Result<CopyReport, RemoteError> {
    let dialled = dial(host, keys).await?;
    let (connection, silence) =
        (dialled.connection().clone(), dialled.no_answer().within(options.client.timeout));
    let (endpoint, stream) = (dialled.endpoint, dialled.stream);
    let progress = Progress::default();
    let wishes = CopyOptions {
        owner: options.owner,
        special_bits: options.special_bits,
        sync: options.sync,
        count: !options.quiet,
    };
    let settings = CopySettings { options: wishes, silence_limit: options.silence_limit };
    let copying = async {
        match direction {
            Direction::Upload { sources, target } => tokio::select! {
                report = upload(stream, sources, target, settings, progress.clone()) => report,
                () = stopped => Err(RemoteError::Interrupted),
            },
            Direction::Download { sources, target } => {
                download(stream, &sources, &target, settings, progress.clone(), stopped).await
            }
        }
    };
    let report = tokio::select! {
        report = copying => report,
        silent = silence => Err(silent),
        () = draw(&progress), if !options.quiet => unreachable!("drawing goes on"),
    };
    // The last packets of the connection: the peer then knows at once how it ended.
    let farewell = async {
        if report.is_ok() {
            _ = connection.closed().await;
        } else {
            endpoint.idle().await;
        }
    };
    _ = timeout(FAREWELL, farewell).await;
    report
}

/// Draws the progress until it is dropped.
async fn draw(progress: &Progress) {
    if !io::stderr().is_terminal() {
        let (begun, mut ticks) = (Instant::now(), interval(LINE));
        ticks.tick().await;
        loop {
            ticks.tick().await;
            note(&format!("kendall: {}", line(progress, begun.elapsed())));
        }
    }
    let bar = ClearedBar(ProgressBar::no_length());
    let mut template = "";
    let mut ticks = interval(BAR);
    loop {
        ticks.tick().await;
        let mut entries = format!("{}", HumanCount(progress.entries()));
        if let Some((of, bytes)) = progress.total() {
            bar.0.set_length(bytes);
            entries += &format!(" of {}", HumanCount(of));
        }
        // A window may become another size.
        let next = bar_template(bar.0.length().is_some(), terminal_size_of(io::stderr()));
        if next != template {
            template = next;
            bar.0.set_style(ProgressStyle::with_template(next).expect("the template is valid"));
        }
        bar.0.set_message(format!("{entries} files"));
        bar.0.set_position(progress.bytes());
    }
}

/// What fits into a line of the terminal.
fn bar_template(has_length: bool, size: Option<(Width, Height)>) -> &'static str {
    let is_wide = size.is_none_or(|(Width(columns), _)| columns >= LEAST_WIDE);
    match (has_length, is_wide) {
        (true, true) => "{bytes:>10} of {total_bytes} [{wide_bar}] {bytes_per_sec} {eta} left, {msg}",
        (true, false) => "{percent:>3} % {bytes_per_sec} {eta} left",
        (false, true) => "{bytes:>10} {bytes_per_sec} {msg}",
        (false, false) => "{bytes:>10} {bytes_per_sec}",
    }
}

/// A bar that leaves the terminal when dropped.
struct ClearedBar(ProgressBar);

impl Drop for ClearedBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The progress in a line.
fn line(progress: &Progress, elapsed: Duration) -> String {
    let (bytes, entries) = (progress.bytes(), HumanCount(progress.entries()));
    let sent = bytes.saturating_sub(progress.resumed_bytes());
    let rate = sent as f64 / elapsed.as_secs_f64().max(1e-3);
    let so_far = format!("{entries} files, {}, {}/s", HumanBytes(bytes), HumanBytes(rate as u64));
    match progress.total() {
        Some((of, total)) if rate > 0.0 => {
            let left =
                Duration::try_from_secs_f64(total.saturating_sub(bytes) as f64 / rate).unwrap_or_default();
            let (of, total) = (HumanCount(of), HumanBytes(total));
            format!("{so_far}; of {of} files, {total}; {} left", HumanDuration(left))
        }
        _ => so_far,
    }
}

/// Prints what could not be copied, and a summary; the exit status.
fn summarise(report: &CopyReport, took: Duration, quiet: bool) -> ExitCode {
    report.failures.iter().for_each(|text| note(&format!("kendall: {text}")));
    let kept = report.failures.len() as u64;
    if report.failed > kept {
        note(&format!("kendall: … and {} more", HumanCount(report.failed - kept)));
    }
    if !quiet {
        let rate = report.bytes.saturating_sub(report.resumed_bytes) as f64 / took.as_secs_f64().max(1e-3);
        let (entries, bytes, rate) =
            (HumanCount(report.entries), HumanBytes(report.bytes), HumanBytes(rate as u64));
        let mut summary = format!("copied {entries} files, {bytes} in {:.1} s, {rate}/s", took.as_secs_f64());
        if report.resumed_bytes > 0 {
            summary += &format!("; {} were there already", HumanBytes(report.resumed_bytes));
        }
        note(&format!("kendall: {summary}"));
    }
    if report.failed == 0 {
        return ExitCode::SUCCESS;
    }
    note(&format!("kendall: {} could not be copied", HumanCount(report.failed)));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_make_one_direction_or_an_error_that_says_what_to_write() {
        let direction =
            |operands: &[&str]| direction(&operands.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(matches!(direction(&["a", "b", "h:c"]), Ok((host, Direction::Upload { .. })) if host == "h"));
        assert!(
            matches!(direction(&["h:a", "h:b", "."]), Ok((host, Direction::Download { .. })) if host == "h")
        );
        for bad in [&["a", "b"][..], &["h:a", "b", "."], &["h:a", "i:b", "."], &["h:a", "h:b"]] {
            assert!(direction(bad).is_err(), "{bad:?}");
        }
    }
}
