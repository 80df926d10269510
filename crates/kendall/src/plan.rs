//! `kendall plan`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use kendall_report::picture;
use kendall_solvecli::{Figure, StationOptions};
use kendall_station::{Notation, Station};
use kendall_stats::number::{percent, significant, time};
use kendall_theory::{Basis, NoPlan, Plan, Target, plan as planned, sweep_plan};

use crate::systems::SYSTEMS;
use crate::{UNSTABLE, print};

/// The lengths of runs whose precision is shown.
const RUNS: [f64; 4] = [100.0, 1_000.0, 10_000.0, 100_000.0];

#[derive(Args)]
pub(crate) struct PlanOptions {
    /// The station in Kendall's notation, such as M/M/6, with the options below; or an experiment file, which ends in .toml
    #[arg(value_name = "STATION|EXPERIMENT")]
    what: String,

    #[command(flatten)]
    station: StationOptions,

    /// The wanted half-width of the 95 % interval of the mean response time, as a share of it: 5% or 0.05
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    precision: f64,

    #[command(flatten)]
    figure: Figure,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let (number, per) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(value) if (1e-6..1.0).contains(&(value / per)) => Ok(value / per),
        _ => Err("must be at least 0.0001 % and below 100 %, such as 5% or 0.05".into()),
    }
}

pub(crate) fn plan(options: &PlanOptions) -> anyhow::Result<ExitCode> {
    if Path::new(&options.what).extension().is_some_and(|extension| extension == "toml") {
        return experiment(&PathBuf::from(&options.what), options);
    }
    let notation: Notation =
        options.what.parse().with_context(|| format!("{:?} is not a station", options.what))?;
    let station = options.station.station(&notation)?;
    let plan = match planned(&station, options.precision) {
        Ok(plan) => plan,
        Err(why @ NoPlan::Unstable { .. }) => {
            print::note(&format!("kendall: {why}"));
            return Ok(ExitCode::from(UNSTABLE));
        }
        Err(why) => return Err(why.into()),
    };
    options.figure.draw(|| picture::planned(station.to_string(), &plan, &sweep_plan(&station, &plan)))?;
    if options.json {
        print::json(
            &serde_json::json!({ "station": station, "notation": station.to_string(), "plan": plan }),
        )?;
    } else {
        print::out(&(words(&station, &plan).join("\n") + "\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The plan in sentences.
fn words(station: &Station, plan: &Plan) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{station} at {} requests per second: utilisation {}",
            significant(plan.rate_per_s, 4),
            percent(plan.utilisation)
        ),
        format!("\n{:<24} {:>12} {:>18}  precision of a run of this many", "", "mean", requests_head(plan)),
        format!(
            "{:<24} {:>12} {:>18}  {}",
            "",
            "",
            "",
            RUNS.map(|n| format!("{:>9}", count(n))).join(" ").trim_end()
        ),
    ];
    let means = [("response time", Some(&plan.response)), ("waiting time", plan.waiting.as_ref())];
    lines.extend(means.into_iter().filter_map(|(name, target)| Some(row(name, target?))));
    lines.push(String::new());
    lines.extend(split(plan));
    lines.push(calibration(plan));
    lines.push(match plan.basis {
        Basis::Exact => "The variances are exact for runs much longer than that time.".to_owned(),
        Basis::Pilot { customers } => format!(
            "There is no exact variance for this station: simulations of {} customers estimate it to about 10 %.",
            count(customers as f64)
        ),
    });
    lines
}

fn requests_head(plan: &Plan) -> String {
    format!("requests for ± {}", percent(plan.precision))
}

fn row(name: &str, target: &Target) -> String {
    let half_width = |n: f64| format!("{:>9}", format!("± {}", percent(target.relative_half_width(n))));
    format!(
        "{name:<24} {:>12} {:>18}  {}",
        time(target.mean_s),
        count(target.requests),
        RUNS.map(half_width).join(" ").trim_end()
    )
}

/// Repeats and warm-up.
fn split(plan: &Plan) -> Vec<String> {
    let Plan { warmup, repeats, .. } = plan;
    let bias = warmup.bias_without.map_or_else(String::new, |bias| {
        format!(" Without it a repeat underestimates the mean by {}.", percent(bias))
    });
    vec![
        format!(
            "For the mean response time: {} repeats of {} requests, {} each at this rate and {} in all, warm-up included.",
            repeats.repeats,
            count(repeats.requests_each),
            time(repeats.seconds_each),
            time(repeats.seconds)
        ),
        format!(
            "Warm-up: leave out the first {} of each, {} requests. The bias of the empty start falls by a factor e every {} or sooner, \
             so at most {} of it is left.{bias}",
            time(warmup.time_s),
            count(warmup.requests),
            time(warmup.relaxation_s),
            percent(warmup.remaining)
        ),
    ]
}

fn calibration(plan: &Plan) -> String {
    let calibration = &plan.calibration;
    let needed = match calibration.samples {
        samples if samples < 2.0 => "measure one service time".to_owned(),
        samples => format!("measure {} independent service times", count(samples)),
    };
    format!(
        "To predict it with the same precision, the mean service time must be known to ± {}, because its error grows {}-fold: {needed}.",
        percent(calibration.precision),
        significant(calibration.amplification, 3)
    )
}

/// A number of requests, rounded up, with spaces between thousands.
fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.ceil());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What each combination of an experiment costs, and what it plans to spend.
fn experiment(file: &Path, options: &PlanOptions) -> anyhow::Result<ExitCode> {
    ensure!(!options.figure.is_asked(), "--figure draws the plan of a station, not of an experiment");
    let experiment = kendall_experiment::read(file, SYSTEMS)?;
    let costs = kendall_lab::costs(&experiment, options.precision, options.station.service_mean_s());
    if options.json {
        print::json(&costs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = vec![
        experiment.question.clone(),
        format!(
            "\n{:<40} {:>6} {:>12} {:>14} {:>22}",
            "",
            "ρ",
            "planned",
            "gives",
            requests_for(options.precision)
        ),
    ];
    for cost in &costs {
        lines.push(match &cost.needs {
            Ok(costs) => format!(
                "{:<40} {:>6} {:>12} {:>14} {:>22}",
                cost.place,
                significant(costs.utilisation, 2),
                costs.planned.map_or_else(|| "–".to_owned(), count),
                costs
                    .relative_half_width
                    .map_or_else(|| "–".to_owned(), |share| format!("± {}", percent(share))),
                count(costs.needed)
            ),
            Err(why) => format!("{:<40} {why}", cost.place),
        });
    }
    lines.push(String::new());
    lines.push(kendall_lab::COSTS_ASSUME.to_owned());
    print::out(&(lines.join("\n") + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn requests_for(precision: f64) -> String {
    format!("needed for ± {}", percent(precision))
}
