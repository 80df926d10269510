//! The replay of a combination's trials, and how wide theory expects their intervals to be.

use kendall_evidence::{Candidates, NotReplayed, Pair, Replay, RowClass, Rules, Trial, candidates, replay};
use kendall_simulation::StopRule;
use kendall_station::{Answer, By, Discipline, Servers, Station};
use kendall_stats as statistics;
use kendall_theory::{Target, plan};

use crate::report::point::ExpectedWidth;

/// Requests that are replayed through each candidate, over all trials.
const REPLAYED: usize = 100_000;
/// Pairs that a report draws; more are thinned evenly.
const DRAWN: usize = 2_000;
/// Theory holds for the mean of a trial that lasts this many relaxation times.
const LONG: f64 = 20.0;

/// The trials replayed through candidate stations; `None` if the server reported no service times.
pub fn replayed(
    trials: &[Trial<'_>],
    servers: Servers,
    discipline: Discipline,
    classes: &[RowClass],
) -> Option<Candidates> {
    let mut found = candidates(&parts(trials), &Rules::new(servers, discipline, classes)).ok()?;
    found.best.pairs = thinned(found.best.pairs);
    Some(found)
}

/// The trials replayed through one station.
///
/// # Errors
/// As [`kendall_evidence::replay`].
pub fn replayed_through(trials: &[Trial<'_>], rules: &Rules<'_>) -> Result<Replay, NotReplayed> {
    let mut found = replay(&parts(trials), rules)?;
    found.pairs = thinned(found.pairs);
    Ok(found)
}

/// The part of each trial that is replayed, so that a replay does not take long. A longer trial begins in its warm-up, whose last
/// requests, up to half of the part, fill the station before the first that is compared.
fn parts<'t>(trials: &[Trial<'t>]) -> Vec<Trial<'t>> {
    let each = REPLAYED / trials.len().max(1);
    let part = |trial: &Trial<'t>| {
        let rows = trial.rows;
        let most = rows.len().min(each);
        let warm = rows.iter().position(|row| row.scheduled >= trial.warmup_ns).unwrap_or(0);
        let from = warm.saturating_sub(each / 2).min(rows.len() - most);
        Trial { rows: &rows[from..from + most], ..*trial }
    };
    trials.iter().map(part).collect()
}

/// At most this many pairs, evenly by rank of the measured response, with both extremes.
fn thinned(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_by(|a, b| a.measured_s.total_cmp(&b.measured_s));
    if pairs.len() <= DRAWN {
        return pairs;
    }
    (0..DRAWN).map(|i| pairs[i * (pairs.len() - 1) / (DRAWN - 1)]).collect()
}

/// How wide theory expects the intervals of an answer's means to be, if the system is this station. `None` where it has no
/// steady state, or was not run to show it.
pub fn expected(station: &Station, measured: &Answer, stop: StopRule) -> Option<ExpectedWidth> {
    let By::Measurement { requests, trials } = measured.by else { return None };
    if matches!(stop, StopRule::Runs { .. }) {
        return None;
    }
    // The precision asked for decides nothing that is used here.
    let plan = plan(station, 0.05).ok()?;
    // Rejected ones have no response time.
    let requests = requests as f64 * (1.0 - measured.lost.value);
    // Few trials know their own spread badly, and Student's t has them pay for it; so must theory, to be comparable.
    let freedom = trials.saturating_sub(1).max(1) as f64;
    let t = if trials > 1 {
        statistics::student_t(freedom, 0.975) / statistics::student_t(1e9, 0.975)
    } else {
        1.0
    };
    let half_width_s = |target: &Target| t * target.relative_half_width(requests) * target.mean_s;
    let each = requests / trials as f64;
    let is_long = each / plan.rate_per_s > LONG * plan.warmup.relaxation_s;
    let seen_s = measured.response.mean_s.half_width();
    let chance = is_long.then(|| plan.response.chance_of_so_narrow(seen_s, trials, each)).flatten();
    Some(ExpectedWidth {
        response_s: half_width_s(&plan.response),
        waiting_s: plan.waiting.as_ref().map(half_width_s),
        chance,
    })
}

#[cfg(test)]
mod tests {
    use kendall_record::RequestRow;

    use super::*;

    /// A thousand trials have a hundred requests each.
    #[test]
    fn the_replayed_part_reaches_beyond_the_warm_up() {
        let rows: Vec<RequestRow> = (0..400).map(|index| RequestRow::due(index, index as i64)).collect();
        let part = |rows: &[RequestRow], warmup_ns: i64| {
            let found = parts(&[Trial { rows, warmup_ns }; 1000])[999].rows;
            (found[0].index, found.len())
        };
        assert_eq!(part(&rows, 0), (0, 100));
        assert_eq!(part(&rows, 30), (0, 100));
        assert_eq!(part(&rows, 250), (200, 100));
        // The last requests are few: more of the warm-up goes before them.
        assert_eq!(part(&rows, 390), (300, 100));
        assert_eq!(part(&rows[..80], 70), (0, 80));
        assert_eq!(part(&rows, 1000), (0, 100));
    }
}
