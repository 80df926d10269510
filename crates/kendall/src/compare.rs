//! `kendall compare`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use kendall_analysis::Sides;
use kendall_evidence::compare::{Comparison, Terms, Verdict, compare as compared};
use kendall_evidence::expect;
use kendall_report::versus;

use crate::gate::Gate;
use crate::print;
use crate::systems::SYSTEMS;

#[derive(Args)]
pub(crate) struct Options {
    /// The sides, the first of which the others are compared with: folders of runs or of recorded loads, files with a number or a row for
    /// each run, or what wrk, oha, k6 and the like wrote; several of one side as NAME=PATH,PATH. With --by, the folder of one run
    #[arg(required = true, value_name = "[NAME=]PATH[,PATH…]")]
    sides: Vec<Side>,

    /// Compare the levels of this factor within one run, such as discipline; trials of one block are compared with each other
    #[arg(long, value_name = "FACTOR")]
    by: Option<String>,

    /// Compare this metric only (mean, p50, p90, p99, p99.9, throughput, CPU/request, errors, or a column of a file); may be
    /// given several times. The fewer, the fewer runs are needed
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,

    /// What difference does not matter
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    margin: f64,

    /// What difference of the share of errors does not matter, in percentage points
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = share)]
    error_margin: f64,

    /// Seed of the bootstrap
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    gate: Gate,

    /// Draw how each quantile of the response time is shifted, as an SVG file
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
}

impl std::str::FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A path may hold the sign, but then it is there.
        let (name, paths) = match text.split_once('=') {
            Some((name, paths)) if !name.contains('/') && !PathBuf::from(text).exists() => {
                (Some(name), paths)
            }
            _ => (None, text),
        };
        let paths: Vec<PathBuf> = paths.split(',').map(PathBuf::from).collect();
        if paths.iter().any(|path| path.as_os_str().is_empty()) || name == Some("") {
            return Err(format!("{text:?} is no side; write PATH, or NAME=PATH,PATH"));
        }
        let name = name.map_or_else(|| paths[0].display().to_string(), str::to_owned);
        Ok(Self { name, paths })
    }
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 0.01));
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&(value * scale)) => Ok(value * scale),
        _ => Err("must be a share such as 2% or 0.02".into()),
    }
}

pub(crate) fn compare(options: &Options) -> anyhow::Result<ExitCode> {
    let mut sides = read(options)?;
    choose(&mut sides, &options.metric)?;
    let terms = Terms { margin: options.margin, share_margin: options.error_margin, seed: options.seed };
    let comparison = compared(&sides.metrics, &sides.places, &terms);
    sides.doubts.iter().for_each(|doubt| print::note(&format!("Left out: {doubt}.")));
    if options.json {
        print::json(&serde_json::json!({ "comparison": comparison, "left_out": sides.doubts }))?;
    } else if options.markdown {
        print::out(&versus::markdown(&comparison, &terms))?;
    } else {
        print::out(&versus::text(&comparison, &terms))?;
    }
    if let Some(file) = &options.figure {
        let Some(picture) = versus::shift(&comparison) else {
            bail!(
                "there is no shift to draw: it takes six runs of each side with their requests, not only their numbers"
            );
        };
        kendall_files::write(file, picture.svg(kendall_report::picture::Style::Screen))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(ExitCode::from(options.gate.status(Some(worst(&comparison)), true)))
}

fn read(options: &Options) -> anyhow::Result<Sides> {
    let Some(factor) = &options.by else {
        let named: Vec<(String, Vec<PathBuf>)> =
            options.sides.iter().map(|side| (side.name.clone(), side.paths.clone())).collect();
        return Ok(kendall_analysis::sides(&named, SYSTEMS)?);
    };
    match options.sides.as_slice() {
        [Side { paths, .. }] if paths.len() == 1 => Ok(kendall_analysis::levels(&paths[0], factor, SYSTEMS)?),
        _ => bail!("--by compares within one run: name its folder, and no other"),
    }
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

/// The comparison as an expectation that no metric of any side is worse.
fn worst(comparison: &Comparison) -> expect::Verdict {
    let verdicts = || comparison.against.iter().flat_map(|against| &against.metrics).map(|one| one.verdict);
    let is_open = |verdict| matches!(verdict, Verdict::Undecided { .. } | Verdict::TooFewRuns { .. });
    if verdicts().any(|verdict| verdict == Verdict::Worse) {
        expect::Verdict::Failed
    } else if verdicts().any(is_open) {
        expect::Verdict::Undecided
    } else {
        expect::Verdict::Met
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
