//! What an emulated link was asked to be beside what was measured of it before each trial.

use std::collections::BTreeSet;

use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

use crate::figure::Table;
use crate::finding::Finding;
use crate::model::Report;
use crate::number::{NONE, percent, significant, time};

/// Beyond this, packets that the emulator handed out late are a reason to doubt a trial, in s.
const LATE_S: f64 = 1e-3;

/// The link of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialLink {
    /// The trial, as in [`TrialLine`](crate::TrialLine).
    pub trial: String,
    /// How the link was emulated: "user-space over veth, namespaces as root".
    pub emulated: String,
    /// How that differs from a link of packets, where it does.
    #[serde(default)]
    pub differs: Option<String>,
    /// Each of its properties, each way.
    pub properties: Vec<LinkProperty>,
    /// How much later than the model says packets left during the trial: half of them, 99 of 100, and the latest, in s.
    /// `None` where none left.
    pub late_s: Option<[f64; 3]>,
}

/// One property of one way of a link, asked and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkProperty {
    /// The way: "up" is from client to server, "down" back.
    pub way: String,
    /// What it is.
    pub quantity: LinkQuantity,
    /// What was asked for; `None` where nothing was, as for a rate without limit.
    pub asked: Option<f64>,
    /// What was measured; `None` where that was not possible.
    pub measured: Option<Estimate>,
    /// Whether the one is the other, as far as the measurement can tell.
    pub holds: Option<bool>,
}

/// What of a link is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkQuantity {
    /// How long a packet takes, in s.
    Delay,
    /// The standard deviation of that, in s.
    Jitter,
    /// Bits per second.
    Rate,
    /// The share of packets that are lost.
    Loss,
}

impl LinkQuantity {
    fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Jitter => "jitter",
            Self::Rate => "rate",
            Self::Loss => "loss",
        }
    }

    fn words(self, value: f64) -> String {
        match self {
            Self::Delay | Self::Jitter => time(value),
            Self::Rate => rate(value),
            Self::Loss => percent(value),
        }
    }
}

/// A rate in the unit that fits it: "9.98 Mbit/s".
fn rate(bits_per_s: f64) -> String {
    let (unit, factor) = match bits_per_s {
        rate if rate >= 1e9 => ("Gbit/s", 1e9),
        rate if rate >= 1e6 => ("Mbit/s", 1e6),
        _ => ("kbit/s", 1e3),
    };
    format!("{} {unit}", significant(bits_per_s / factor, 3))
}

/// What several trials measured of what was asked of all of them.
struct Row<'a> {
    emulated: &'a str,
    property: &'a LinkProperty,
    measured: Vec<Estimate>,
    trials: usize,
    /// Trials that could tell, and those of them in which it holds.
    judged: usize,
    holding: usize,
}

impl Row<'_> {
    fn takes(&self, link: &TrialLink, property: &LinkProperty) -> bool {
        let own = self.property;
        self.emulated == link.emulated
            && own.way == property.way
            && own.quantity == property.quantity
            && own.asked == property.asked
    }

    fn cells(&self) -> Vec<String> {
        let LinkProperty { way, quantity, asked, .. } = self.property;
        let words = |value: f64| quantity.words(value);
        let mut values: Vec<f64> = self.measured.iter().map(|measured| measured.value).collect();
        values.sort_by(f64::total_cmp);
        // One trial has an interval of its own; of several, their range says more.
        let range = match (&self.measured[..], &values[..]) {
            ([Estimate { interval: Some((low, high)), .. }], _) => {
                format!("{} – {}", words(*low), words(*high))
            }
            (_, [low, .., high]) => format!("{} – {}", words(*low), words(*high)),
            _ => NONE.to_owned(),
        };
        let nothing = if *quantity == LinkQuantity::Rate { "no limit" } else { NONE };
        vec![
            self.emulated.to_owned(),
            way.clone(),
            quantity.name().to_owned(),
            asked.map_or_else(|| nothing.to_owned(), words),
            values.get(values.len() / 2).map_or_else(|| NONE.to_owned(), |value| words(*value)),
            range,
            if self.judged > 0 { format!("{} of {}", self.holding, self.judged) } else { NONE.to_owned() },
        ]
    }
}

