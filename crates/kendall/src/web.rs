//! `kendall web`, and the page of `kendall run --web`.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use clap::Args;
use kendall_web::{Server, Site, Until};

use crate::serve::address;
use crate::systems::SYSTEMS;
use crate::{open, print};

/// What it prints before the address of its page.
const WATCH_AT: &str = "Watch at ";

#[derive(Args)]
pub(crate) struct WebOptions {
    /// The folder that holds results, as kendall run writes them
    #[arg(default_value = "results")]
    results: PathBuf,

    /// Listen on this address; port 0 takes a free one. If other machines can reach it, reading also needs the token in the printed
    /// address
    #[arg(long, value_name = "ADDR", value_parser = address, default_value = "127.0.0.1:5080")]
    listen: SocketAddr,

    /// Require this token, of at least 16 characters, instead of a random one; then reading needs it on a loopback address, too. Every
    /// user of the machine can see it in the list of processes: prefer --token-file
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// Read that token from a file, so that no list of processes shows it
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,

    /// Open the page in a browser
    #[arg(long)]
    open: bool,

    /// Print the address of this run's page
    #[arg(long, value_name = "DIR", hide = true)]
    run: Option<PathBuf>,

    /// Stop when standard input ends, so that the program does not outlive its parent
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

pub(crate) fn web(options: &WebOptions) -> anyhow::Result<ExitCode> {
    let program = env::current_exe().context("cannot find the kendall program, to take up runs with")?;
    let token = match &options.token_file {
        Some(file) => Some(kendall_stdio::read(file)?.trim().to_owned()),
        None => {
            if options.token.is_some() {
                print::note(
                    "every user of this machine sees the token of --token in the list of processes; --token-file FILE hides it",
                );
            }
            options.token.clone()
        }
    };
    let server = Server::bind(Site {
        results: options.results.clone(),
        listen: options.listen,
        token,
        program,
        systems: SYSTEMS,
    })?;
    let url = options.run.as_ref().and_then(|folder| server.run_url(folder)).unwrap_or_else(|| server.url());
    print::out(&format!("{WATCH_AT}{url}\n"))?;
    if options.open {
        open::open(&url);
    }
    server.serve(if options.until_stdin_ends { Until::SignalOrEndOfInput } else { Until::Signal })?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a run, served by a separate process, so that what it takes counts as neither generator's nor run's, and so that the
/// run may move to the end of a link, where no browser reaches it. It ends with this value, or with this process.
#[derive(Debug)]
pub(crate) struct Beside(Child);

impl Beside {
    /// Serves the results that hold a run's folder, and prints and opens the page of that run.
    pub(crate) fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        // results/EXPERIMENT/INSTANT
        let Some(results) =
            folder.canonicalize().ok().and_then(|run| Some(run.parent()?.parent()?.to_owned()))
        else {
            bail!(
                "{} is not in a folder of results; write the run into one with --results, or leave out --web",
                folder.display()
            );
        };
        let mut child = Command::new(program)
            .arg("web")
            .arg(results)
            .args(["--listen", "127.0.0.1:0", "--until-stdin-ends", "--run"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the run first.
            .process_group(0)
            .spawn()
            .context("cannot start the page")?;
        let mut line = String::new();
        let stdout = child.stdout.take().expect("standard output is piped");
        BufReader::new(stdout).read_line(&mut line).context("cannot read the address of the page")?;
        let beside = Self(child);
        let Some(url) = line.trim().strip_prefix(WATCH_AT) else {
            bail!("the page could not be served, for the reason above; leave out --web to run without it")
        };
        print::note(&format!("{WATCH_AT}{url}"));
        open::open(url);
        Ok(beside)
    }

    /// The process that serves it.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // The end of its standard input is the sign to stop.
        drop(self.0.stdin.take());
        // It ends within two seconds, even with connected clients.
        let _ = self.0.wait();
    }
}
