//! Selection of the checks of assumptions that are worth a sentence, and a table of all.

use kendall_evidence::check::{AssumptionVerdict, Check, Finding as Checked, SIGNIFICANT};

use crate::finding::kind::Finding;
use crate::table::Table;
use kendall_stats::number::{NONE, percent, significant};

/// The number of broken assumptions on the first screen; the table has them all.
const MOST: usize = 3;

/// The checks that other findings of a report cover, with numbers of all trials.
const SAID_ELSEWHERE: [Check; 9] = [
    Check::LittlesLaw,
    Check::Loss,
    Check::Answers,
    Check::SentWhenDue,
    Check::Steady,
    Check::Delay,
    Check::Precision,
    Check::ServiceLaw,
    Check::ServiceApartFromLoad,
];

/// The assumptions that are broken, each at its worst place, those with the largest effect first.
pub(super) fn broken(checks: &[Checked]) -> Vec<Finding> {
    let mut broken: Vec<Vec<&Checked>> = by_check(checks)
        .into_iter()
        .filter(|found| !SAID_ELSEWHERE.contains(&found[0].check))
        .map(|found| {
            found.into_iter().filter(|one| one.verdict == AssumptionVerdict::Broken).collect::<Vec<_>>()
        })
        .filter(|found| !found.is_empty())
        .collect();
    for found in &mut broken {
        found.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    broken.sort_by(|a, b| size(b[0]).total_cmp(&size(a[0])));
    broken.truncate(MOST);
    let told = |found: Vec<&Checked>| Finding::Assumption {
        worst: found[0].clone(),
        also: found[1..].iter().map(|one| one.place.clone()).collect(),
    };
    broken.into_iter().map(told).collect()
}

fn size(found: &Checked) -> f64 {
    found.effect.as_ref().map_or(0.0, |effect| effect.value.abs())
}

/// The findings of each check, in the order in which checks first appear.
fn by_check(checks: &[Checked]) -> Vec<Vec<&Checked>> {
    let mut grouped: Vec<Vec<&Checked>> = Vec::new();
    for found in checks {
        match grouped.iter_mut().find(|known| known[0].check == found.check) {
            Some(known) => known.push(found),
            None => grouped.push(vec![found]),
        }
    }
    grouped
}

/// Each assumption once: at how many points it holds, is broken or is inconclusive, and its worst point in numbers.
pub fn table(checks: &[Checked]) -> Table {
    let level = format!("p (level {SIGNIFICANT})");
    let head =
        ["assumption", "verdict", "worst at", "statistic", &level, "effect"].map(str::to_owned).to_vec();
    let row = |found: Vec<&Checked>| {
        let rank = |one: &&&Checked| (one.verdict, -(size(one) * 1e9) as i64);
        let worst = found.iter().min_by_key(rank).expect("a group has a finding");
        let count = |verdict: AssumptionVerdict| found.iter().filter(|one| one.verdict == verdict).count();
        let counts = [AssumptionVerdict::Broken, AssumptionVerdict::CannotTell, AssumptionVerdict::Holds]
            .map(|verdict| (verdict, count(verdict)));
        let verdicts: Vec<String> =
            match counts.iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>().as_slice() {
                [(verdict, _)] => vec![verdict.to_string()],
                several => several.iter().map(|(verdict, count)| format!("{verdict} at {count}")).collect(),
            };
        let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
        vec![
            worst.check.to_string(),
            verdicts.join(", "),
            worst.place.clone(),
            or_none(worst.statistic.as_ref().map(|it| format!("{} {}", it.name, significant(it.value, 3)))),
            or_none(worst.p_value.map(chance)),
            or_none(worst.effect.as_ref().map(|it| format!("{} {}", it.name, signed(it.value)))),
        ]
    };
    Table { head, rows: by_check(checks).into_iter().map(row).collect() }
}

/// Formats a p-value with two digits, and no smaller than its precision.
pub fn chance(p_value: f64) -> String {
    if p_value < 1e-4 { "< 0.0001".to_owned() } else { significant(p_value, 2) }
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}
