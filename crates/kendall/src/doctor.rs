//! `kendall doctor`.

use std::env;
use std::process::ExitCode;

use clap::Args;

use kendall_digest::Engine;
use kendall_digest::gpu::{Gpu, Sums};
use kendall_lab::Offer;
use kendall_link::{BackEnd, LinkError};

use crate::{print, systems};

#[derive(Args)]
pub(crate) struct Options {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(options: &Options) -> anyhow::Result<ExitCode> {
    let mut offers = kendall_lab::inspect();
    offers.extend([search_engine(), card(), links()]);
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

/// What `serve reverse` would search with.
fn search_engine() -> Offer {
    let available: Vec<_> = Engine::available().map(Engine::name).collect();
    let (found, advice) = match systems::engine() {
        Ok(engine) => (format!("{engine}, of {}", available.join(", ")), None),
        Err(error) => (format!("none: {error}"), Some("unset the variable, and the fastest is taken".into())),
    };
    Offer { name: "digests", found, advice }
}

/// The graphics card that `serve reverse` would search on. That there is none is nothing amiss.
fn card() -> Offer {
    let found = match Gpu::find(Sums::default()) {
        Ok(card) => format!("{}, of which known answers were asked", card.name()),
        Err(absent) => format!("none: {absent}"),
    };
    Offer { name: "card", found, advice: None }
}

/// How links can be emulated here, found out by laying one each way.
fn links() -> Offer {
    let tried = env::current_exe().map(|program| kendall_link::probe(&program));
    let tried = match tried {
        Ok(tried) => tried,
        Err(error) => {
            let found = format!("not known: cannot find the program itself ({error})");
            return Offer { name: "link", found, advice: None };
        }
    };
    let words = |(back_end, result): &(BackEnd, Result<String, LinkError>)| match result {
        Ok(described) => format!("{}: {described}", back_end.name()),
        Err(error) => format!("{}: no, {error}", back_end.name()),
    };
    let found = tried.iter().map(words).collect::<Vec<_>>().join("; ");
    let none = tried.iter().all(|(_, result)| result.is_err());
    let advice = none.then(|| "emulate links with kendall link relay, which needs no right".to_owned());
    Offer { name: "link", found, advice }
}
