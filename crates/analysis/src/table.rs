//! A table as text, and how a time with its interval reads in it.

use kendall_station::Estimate;
use kendall_stats::number::{NONE, TimeUnit, significant, time};

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

/// A time and its half-width in one unit: "8.10 ± 0.90 ms".
pub fn time_cell(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else { return NONE.to_owned() };
    match estimate.interval {
        None => time(estimate.value),
        Some(_) => {
            let unit = TimeUnit::for_s(estimate.value);
            let (value, half) =
                (unit.number(estimate.value), significant(estimate.half_width() * unit.per_s(), 2));
            format!("{value} ± {half} {}", unit.symbol())
        }
    }
}
