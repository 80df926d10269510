//! Predictions from single requests: the folder of a run, or those of recorded loads.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use kendall_analysis::{LowLoads, low_loads, recorded_loads};
use kendall_evidence::fit::Slo;
use kendall_prediction::{NoPrediction, Prediction, Predictor, Question};
use kendall_report::forecasted;
use kendall_station::{Discipline, Estimate};
use kendall_stats::number::{self, significant};
use serde::Serialize;

use super::PredictOptions;
use crate::options::{positive_time, seconds};
use crate::systems::SYSTEMS;
use crate::{UNSTABLE, print};

/// Conditions under which the server was not measured.
#[derive(Args)]
#[command(next_help_heading = "From the requests of a run or of recorded loads")]
pub(crate) struct OtherConditions {
    /// The length of the run that is predicted: short runs scatter more, so their intervals are wider
    #[arg(short, long, value_name = "DURATION", default_value = "1m", value_parser = positive_time)]
    duration: Duration,

    /// Predict for another order of service, such as processor-sharing
    #[arg(long, value_name = "DISCIPLINE")]
    discipline: Option<Discipline>,

    /// Predict for other shares of the classes, such as 'light 80%, heavy 20%'
    #[arg(long, value_name = "CLASS SHARE, …")]
    mix: Option<String>,

    /// Predict for a link on which every request takes this much longer, such as 20ms
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    more_delay: Option<f64>,

    /// Seed of the simulations
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Answers<'a> {
    left_out: &'a [String],
    doubts: &'a [String],
    /// The squared coefficient of variation of the gaps between arrivals, where these are no Poisson process.
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival_scv: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distribution: Option<Prediction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    highest_rate_per_s: Option<Estimate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    no_answer: Vec<String>,
}

/// Predicts from the requests of the folders that were named. `None` where no folder was named, or the folder has no open load to predict
/// from; a curve through means is then all there is.
pub(super) fn predict(options: &PredictOptions) -> anyhow::Result<Option<ExitCode>> {
    let Some(loads) = measured(options)? else { return Ok(None) };
    let Ok(observed) = &loads.observed else { return Ok(None) };
    let other = &options.other;
    let predictor = Predictor::new(observed, other.seed);
    let mut question = Question {
        servers: options.with_servers,
        discipline: other.discipline,
        mix: other.mix.as_deref().map(|text| mix(text, &loads.classes)).transpose()?,
        more_delay_s: other.more_delay.unwrap_or_default(),
        ..Question::at(options.rate.unwrap_or_default(), 0)
    };
    let rate_per_s =
        options.rate.map_or_else(|| Ok(predictor.capacity_per_s(&question)?.value), anyhow::Ok)?;
    question.requests = (rate_per_s * other.duration.as_secs_f64()) as u64;
    let (mut no_answer, mut is_overload) = (Vec::new(), false);
    let mut note = |why: NoPrediction| {
        is_overload |= matches!(why, NoPrediction::Overload { .. });
        no_answer.push(why.to_string());
    };
    let distribution = options.rate.and_then(|_| predictor.predict(&question).map_err(&mut note).ok());
    let highest_rate_per_s =
        options.slo.and_then(|slo| predictor.highest_rate(slo, &question).map_err(&mut note).ok());
    let answers = Answers {
        left_out: &loads.left_out,
        doubts: &loads.doubts,
        arrival_scv: predictor.arrival_scv(),
        distribution,
        highest_rate_per_s,
        no_answer,
    };
    if options.json {
        print::json(&answers)?;
    } else {
        print::out(&(lines(&answers, options.slo).join("\n") + "\n"))?;
    }
    Ok(Some(ExitCode::from(if is_overload { UNSTABLE } else { 0 })))
}

