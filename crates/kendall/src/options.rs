//! Parameters of systems and loads as options of the command line, from the same tables as in experiment files.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches};
pub(crate) use kendall_stats::quantity::{rate, seconds};
use kendall_system::{Kind, Parameter, Settings, Value, read_time};

/// What a command line takes of a parameter, by position or as an option.
fn taken(parameter: &'static Parameter) -> Arg {
    let default = parameter.default.map_or_else(String::new, |default| format!(" [default: {default}]"));
    let read = move |text: &str| parameter.kind.read(text);
    Arg::new(parameter.name).value_parser(read).help(format!("{}{default}", sentence(parameter.help)))
}

/// An argument by position for each parameter. Each must be given.
pub(crate) fn arguments(parameters: &'static [Parameter]) -> impl Iterator<Item = Arg> {
    let by_position = |parameter| taken(parameter).value_name(parameter.name.to_uppercase()).required(true);
    parameters.iter().map(by_position)
}

/// An option for each parameter.
pub(crate) fn options(parameters: impl IntoIterator<Item = &'static Parameter>) -> impl Iterator<Item = Arg> {
    parameters.into_iter().map(|parameter| {
        let arg = taken(parameter).long(parameter.name).value_name(value_name(parameter));
        let arg = if parameter.name == "duration" { arg.short('d').alias("time") } else { arg };
        match parameter.kind {
            Kind::Lines(_) | Kind::Headers => arg.action(ArgAction::Append),
            Kind::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("on"),
            _ => arg,
        }
    })
}

/// What an option's value is, as help shows it: `<DURATION>`.
fn value_name(parameter: &Parameter) -> String {
    let name = match parameter.kind {
        Kind::Whole { .. } => "N",
        Kind::Number { .. } => "NUMBER",
        Kind::Time | Kind::TimeOr(_) => "DURATION",
        Kind::Rate => "RATE",
        Kind::Word(_) | Kind::Text(_) | Kind::Lines(_) => {
            return parameter.name.replace('-', "_").to_uppercase();
        }
        Kind::Headers => "HEADER",
        Kind::Body => "BODY",
        Kind::Url => "URL",
        Kind::File => "FILE",
        Kind::Switch => "ON|OFF",
    };
    name.to_owned()
}

/// The values that the options were given, and the defaults of the others.
pub(crate) fn settings(parameters: &'static [Parameter], matches: &ArgMatches) -> Settings {
    let mut settings = Settings::defaults(parameters);
    given(parameters, matches).iter().for_each(|(name, value)| settings.set(name, value.clone()));
    settings
}

/// The values that the options were given.
pub(crate) fn given(
    parameters: impl IntoIterator<Item = &'static Parameter>,
    matches: &ArgMatches,
) -> Settings {
    let mut settings = Settings::default();
    let parameters: Vec<&Parameter> = parameters.into_iter().collect();
    for parameter in &parameters {
        let values: Vec<&Value> = matches.get_many(parameter.name).unwrap_or_default().collect();
        match values.as_slice() {
            [] => {}
            [one] => settings.set(parameter.name, (*one).clone()),
            // Only lines are given more than once.
            lines => {
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                settings.set(parameter.name, Value::Word(lines.join("\n")));
            }
        }
    }
    // An option that marks a name as secret may stand behind the one with its value.
    settings.conceal(parameters);
    settings
}

/// With a capital, as the other options' help has it.
fn sentence(help: &str) -> String {
    let mut letters = help.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A time: 3, 3s or 100ms.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    read_time(text)
}

/// Reads a share such as 1% or 0.01.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 0.01));
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&(value * scale)) => Ok(value * scale),
        _ => Err("must be a share such as 1% or 0.01".into()),
    }
}

/// A time above 0.
pub(crate) fn positive_time(text: &str) -> Result<Duration, String> {
    time(text).and_then(|time| {
        if time.is_zero() { Err("must be greater than 0, for example 10s".into()) } else { Ok(time) }
    })
}

/// A loopback address with this port.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}
