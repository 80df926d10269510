//! The subcommands of systems, from their rows: `kendall NAME SUBCOMMAND`.

use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use kendall_analysis::traffic::flows;
use kendall_report::write_flows_page;
use kendall_system::{Caller, Settings, Subcommand, SubcommandEnd, System};

use crate::console::Terminal;
use crate::gate::NOT_AS_EXPECTED;
use crate::options::{arguments, given, options, settings};
use crate::print::note;
use crate::systems::SYSTEMS;

/// A subcommand of a system, and its settings.
pub(crate) struct OfSystem {
    subcommand: &'static Subcommand,
    settings: Settings,
}

/// The systems that have subcommands.
fn offering() -> impl Iterator<Item = &'static System> {
    SYSTEMS.iter().filter(|system| !system.subcommands.all.is_empty())
}

/// The command of a system, with all its subcommands.
fn command(system: &'static System) -> Command {
    let is_hidden = system.subcommands.all.iter().all(|one| one.caller == Caller::Server);
    let own = system.subcommands.all.iter().map(|one| {
        let taken: Vec<Arg> = arguments(one.arguments).chain(options(one.options)).collect();
        Command::new(one.name).about(one.about).args(taken).hide(one.caller == Caller::Server)
    });
    Command::new(system.name)
        .about(system.subcommands.about)
        .hide(is_hidden)
        .subcommands(own)
        .subcommand_required(true)
        .arg_required_else_help(true)
}

impl clap::Subcommand for OfSystem {
    fn augment_subcommands(all: Command) -> Command {
        all.subcommands(offering().map(command))
    }

    fn augment_subcommands_for_update(all: Command) -> Command {
        Self::augment_subcommands(all)
    }

    fn has_subcommand(name: &str) -> bool {
        offering().any(|system| system.name == name)
    }
}

impl FromArgMatches for OfSystem {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
        let (system, matches) = matches.subcommand().ok_or_else(missing)?;
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let mut own = offering().filter(|row| row.name == system).flat_map(|row| row.subcommands.all);
        let subcommand = own.find(|one| one.name == name).ok_or_else(missing)?;
        let mut settings = settings(subcommand.options, matches);
        let by_position = given(subcommand.arguments, matches);
        by_position.iter().for_each(|(name, value)| settings.set(name, value.clone()));
        Ok(Self { subcommand, settings })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn run(OfSystem { subcommand, settings }: &OfSystem) -> anyhow::Result<ExitCode> {
    let ended = (subcommand.run)(settings, &mut Terminal::new()).map_err(anyhow::Error::msg)?;
    if let Some(folder) = settings.word("record").map(Path::new)
        && let Some(found) = flows::read(folder)?
    {
        note(&format!("Report: {}", write_flows_page(&found, folder)?.display()));
    }
    match ended {
        SubcommandEnd::Done => Ok(ExitCode::SUCCESS),
        SubcommandEnd::NotAsExpected(sentence) => {
            note(&format!("kendall: {sentence}"));
            Ok(NOT_AS_EXPECTED.into())
        }
    }
}