/// Reads the requests of the folders that were named; `None` for tables and outputs of other tools.
fn measured(options: &PredictOptions) -> anyhow::Result<Option<LowLoads>> {
    let paths: Vec<&Path> = options.measured.measured.iter().map(AsRef::as_ref).collect();
    if !paths.iter().all(|path| path.is_dir()) {
        return Ok(None);
    }
    let is_run = |path: &&Path| path.join("experiment.toml").exists();
    match paths.as_slice() {
        [run] if is_run(run) => {
            let mut groups = low_loads(run, SYSTEMS)?;
            if let Some(wanted) = &options.measured.group {
                groups.retain(|loads| loads.group == *wanted);
            }
            // The curve through means reports which groups there are.
            Ok((groups.len() == 1).then(|| groups.remove(0)))
        }
        records => {
            ensure!(
                !records.iter().any(is_run),
                "name one run, or the folders of recorded loads (kendall load --record), but not both"
            );
            let loads = recorded_loads(records, None).context("cannot predict from these folders")?;
            match loads.observed {
                Err(why) => bail!("cannot predict from these folders: {why}"),
                Ok(_) => Ok(Some(loads)),
            }
        }
    }
}

/// The shares of the classes, in the order of their numbers.
fn mix(text: &str, classes: &[String]) -> anyhow::Result<Vec<f64>> {
    let mut shares = vec![0.0; classes.len()];
    for part in text.split(',') {
        let fault = || format!("--mix {part:?} is not a class and its share; write 'light 80%, heavy 20%'");
        let (name, share) = part.trim().rsplit_once(' ').with_context(fault)?;
        let (number, scale) = share.strip_suffix('%').map_or((share, 1.0), |percent| (percent, 0.01));
        let share: f64 = number.parse().with_context(fault)?;
        ensure!(share >= 0.0 && share.is_finite(), fault());
        let Some(class) = classes.iter().position(|class| class == name.trim()) else {
            bail!(
                "--mix names the class {:?}, but the measured classes are {}",
                name.trim(),
                number::list(classes)
            );
        };
        shares[class] = share * scale;
    }
    ensure!(shares.iter().sum::<f64>() > 0.0, "--mix gives no class a share above 0; give at least one");
    Ok(shares)
}

fn lines(answers: &Answers<'_>, slo: Option<Slo>) -> Vec<String> {
    let mut lines: Vec<String> = answers.left_out.iter().map(|why| format!("Left out: {why}.")).collect();
    lines.extend(answers.arrival_scv.map(|scv| {
        format!(
            "Arrivals: as in the measured loads, whose gaps have a squared coefficient of variation of {} (a Poisson process: 1)",
            significant(scv, 2)
        )
    }));
    lines.extend(answers.distribution.iter().flat_map(distribution));
    lines.extend(
        answers
            .highest_rate_per_s
            .zip(slo)
            .map(|(rate, slo)| format!("{slo}: up to {} requests per second", forecasted::plain(rate))),
    );
    lines.extend(answers.doubts.iter().map(|doubt| format!("Doubt: {doubt}.")));
    lines.extend(answers.no_answer.iter().map(|why| format!("No answer: {why}.")));
    lines
}

fn distribution(found: &Prediction) -> Vec<String> {
    let row = |name: &str, value: String| format!("  {name:<24} {value}");
    let time = |estimate: Estimate| number::time_with_interval(estimate.value, estimate.interval);
    let requests = number::count(found.requests);
    let mut lines =
        vec![format!("At {}/s, in a run of {requests} requests", significant(found.rate_per_s, 4))];
    lines.push(row("response time, mean", time(found.mean_s)));
    for (p, value) in &found.quantiles {
        lines.push(row(&format!("response time, p{}", p * 100.0), time(*value)));
    }
    lines.push(row("capacity, 1/s", forecasted::plain(found.capacity_per_s)));
    lines.push(row("utilisation", print::share(found.utilisation)));
    lines.push(row("service time, mean", time(found.service_s)));
    lines.push(row("delay outside", time(found.delay_s)));
    let station = |allowed: &kendall_prediction::Allowed| {
        format!("{} ({})", allowed.station, number::percent(allowed.share))
    };
    let stations: Vec<String> =
        found.stations.iter().filter(|allowed| allowed.share >= 0.05).map(station).collect();
    lines.push(row("station", stations.join("; ")));
    if found.steady < 1.0 {
        lines.push(format!(
            "  With probability {} the rate exceeds the capacity.",
            number::percent(1.0 - found.steady)
        ));
    }
    lines.extend(found.advice.map(|advice| format!("  {advice}")));
    lines
}
