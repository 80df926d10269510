//! Sides of a comparison that are servers: they are measured first.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use kendall_analysis::{Rounds, rounds};
use kendall_evidence::expect::Expectation;
use kendall_experiment::{LOAD, Load};
use kendall_lab::{Contender, Contest, LoadedServers};
use kendall_stats::number::{counted, significant, time};
use kendall_system::{Settings, Value};

use super::CompareOptions;
use crate::interrupt::ctrl_c;
use crate::options::{positive_time, rate};
use crate::record::new_folder;
use crate::target::{Target, TargetSettings};
use crate::{load, print, quiet};

/// The load of each server, if the sides are URLs.
#[derive(Args)]
#[command(next_help_heading = "Options for URLs: kendall measures the servers")]
pub(super) struct Measuring {
    /// The rate of each server's open load, the same requests at the same instants: 100, 100/s, 2k or 600/min
    #[arg(short, long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,

    /// Measure each server this long, over all rounds [default: 10s, or as long as a p99 in each round needs, up to 60s]
    #[arg(short, long, value_name = "DURATION", value_parser = positive_time)]
    duration: Option<Duration>,

    /// Rounds; each measures every server once, in random order
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,

    /// At most this many connections
    #[arg(short, long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    connections: u32,

    /// Give up a request after this time
    #[arg(short, long, value_name = "DURATION", default_value = "30s", value_parser = positive_time)]
    timeout: Duration,

    /// Expect this of each server, over all its rounds: 'p99<50ms', 'errors<1%'; may be given several times
    #[arg(long, value_name = "EXPECTATION")]
    expect: Vec<Expectation>,

    /// Keep each load in a separate folder in this new folder, which kendall compare A='DIR/A-*' B='DIR/B-*' compares again
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    #[command(flatten)]
    asked: TargetSettings,
}

/// How long each server is measured if nothing else is said: at least, and at most.
const LENGTH_S: (f64, f64) = (10.0, 60.0);
/// This number of requests in a round has a p99, with a margin for random arrivals.
const FOR_P99: f64 = 350.0;
/// The share of a round that warms its connections up, and is left out.
const WARM_UP: f64 = 0.2;

/// Whether a side is written as a URL, `http://HOST/PATH` or `HOST:PORT`.
pub(super) fn is_url(text: &str) -> bool {
    let is_scheme =
        |scheme: &str| scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '+');
    if let Some((scheme, _)) = text.split_once("://") {
        return is_scheme(scheme);
    }
    let place = text.split(['/', '?']).next().unwrap_or_default();
    let Some((host, port)) = place.rsplit_once(':') else { return false };
    let is_host =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '[' | ']' | ':');
    !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok() && !Path::new(text).exists()
}

impl Measuring {
    /// Fails where an option is given that means nothing to files.
    pub(super) fn refuse_for_files(&self) -> anyhow::Result<()> {
        let given = [
            ("rate", self.rate.is_some()),
            ("duration", self.duration.is_some()),
            ("expect", !self.expect.is_empty()),
            ("record", self.record.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) => bail!(
                "--{name} applies only to servers: give each side as a URL, such as http://localhost:8080/"
            ),
            None => Ok(()),
        }
    }

    /// The load of one round.
    fn load(&self) -> anyhow::Result<(Load, Settings)> {
        let Some(rate) = self.rate else {
            bail!(
                "servers are compared at one rate: add --rate, such as --rate 100; kendall peak URL finds how much a server sustains"
            );
        };
        let for_p99_s = FOR_P99 * f64::from(self.rounds) / rate;
        let usual = Duration::from_secs_f64(for_p99_s.clamp(LENGTH_S.0, LENGTH_S.1));
        let length = self.duration.unwrap_or(usual) / self.rounds;
        let warm_up = length.mul_f64(WARM_UP).max(Duration::from_millis(1));
        let mut settings = Settings::defaults(LOAD);
        settings.set("rate", Value::Number(rate));
        settings.set("duration", Value::Time(length + warm_up));
        settings.set("warmup", Value::Time(warm_up));
        settings.set("connections", Value::Whole(self.connections.into()));
        settings.set("timeout", Value::Time(self.timeout));
        let load = Load::new(&settings, &env::current_dir()?)
            .map_err(|(name, why)| anyhow::anyhow!("--{name}: {why}"))?;
        ensure!(
            rate * length.as_secs_f64() >= 1.0,
            "a round of {} at {}/s contains no request: give a longer --duration or fewer --rounds",
            Value::Time(length),
            significant(rate, 3)
        );
        Ok((load, settings))
    }
}

