//! Hostile command lines: every subcommand, every option, every argument.

use std::ffi::OsString;
use std::process;

use super::commands::{Base, CliOption, Subcommand, all};
use super::fixtures::Fixtures;
use super::judge::run;
use super::process::{Sink, Start};
use kendall_testbed::hostile::{Draw, campaign, value};

/// What is hostile in a case.
enum Spot<'c> {
    Option(&'c CliOption),
    Positional(usize),
    /// Nothing but how it is called: unknown options, doubled ones, outputs that fail.
    Call,
}

#[test]
fn no_command_line_makes_kendall_fail_badly() {
    let fixtures = Fixtures::new();
    let server = fixtures.hold();
    let subcommands = all(server.world());
    assert!(subcommands.len() > 40, "{} subcommands were read from the man pages", subcommands.len());
    let spots: Vec<(&Subcommand, Spot<'_>)> = subcommands.iter().flat_map(spots).collect();
    let [hold, pid] = [format!("hold://{}", server.address), process::id().to_string()];
    let replaced = [("{hold}", &*hold), ("{key}", &*fixtures.key), ("{pid}", &*pid)];
    campaign("command-line", spots.len(), |number, draw| {
        let (subcommand, spot) = &spots[number as usize % spots.len()];
        let base = subcommand.base(&replaced);
        let mut stdout = Sink::Kept;
        let arguments = match spot {
            Spot::Option(option) => with_option(subcommand, base, option, draw),
            Spot::Positional(place) => with_positional(subcommand, base, *place, draw),
            Spot::Call => called(subcommand, base, &mut stdout, draw),
        };
        let world = fixtures.world();
        let stdin = match draw.below(3) {
            0 => Vec::new(),
            1 => b"1,2\n{[\x00\xff".to_vec(),
            _ => draw.bytes(5000),
        };
        run(&Start { world: &world, arguments, stdin, stdout, goes_on: subcommand.goes_on() }).map(drop)
    });
    server.stop().unwrap();
}

fn spots(subcommand: &Subcommand) -> Vec<(&Subcommand, Spot<'_>)> {
    let options = subcommand.options.iter().map(Spot::Option);
    let positionals = (0..subcommand.positionals.len()).map(Spot::Positional);
    options.chain(positionals).chain([Spot::Call]).map(|spot| (subcommand, spot)).collect()
}

fn composed(subcommand: &Subcommand, base: Base, hostile: Vec<OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = subcommand.path.iter().map(OsString::from).collect();
    arguments.extend(base.options.into_iter().map(OsString::from));
    arguments.extend(hostile);
    arguments.extend(base.positionals.into_iter().map(OsString::from));
    if !base.trailing.is_empty() {
        arguments.push("--".into());
        arguments.extend(base.trailing.into_iter().map(OsString::from));
    }
    arguments
}

/// An option with a hostile value, as one word or as two, and sometimes another beside it.
fn with_option(
    subcommand: &Subcommand,
    mut base: Base,
    option: &CliOption,
    draw: &mut Draw,
) -> Vec<OsString> {
    let mut hostile = Vec::new();
    let mut chosen = vec![option];
    while draw.percent(20) && chosen.len() < 4 {
        chosen.push(&subcommand.options[draw.below(subcommand.options.len())]);
    }
    for CliOption { name, value: value_name } in chosen {
        let begins = format!("--{name}=");
        base.options.retain(|given| !given.starts_with(&begins));
        let Some(value_name) = value_name else {
            hostile.push(OsString::from(format!("--{name}")));
            continue;
        };
        // The name says more than NAME or TIME: --server, --deadline.
        let value = value(&format!("{value_name} {name}"), draw);
        if draw.percent(50) {
            let mut word = OsString::from(begins);
            word.push(value);
            hostile.push(word);
        } else {
            hostile.extend([OsString::from(format!("--{name}")), value]);
        }
    }
    composed(subcommand, base, hostile)
}

/// An argument with a hostile value.
fn with_positional(subcommand: &Subcommand, mut base: Base, place: usize, draw: &mut Draw) -> Vec<OsString> {
    let hostile = value(&subcommand.positionals[place], draw);
    // After `--`, so that a value such as -1 is not an option; a command behind it is left out.
    let mut positionals: Vec<OsString> = base.positionals.drain(..).map(OsString::from).collect();
    while positionals.len() <= place {
        positionals.push(value(&subcommand.positionals[positionals.len()], draw));
    }
    positionals[place] = hostile;
    let dashes = draw.percent(70);
    base.trailing.clear();
    let mut arguments = composed(subcommand, base, Vec::new());
    if dashes {
        arguments.push("--".into());
    }
    arguments.extend(positionals);
    arguments
}

/// A call that is odd without a hostile value.
fn called(subcommand: &Subcommand, base: Base, stdout: &mut Sink, draw: &mut Draw) -> Vec<OsString> {
    match draw.below(8) {
        0 | 1 => *stdout = Sink::Full,
        2 => *stdout = Sink::Closed,
        3 => return composed(subcommand, base, vec!["--no-such-option".into()]),
        4 => return composed(subcommand, base, vec![value("", draw)]),
        5 => {
            let twice: Vec<OsString> = base.options.iter().map(OsString::from).collect();
            return composed(subcommand, base, twice);
        }
        6 => return composed(subcommand, base, vec!["--json".into(), "--json".into()]),
        _ => return subcommand.path.iter().map(OsString::from).collect(),
    }
    composed(subcommand, base, Vec::new())
}
