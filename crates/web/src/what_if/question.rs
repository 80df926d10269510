//! The question of a what-if view: a run or a bare station, and the conditions. The query of an address holds all of it.

use kendall_evidence::fit::Load;
use kendall_station::{Discipline, Kind, Servers};
use kendall_stats::quantity::{rate, seconds};
use serde::Serialize;

use crate::id::{RunId, encoded};

/// Larger numbers do not fit into the time of an answer.
const MOST_SERVERS: u32 = 1_000;
const MOST_USERS: u32 = 10_000;
const MOST_STAGES: u32 = 100;
const MOST_SCV: f64 = 100.0;
/// A day: the longest run that is predicted, and the longest of all times.
const LONGEST_S: f64 = 86_400.0;
const SHORTEST_S: f64 = 1e-9;
/// The length of a predicted run if none is given, as on the command line.
pub(crate) const DURATION_S: f64 = 60.0;

/// The parameters of an address, in the order in which it has them.
const NAMES: [&str; 13] = [
    "run",
    "group",
    "law",
    "scv",
    "service",
    "rate",
    "users",
    "think",
    "servers",
    "discipline",
    "delay",
    "more-delay",
    "duration",
];
/// Further parameters of a request: the detail of the answer, whether it includes the curve, and the token, which the entrance reads.
const OF_REQUEST: [&str; 3] = ["detail", "curve", "token"];

/// How an answer is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Within a tenth of a second, while a control moves.
    Preview,
    /// As the command computes it.
    Full,
}

/// The law of the service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ServiceLaw {
    /// As measured in the run.
    Measured,
    /// A law of this kind, in place of the measured one.
    Of(Kind),
}

/// A question. What is absent is as measured, or has a default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) run: Option<RunId>,
    /// The values of the factors other than the load.
    pub(crate) group: Option<String>,
    pub(crate) law: ServiceLaw,
    pub(crate) scv: Option<f64>,
    /// The mean service time.
    pub(crate) service_s: Option<f64>,
    pub(crate) rate_per_s: Option<f64>,
    /// The users of a closed population; an open stream without them.
    pub(crate) users: Option<u32>,
    pub(crate) think_s: Option<f64>,
    pub(crate) servers: Option<Servers>,
    pub(crate) discipline: Option<Discipline>,
    /// The time outside of the station.
    pub(crate) delay_s: Option<f64>,
    /// The time outside of the measured station that each request takes in addition.
    pub(crate) more_delay_s: f64,
    /// The length of the predicted run.
    pub(crate) duration_s: f64,
}

impl Question {
    /// Reads the parameters of an address.
    ///
    /// # Errors
    /// Names the parameter that is unknown, given twice, or not valid, and the values that it takes.
    pub(crate) fn of(pairs: &[(String, String)]) -> Result<Self, String> {
        let known = |name: &&str| NAMES.contains(name) || OF_REQUEST.contains(name);
        for (at, (name, _)) in pairs.iter().enumerate() {
            if !known(&name.as_str()) {
                return Err(format!("{name:?} is not a parameter; known are {}", NAMES.join(", ")));
            }
            if pairs[..at].iter().any(|(before, _)| before == name) {
                return Err(format!("{name} is given twice; give it once"));
            }
        }
        let value = |name: &str| {
            let pair = pairs.iter().find(|(key, value)| key == name && !value.is_empty());
            pair.map(|(_, value)| value.as_str())
        };
        let time = |name, least_s| {
            read(name, value(name), |text| seconds(text).and_then(|time_s| within_times(time_s, least_s)))
        };
        let count = |name, most| read(name, value(name), |text| whole(text, most));
        let run = read("run", value("run"), |text| {
            RunId::parse(text)
                .ok_or_else(|| "must be EXPERIMENT/INSTANT, as the list of runs shows it".into())
        })?;
        let law = read("law", value("law"), law)?;
        let law = match (law, &run) {
            (Some(ServiceLaw::Measured), None) => {
                return Err("law: only a run has a measured law; choose M, D, E2, U, LN, H2, Pa or G".into());
            }
            (Some(law), _) => law,
            (None, Some(_)) => ServiceLaw::Measured,
            (None, None) => ServiceLaw::Of(Kind::Exponential),
        };
        Ok(Self {
            group: value("group").filter(|_| run.is_some()).map(str::to_owned),
            run,
            law,
            scv: read("scv", value("scv"), scv)?,
            service_s: time("service", SHORTEST_S)?,
            rate_per_s: read("rate", value("rate"), rate)?,
            users: count("users", MOST_USERS)?,
            think_s: time("think", 0.0)?,
            servers: count("servers", MOST_SERVERS)?.and_then(Servers::new),
            discipline: read("discipline", value("discipline"), |text| {
                text.parse::<Discipline>().map_err(|error| error.to_string())
            })?,
            delay_s: time("delay", 0.0)?,
            more_delay_s: time("more-delay", 0.0)?.unwrap_or(0.0),
            duration_s: time("duration", 1.0)?.unwrap_or(DURATION_S),
        })
    }

    /// The load, with these values for what is absent.
    pub(crate) fn load(&self, rate_per_s: f64, think_s: f64) -> Load {
        match self.users {
            Some(users) => Load::Closed { users, think_s: self.think_s.unwrap_or(think_s) },
            None => Load::Open { rate_per_s: self.rate_per_s.unwrap_or(rate_per_s) },
        }
    }
}

