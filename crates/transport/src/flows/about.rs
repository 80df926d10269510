//! The part of a record that describes its origin.

use std::time::Duration;

use kendall_archive::utc_now;
use kendall_flows::{About, FlowAbout};
use kendall_system::Settings;

use super::course::Setting;
use super::source::{Flow, Source};

/// The description of a run of these flows.
pub(crate) fn flows(
    flows: &[Flow],
    setting: &Setting,
    echo: Source,
    warm_up: Duration,
    settings: &Settings,
) -> About {
    let flow = |flow: &Flow| FlowAbout {
        source: flow.source.to_string(),
        port: flow.source.port(),
        after_s: flow.after.as_secs_f64(),
        cpu_is_known: true,
        way: flow.way,
    };
    About {
        started_utc: utc_now(),
        command: command("flows", settings),
        link: setting.link.clone(),
        congestion: setting.congestion.clone(),
        seed: setting.seed,
        echo: echo.to_string(),
        warm_up_s: warm_up.as_secs_f64(),
        flows: flows.iter().map(flow).collect(),
    }
}

/// The command with all its settings, except those of output and record.
pub(crate) fn command(name: &str, settings: &Settings) -> String {
    let mut command = format!("kendall transport {name}");
    for argument in ["flows", "kinds"] {
        command.extend(settings.word(argument).map(|words| format!(" {words}")));
    }
    let is_option = |name: &str| !["flows", "kinds", "record", "json"].contains(&name);
    for (name, value) in settings.iter().filter(|(name, _)| is_option(name)) {
        let value = value.to_string();
        let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "-.%,".contains(c));
        command += &if is_plain { format!(" --{name} {value}") } else { format!(" --{name} '{value}'") };
    }
    command
}
