//! `kendall selfcheck`: the laboratory against synthetic servers whose law is known.

use std::env;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;

use anyhow::Context;
use clap::Args;
use kendall_experiment::LOAD;
use kendall_lab::{CaseResult, KnownStation, SeedResult, Selfcheck};
use kendall_stats::number::{percent, significant, time};
use kendall_system::{Parameter, Settings, System};

use crate::interrupt::ctrl_c;
use crate::options::positive_time;
use crate::systems::SYSTEMS;
use crate::{INTERRUPTED, print};

/// At least this share of the runs of a case must name the right station.
const NAMED: f64 = 0.95;
/// The range for the share of its 95 % intervals that cover the true mean, if there are enough intervals: of 100 correct ones the share
/// lies outside this range once in 60 times.
const COVERED: (f64, f64) = (0.90, 0.99);
const TELLING: usize = 100;

#[derive(Args)]
pub(crate) struct SelfcheckOptions {
    /// Runs of each station; the intervals are judged from 100 on
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// The seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Duration of each run
    #[arg(short, long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    duration: String,

    /// The warm-up of each
    #[arg(long, default_value = "800ms", value_parser = duration)]
    warmup: String,

    /// The mean service time
    #[arg(long, default_value = "2ms", value_parser = duration)]
    mean: String,

    /// Stations that are checked at the same time; a run uses little processor time [default: the number of processors]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<String, String> {
    positive_time(text).map(|_| text.to_owned())
}

/// A station, how it is served, and the rate at which it is loaded, as a share of what its servers can do.
struct Known {
    station: &'static str,
    server: &'static [(&'static str, &'static str)],
    load: f64,
}

/// The last one is loaded beyond what it can do: its room is then most of what decides.
const KNOWN: [Known; 4] = [
    Known { station: "M/M/1", server: &[], load: 0.7 },
    Known { station: "M/M/4", server: &[("workers", "4")], load: 0.7 },
    Known { station: "M/D/1", server: &[("service", "constant")], load: 0.7 },
    Known { station: "M/M/1/50", server: &[("room", "50")], load: 1.3 },
];

pub(crate) fn selfcheck(options: &SelfcheckOptions) -> anyhow::Result<ExitCode> {
    let system = SYSTEMS.iter().find(|system| system.name == "hold").expect("it is in the table");
    let cases = KNOWN.iter().map(|known| case(known, system, options)).collect::<anyhow::Result<Vec<_>>>()?;
    let folder = tempfile::tempdir().context("cannot make a folder for the records")?;
    let program = env::current_exe().context("cannot find the kendall program, to serve with")?;
    let check = Selfcheck {
        program: &program,
        system,
        folder: folder.path(),
        seeds: options.seeds,
        seed: options.seed,
        at_a_time: options.jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from)),
    };
    let cancel = ctrl_c()?;
    let found = check.run(&cases, &cancel, &|station, seed| {
        if !options.json {
            print::note(&line(station, seed));
        }
    })?;
    if options.json {
        print::json(&found)?;
    } else {
        print::out(&table(&found))?;
    }
    Ok(match (cancel.load(Ordering::Relaxed), found.iter().all(passes)) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

fn case(known: &Known, system: &System, options: &SelfcheckOptions) -> anyhow::Result<KnownStation> {
    let set = |settings: &mut Settings, of: &'static [Parameter], name: &str, text: &str| {
        let parameter = of.iter().find(|parameter| parameter.name == name).expect("a known parameter");
        let value = parameter.kind.read(text).map_err(|why| anyhow::anyhow!("{name} {why}"))?;
        settings.set(parameter.name, value);
        anyhow::Ok(())
    };
    let mut server = Settings::defaults(system.server);
    set(&mut server, system.server, "mean", &options.mean)?;
    for (name, text) in known.server {
        set(&mut server, system.server, name, text)?;
    }
    let workers = server.whole("workers").unwrap_or(1) as f64;
    let mean_s = server.time("mean").expect("it was set").as_secs_f64();
    let rate = (known.load * workers / mean_s).to_string();
    let mut load = Settings::defaults(LOAD);
    for (name, text) in [("rate", &rate), ("duration", &options.duration), ("warmup", &options.warmup)] {
        set(&mut load, LOAD, name, text)?;
    }
    Ok(KnownStation { station: known.station.parse()?, server, load })
}

fn line(station: &str, seed: &SeedResult) -> String {
    let interval = seed
        .interval_s
        .map_or_else(String::new, |(low_s, high_s)| format!(" ({} to {})", time(low_s), time(high_s)));
    let named = match (seed.right, seed.right_laws) {
        (true, true) => "is named".to_owned(),
        _ => format!("is taken for {}", seed.named),
    };
    let disturbed = if seed.disturbed { ", disturbed" } else { "" };
    format!(
        "{station} {named}; mean response {}{interval}, {} requests{disturbed}",
        time(seed.mean_s),
        seed.requests
    )
}

fn share(part: usize, of: usize) -> f64 {
    part as f64 / of.max(1) as f64
}

fn passes(case: &CaseResult) -> bool {
    let runs = case.seeds.len();
    let covered = share(case.covering(), runs);
    share(case.named_right(), runs) >= NAMED && (runs < TELLING || (COVERED.0..=COVERED.1).contains(&covered))
}

fn table(found: &[CaseResult]) -> String {
    let mut text = format!(
        "{:<10} {:>12} {:>12} {:>12} {:>10} {:>10} {:>6} {:>10} {:>10} {:>10}\n",
        "station",
        "named right",
        "laws, too",
        "covered",
        "disturbed",
        "service",
        "scv",
        "outside",
        "true mean",
        "mean"
    );
    for case in found {
        let runs = case.seeds.len();
        text += &format!(
            "{:<10} {:>12} {:>12} {:>12} {:>10} {:>10} {:>6} {:>10} {:>10} {:>10}\n",
            case.station,
            format!("{} of {runs}", case.named_right()),
            format!("{} of {runs}", case.laws_right()),
            format!("{} of {runs}", case.covering()),
            case.disturbed().to_string(),
            time(case.service_s),
            significant(case.service_scv, 2),
            time(case.delay_s),
            time(case.true_mean_s),
            time(case.mean_s),
        );
    }
    let runs = found.iter().map(|case| case.seeds.len()).min().unwrap_or(0);
    text += &match runs {
        TELLING.. => format!(
            "Required: the right station in {} of the runs, the true mean in {} to {} of the intervals.\n",
            percent(NAMED),
            percent(COVERED.0),
            percent(COVERED.1)
        ),
        _ => format!(
            "Required: the right station in {} of the runs. {runs} intervals are too few to judge; run with --seeds {TELLING}.\n",
            percent(NAMED)
        ),
    };
    text += "The true mean is that of the station with all service times that its server stamped, plus the mean delay outside it.\n";
    text
}
