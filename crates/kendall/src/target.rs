//! Targets as URLs: `reverse://127.0.0.1:5003?difficulty=300000&repeat-percent=20`, or `http://127.0.0.1:8080/path` as it
//! is, with options for what to ask there.

use std::collections::HashSet;
use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use kendall_system::{Home, Kind, Parameter, Settings, System, URL, Value, conceal_url, nearest, quoted};
use url::Url;

use crate::options::{given, options};
use crate::systems::SYSTEMS;

/// A server to load, and what to ask it.
#[derive(Debug)]
pub(crate) struct Target {
    /// The target's URL without secrets.
    pub(crate) shown: String,
    pub(crate) system: &'static System,
    pub(crate) address: SocketAddr,
    pub(crate) workload: Settings,
}

/// What to ask where a target is a plain URL: the parameters of such workloads as options.
#[derive(Clone, Debug, Default)]
pub(crate) struct TargetSettings(Settings);

/// The parameters that URLs of this system leave to options.
fn asked_of(system: &'static System) -> impl Iterator<Item = &'static Parameter> {
    let parameters = match system.home {
        Home::Here => &[],
        Home::Anywhere { .. } => system.workload,
    };
    parameters.iter().filter(|parameter| parameter.name != URL)
}

impl Args for TargetSettings {
    fn augment_args(command: Command) -> Command {
        let asked = options(SYSTEMS.iter().flat_map(asked_of));
        command.args(asked.map(|option| option.help_heading("HTTP requests")))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TargetSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(SYSTEMS.iter().flat_map(asked_of), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl TargetSettings {
    /// The options as they are written for a shell, each after a blank.
    pub(crate) fn written(&self) -> String {
        let kind =
            |name| SYSTEMS.iter().flat_map(asked_of).find(|parameter| parameter.name == name).map(|p| p.kind);
        let option = |(name, value): (&'static str, &Value)| match kind(name) {
            Some(Kind::Switch) => format!(" --{name}={value}"),
            Some(Kind::Lines(_) | Kind::Headers) => {
                value.to_string().lines().map(|line| format!(" --{name} {}", quoted(line))).collect()
            }
            _ => format!(" --{name} {}", quoted(&value.to_string())),
        };
        self.0.iter().map(option).collect()
    }
}

impl Target {
    /// Reads a URL whose scheme names a system, and what the options say to ask there. Without a scheme it is one of HTTP.
    pub(crate) fn read(text: &str, asked: &TargetSettings) -> anyhow::Result<Self> {
        let text = &if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(text).with_context(|| {
            format!(
                "{:?} is not a target; write http://HOST:PORT/PATH, or SYSTEM://HOST:PORT?PARAMETER=VALUE, such as \
                 reverse://127.0.0.1:5003",
                conceal_url(text)
            )
        })?;
        let names = || SYSTEMS.iter().map(|system| system.name);
        let Some(system) = SYSTEMS.iter().find(|system| system.is_of_scheme(url.scheme())) else {
            bail!("unknown system {:?}; known are {}", url.scheme(), names().collect::<Vec<_>>().join(", "));
        };
        let foreign = |(name, _): &(&str, &Value)| asked_of(system).all(|parameter| parameter.name != *name);
        if let Some((name, _)) = asked.0.iter().find(foreign) {
            bail!(
                "--{name} does not apply to {}; give its parameters in the URL, as ?NAME=VALUE",
                system.name
            );
        }
        match system.home {
            Home::Here => Self::with_parameters(system, &url, text),
            Home::Anywhere { address, .. } => {
                let mut workload = Settings::defaults(system.workload);
                asked.0.iter().for_each(|(name, value)| workload.set(name, value.clone()));
                let shown = conceal_url(text);
                workload.set(URL, Value::Word(shown.clone()));
                Ok(Self { shown, system, address: address(text).map_err(anyhow::Error::msg)?, workload })
            }
        }
    }

    /// A URL whose query sets parameters of its workload.
    fn with_parameters(system: &'static System, url: &Url, text: &str) -> anyhow::Result<Self> {
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            bail!("{text:?} has no host; write {}://127.0.0.1:{}", system.name, system.default_port);
        };
        let port = url.port().unwrap_or(system.default_port);
        let addresses: Vec<SocketAddr> = (host.trim_matches(['[', ']']), port)
            .to_socket_addrs()
            .with_context(|| format!("cannot find the host {host:?}"))?
            .collect();
        // Of a name that has both, such as localhost, the address that servers listen on by default.
        let address = addresses.iter().find(|address| address.is_ipv4()).or_else(|| addresses.first());
        let address = *address.with_context(|| format!("the host {host:?} has no address"))?;
        let mut workload = Settings::defaults(system.workload);
        let mut seen = HashSet::new();
        for (key, value) in url.query_pairs() {
            let Some(parameter) = system.workload.iter().find(|parameter| parameter.name == key) else {
                let known = || system.workload.iter().map(|parameter| parameter.name);
                match nearest(&key, known()) {
                    Some(near) => bail!("unknown parameter {key:?} in {text:?}; did you mean {near:?}?"),
                    None => bail!(
                        "unknown parameter {key:?} in {text:?}; known are {}",
                        known().collect::<Vec<_>>().join(", ")
                    ),
                }
            };
            if !seen.insert(parameter.name) {
                bail!("{key} is given twice in {text:?}; leave one out");
            }
            let value = parameter.kind.read(&value).map_err(|message| anyhow::anyhow!("{key} {message}"))?;
            workload.set(parameter.name, value);
        }
        Ok(Self { shown: text.to_owned(), system, address, workload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Target> {
        Target::read(text, &TargetSettings::default())
    }

    fn asked(words: &[&str]) -> TargetSettings {
        let command = TargetSettings::augment_args(Command::new("x").no_binary_name(true));
        TargetSettings::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    #[test]
    fn a_plain_url_is_taken_as_it_is_and_options_say_what_to_ask() {
        let words = ["--header", "a: b", "--insecure", "--header", "c: it's", "--body", "x"];
        let asked = asked(&words);
        let url = "https://127.0.0.1:5099/a?difficulty=5";
        let target = Target::read(url, &asked).unwrap();
        assert_eq!((target.system.name, target.address.port()), ("http", 5099));
        let word = |name| target.workload.word(name);
        assert_eq!([word(URL), word("header")], [Some(url), Some("a: b\nc: it's")]);
        assert_eq!([word("insecure"), word("reuse"), word("method")], [Some("on"), Some("keep"), None]);
        assert_eq!(asked.written(), r" --body x --header 'a: b' --header 'c: it'\''s' --insecure=on");
        let fault = Target::read("reverse://127.0.0.1", &asked).unwrap_err().to_string();
        assert!(fault.contains("--body does not apply to reverse"), "{fault}");
        assert_eq!(read("http://127.0.0.1").unwrap().address.port(), 80);
        assert_eq!(read("https://127.0.0.1").unwrap().address.port(), 443);
        for (bare, url) in
            [("127.0.0.1:8080", "http://127.0.0.1:8080"), ("127.0.0.1/a?b=c", "http://127.0.0.1/a?b=c")]
        {
            let target = read(bare).unwrap();
            assert_eq!((target.system.name, target.shown.as_str()), ("http", url));
        }
    }

    #[test]
    fn a_url_names_system_address_and_parameters() {
        let target =
            read("reverse://127.0.0.1:5099?difficulty=300000&repeat-percent=20&priority-lambda=1.5").unwrap();
        assert_eq!(target.system.name, "reverse");
        assert_eq!(target.address, ([127, 0, 0, 1], 5099).into());
        assert_eq!(target.workload.whole("difficulty"), Some(300_000));
        assert_eq!(target.workload.number("repeat-percent"), Some(20.0));
        assert_eq!(read("reverse://[::1]").unwrap().address.port(), 5003);
    }

    #[test]
    fn faults_of_a_url_say_what_to_write() {
        let fault = |text: &str| format!("{:#}", read(text).unwrap_err());
        assert!(fault("http://").contains("reverse://127.0.0.1:5003"));
        assert!(fault("revers://127.0.0.1").contains("known are reverse"));
        assert!(fault("reverse://127.0.0.1?dificulty=5").contains("did you mean \"difficulty\"?"));
        assert!(fault("reverse://127.0.0.1?difficulty=0").contains("whole number from 1"));
        assert!(fault("reverse://127.0.0.1?start=5&difficulty=9&start=5").contains("start is given twice"));
    }
}
