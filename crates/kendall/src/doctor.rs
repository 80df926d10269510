//! `kendall doctor`.

use std::process::ExitCode;

use clap::Args;

use crate::print;

#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(options: &Options) -> anyhow::Result<ExitCode> {
    let offers = kendall_lab::inspect();
    if options.json {
        print::json(&offers)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = String::new();
    for offer in &offers {
        let mark = if offer.advice.is_some() { "!" } else { " " };
        lines += &format!("{mark} {:<12} {}\n", offer.name, offer.found);
        if let Some(advice) = &offer.advice {
            lines += &format!("  {:<12} {advice}\n", "");
        }
    }
    print::out(&lines)?;
    Ok(ExitCode::SUCCESS)
}
