//! The site of `kendall web`: a list of runs, each run as it happens, its report and its files, and a comparison of any two.
//!
//! The site reads the files that runs write, the live state among them. So it can show a run that was started in any terminal,
//! and this program can be stopped and started at any time. It measures nothing: reports and comparisons are those of the
//! analysis, as on the command line.
//!
//! The site loads nothing from a network: scripts and styles are embedded. Each limit on what a client can request is documented
//! next to what it limits.

mod analysis;
mod children;
mod door;
mod error;
mod events;
mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod heavy;
mod id;
mod pages;
mod picture;
mod run;
mod runs;
mod server;
mod site;
mod watch;
mod what_if;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kendall_system::System;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch as channel;

use crate::analysis::Analysis;
use crate::door::{Door, LEAST_TOKEN, Readers};
use crate::id::{HERE, RunId};

pub use error::WebError;

/// The number of random bytes in a token.
const TOKEN_BYTES: usize = 24;

/// The settings of a site.
#[derive(Debug)]
pub struct Site {
    /// The folder that holds results.
    pub results: PathBuf,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The token, which browsers need to start and stop runs, and also to read where other machines can reach the address. If it
    /// is given here, they need it to read on any address. Without it, a random one is drawn.
    pub token: Option<String>,
    /// The program that resumes runs: `PROGRAM run --resume FOLDER`.
    pub program: PathBuf,
    /// The systems of the runs.
    pub systems: &'static [System],
}

/// The event that stops a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// SIGINT or SIGTERM.
    Signal,
    /// One of these signals, or the end of standard input: the site then does not outlive the program that started it.
    SignalOrEndOfInput,
}

/// A site that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    door: Door,
    site: Site,
    analysis: Analysis,
}

impl Server {
    /// Opens the socket of a site.
    ///
    /// # Errors
    /// Fails where the address is in use, where the folder holds no results, or where the token is too short.
    pub fn bind(mut site: Site) -> Result<Self, WebError> {
        let folder = site.results.clone();
        site.results =
            folder.canonicalize().map_err(|source| WebError::NoFolder { folder: folder.clone(), source })?;
        if site.results.join("manifest.json").is_file() {
            return Err(WebError::OneRun(folder));
        }
        std::fs::read_dir(&site.results).map_err(|source| WebError::NoFolder { folder, source })?;
        if site.token.as_ref().is_some_and(|token| !Door::is_token(token)) {
            return Err(WebError::Token { least: LEAST_TOKEN });
        }
        let failed = |source| WebError::Bind { address: site.listen, source };
        let listener = TcpListener::bind(site.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let is_open = site.token.is_none() && address.ip().is_loopback();
        let readers = if is_open { Readers::All } else { Readers::WithToken };
        let token = site.token.take().map_or_else(drawn_token, Ok)?;
        let analysis = Analysis::of(site.systems);
        let door = Door::new(address, token.clone(), readers);
        Ok(Self { listener, address, token, door, site, analysis })
    }

    /// The address of the list of runs, with the token.
    pub fn url(&self) -> String {
        self.at("/")
    }

    /// The address of the page of the run in a folder, if it is one of these results.
    pub fn run_url(&self, folder: &Path) -> Option<String> {
        let folder = folder.canonicalize().ok()?;
        let names: Vec<&str> = folder
            .strip_prefix(&self.site.results)
            .ok()?
            .iter()
            .map(|name| name.to_str())
            .collect::<Option<_>>()?;
        let id = match *names.as_slice() {
            [stamp] => RunId::new(HERE, stamp)?,
            [experiment, stamp] => RunId::new(experiment, stamp)?,
            _ => return None,
        };
        Some(self.at(&format!("/runs/{}/", id.address())))
    }

    fn at(&self, path: &str) -> String {
        // A browser cannot open the unspecified address.
        let mut to = self.address;
        if to.ip().is_unspecified() {
            to.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("http://{to}{path}?token={}", self.token)
    }

    /// Serves the site.
    ///
    /// # Errors
    /// Fails where the operating system refuses a resource.
    pub fn serve(self, until: Until) -> Result<(), WebError> {
        self.serve_until(async move {
            let told = async {
                if signalled().await.is_err() {
                    std::future::pending().await
                }
            };
            match until {
                Until::Signal => told.await,
                Until::SignalOrEndOfInput => tokio::select! { () = told => {}, () = end_of_input() => {} },
            }
        })
    }

    /// Serves the site until a future is ready.
    fn serve_until(self, stop: impl Future<Output = ()>) -> Result<(), WebError> {
        // One thread is enough for ten browsers, and leaves the other cores to measurements.
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(WebError::Runtime)?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(WebError::Runtime)?;
            let (leaving, left) = channel::channel(false);
            let pages = site::pages(self.site, self.analysis, self.door, left);
            server::serve(listener, pages, stop, leaving).await;
            Ok(())
        });
        // There is no need to wait for a report that is being written: it appears as a whole or not at all.
        runtime.shutdown_timeout(Duration::from_millis(100));
        served
    }
}

/// Waits for SIGINT or SIGTERM.
async fn signalled() -> std::io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
    Ok(())
}

/// Waits for the end of standard input, on a separate thread, which cannot be cancelled.
async fn end_of_input() {
    let (say, hear) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // An error counts as the end, too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = say.send(());
    });
    let _ = hear.await;
}

/// An unpredictable token.
fn drawn_token() -> Result<String, WebError> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| WebError::Chance(error.into()))?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