/// The table of links, asked and measured; without rows where no trial had an emulated link.
pub(crate) fn table(report: &Report) -> Table {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for link in &report.links {
        for property in &link.properties {
            let row = match rows.iter_mut().position(|row| row.takes(link, property)) {
                Some(index) => &mut rows[index],
                None => {
                    let emulated = &link.emulated;
                    rows.push(Row { emulated, property, measured: vec![], trials: 0, judged: 0, holding: 0 });
                    rows.last_mut().expect("one was added")
                }
            };
            row.trials += 1;
            row.measured.extend(property.measured);
            row.judged += usize::from(property.holds.is_some());
            row.holding += usize::from(property.holds == Some(true));
        }
    }
    let head = ["link", "way", "", "asked", "measured", "from – to", "holds in trials"];
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: rows.iter().filter(|row| row.trials > 0).map(Row::cells).collect(),
    }
}

/// What stands above the table.
pub(crate) const TITLE: &str = "Link: asked against measured";

/// What the table does not say of itself.
pub(crate) const CAPTION: &str = "Measured over the link before a trial crosses it. With several trials: the middle one, and the \
                                  least and the most; with one: its 95 % interval. Delay is without the time that a \
                                  packet's bits take to be sent; jitter is its standard deviation.";

/// How late packets left in the trials, in a sentence; `None` where no trial had an emulated link.
pub(crate) fn lateness(report: &Report) -> Option<String> {
    let late: Vec<[f64; 3]> = report.links.iter().filter_map(|link| link.late_s).collect();
    let worst = |index: usize| late.iter().map(|late| late[index]).reduce(f64::max);
    Some(format!(
        "The emulator handed packets out late by {} at the median, {} at the 99th percentile and {} at most, in the worst \
         trial of each.",
        time(worst(0)?),
        time(worst(1)?),
        time(worst(2)?)
    ))
}

/// Reasons to doubt that links were what they should have been.
pub(crate) fn doubts(report: &Report) -> Vec<Finding> {
    let mut doubts: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |what: String, trial: &String| match doubts.iter_mut().find(|(other, _)| *other == what) {
        Some((_, trials)) => trials.push(trial.clone()),
        None => doubts.push((what, vec![trial.clone()])),
    };
    for link in &report.links {
        for property in link.properties.iter().filter(|property| property.holds == Some(false)) {
            let LinkProperty { way, quantity, asked, .. } = property;
            let asked = asked.map_or_else(|| NONE.to_owned(), |asked| quantity.words(asked));
            let what =
                format!("the link was not as asked for: {} {way} should have been {asked}", quantity.name());
            add(what, &link.trial);
        }
        if link.late_s.is_some_and(|[_, p99_s, _]| p99_s > LATE_S) {
            add(
                format!("the emulator of the link was late by more than {} for 1 % of packets", time(LATE_S)),
                &link.trial,
            );
        }
    }
    let disturbed = doubts.into_iter().map(|(what, trials)| Finding::Disturbed { what, trials });
    disturbed.chain(differences(report)).collect()
}

/// How the links differed from links of packets, each way once.
fn differences(report: &Report) -> impl Iterator<Item = Finding> {
    let said = |link: &TrialLink| Some((link.emulated.clone(), link.differs.clone()?));
    let different: BTreeSet<(String, String)> = report.links.iter().filter_map(said).collect();
    different.into_iter().map(|(emulated, differs)| Finding::Told {
        sentence: format!(
            "The link was a {emulated}, and no link of packets: {differs}; what was measured of it is a relay of datagrams"
        ),
    })
}
