//! Service times and arrivals of a trial against laws, and how unevenly requests come.

use kendall_evidence::check::closest_law;
use kendall_station::{Arrivals, Law};
use kendall_stats::number::{significant, time};
use kendall_stats::{dispersion_index, mean, variance};

use crate::models::scv;
use crate::report::trial_view::{AgainstLaw, Dispersion};
use crate::thin::{evenly, sorted};
use crate::trial_view::rows::{Rows, seconds};

/// The number of pairs of quantiles at even distances, and at each end.
const PAIRS: (usize, usize) = (64, 8);
/// The probabilities at which the figure shows how far sampling error may move a quantile.
const EXPECTED_AT: [f64; 13] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99];
/// The quantile of the normal law beyond which 2.5 % lie.
const NORMAL_975: f64 = 1.959_963_984_540_054;
/// Spans of time in which requests are counted: this many at least, or chance hides all.
const FEWEST_SPANS: f64 = 20.0;

/// The service times after the warm-up against the law that is closest to them.
pub(super) fn service(rows: &Rows<'_>) -> Option<AgainstLaw> {
    let sorted_s = sorted(rows.counted().iter().filter_map(|row| row.service).map(seconds));
    against(&sorted_s, closest_law(&sorted_s)?.law)
}

/// The gaps between sends after the warm-up against the law of gaps that was asked for.
pub(super) fn gaps(rows: &Rows<'_>, arrivals: &Arrivals) -> Option<AgainstLaw> {
    let Arrivals::Open { gap } = arrivals else { return None };
    let gaps = sorted(sends_ns(rows).windows(2).map(|pair| seconds(pair[1] - pair[0])));
    against(&gaps, gap.clone())
}

/// When requests were sent after the warm-up, ascending.
fn sends_ns(rows: &Rows<'_>) -> Vec<i64> {
    let mut sends_ns: Vec<i64> = rows.counted().iter().filter_map(|row| row.sent).collect();
    sends_ns.sort_unstable();
    sends_ns
}

fn against(sorted_s: &[f64], law: Law) -> Option<AgainstLaw> {
    if sorted_s.len() < 10 {
        return None;
    }
    let n = sorted_s.len();
    let mut places: Vec<usize> =
        evenly(n, PAIRS.0).chain(0..PAIRS.1.min(n)).chain(n.saturating_sub(PAIRS.1)..n).collect();
    places.sort_unstable();
    places.dedup();
    let pair = |at: usize| (law.quantile_s((at as f64 + 0.5) / n as f64), sorted_s[at]);
    Some(AgainstLaw {
        law: words(&law),
        law_scv: law.scv(),
        n: n as u64,
        scv: scv(variance(sorted_s), mean(sorted_s)),
        pairs_s: places.into_iter().map(pair).collect(),
        expected_s: EXPECTED_AT.iter().filter_map(|&p| expected(&law, n as f64, p)).collect(),
    })
}

/// The range of 95 % of the sample quantiles at `p`: the number of `n` below the distribution's quantile is binomial, which is near
/// normal where both sides expect nine or more.
fn expected(law: &Law, n: f64, p: f64) -> Option<(f64, (f64, f64))> {
    if n * p.min(1.0 - p) < 9.0 {
        return None;
    }
    let reach = NORMAL_975 * (p * (1.0 - p) / n).sqrt();
    Some((law.quantile_s(p), (law.quantile_s(p - reach), law.quantile_s(p + reach))))
}

/// "exponential, mean 1.08 ms, scv 1".
fn words(law: &Law) -> String {
    format!("{}, mean {}, scv {}", law.name(), time(law.mean_s()), significant(law.scv(), 2))
}

/// How unevenly requests are sent after the warm-up, counted in spans from about a request on.
pub(super) fn dispersion(rows: &Rows<'_>) -> Vec<Dispersion> {
    let sends_ns = sends_ns(rows);
    let (Some(&first_ns), Some(&last_ns)) = (sends_ns.first(), sends_ns.last()) else { return Vec::new() };
    let length_ns = (last_ns - first_ns) as f64;
    let gap_ns = length_ns / sends_ns.len() as f64;
    if gap_ns < 1.0 {
        return Vec::new();
    }
    let powers = gap_ns.log10().floor() as i32..=(length_ns.log10().floor() as i32);
    let spans_ns = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)));
    let useful = spans_ns.filter(|&span_ns| span_ns >= gap_ns && length_ns / span_ns >= FEWEST_SPANS);
    useful.filter_map(|span_ns| counted(&sends_ns, span_ns)).collect()
}

