//! The requested settings of an emulated link, and their measurement before each trial.

use kendall_station::Estimate;

use crate::report::Report;
use crate::report::link::{LinkProperty, LinkQuantity, TrialLink};
use crate::table::Table;
use kendall_stats::number::{NONE, time};

/// What several trials measured of what was asked of all of them.
struct Row<'a> {
    emulated: &'a str,
    property: &'a LinkProperty,
    measured: Vec<Estimate>,
    trials: usize,
    /// Trials with enough data, and those of them in which it holds.
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
        // A single trial has its own interval; of several trials, the range says more.
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

/// The table of links, requested and measured; without rows where no trial had an emulated link.
pub fn table(report: &Report) -> Table {
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

/// The title of the table.
pub const TITLE: &str = "Link: requested and measured";

/// The explanation of the table.
pub const CAPTION: &str = "Measured over the link before a trial crosses it. With several trials: the middle one, and the least and \
                                  the most; with one: its 95 % interval. Delay excludes the transmission time of a packet; jitter is \
                                  the standard deviation of the delay.";

/// How late packets left in the trials, in a sentence; `None` where no trial had an emulated link.
pub fn lateness(report: &Report) -> Option<String> {
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
