//! `kendall compare`.

mod servers;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kendall_analysis::{Rounds, Sides};
use kendall_evidence::compare::{Compared, Comparison, ComparisonVerdict, Terms, compare as compared};
use kendall_evidence::expect::{self, Judged};
use kendall_report::versus;

use crate::gate::Gate;
use crate::systems::SYSTEMS;
use crate::{INTERRUPTED, print};
use servers::{Measuring, is_url};

#[derive(Args)]
pub(crate) struct CompareOptions {
    /// The sides to compare; the first is the baseline. Each is a URL of a server, which is measured at --rate; a folder of a run or of
    /// a recorded load; a file with a number or a row for each run; or an output of wrk, oha, k6 and similar tools. Give several of one
    /// side as NAME=PATH,PATH or NAME='new-*'. With --by, the folder of one run
    #[arg(required = true, value_name = "[NAME=]URL|PATH[,PATH…]")]
    sides: Vec<Side>,

    /// Compare the levels of this factor within one run, such as discipline; trials of one block are compared with each other
    #[arg(long, value_name = "FACTOR")]
    by: Option<String>,

    /// Compare this metric only (mean, p50, p90, p99, p99.9, throughput, CPU/request, errors, or a column of a file); may be
    /// given several times. The fewer, the fewer runs are needed
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,

    /// Treat differences up to this share as equivalent
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    margin: f64,

    /// Treat differences of the share of errors up to this many percentage points as equivalent
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = share)]
    error_margin: f64,

    /// Seed of the bootstrap, and of requests, arrivals and the order of servers that are measured
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    measuring: Measuring,

    #[command(flatten)]
    gate: Gate,

    /// Draw the shift of each quantile of the response time, as an SVG file
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,

    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A side as it is written.
#[derive(Clone)]
struct Side {
    name: String,
    paths: Vec<PathBuf>,
    /// The server, where it is one, which has no paths then.
    url: Option<String>,
}

impl std::str::FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let server =
            |name: &str, url: &str| Self { name: name.into(), paths: Vec::new(), url: Some(url.into()) };
        if is_url(text) {
            return Ok(server(text, text));
        }
        if let Some((name, url)) = text.split_once('=').filter(|(name, url)| !name.is_empty() && is_url(url))
        {
            return Ok(server(name, url));
        }
        // A path may hold the sign, but then it is there.
        let (name, paths) = match text.split_once('=') {
            Some((name, paths)) if !name.contains('/') && !PathBuf::from(text).exists() => {
                (Some(name), paths)
            }
            _ => (None, text),
        };
        let written: Vec<PathBuf> = paths.split(',').map(PathBuf::from).collect();
        if written.iter().any(|path| path.as_os_str().is_empty()) || name == Some("") {
            return Err(format!("{text:?} is not a side; write PATH, or NAME=PATH,PATH"));
        }
        let name = name.map_or_else(|| written[0].display().to_string(), str::to_owned);
        let mut paths = Vec::new();
        for path in written {
            paths.extend(expanded(path)?);
        }
        Ok(Self { name, paths, url: None })
    }
}

/// The paths that a pattern such as results/new-* stands for, where the shell has left it as it is.
fn expanded(path: PathBuf) -> Result<Vec<PathBuf>, String> {
    if path.exists() || !kendall_files::is_pattern(&path) {
        return Ok(vec![path]);
    }
    let found =
        kendall_files::expand(&path).map_err(|why| format!("cannot search for {}: {why}", path.display()))?;
    if found.is_empty() {
        return Err(format!(
            "there is no file or folder {}; * matches any characters of a name",
            path.display()
        ));
    }
    Ok(found)
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 0.01));
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&(value * scale)) => Ok(value * scale),
        _ => Err("must be a share such as 2% or 0.02".into()),
    }
}

