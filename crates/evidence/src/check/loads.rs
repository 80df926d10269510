//! Checks of one system under several loads.

use super::service::load_finding;
use super::{Check, Finding};
use kendall_stats::two_samples;

/// The service times of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load<'a> {
    /// The place of the load in words, such as "80/s".
    pub place: &'a str,
    /// Rate × service time / servers.
    pub utilisation: f64,
    /// Service times in any order, in seconds.
    pub services_s: &'a [f64],
}

/// Checks assumptions over several loads of one system: whether service at the highest load is as long as at the
/// lowest. Returns nothing for fewer than two loads.
pub fn check_loads(loads: &[Load<'_>]) -> Vec<Finding> {
    let finite = || loads.iter().filter(|load| load.utilisation.is_finite());
    let by_load = |a: &&Load<'_>, b: &&Load<'_>| a.utilisation.total_cmp(&b.utilisation);
    let (Some(low), Some(high)) = (finite().min_by(by_load), finite().max_by(by_load)) else {
        return Vec::new();
    };
    if low.place == high.place {
        return Vec::new();
    }
    let place = format!("{} and {}", low.place, high.place);
    let Some(tested) = two_samples(low.services_s, high.services_s) else {
        let sentence = "The server reported no service times; start it with --stamps if it can report them.";
        return vec![Finding::cannot_tell(Check::ServiceApartFromLoad, sentence).at(place)];
    };
    let at = |load: &Load<'_>| format!("at {}", load.place);
    let (statistic, p_value) = (tested.statistic, tested.p_value);
    vec![load_finding(low.services_s, &at(low), high.services_s, &at(high), statistic, p_value).at(place)]
}