fn counted(sends_ns: &[i64], span_ns: f64) -> Option<Dispersion> {
    let (first_ns, last_ns) = (*sends_ns.first()?, *sends_ns.last()?);
    let spans = ((last_ns - first_ns) as f64 / span_ns) as usize;
    let mut counts = vec![0.0; spans];
    for send_ns in sends_ns {
        // The last span, which is cut short, is left out.
        if let Some(count) = counts.get_mut(((send_ns - first_ns) as f64 / span_ns) as usize) {
            *count += 1.0;
        }
    }
    let index = dispersion_index(&counts)?.statistic;
    let freedom = spans as f64 - 1.0;
    let bound = |z: f64| chi_squared_over_freedom(freedom, z);
    Some(Dispersion {
        span_s: span_ns / 1e9,
        spans: spans as u64,
        index,
        poisson: (bound(-NORMAL_975), bound(NORMAL_975)),
    })
}

/// The quantile of a chi-squared law over its degrees of freedom, at the quantile `z` of a normal law (Wilson and Hilferty 1931).
fn chi_squared_over_freedom(freedom: f64, z: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    (1.0 - spread + z * spread.sqrt()).powi(3).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial_view::rows::tests::{random_rows, rows};

    #[test]
    fn quantiles_of_the_right_law_lie_on_the_diagonal() {
        let all = random_rows(5_000);
        let rows = rows(&all);
        let service = service(&rows).expect("the server reports it");
        assert!(service.law.starts_with("exponential"), "{}", service.law);
        let gaps = gaps(&rows, &Arrivals::poisson(1000.0)).expect("a law was asked for");
        let longest = all.iter().filter_map(|row| row.service).max().map(seconds);
        assert_eq!(service.pairs_s.last().map(|pair| pair.1), longest);
        for against in [&service, &gaps] {
            // Each band leaves out 5 %, and neighbours go together; a wrong law is outside of nearly all.
            let inside = |&(law_s, (low_s, high_s)): &(f64, (f64, f64))| {
                let near =
                    against.pairs_s.iter().min_by(|a, b| (a.0 - law_s).abs().total_cmp(&(b.0 - law_s).abs()));
                near.is_some_and(|pair| (low_s * 0.98..=high_s * 1.02).contains(&(pair.1 * law_s / pair.0)))
            };
            let held = against.expected_s.iter().filter(|expected| inside(expected)).count();
            assert!(held + 2 >= against.expected_s.len(), "{held} of {}", against.expected_s.len());
        }
        let wrong = super::gaps(&rows, &Arrivals::poisson(2000.0)).expect("a law was asked for");
        assert!(wrong.expected_s.iter().all(|(law_s, (_, high_s))| 1.5 * law_s > *high_s || law_s < &1e-5));
        assert!(
            super::gaps(&rows, &Arrivals::Closed { population: 1, think: Law::exponential_rate(1.0) })
                .is_none()
        );
    }

    #[test]
    fn a_poisson_stream_has_an_index_of_one_and_constant_gaps_have_none() {
        let all = random_rows(5_000);
        let spans = dispersion(&rows(&all));
        let outside = |one: &&Dispersion| one.index < one.poisson.0 || one.index > one.poisson.1;
        assert!(spans.len() >= 6 && spans.iter().filter(outside).count() <= 2, "{spans:?}");
        let mut steady = all;
        for (at, row) in steady.iter_mut().enumerate() {
            row.scheduled = at as i64 * 1_000_000;
            row.sent = Some(row.scheduled);
        }
        assert!(dispersion(&rows(&steady)).iter().all(|one| one.index < 0.3));
    }

    #[test]
    fn the_bounds_are_those_of_chi_squared() {
        // Tables of the chi-squared law: 8.907 and 32.852 at 19 degrees of freedom, 74.222 and 129.561 at 100.
        for (freedom, low, high) in [(19.0, 8.907, 32.852), (100.0, 74.222, 129.561)] {
            assert!((chi_squared_over_freedom(freedom, -NORMAL_975) * freedom / low - 1.0).abs() < 0.005);
            assert!((chi_squared_over_freedom(freedom, NORMAL_975) * freedom / high - 1.0).abs() < 0.005);
        }
    }
}
