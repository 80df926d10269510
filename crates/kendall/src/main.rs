//! The command line of kendall: parses, calls the libraries, prints. It has no other logic.

mod awake;
mod check;
mod compare;
mod console;
mod doctor;
mod export;
mod figures;
mod fit;
mod gate;
mod help;
mod input;
mod interrupt;
mod link;
mod load;
mod open;
mod options;
mod peak;
mod plan;
mod predict;
mod print;
mod probe;
mod push;
mod quiet;
mod record;
mod replay;
mod report;
mod run;
mod selfcheck;
mod serve;
mod subcommands;
mod systems;
mod target;
mod validate;
mod web;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use kendall_archive::Build;
use kendall_chatview::{Chat, chat};
use kendall_curvecli::{Curve, curve};
use kendall_solvecli::UNSTABLE;
use tracing_subscriber::filter::LevelFilter;

/// Exit status after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// Measure client-server systems: how long requests take, and how many per second a system sustains
///
/// kendall answers by queueing formula, by simulation and by measuring the real thing under load, and says which
/// assumption broke where they differ.
#[derive(Parser)]
#[command(version, long_version = format!("{} ({})", env!("CARGO_PKG_VERSION"), Build::here()))]
#[command(propagate_version = true, max_term_width = 100)]
struct Arguments {
    /// Log level on standard error: error, warn, info, debug or trace [default: warn, and info of servers for remote work]
    #[arg(long, global = true, value_name = "LEVEL", display_order = 1000)]
    log: Option<LevelFilter>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answer a station, a network or a named model by formula and by simulation:
    /// kendall solve M/M/6 --arrival-rate 20 --service-rate 4.2
    Solve(kendall_solvecli::Solve),
    /// Plan how many requests a wanted precision needs: kendall plan M/M/6 --arrival-rate 20 --service-rate 4.2
    Plan(plan::PlanOptions),
    /// Run an experiment: serve, load, record, model and report
    Run(run::RunOptions),
    /// Show runs in a browser: live runs, reports and comparisons; stop and resume runs
    Web(web::WebOptions),
    /// Print an experiment's results again and write its report.html anew
    Report(report::ReportOptions),
    /// Write a run in the formats of other tools: CSV, JSON, Parquet, HdrHistogram, OpenMetrics
    Export(export::ExportOptions),
    /// Find the station behind measured points: those of a run, a table, or outputs of other tools
    Fit(fit::FitOptions),
    /// Predict from measured points: kendall predict table.csv --rate 500 --slo 'p99<50ms'
    Predict(predict::PredictOptions),
    /// Check which assumptions hold in a run, or find contradictions in a table: kendall check table.csv
    Check(check::CheckOptions),
    /// Replay a run request by request through a station: kendall replay results/quickstart/INSTANT G/G/2/LIFO
    Replay(replay::ReplayOptions),
    /// Compare runs or servers: which is faster, and is the difference significant: kendall compare main=results/A branch=results/B
    Compare(compare::CompareOptions),
    /// Load a running server and print its response times
    Load(load::LoadOptions),
    /// Send shares of loads that other machines order: kendall agent --nats nats://10.0.0.1:4222 --allow 10.0.0.9:8080
    Agent(kendall_agents::AgentOptions),
    /// Watch a running process and find its bottleneck: CPU by thread, run queue, waits of threads, memory, files, connections
    Probe(probe::ProbeOptions),
    /// Emulate a network link: delay, rate, loss, queue
    #[command(subcommand)]
    Link(link::Link),
    /// Find the highest rate at which a running server meets an objective: kendall peak URL --slo 'p99<50ms'
    Peak(peak::PeakOptions),
    /// Check how right predictions are for a server: predict loads, then measure them: kendall validate URL
    Validate(validate::ValidateOptions),
    /// Serve one of the systems that kendall ships
    #[command(subcommand)]
    Serve(serve::Served),
    Worker(kendall_workercli::Worker),
    // `kendall NAME SUBCOMMAND`, by the rows of the systems.
    #[command(flatten)]
    OfSystem(subcommands::OfSystem),
    /// Encrypted connections over UDP (CurveCP): keys, servers, clients, with NaCl's tools on the other side if need be
    Curve(Curve),
    /// Talk with other users of a directory server (kendall serve chat), full-screen or from scripts
    Chat(Chat),
    /// Check kendall itself against synthetic servers with known distributions
    Selfcheck(selfcheck::SelfcheckOptions),
    /// Check what this machine offers for measuring, and what to fix
    Doctor(doctor::DoctorOptions),
    /// Print completions for a shell; put them where it looks for them
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write man pages of all subcommands: kendall man ~/.local/share/man/man1
    Man {
        /// The folder, which must exist
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let mut command = help::arranged(Arguments::command());
    let arguments = command
        .try_get_matches_from_mut(std::env::args_os())
        .and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches))
        .map_err(|error| error.format(&mut command))
        .unwrap_or_else(|error| without_odd_tips(error).exit());
    // A server that strangers may try to use says who did what.
    let usual = match &arguments.command {
        Command::Curve(curve) if curve.is_remote_server() => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    };
    tracing_subscriber::fmt().with_max_level(arguments.log.unwrap_or(usual)).with_writer(io::stderr).init();
    let result = match arguments.command {
        Command::Solve(options) => kendall_solvecli::solve(&options),
        Command::Plan(options) => plan::plan(&options),
        Command::Run(options) => run::run(&options),
        Command::Web(options) => web::web(&options),
        Command::Report(options) => report::report(&options),
        Command::Export(options) => export::export(&options),
        Command::Fit(options) => fit::fit(&options),
        Command::Predict(options) => predict::predict(&options),
        Command::Check(options) => check::check(&options),
        Command::Replay(options) => replay::replay(&options),
        Command::Compare(options) => compare::compare(&options),
        Command::Load(options) => load::load(&options),
        Command::Agent(options) => {
            interrupt::ctrl_c().and_then(|cancel| kendall_agents::agent(&options, systems::SYSTEMS, &cancel))
        }
        Command::Probe(options) => probe::probe(&options),
        Command::Link(link) => link::link(&link),
        Command::Peak(options) => peak::peak(&options),
        Command::Validate(options) => validate::validate(&options),
        Command::Serve(served) => serve::serve(served),
        Command::Worker(options) => kendall_workercli::worker(options),
        Command::OfSystem(command) => subcommands::run(&command),
        Command::Curve(command) => curve(command),
        Command::Chat(command) => chat(command),
        Command::Selfcheck(options) => selfcheck::selfcheck(&options),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::Completions { shell } => {
            // Into memory: clap panics where standard output takes nothing.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut help::arranged(Arguments::command()), "kendall", &mut script);
            print::write(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
        }
        Command::Man { directory } => {
            clap_mangen::generate_to(help::arranged(Arguments::command()), &directory)
                .with_context(|| format!("cannot write man pages to {}", directory.display()))
                .map(|()| ExitCode::SUCCESS)
        }
    };
    result.unwrap_or_else(|error| {
        print::note(&format!("kendall: {}", print::words(&error)));
        ExitCode::FAILURE
    })
}