/// The value of a parameter, if it has one.
fn read<T>(
    name: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    text.map(parse).transpose().map_err(|why| format!("{name}: {why}"))
}

fn within_times(time_s: f64, least_s: f64) -> Result<f64, String> {
    if (least_s..=LONGEST_S).contains(&time_s) {
        Ok(time_s)
    } else {
        Err(format!("must be from {least_s} s to {LONGEST_S} s"))
    }
}

fn whole(text: &str, most: u32) -> Result<u32, String> {
    let number = text.trim().parse::<u32>().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("must be a whole number from 1 to {most}"))
}

fn scv(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|scv| (0.0..=MOST_SCV).contains(scv));
    number.ok_or_else(|| format!("must be a number from 0 to {MOST_SCV}"))
}

fn law(text: &str) -> Result<ServiceLaw, String> {
    if text == "measured" {
        return Ok(ServiceLaw::Measured);
    }
    match text.parse::<Kind>().map_err(|error| error.to_string())? {
        Kind::Erlang(stages) if stages > MOST_STAGES => {
            Err(format!("must have at most {MOST_STAGES} stages, such as E{MOST_STAGES}"))
        }
        kind => Ok(ServiceLaw::Of(kind)),
    }
}

/// The values that an answer is for, defaults included: what the controls show, and what an address holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct AnsweredValues {
    pub(crate) run: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) law: String,
    pub(crate) scv: Option<f64>,
    pub(crate) service: Option<f64>,
    pub(crate) rate: Option<f64>,
    pub(crate) users: Option<u32>,
    pub(crate) think: Option<f64>,
    pub(crate) servers: Option<u32>,
    pub(crate) discipline: Option<&'static str>,
    pub(crate) delay: Option<f64>,
    #[serde(rename = "more-delay")]
    pub(crate) more_delay: Option<f64>,
    pub(crate) duration: Option<f64>,
}

impl AnsweredValues {
    /// The part that repeats the question.
    pub(crate) fn of(question: &Question, load: Load) -> Self {
        let (rate, users, think) = match load {
            Load::Open { rate_per_s } => (Some(rate_per_s), None, None),
            Load::Closed { users, think_s } => (None, Some(users), Some(think_s)),
        };
        Self {
            run: question.run.as_ref().map(ToString::to_string),
            group: question.group.clone(),
            law: match question.law {
                ServiceLaw::Measured => "measured".to_owned(),
                ServiceLaw::Of(kind) => kind.to_string(),
            },
            rate,
            users,
            think,
            servers: question.servers.map(Servers::get),
            discipline: question.discipline.map(Discipline::name),
            ..Self::default()
        }
    }

    /// The address of the view with these values.
    pub(crate) fn address(&self) -> String {
        let number = |value: Option<f64>| value.map(|value| value.to_string());
        let count = |value: Option<u32>| value.map(|value| value.to_string());
        let values = [
            self.run.clone(),
            self.group.clone().filter(|group| !group.is_empty()),
            Some(self.law.clone()),
            number(self.scv),
            number(self.service),
            number(self.rate),
            count(self.users),
            number(self.think),
            count(self.servers),
            self.discipline.map(str::to_owned),
            number(self.delay),
            number(self.more_delay),
            number(self.duration),
        ];
        let pairs = NAMES.iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        let query: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", encoded(&value))).collect();
        format!("/what-if?{}", query.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<Question, String> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Question::of(&pairs.map(|(name, value)| (name.into(), value.into())).collect::<Vec<_>>())
    }

    #[test]
    fn an_invalid_value_is_named_with_what_is_valid() {
        for (query, part) in [
            ("rate=-1", "rate: must be a positive rate"),
            ("rate=NaN", "rate: must be a positive rate"),
            ("servers=0", "servers: must be a whole number from 1 to 1000"),
            ("users=1e9", "users: must be a whole number from 1 to 10000"),
            ("service=0", "service: must be from 0.000000001 s to 86400 s"),
            ("delay=soon", "delay: must be a time"),
            ("scv=inf", "scv: must be a number from 0 to 100"),
            ("law=Q", "law: \"Q\" is not a law"),
            ("law=E1000", "law: must have at most 100 stages"),
            ("law=measured", "law: only a run has a measured law"),
            ("discipline=round", "discipline: unknown discipline \"round\""),
            ("run=../x", "run: must be EXPERIMENT/INSTANT"),
            ("rate=1&rate=2", "rate is given twice"),
            ("speed=3", "\"speed\" is not a parameter; known are run, group"),
        ] {
            let why = asked(query).unwrap_err();
            assert!(why.contains(part), "{query}: {why}");
        }
    }

    #[test]
    fn an_address_holds_the_whole_question() {
        let query = "run=e/r&group=length 3&law=LN&scv=2&service=0.1&rate=20.5&servers=3&discipline=processor-sharing&delay=0.02";
        let question = asked(query).unwrap();
        let answered = AnsweredValues {
            scv: question.scv,
            service: question.service_s,
            delay: question.delay_s,
            ..AnsweredValues::of(&question, question.load(1.0, 1.0))
        };
        let address = answered.address();
        assert_eq!(address, format!("/what-if?{}", query.replace("e/r", "e%2Fr").replace(' ', "%20")));
        assert_eq!(
            asked("users=20&think=3").unwrap().load(1.0, 1.0),
            Load::Closed { users: 20, think_s: 3.0 }
        );
        assert_eq!(asked("").unwrap().load(1.0, 1.0), Load::Open { rate_per_s: 1.0 });
    }
}
