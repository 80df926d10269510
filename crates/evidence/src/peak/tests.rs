use std::convert::Infallible;

use kendall_record::{Outcome as Ended, RequestRow};
use kendall_station::{Arrivals, Law, Servers, Station};
use kendall_stats::random::derive;

use super::*;
use crate::fit::SloMeasure;
use crate::measured::Trial;

/// The rows of a station in order of arrival that begins empty, at any rate, overload included.
fn rows(law: &Law, servers: usize, rate_per_s: f64, n: u64, seed: u64) -> Vec<RequestRow> {
    let (mut arrivals, mut services) =
        (stream(seed, Purpose::Arrivals, 0), stream(seed, Purpose::Service, 0));
    let gap = Law::Exponential { mean_s: 1.0 / rate_per_s };
    let mut free_s = vec![0.0f64; servers];
    let mut now_s = 0.0;
    let mut row = |index: u64| {
        now_s += gap.sample(&mut arrivals);
        let next = (0..servers).min_by(|&a, &b| free_s[a].total_cmp(&free_s[b])).unwrap();
        free_s[next] = free_s[next].max(now_s) + law.sample(&mut services);
        let ns = |s: f64| (s * 1e9) as i64;
        RequestRow {
            bytes_out: 1,
            bytes_in: 1,
            ..RequestRow::due(index, ns(now_s)).sent_at(ns(now_s), 1).ended(Ended::Answered, ns(free_s[next]))
        }
    };
    (0..n).map(&mut row).collect()
}

/// Probes of 8,000 requests of which the first tenth is warm-up.
pub(super) fn probed(law: &Law, servers: usize, slo: Slo, ask: &Ask, seed: u64) -> Sighting {
    let rows = rows(law, servers, ask.rate_per_s, 8_000 * u64::from(ask.length), seed);
    let warmup_ns = rows.last().unwrap().scheduled / 10;
    Sighting::of(&Trial { rows: &rows, warmup_ns }, slo)
}

/// What theory says is the highest rate.
pub(super) fn truth(law: &Law, servers: u32, slo: Slo) -> f64 {
    let meets = |rate_per_s: f64| {
        let servers = Servers::new(servers).unwrap();
        let station = Station::new(Arrivals::poisson(rate_per_s), law.clone(), servers);
        let Ok(answer) = kendall_theory::formula(&station) else { return false };
        let value = match slo.measure {
            SloMeasure::Mean => answer.response.mean_s.value,
            SloMeasure::Quantile(p) => answer.response.quantile(p).unwrap().value,
        };
        value <= slo.at_most_s
    };
    let (mut low, mut high) = (0.0, f64::from(servers) / law.mean_s());
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if meets(middle) { low = middle } else { high = middle }
    }
    low
}

/// Twenty searches with a first guess that is a third off; nineteen are to be right within 5 %, and half the probes of
/// doubling and halving are to be enough, with some to spare. Were one in forty wrong, two of twenty would be so less than
/// once in ten runs; the seeds are fixed.
fn twenty(law: &Law, servers: u32, slo: &str) {
    let aim = Aim { slo: slo.parse().unwrap(), errors_at_most: 0.01 };
    let truth = truth(law, servers, aim.slo);
    let (mut right, mut used, mut plain, mut held) = (0, 0, 0, 0);
    for seed in 0..20 {
        let mut number = 0;
        let mut probe = |ask: &Ask| {
            number += 1;
            Ok::<_, Infallible>(probed(
                law,
                servers as usize,
                aim.slo,
                ask,
                derive(seed, Purpose::Trial, number),
            ))
        };
        let off = if seed % 2 == 0 { 1.33 } else { 0.75 };
        let curve = Curve::new(servers, law.mean_s() * off, 0.0);
        let light = 0.05 / law.mean_s();
        let found = search(&aim, curve, light, seed, &mut probe).unwrap();
        let rate = found.rate_per_s.expect("some rate passes and some fails");
        right += u32::from((rate.value / truth - 1.0).abs() <= 0.05);
        let (low, high) = rate.interval.unwrap();
        held += u32::from(low <= truth * 1.02 && high >= truth * 0.98);
        used += found.probes.len() as u32;
        plain += found.plain_probes;
    }
    println!("{slo}: {right} of 20 right, {held} held, {used} probes instead of {plain}");
    assert!(right >= 19, "{right} of 20 within 5 % of {truth}");
    assert!(held >= 17, "{held}");
    assert!(f64::from(used) <= 0.7 * f64::from(plain), "{used} {plain}");
}

#[test]
fn the_highest_rate_of_exponential_servers_is_found() {
    twenty(&Law::Exponential { mean_s: 0.010 }, 4, "p99<80ms");
}

#[test]
fn the_highest_rate_of_one_server_with_regular_service_is_found() {
    twenty(&Law::Erlang { shape: 4, mean_s: 0.001 }, 1, "mean<4ms");
}

