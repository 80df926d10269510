//! The settings of a link as options, from the same table as in experiment files.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use kendall_linkmodel::{Fault, NAMES, Settings};

/// An emulated link, each way.
#[derive(Clone, Debug)]
pub(crate) struct LinkOptions {
    /// From the client to the server.
    pub(crate) up: Settings,
    /// From the server to the client.
    pub(crate) down: Settings,
}

impl LinkOptions {
    fn read(matches: &ArgMatches) -> Result<Self, Fault> {
        let mut both = Settings::default();
        for (name, _) in NAMES {
            if let Some(value) = matches.get_one::<String>(name) {
                both.set(name, value)?;
            }
        }
        let (mut up, mut down) = (both.clone(), both);
        for (way, settings) in [("up", &mut up), ("down", &mut down)] {
            if let Some(text) = matches.get_one::<String>(way) {
                settings.apply(text)?;
            }
            settings.check()?;
        }
        Ok(Self { up, down })
    }
}

/// What the value of a setting is, as help shows it.
fn value_name(setting: &str) -> &'static str {
    match setting {
        "delay" | "jitter" => "DURATION",
        "rate" => "RATE",
        "overhead" | "queue" | "wire" => "BYTES",
        "aqm" => "AQM",
        _ => "SHARE",
    }
}

impl Args for LinkOptions {
    fn augment_args(command: Command) -> Command {
        let setting = |(name, help): (&'static str, &str)| {
            // Judged here, so that the message names the option.
            let read = move |text: &str| Settings::default().set(name, text).map(|()| text.to_owned());
            let arg = Arg::new(name).long(name).value_name(value_name(name)).value_parser(read);
            arg.help(capital(help)).help_heading("Link, each way")
        };
        let way = |name: &'static str, help: &'static str| {
            let read = |text: &str| Settings::default().apply(text).map(|()| text.to_owned());
            let arg = Arg::new(name).long(name).value_name("SETTINGS").value_parser(read);
            arg.help(help).help_heading("Link, each way")
        };
        command.args(NAMES.map(setting)).args([
            way("up", "Settings that differ from client to server: 'rate=2mbit queue=32k'"),
            way("down", "Settings that differ from server to client: 'rate=50mbit aqm=fq-codel'"),
        ])
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LinkOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::read(matches)
            .map_err(|fault| clap::Error::raw(ErrorKind::ValueValidation, format!("{fault}\n")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn capital(help: &str) -> String {
    let mut letters = help.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
