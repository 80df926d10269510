//! `kendall predict`: from the single requests of a run where there are some, otherwise from a curve through mean response times.

mod requests;

use std::process::ExitCode;

use clap::Args;
use kendall_evidence::fit::{Fit, Forecast, Highest, Load, Question, Slo};
use kendall_station::Estimate;
use kendall_stats::number;

use crate::fit::{self, Measured, Read};
use crate::options::{rate, seconds};
use crate::{UNSTABLE, print};

#[derive(Args)]
pub(crate) struct PredictOptions {
    #[command(flatten)]
    measured: Measured,

    /// Predict for this rate: 100, 100/s, 2k or 600/min
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "users")]
    rate: Option<f64>,

    /// Predict for this number of users
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    users: Option<u32>,

    /// Mean think time of the users, such as 3, 3s or 100ms; as measured if not given
    #[arg(long, value_name = "DURATION", value_parser = seconds, requires = "users")]
    think_time: Option<f64>,

    /// Predict for this number of servers, instead of the measured one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    with_servers: Option<u32>,

    /// Find the highest load that meets an objective, such as 'p99<50ms' or 'mean<0.2s'; with --rate, also how many
    /// servers that rate needs
    #[arg(long, value_name = "OBJECTIVE", required_unless_present_any = ["rate", "users"])]
    slo: Option<Slo>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    other: requests::OtherConditions,
}

impl PredictOptions {
    /// The load to predict for; users think for as long as those that were measured, where no other time is given.
    fn load(&self, fit: &Fit) -> Option<Load> {
        let think_s = self.think_time.or_else(|| fit.measured_think_s()).unwrap_or(0.0);
        let open = self.rate.map(|rate_per_s| Load::Open { rate_per_s });
        open.or_else(|| self.users.map(|users| Load::Closed { users, think_s }))
    }
}

pub(crate) fn predict(options: &PredictOptions) -> anyhow::Result<ExitCode> {
    if options.users.is_none()
        && let Some(status) = requests::predict(options)?
    {
        return Ok(status);
    }
    let Read { fit, warnings, .. } = options.measured.fit()?;
    let fit = fit?;
    let prediction =
        fit.predict(&Question { load: options.load(&fit), servers: options.with_servers, slo: options.slo });
    if options.json {
        print::json(
            &serde_json::json!({ "warnings": warnings, "best": fit.best(), "prediction": prediction }),
        )?;
    } else {
        let mut lines = fit::best(fit.best());
        lines.push(String::new());
        lines.extend(prediction.forecast.iter().flat_map(forecast));
        lines.extend(prediction.highest.iter().zip(&options.slo).map(|(highest, slo)| most(highest, *slo)));
        lines.extend(prediction.servers_needed.iter().map(needed));
        lines.extend(prediction.no_answer.iter().map(|why| format!("No answer: {why}.")));
        print::out(&(lines.join("\n") + "\n"))?;
    }
    Ok(ExitCode::from(if prediction.is_overload() { UNSTABLE } else { 0 }))
}

fn forecast(forecast: &Forecast) -> Vec<String> {
    let row = |name: &str, value: String| format!("  {name:<24} {value}");
    let mut lines = vec![format!("At {}", forecast.load)];
    lines.push(row("response time, mean", time(forecast.response.mean_s)));
    for (name, p) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)] {
        lines.extend(
            forecast.response.quantile(p).map(|value| row(&format!("response time, {name}"), time(value))),
        );
    }
    lines.push(row("throughput, 1/s", plain(forecast.throughput_per_s)));
    lines.extend(forecast.utilisation.map(|rho| row("utilisation", print::share(rho))));
    if let Some(why) = &forecast.no_quantiles {
        lines.push(row("quantiles", format!("none: {why}")));
    }
    lines.extend(forecast.amplification.filter(|factor| *factor >= 2.0).map(|factor| {
        format!(
            "  An error of 1 % in the service time changes the waiting time by about {} % here: 1/(1 − utilisation).",
            number::significant(factor, 2)
        )
    }));
    if forecast.steady < 1.0 {
        let share = number::percent(1.0 - forecast.steady);
        lines.push(format!(
            "  In {share} of the fits that the points allow, this load exceeds the station's capacity."
        ));
    }
    lines
}

fn most(highest: &Highest, slo: Slo) -> String {
    let (load, unit) = match highest.at {
        Load::Open { .. } => (plain(highest.load), "requests per second"),
        Load::Closed { .. } => (whole(highest.load), "users"),
    };
    let rho = highest
        .utilisation
        .map_or(String::new(), |rho| format!(", at a utilisation of {}", number::percent(rho)));
    format!("{slo}: up to {load} {unit}{rho}")
}

fn needed(servers: &Estimate) -> String {
    format!("servers needed for that: {}", whole(*servers))
}

/// A time with its interval, whose upper end may lie beyond saturation.
fn time(time_s: Estimate) -> String {
    match time_s.interval {
        Some((low, high)) if high.is_infinite() => {
            format!("{} [from {}, no upper end]", number::time(time_s.value), number::time(low))
        }
        interval => number::time_with_interval(time_s.value, interval),
    }
}

/// A count with those that may be it.
fn whole(count: Estimate) -> String {
    match count.interval {
        Some((low, high)) if high.is_infinite() => format!("{} ({low} or more)", count.value),
        Some((low, high)) if low != high => format!("{} ({low} to {high})", count.value),
        _ => count.value.to_string(),
    }
}

fn plain(estimate: Estimate) -> String {
    let show = |value| number::significant(value, 4);
    match estimate.interval {
        Some((low, high)) if low != high => {
            format!("{} [{}, {}]", show(estimate.value), show(low), show(high))
        }
        _ => show(estimate.value),
    }
}
