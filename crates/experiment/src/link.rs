//! The parameters of `[link]`.

use kendall_link::{BackEnd, LinkSettings};
use kendall_linkmodel::{Fault, Settings as Hop};

use kendall_system::Settings;
use kendall_system::{Kind, Parameter};

/// A parameter that is a setting of the model.
macro_rules! setting {
    ($name:literal, $help:literal) => {
        Parameter {
            name: $name,
            help: $help,
            kind: Kind::Word(|text| said(Hop::default().set($name, text))),
            default: None,
        }
    };
}

/// The number of parameters that are settings of the model; they come first.
const SETTINGS: usize = 11;

/// The parameters of `[link]`.
pub const LINK: &[Parameter] = &[
    setting!("delay", "time from one end to the other: \"20ms\""),
    setting!("jitter", "how much that differs between packets, and by which law: \"2ms\", \"2ms normal\""),
    setting!("rate", "bits per second: \"10mbit\"; or pieces of time that repeat: \"10mbit 2s, 0 500ms\""),
    setting!("overhead", "bytes that each packet costs on the link beyond its own"),
    setting!("queue", "bytes that may wait to be sent: \"64k\", \"64KiB\""),
    setting!("aqm", "how the queue is managed: \"drop-tail\", \"codel\", \"fq-codel\""),
    setting!("loss", "share of packets lost: \"0.1%\", \"1% burst 5\""),
    setting!("corrupt", "share of packets with a wrong bit"),
    setting!("duplicate", "share of packets that arrive twice"),
    setting!("reorder", "share of packets that others overtake: \"1%\", \"1% distance 3 within 50ms\""),
    setting!("wire", "bytes of memory for packets in transit: \"64M\""),
    Parameter {
        name: "up",
        help: "what differs from client to server: \"rate=2mbit queue=32k\"",
        kind: Kind::Word(|text| said(Hop::default().apply(text))),
        default: None,
    },
    Parameter {
        name: "down",
        help: "what differs from server to client: \"rate=50mbit\"",
        kind: Kind::Word(|text| said(Hop::default().apply(text))),
        default: None,
    },
    Parameter {
        name: "hops",
        help: "links in a row, instead of the settings of one: \"delay=5ms rate=100mbit > delay=20ms rate=10mbit\"",
        kind: Kind::Word(|text| said(LinkSettings::read_row(text))),
        default: None,
    },
    Parameter {
        name: "congestion",
        help: "congestion control of connections from both ends: \"cubic\", \"bbr\", \"reno\"; the same in all trials",
        kind: Kind::Word(|_| Ok(())),
        default: None,
    },
    Parameter {
        name: "back-end",
        help: "how packets are brought to the link: \"veth\", \"tun\", \"netem\", or a \"relay\" of streams and datagrams \
               between them; the first that works if left out; the same in all trials",
        kind: Kind::Word(check_back_end),
        default: None,
    },
    Parameter {
        name: "measure",
        help: "whether each link is measured before its first trial: \"on\", \"off\"; on if left out",
        kind: Kind::Word(check_measure),
        default: None,
    },
];

fn said<T>(result: Result<T, Fault>) -> Result<(), String> {
    result.map(drop).map_err(|fault| format!("cannot be used: {fault}"))
}

/// The back end of sockets, which needs no namespaces.
pub const RELAY: &str = "relay";

/// The back end of packets with this name.
pub fn back_end(text: &str) -> Option<BackEnd> {
    BackEnd::ALL.into_iter().find(|known| known.name() == text)
}

fn check_back_end(text: &str) -> Result<(), String> {
    if text == RELAY || back_end(text).is_some() {
        return Ok(());
    }
    Err(format!("must be one of {}, {RELAY}, not {text:?}", BackEnd::ALL.map(BackEnd::name).join(", ")))
}

fn check_measure(text: &str) -> Result<(), String> {
    match text {
        "on" | "off" => Ok(()),
        _ => Err(format!("must be \"on\" or \"off\", not {text:?}")),
    }
}

