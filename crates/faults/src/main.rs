//! `kendall-faults`: runs the campaign, with options as `--seed 7`, or `kendall-faults soak` a soak; see [`OPTIONS`].

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, thread};

use kendall_faults::campaign::{Campaign, read, run_case};
use kendall_faults::page::page;
use kendall_faults::soak;

/// What the program takes.
const OPTIONS: &str = "kendall-faults [--program KENDALL] [--seed N] [--cases N] [--only \"campaign N\"] [--systems \"A B\"] [--faults \"A B\"] \
                       [--jobs N] [--results FILE] [--page FILE]\n\
                       kendall-faults soak [--program KENDALL] [--for 1h] [--seed N] [--one-by-one] [SYSTEM...]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let ended = match arguments.split_first() {
        Some((first, rest)) if first == "case" => run_case(rest).map(|result| {
            println!("{result}");
            0
        }),
        Some((first, rest)) if first == soak::WORD => soak::run(rest),
        _ => campaign(&arguments),
    };
    match ended {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} failed");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("{why}\n{OPTIONS}");
            ExitCode::from(2)
        }
    }
}

/// Runs a campaign, and returns the number of cases that failed.
fn campaign(arguments: &[String]) -> Result<usize, String> {
    let mut to_page = None;
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let mut campaign = Campaign {
        program: own.with_file_name("kendall"),
        seed: 21,
        cases: 520,
        only: None,
        systems: Vec::new(),
        faults: Vec::new(),
        // A case mostly waits.
        jobs: 2 * thread::available_parallelism().map_or(1, usize::from),
        results: PathBuf::from("target/faults/results.jsonl"),
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        let names = || value.split_whitespace().map(str::to_owned).collect();
        match name.as_str() {
            "--program" => campaign.program = value.into(),
            "--seed" => campaign.seed = number()?,
            "--cases" => campaign.cases = number()?,
            "--only" => match value.strip_prefix("campaign ") {
                Some(number) => {
                    campaign.only = Some(number.parse().map_err(|_| format!("{value} is not a case"))?)
                }
                // A case of hostile input.
                None => return Ok(0),
            },
            "--systems" => campaign.systems = names(),
            "--faults" => campaign.faults = names(),
            "--jobs" => campaign.jobs = number()?.max(1) as usize,
            "--results" => campaign.results = value.into(),
            "--page" => to_page = Some(value),
            _ => return Err(format!("{name} is not an option")),
        }
    }
    campaign.program = campaign.program.canonicalize().map_err(|error| {
        format!("{}: {error}; run cargo build --package kendall", campaign.program.display())
    })?;
    let to_text = |error: std::io::Error| error.to_string();
    let failed = campaign.run().map_err(to_text)?;
    if let Some(path) = to_page {
        let results = read(&campaign.results).map_err(to_text)?;
        fs::write(path, page(&results, campaign.seed)).map_err(to_text)?;
    }
    Ok(failed)
}
