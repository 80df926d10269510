//! `kendall predict`: from the single requests of a run where there are some, otherwise from a curve through mean response times.

mod requests;

use std::process::ExitCode;

use clap::Args;
use kendall_evidence::fit::{Fit, Load, Question, Slo};
use kendall_report::{fitted, forecasted};

use crate::fit::{Measured, Read};
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
        let mut lines = fitted::best(fit.best());
        lines.push(String::new());
        lines.extend(prediction.forecast.iter().flat_map(forecasted::at));
        lines.extend(
            prediction.highest.iter().zip(&options.slo).map(|(highest, slo)| forecasted::most(highest, *slo)),
        );
        lines.extend(prediction.servers_needed.iter().map(forecasted::needed));
        lines.extend(prediction.no_answer.iter().map(|why| format!("No answer: {why}.")));
        print::out(&(lines.join("\n") + "\n"))?;
    }
    Ok(ExitCode::from(if prediction.is_overload() { UNSTABLE } else { 0 }))
}