/// A server with its name, and the processes that are its.
struct Named {
    name: String,
    target: Target,
    servers: LoadedServers,
}

/// Measures the servers that are the sides; `None` after Ctrl-C.
pub(super) fn measure(options: &CompareOptions) -> anyhow::Result<Option<Rounds>> {
    let own = &options.measuring;
    let (load, settings) = own.load()?;
    let all = options.named()?;
    let makers: Vec<_> = all
        .iter()
        .map(|Named { target, .. }| |seed: u64| (target.system.load)(target.address, &target.workload, seed))
        .collect();
    let contenders: Vec<Contender<'_>> = all
        .iter()
        .zip(&makers)
        .map(|(Named { name, target, servers }, workload)| {
            let again = load::again(&target.shown, &own.asked, &settings);
            Contender { name, target: &target.shown, again, workload, servers }
        })
        .collect();
    let temporary = match &own.record {
        Some(folder) => new_folder(folder).map(|()| None)?,
        None => Some(tempfile::tempdir().context("cannot make a folder for the loads")?),
    };
    let folder = temporary.as_ref().map(tempfile::TempDir::path).or(own.record.as_deref());
    let contest = Contest {
        contenders: &contenders,
        load: &load,
        rounds: own.rounds,
        seed: options.seed,
        folder: folder.expect("it is one or the other"),
    };
    let cancel = ctrl_c()?;
    if !options.json {
        all.iter().take(1).for_each(|named| quiet::warn(&named.servers));
    }
    own.announce(all.len(), &load);
    let mut tell = |round: u32| {
        let is_shown = round == 1 || round.is_multiple_of(own.rounds.div_ceil(10));
        if !options.json && own.rounds > 1 && is_shown {
            print::note(&format!("  round {round} of {}", own.rounds));
        }
    };
    let Some(folders) = contest.run(&mut tell, &cancel)? else { return Ok(None) };
    let records: Vec<(String, Vec<PathBuf>)> =
        all.iter().map(|named| named.name.clone()).zip(folders).collect();
    let found = rounds(&records, &own.expect)?;
    if let Some(silent) = found.silent.first() {
        bail!(
            "{silent} answered no request, so there is nothing to compare: check the URL; kendall load tests a single server"
        );
    }
    Ok(Some(found))
}

impl Measuring {
    /// Says what is about to happen, and how long it takes.
    fn announce(&self, servers: usize, load: &Load) {
        let length_s = load.duration.unwrap_or_default().as_secs_f64();
        print::note(&format!(
            "Measuring {} at {}/s in {} of {} each, in random order: about {:.0} s",
            counted(servers as u64, "server"),
            significant(self.rate.unwrap_or_default(), 4),
            counted(self.rounds.into(), "round"),
            time(length_s),
            (f64::from(self.rounds) + 1.0) * length_s * servers as f64
        ));
    }
}

impl CompareOptions {
    /// The servers by their names, no two of which are the same.
    fn named(&self) -> anyhow::Result<Vec<Named>> {
        let mut all = Vec::new();
        for side in &self.sides {
            let url = side.url.as_deref().with_context(|| {
                format!(
                    "{:?} is not a URL, and a server can only be compared with a server; to compare with a file, record loads of each \
                    server with kendall load --record",
                    side.name
                )
            })?;
            let target = Target::read(url, &self.measuring.asked)?;
            let name = if side.name == url { target.shown.clone() } else { side.name.clone() };
            let servers = quiet::servers(target.address);
            all.push(Named { name, target, servers });
        }
        ensure!(
            all.len() > 1,
            "at least two sides are needed; name another server, or measure one with kendall load"
        );
        let names: Vec<String> = all.iter().map(|named| named.name.clone()).collect();
        for (index, Named { name, .. }) in all.iter_mut().enumerate() {
            if names.iter().filter(|other| *other == name).count() > 1 {
                *name = format!("{} ({name})", index + 1);
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::is_url;

    #[test]
    fn urls_are_told_from_paths_and_names() {
        for url in [
            "http://localhost:8080/",
            "reverse://127.0.0.1:5003?a=b",
            "localhost:8080",
            "[::1]:80/x",
            "10.0.0.1:80?a=b",
        ] {
            assert!(is_url(url), "{url}");
        }
        for other in [
            "results/x",
            "a.csv",
            "new=http://localhost/",
            "new=localhost:80",
            "C:x",
            "a:b:c",
            "localhost",
            "x=1:2",
        ] {
            assert!(!is_url(other), "{other}");
        }
    }
}