#[test]
fn what_no_rate_meets_is_said() {
    let law = Law::Exponential { mean_s: 0.010 };
    let aim = Aim { slo: "p99<20ms".parse().unwrap(), errors_at_most: 0.01 };
    let mut number = 0;
    let mut probe = |ask: &Ask| {
        number += 1;
        Ok::<_, Infallible>(probed(&law, 2, aim.slo, ask, number))
    };
    let found = search(&aim, Curve::new(2, 0.010, 0.0), 5.0, 1, &mut probe).unwrap();
    assert_eq!(found.rate_per_s, None);
    assert!(found.probes.iter().all(|probe| probe.outcome == Outcome::Fail) && found.probes.len() < 12);
}

/// A system whose every probe at low rates is grey, and fails at higher ones: that shows no rate that meets the objective.
#[test]
fn grey_probes_alone_make_no_rate() {
    let aim = Aim { slo: "mean<1s".parse().unwrap(), errors_at_most: 0.01 };
    let mut probe = |ask: &Ask| {
        let high = if ask.rate_per_s > 100.0 { 3.0 } else { 1.2 };
        let low = if ask.rate_per_s > 100.0 { 2.0 } else { 0.8 };
        Ok::<_, Infallible>(Sighting {
            achieved_share: 1.0,
            value_s: Some(Estimate { value: 1.0, interval: Some((low, high)) }),
            errors: Estimate { value: 0.0, interval: Some((0.0, 0.001)) },
            grows: false,
            disturbed: false,
        })
    };
    let found = search(&aim, Curve::new(2, 0.010, 0.0), 5.0, 1, &mut probe).unwrap();
    let has = |outcome: Outcome| found.probes.iter().any(|probe| probe.outcome == outcome);
    assert!(has(Outcome::Grey) && has(Outcome::Fail) && !has(Outcome::Pass));
    assert_eq!(found.rate_per_s, None);
}

#[test]
fn a_search_that_is_cut_off_says_what_it_knows() {
    let aim = Aim { slo: "mean<50ms".parse().unwrap(), errors_at_most: 0.0 };
    let law = Law::Exponential { mean_s: 0.010 };
    let search_with = |most: u64| {
        let mut number = 0;
        let mut probe = |ask: &Ask| {
            number += 1;
            match number > most {
                true => Err("the budget is spent"),
                false => Ok(probed(&law, 1, aim.slo, ask, derive(3, Purpose::Trial, number))),
            }
        };
        search(&aim, Curve::new(1, 0.012, 0.0), 5.0, 3, &mut probe)
    };
    let whole = search_with(u64::MAX).unwrap();
    let most = whole.probes.len() - 3;
    let unfinished = search_with(most as u64).unwrap_err();
    assert_eq!((unfinished.found.probes.len(), unfinished.why), (most, "the budget is spent"));
    let (rate, answer) = (unfinished.found.rate_per_s.unwrap(), whole.rate_per_s.unwrap());
    assert!((rate.value / answer.value - 1.0).abs() < 0.15, "{rate:?} {answer:?}");
    assert_eq!(search_with(0).unwrap_err().found.rate_per_s, None);
}

/// One refused request of 2,000 is an error share of 0.05 %: a tolerance of 1 % accepts it, none does not, and the mean is that of the
/// others.
#[test]
fn a_mean_is_that_of_the_answered_requests() {
    let mut rows = rows(&Law::Exponential { mean_s: 0.010 }, 4, 50.0, 2_000, 1);
    let (due_ns, refused) = (rows[1_000].scheduled, 1_000);
    rows[refused] = RequestRow::due(1_000, due_ns).sent_at(due_ns, 1).ended(Ended::Refused, due_ns + 1);
    let slo: Slo = "mean<60ms".parse().unwrap();
    let seen = Sighting::of(&Trial { rows: &rows, warmup_ns: 0 }, slo);
    assert!(seen.value_s.is_some_and(|mean_s| (0.009..0.011).contains(&mean_s.value)), "{seen:?}");
    let outcome = |errors_at_most| seen.outcome(&Aim { slo, errors_at_most });
    assert_eq!((outcome(0.01), outcome(0.0)), (Outcome::Pass, Outcome::Fail));
}

/// A system that turns requests away has its peak where it begins to.
#[test]
fn errors_end_what_the_response_time_does_not() {
    let aim = Aim { slo: "mean<1s".parse().unwrap(), errors_at_most: 0.01 };
    let mut probe = |ask: &Ask| {
        let failing = if ask.rate_per_s > 300.0 { 0.2 } else { 0.0 };
        Ok::<_, Infallible>(Sighting {
            achieved_share: 1.0,
            value_s: Some(Estimate { value: 0.010, interval: Some((0.009, 0.011)) }),
            errors: Estimate { value: failing, interval: Some((0.9 * failing, 1.1 * failing)) },
            grows: false,
            disturbed: false,
        })
    };
    let found = search(&aim, Curve::new(8, 0.010, 0.0), 5.0, 1, &mut probe).unwrap();
    let rate = found.rate_per_s.unwrap();
    assert!((rate.value / 300.0 - 1.0).abs() <= PRECISION, "{rate:?}");
}

#[test]
fn the_knee_of_one_exponential_server_is_at_half_its_capacity() {
    // λ/R = λ(µ − λ) has its maximum at µ/2.
    let knee = Curve::new(1, 0.010, 0.0).knee().unwrap();
    assert!((knee.rate_per_s / 50.0 - 1.0).abs() < 1e-3 && (knee.response_s / 0.020 - 1.0).abs() < 2e-3);
}
