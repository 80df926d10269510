//! Parameters of systems and loads as options of the command line, from the same tables as in experiment files.

use std::net::SocketAddr;

use clap::{Arg, ArgMatches};
use kendall_lab::{Parameter, Settings, Value};

/// An option for each parameter.
pub(crate) fn options(parameters: &'static [Parameter]) -> impl Iterator<Item = Arg> {
    parameters.iter().map(|parameter| {
        let default = parameter.default.map_or_else(String::new, |default| format!(" [default: {default}]"));
        let read = move |text: &str| parameter.kind.read(text);
        let arg = Arg::new(parameter.name).long(parameter.name).value_name("VALUE").value_parser(read);
        arg.help(format!("{}{default}", sentence(parameter.help)))
    })
}

/// The values that the options were given, and the defaults of the others.
pub(crate) fn settings(parameters: &'static [Parameter], matches: &ArgMatches) -> Settings {
    let mut settings = Settings::defaults(parameters);
    for parameter in parameters {
        if let Some(value) = matches.get_one::<Value>(parameter.name) {
            settings.set(parameter.name, value.clone());
        }
    }
    settings
}

/// With a capital, as the other options' help has it.
fn sentence(help: &str) -> String {
    let mut letters = help.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A loopback address with this port.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}