pub(crate) fn compare(options: &CompareOptions) -> anyhow::Result<ExitCode> {
    let Some(Measured { mut sides, expected, kept_up }) = read(options)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    choose(&mut sides, &options.metric)?;
    let terms = Terms { margin: options.margin, share_margin: options.error_margin, seed: options.seed };
    let comparison = compared(&sides.metrics, &sides.places, &terms);
    options.show(&comparison, &terms, &sides, &expected)?;
    if let Some(file) = &options.figure {
        let Some(picture) = versus::shift(&comparison) else {
            bail!(
                "there is no shift to draw: it needs six runs of each side with single requests, not only summaries"
            );
        };
        kendall_files::write(file, picture.svg(kendall_report::picture::Style::Screen))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let all = expected.iter().flat_map(|(_, judged)| judged).map(|judged| judged.verdict);
    let verdict = all.fold(worst(&comparison, &options.metric), worse);
    Ok(ExitCode::from(options.gate.status(Some(verdict), kept_up)))
}

/// A server, and what was expected of it.
type Expected = (String, Vec<Judged>);

impl CompareOptions {
    fn are_servers(&self) -> bool {
        self.sides.iter().any(|side| side.url.is_some())
    }

    /// Prints what was found in the form that was asked for.
    fn show(
        &self,
        comparison: &Comparison,
        terms: &Terms,
        sides: &Sides,
        expected: &[Expected],
    ) -> anyhow::Result<()> {
        // Of files something is left out; of servers that were measured everything counts, and something may be doubted.
        let (key, heading) = if self.are_servers() { ("doubts", "Doubt") } else { ("left_out", "Left out") };
        let doubts = sides.doubts.iter().map(|doubt| doubt.trim_end_matches('.'));
        doubts.for_each(|doubt| print::note(&format!("{heading}: {doubt}.")));
        if self.json {
            let of_side = |(side, judged): &Expected| serde_json::json!({ "side": side, "judged": judged });
            let expectations: Vec<_> = expected.iter().map(of_side).collect();
            return print::json(
                &serde_json::json!({ "comparison": comparison, key: sides.doubts, "expectations": expectations }),
            );
        }
        let (text, lead) = match self.markdown {
            true => (versus::markdown(comparison, terms), "\n- "),
            false => (versus::text(comparison, terms), ""),
        };
        print::out(&(text + &print::letters(&sides.letters)))?;
        let names = versus::names(comparison);
        for (side, judged) in expected {
            let side = names.iter().find(|(_, full)| full == side).map_or(side, |(letter, _)| letter);
            let lines: String = judged.iter().map(|judged| format!("{lead}{side}: {judged}\n")).collect();
            print::out(&lines)?;
        }
        Ok(())
    }
}

/// What is compared, and what was expected of servers that were measured.
struct Measured {
    sides: Sides,
    expected: Vec<Expected>,
    kept_up: bool,
}

/// The sides, from their files or by measuring them; `None` after Ctrl-C.
fn read(options: &CompareOptions) -> anyhow::Result<Option<Measured>> {
    if options.are_servers() {
        if options.by.is_some() {
            bail!("--by compares within one run: give its folder, not a server");
        }
        let Some(mut found) = servers::measure(options)? else { return Ok(None) };
        if options.metric.is_empty() {
            found.only_measured();
        }
        let Rounds { sides, expected, kept_up, .. } = found;
        return Ok(Some(Measured { sides, expected, kept_up }));
    }
    options.measuring.refuse_for_files()?;
    let sides = match (&options.by, options.sides.as_slice()) {
        (None, sides) => {
            let named: Vec<(String, Vec<PathBuf>)> =
                sides.iter().map(|side| (side.name.clone(), side.paths.clone())).collect();
            kendall_analysis::sides(&named, SYSTEMS)?
        }
        (Some(factor), [Side { paths, .. }]) if paths.len() == 1 => {
            kendall_analysis::levels(&paths[0], factor, SYSTEMS)?
        }
        (Some(_), _) => bail!("--by compares within one run: give only its folder"),
    };
    Ok(Some(Measured { sides, expected: Vec::new(), kept_up: true }))
}

/// Leaves only the metrics that were asked for.
fn choose(sides: &mut Sides, wanted: &[String]) -> anyhow::Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut order = Vec::new();
    for name in wanted {
        let known = sides.metrics.iter().position(|metric| metric.name.eq_ignore_ascii_case(name));
        let names = || sides.metrics.iter().map(|metric| metric.name.as_str()).collect::<Vec<_>>().join(", ");
        order.push(known.with_context(|| format!("there is no metric {name:?}; there are {}", names()))?);
    }
    sides.metrics = order.iter().map(|&index| sides.metrics[index].clone()).collect();
    let runs = sides.places.iter_mut().flat_map(|place| &mut place.sides).flat_map(|side| &mut side.runs);
    for run in runs {
        run.values = order.iter().map(|&index| run.values[index]).collect();
    }
    Ok(())
}

/// The comparison as an expectation that no metric of any side is worse. A metric that a side lacks is undecided.
fn worst(comparison: &Comparison, wanted: &[String]) -> expect::ExpectationVerdict {
    let compared = || comparison.against.iter().flat_map(|against| &against.metrics);
    let is_open = |compared: &Compared| match compared.verdict {
        ComparisonVerdict::Undecided { .. } | ComparisonVerdict::TooFewRuns { .. } => true,
        ComparisonVerdict::NotMeasured => {
            !wanted.is_empty() || compared.medians.0.is_some() != compared.medians.1.is_some()
        }
        ComparisonVerdict::Better | ComparisonVerdict::Worse | ComparisonVerdict::Equivalent => false,
    };
    let is_told = |compared: &Compared| compared.verdict != ComparisonVerdict::NotMeasured;
    if compared().any(|compared| compared.verdict == ComparisonVerdict::Worse) {
        expect::ExpectationVerdict::Failed
    } else if compared().any(is_open) || !compared().any(is_told) {
        expect::ExpectationVerdict::Undecided
    } else {
        expect::ExpectationVerdict::Met
    }
}

/// The worse of two verdicts.
fn worse(one: expect::ExpectationVerdict, other: expect::ExpectationVerdict) -> expect::ExpectationVerdict {
    use expect::ExpectationVerdict::{Failed, Met, Undecided};
    match (one, other) {
        (Failed, _) | (_, Failed) => Failed,
        (Undecided, _) | (_, Undecided) => Undecided,
        (Met, Met) => Met,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_has_a_name_and_paths() {
        let side = |text: &str| text.parse::<Side>().map(|side| (side.name, side.paths.len()));
        assert_eq!(side("new=a,b"), Ok(("new".into(), 2)));
        assert_eq!(side("results/x"), Ok(("results/x".into(), 1)));
        assert_eq!(side("results/rate=20"), Ok(("results/rate=20".into(), 1)));
        assert!(side("=a").is_err() && side("a=").is_err() && side("a=b,,c").is_err());
    }

    #[test]
    fn a_margin_is_a_share() {
        assert_eq!((share("2%"), share("0.05")), (Ok(0.02), Ok(0.05)));
        assert!(share("200%").is_err() && share("-1%").is_err() && share("x").is_err());
    }
}