/// The link of one combination by `[link]`; `None` where it has none.
///
/// # Errors
/// Returns the name of the invalid parameter, and the reason as a sentence.
pub(crate) fn asked(settings: &Settings) -> Result<Option<LinkSettings>, (&'static str, String)> {
    let named = |name| move |fault: Fault| (name, fault.to_string());
    let given = || LINK[..SETTINGS].iter().filter_map(|one| Some((one.name, settings.word(one.name)?)));
    let ways = [("up", settings.word("up")), ("down", settings.word("down"))];
    let differing = || ways.iter().filter(|way| way.1.is_some());
    if let Some(hops) = settings.word("hops") {
        let other = given().map(|(name, _)| name).chain(differing().map(|way| way.0)).next();
        return match other {
            Some(name) => {
                Err((name, "cannot be set together with hops; give each hop all its settings there".into()))
            }
            None => LinkSettings::read_row(hops).map(Some).map_err(named("hops")),
        };
    }
    if given().next().is_none() && differing().next().is_none() {
        return Ok(None);
    }
    let mut both = Hop::default();
    let mut last = "delay";
    for (name, value) in given() {
        both.set(name, value).map_err(named(name))?;
        last = name;
    }
    let [up, down] = ways.map(|(name, differs)| {
        let mut hop = both.clone();
        hop.apply(differs.unwrap_or_default()).map_err(named(name))?;
        hop.check().map_err(named(if differs.is_some() { name } else { last }))?;
        Ok(vec![hop])
    });
    Ok(Some(LinkSettings { up: up?, down: down? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_system::Value;

    fn settings(values: &[(&'static str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for &(name, value) in values {
            settings.set(name, Value::Word(value.into()));
        }
        settings
    }

    #[test]
    fn the_settings_come_first_and_are_the_models() {
        let of_model = kendall_linkmodel::NAMES.map(|(name, _)| name);
        for (at, parameter) in LINK.iter().enumerate() {
            assert_eq!(at < SETTINGS, of_model.contains(&parameter.name), "{}", parameter.name);
        }
        assert_eq!(SETTINGS, of_model.len());
    }

    #[test]
    fn one_link_is_the_same_both_ways_but_for_what_differs() {
        let link = asked(&settings(&[("delay", "20ms"), ("rate", "10mbit"), ("down", "rate=50mbit")]));
        let link = link.unwrap().unwrap();
        assert_eq!(link.up, ["delay=20ms rate=10mbit".parse().unwrap()]);
        assert_eq!(link.down, ["delay=20ms rate=50mbit".parse().unwrap()]);
        assert_eq!(asked(&settings(&[("measure", "off")])), Ok(None));
    }

    #[test]
    fn a_wire_that_is_too_small_can_be_enlarged_as_the_message_advises() {
        let (name, why) = asked(&settings(&[("delay", "300ms"), ("rate", "2gbit")])).unwrap_err();
        assert!(name == "rate" && why.contains("set a larger wire"), "{name}: {why}");
        assert!(asked(&settings(&[("delay", "300ms"), ("rate", "2gbit"), ("wire", "100M")])).is_ok());
    }

    #[test]
    fn the_documentation_has_every_parameter() {
        let page = include_str!("../../../docs/experiments.md");
        for Parameter { name, .. } in LINK {
            assert!(page.contains(&format!("\n| `{name}` |")), "{name} is missing");
        }
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        let (name, why) = asked(&settings(&[("hops", "delay=1ms"), ("loss", "1%")])).unwrap_err();
        assert!(name == "loss" && why.contains("together with hops"), "{name}: {why}");
        let (name, why) = asked(&settings(&[("delay", "1ms"), ("jitter", "2ms")])).unwrap_err();
        assert!(name == "jitter" && why.contains("more than the delay"), "{name}: {why}");
        assert_eq!(asked(&settings(&[("delay", "1ms"), ("up", "jitter=5ms")])).unwrap_err().0, "up");
    }
}
