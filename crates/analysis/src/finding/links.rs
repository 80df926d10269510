//! Reasons to doubt that emulated links were what they should have been.

use std::collections::BTreeSet;

use kendall_stats::number::{NONE, time};

use crate::finding::kind::Finding;
use crate::report::Report;
use crate::report::link::{LinkProperty, TrialLink};

/// Beyond this, packets that the emulator handed out late are a reason to doubt a trial, in s.
const LATE_S: f64 = 1e-3;

/// Reasons to doubt that links were what they should have been.
pub(super) fn doubts(report: &Report) -> Vec<Finding> {
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
                format!("the measured {} {way} of the link was not the requested {asked}", quantity.name());
            add(what, &link.trial);
        }
        if link.late_s.is_some_and(|[_, p99_s, _]| p99_s > LATE_S) {
            add(
                format!("the emulator of the link forwarded 1 % of packets more than {} late", time(LATE_S)),
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
            "The link was a {emulated}, not a link of packets: {differs}; the measurement describes a relay of datagrams"
        ),
    })
}