/// An error of the command line without the tip to pass an unknown option as a value: no command here wants one.
fn without_odd_tips(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) {
        let tips = tips.iter().filter(|tip| !tip.to_string().contains("as a value, use '--")).cloned();
        let tips = ContextValue::StyledStrs(tips.collect());
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    fn every(command: &clap::Command, check: &mut impl FnMut(&str, &clap::Arg)) {
        command.get_arguments().for_each(|option| check(command.get_name(), option));
        command.get_subcommands().for_each(|below| every(below, check));
    }

    /// `KENDALL_DOCS=write cargo test --package kendall --bin kendall reference` writes it anew.
    #[test]
    fn the_reference_of_commands_is_that_of_the_program() {
        let page = kendall_book::reference(&help::arranged(Arguments::command()));
        kendall_book::refresh("docs/commands.md", &page).unwrap();
    }

    /// A word means the same in every command, and a length of measuring has one word.
    #[test]
    fn options_have_one_vocabulary() {
        let mut durations = Vec::new();
        every(&Arguments::command(), &mut |command, option| {
            let Some(long) = option.get_long() else { return };
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!["for", "time", "seconds"].contains(&long), "{command} --{long}");
            match long {
                "duration" => {
                    assert_eq!(option.get_short(), Some('d'), "{command}");
                    durations.push(command.to_owned());
                }
                "record" => assert!(help.to_lowercase().contains("new folder"), "{command}: {help}"),
                "servers" => {
                    let is_number = ["How many", "Number of"].iter().any(|start| help.starts_with(start));
                    assert!(is_number, "{command}: {help}");
                }
                "probe" => assert!(help.starts_with("Watch the server"), "{command}: {help}"),
                _ => {}
            }
        });
        for command in ["load", "peak", "probe", "selfcheck", "flows", "compete"] {
            assert!(durations.iter().any(|known| known == command), "{command} of {durations:?}");
        }
        // What scripts have still works.
        for former in ["peak x --slo mean<1s --probe 1s", "probe 1 --for 1s", "transport flows tcp --time 1s"]
        {
            let words = std::iter::once("kendall").chain(former.split(' '));
            assert!(Arguments::try_parse_from(words).is_ok(), "{former}");
        }
    }
}
