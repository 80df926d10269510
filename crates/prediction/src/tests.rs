//! Predictions of servers that are simulated, so that the truth is known.

use kendall_evidence::Visit;
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Discipline, Estimate, Law, Servers};
use kendall_stats::random::{Purpose, exponential, stream, unit};

use crate::candidate::Candidate;
use crate::observed::Conditions;
use crate::order::Order;
use crate::{
    Advice, Baseline, Block, Capacity, Effort, KnownStation, NoPrediction, NothingObserved, Observed,
    Prediction, Predictor, Question,
};

mod known;
mod machine;

const SERVICE_S: f64 = 0.01;
/// Requests of each low load.
const REQUESTS: usize = 6_000;

/// A server as it really is. Class 1 takes `heavy` times as long as class 0.
#[derive(Clone)]
struct Truth {
    station: Candidate,
    law: Law,
    heavy_share: f64,
    heavy: f64,
    stamps: bool,
    closed: Vec<(u32, f64)>,
    /// Whether requests arrive at equal distances.
    even: bool,
}

impl Truth {
    fn new(discipline: Discipline, servers: u32, law: Law, delay_s: f64) -> Self {
        let station = Candidate { order: Order::OneQueue(discipline), servers, delay_s };
        Self { station, law, heavy_share: 0.0, heavy: 1.0, stamps: false, closed: Vec::new(), even: false }
    }

    fn capacity_per_s(&self) -> f64 {
        let mean_s = self.law.mean_s() * (1.0 + self.heavy_share * (self.heavy - 1.0));
        f64::from(self.station.servers) / mean_s
    }

    /// The rows of a run at a share of the capacity.
    fn rows(&self, rho: f64, requests: usize, seed: u64) -> Vec<RequestRow> {
        let mut arrivals = stream(seed, Purpose::Arrivals, 0);
        let mut services = stream(seed, Purpose::Service, 0);
        let mut now_s = 0.0;
        let arrive = |_| {
            let gap = if self.even { 1.0 } else { exponential(&mut arrivals) };
            now_s += gap / (rho * self.capacity_per_s());
            let class = usize::from(unit(&mut services) < self.heavy_share);
            let service_s = self.law.sample(&mut services) * [1.0, self.heavy][class];
            Visit { arrival_s: now_s, service_s, class }
        };
        let visits: Vec<Visit> = (0..requests).map(arrive).collect();
        let responses =
            self.station.responses_s(&visits, &Conditions { closed: &self.closed, ..Conditions::default() });
        let ns = |s: f64| (s * 1e9) as i64;
        let row = |(index, (visit, response_s)): (usize, (&Visit, f64))| {
            let (sent, completed) = (ns(visit.arrival_s), ns(visit.arrival_s + response_s));
            let row =
                RequestRow::due(index as u64, sent).sent_at(sent, 1).ended(Outcome::Answered, completed);
            let row = RequestRow { class: visit.class as u32, ..row };
            let queued = sent + ns(self.station.delay_s / 2.0);
            let finished = completed - ns(self.station.delay_s / 2.0);
            match self.stamps {
                true => row.served(queued, finished - ns(visit.service_s), finished),
                false => row,
            }
        };
        visits.iter().zip(responses).enumerate().map(row).collect()
    }

    fn observed(&self, capacity: Option<Capacity>, known: Option<KnownStation>) -> Observed {
        let block = |(at, rho): (usize, f64)| {
            (rho * self.capacity_per_s(), Block::of(&self.rows(rho, REQUESTS, 35 + at as u64), 0))
        };
        let blocks = [0.2, 0.35, 0.5].into_iter().enumerate().map(block).collect();
        Observed::new(blocks, capacity, known).unwrap()
    }

    fn measured_capacity(&self) -> Option<Capacity> {
        Some(Capacity { per_s: self.capacity_per_s(), relative_sd: 0.003, blocks: 40, requests: 1e4 })
    }

    fn predictor(&self) -> Predictor {
        Predictor::new(&self.observed(self.measured_capacity(), None), 1)
    }

    fn predict(&self, rho: f64) -> Prediction {
        self.predictor().predict(&Question::at(rho * self.capacity_per_s(), 60_000)).unwrap()
    }
}

fn p99(prediction: &Prediction) -> Estimate {
    prediction.quantiles.iter().find(|quantile| quantile.0 == 0.99).unwrap().1
}

fn near(found: Estimate, truth: f64, within: f64) {
    let error = found.value / truth - 1.0;
    assert!(error.abs() < within, "{found:?} {truth} {error}");
    let (low, high) = found.interval.unwrap();
    assert!(low < truth && truth < high, "{found:?} {truth}");
}

/// Means and 99 % quantiles at 85 % of the capacity, in service times, by formula and by inversion of transforms.
#[test]
fn stations_are_recognised_and_predicted_at_loads_that_were_not_measured() {
    let (fifo, sharing) = (Discipline::Fifo, Discipline::ProcessorSharing);
    let exponential = Law::Exponential { mean_s: SERVICE_S };
    let erlang = Law::Erlang { shape: 4, mean_s: SERVICE_S };
    let cases = [
        (Truth::new(fifo, 1, exponential.clone(), 0.0), 6.667, 30.70),
        (Truth::new(fifo, 1, erlang, 0.003), 1.0 + 0.85 * 1.25 / 0.3, 19.09),
        (Truth::new(sharing, 1, exponential.clone(), 0.002), 6.667, 50.71),
        (Truth::new(fifo, 4, exponential, 0.003), 2.106, 8.559),
    ];
    for (truth, mean, quantile) in cases {
        let found = truth.predict(0.85);
        let delay_s = truth.station.delay_s;
        near(found.mean_s, mean * SERVICE_S + delay_s, 0.08);
        near(p99(&found), quantile * SERVICE_S + delay_s, 0.15);
        let likeliest = &found.stations[0];
        assert_eq!(
            (likeliest.discipline, likeliest.servers),
            (truth.station.order.discipline(), truth.station.servers),
            "{found:?}"
        );
        assert!((found.utilisation.value - 0.85).abs() < 0.02, "{found:?}");
    }
}

#[test]
fn other_servers_and_another_order_are_predicted_too() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let predictor = truth.predictor();
    let ask = |question: Question| predictor.predict(&question).unwrap();
    let at = Question::at(0.85 * truth.capacity_per_s(), 60_000);
    let shared = ask(Question { discipline: Some(Discipline::ProcessorSharing), ..at.clone() });
    near(p99(&shared), 50.71 * SERVICE_S, 0.15);
    // Four such servers at four times the rate.
    let rate_per_s = 4.0 * at.rate_per_s;
    near(p99(&ask(Question { servers: Some(4), rate_per_s, ..at.clone() })), 8.559 * SERVICE_S, 0.15);
    let farther = ask(Question { more_delay_s: 0.5, ..at.clone() });
    near(farther.mean_s, 6.667 * SERVICE_S + 0.5, 0.08);
    let overload = predictor.predict(&Question::at(2.0 * truth.capacity_per_s(), 1_000)).unwrap_err();
    assert!(
        matches!(overload, NoPrediction::Overload { .. })
            && overload.to_string().contains("exceeds the capacity of"),
        "{overload}"
    );
}

#[test]
fn less_effort_answers_the_same_question_more_roughly() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let predictor = truth.predictor();
    let question = Question::at(0.7 * truth.capacity_per_s(), 20_000);
    let full = predictor.predict(&question).unwrap();
    let shares = [0.25, 0.5, 0.9, 0.95, 0.99, 0.999];
    let fine = predictor.predict_within(&question, Effort::FULL, &shares).unwrap();
    assert_eq!((&fine.quantiles[1..], &fine.advice), (&full.quantiles[..], &full.advice));
    let preview = Effort { draws: 30, most_simulated: 4_000 };
    let rough = predictor.predict_within(&question, preview, &[0.5]).unwrap();
    assert_eq!((rough.requests, rough.capacity_per_s, rough.advice), (20_000, full.capacity_per_s, None));
    near(rough.mean_s, full.mean_s.value, 0.1);
    let none = Effort { draws: 0, most_simulated: 0 };
    assert!(predictor.predict_within(&question, none, &[]).unwrap().mean_s.value > 0.0);
}

#[test]
fn the_highest_rate_is_that_of_the_formula() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let predictor = truth.predictor();
    let any = Question::at(1.0, 60_000);
    // S/(1 − ρ) is 50 ms at 80 %, and ln 100 times the mean is p99.
    let rate = predictor.highest_rate("mean<50ms".parse().unwrap(), &any).unwrap();
    near(rate, 80.0, 0.03);
    let rate = predictor.highest_rate("p99<230.26ms".parse().unwrap(), &any).unwrap();
    near(rate, 80.0, 0.03);
    let never = predictor.highest_rate("p99<1us".parse().unwrap(), &any).unwrap_err().to_string();
    assert!(never.contains("no rate meets p99 < 1 µs"), "{never}");
}

#[test]
fn classes_come_in_other_proportions() {
    let light = Truth {
        heavy_share: 0.2,
        heavy: 5.0,
        ..Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: 0.005 }, 0.0)
    };
    let predictor = light.predictor();
    let heavier = Truth { heavy_share: 0.4, ..light.clone() };
    let rate_per_s = 0.7 * heavier.capacity_per_s();
    let question = Question { mix: Some(vec![0.6, 0.4]), ..Question::at(rate_per_s, 60_000) };
    let found = predictor.predict(&question).unwrap();
    let truth = heavier.rows(0.7, 400_000, 77);
    let responses: Vec<f64> = truth.iter().map(|row| row.response_ns().unwrap() as f64 / 1e9).collect();
    near(found.mean_s, kendall_stats::mean(&responses), 0.1);
    let missing = predictor.predict(&Question { mix: Some(vec![0.5, 0.2, 0.3]), ..question }).unwrap_err();
    assert_eq!(missing, NoPrediction::UnmeasuredClass(2));
}

#[test]
fn timestamps_give_the_service_times_and_the_delay() {
    let plain = Truth::new(Discipline::Fifo, 2, Law::LogNormal { mean_s: SERVICE_S, scv: 1.0 }, 0.004);
    let truth = Truth { stamps: true, ..plain };
    let known =
        KnownStation { servers: Servers::new(2).unwrap(), discipline: Discipline::Fifo, classes: Vec::new() };
    let observed = truth.observed(None, Some(known));
    let found =
        Predictor::new(&observed, 1).predict(&Question::at(0.8 * truth.capacity_per_s(), 60_000)).unwrap();
    assert!((found.delay_s.value - 0.004).abs() < 1e-6, "{found:?}");
    assert_eq!(found.stations.len(), 1);
    let rows = truth.rows(0.8, 400_000, 78);
    let responses: Vec<f64> = rows.iter().map(|row| row.response_ns().unwrap() as f64 / 1e9).collect();
    near(found.mean_s, kendall_stats::mean(&responses), 0.08);
}

#[test]
fn without_a_capacity_the_interval_is_wide_and_says_what_to_measure() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let without = Predictor::new(&truth.observed(None, None), 1)
        .predict(&Question::at(0.85 * truth.capacity_per_s(), 60_000))
        .unwrap();
    let with = truth.predict(0.85);
    let width = |found: &Prediction| p99(found).half_width() / p99(found).value;
    assert!(width(&without) > 1.5 * width(&with), "{without:?} {with:?}");
    assert_eq!(without.advice, Some(Advice::MeasureCapacity));
}

#[test]
fn too_few_and_lost_requests_are_refused() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let rows = truth.rows(0.3, 100, 1);
    let few = Observed::new(vec![(30.0, Block::of(&rows, 0))], None, None).unwrap_err();
    assert!(matches!(few, NothingObserved::TooFew) && few.to_string().contains("20 %"), "{few}");
    let mut rows = truth.rows(0.3, 1_000, 1);
    rows.iter_mut().step_by(10).for_each(|row| row.outcome = Outcome::Refused);
    let lost = Observed::new(vec![(30.0, Block::of(&rows, 0))], None, None).unwrap_err();
    assert!(lost.to_string().contains("10.0 %"), "{lost}");
}

#[test]
fn the_strongest_baseline_is_right_for_one_exponential_server() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let observed = truth.observed(truth.measured_capacity(), None);
    let closed: Vec<(u32, f64)> =
        [1, 2, 4, 8].map(|users| (users, 100.0 * f64::from(users) / (f64::from(users) + 1.0))).into();
    let all = observed.baselines(70.0, 100.0, &closed);
    let of = |baseline| *all.iter().find(|found| found.baseline == baseline).unwrap();
    let error = |baseline| of(baseline).mean_s.unwrap() / (SERVICE_S / 0.3) - 1.0;
    assert!(error(Baseline::Hyperbola).abs() < 0.1, "{all:?}");
    assert!(error(Baseline::Same) < -0.3 && error(Baseline::Line) < -0.1, "{all:?}");
    assert_eq!(of(Baseline::Scalability).p99_s, None);
}

/// The stations that no single queue describes: a load balancer in turn, threads on processors, and Redis, which answers all that waited
/// together. Their p99 at 85 % differs from that of one queue by more than the interval.
#[test]
fn a_balancer_a_limit_and_batches_are_recognised() {
    let law = Law::Exponential { mean_s: SERVICE_S };
    for (order, servers) in [(Order::Turns, 2), (Order::AtMost(4), 2), (Order::Together, 1)] {
        let station = Candidate { order, servers, delay_s: 0.001 };
        let truth = Truth { station, ..Truth::new(Discipline::Fifo, servers, law.clone(), 0.0) };
        let found = truth.predict(0.85);
        assert_eq!(found.stations[0].station, order.words(servers), "{found:?}");
        let measured = truth.rows(0.85, 400_000, 79);
        let mut responses_s: Vec<f64> =
            measured.iter().map(|row| row.response_ns().unwrap() as f64 / 1e9).collect();
        responses_s.sort_by(f64::total_cmp);
        near(p99(&found), responses_s[responses_s.len() * 99 / 100], 0.15);
    }
}

/// Few requests of low loads find more present than there are servers, and those of a full load do.
#[test]
fn a_full_load_shows_the_order_of_service() {
    let exponential = Law::Exponential { mean_s: SERVICE_S };
    for discipline in [Discipline::Fifo, Discipline::ProcessorSharing] {
        let truth = Truth::new(discipline, 4, exponential.clone(), 0.001);
        let block = |(at, rho): (usize, f64)| {
            (rho * truth.capacity_per_s(), Block::of(&truth.rows(rho, 800, 5 + at as u64), 0))
        };
        let blocks = [0.2, 0.35, 0.5].into_iter().enumerate().map(block).collect();
        let mut rng = stream(7, Purpose::Service, 0);
        let services_s: Vec<f64> = (0..4_000).map(|_| truth.law.sample(&mut rng)).collect();
        let responses_s = truth.station.population_s(16, &services_s, &Conditions::default());
        let ended = |(at, response_s): (usize, &f64)| {
            let sent = at as i64;
            let completed = sent + (response_s * 1e9) as i64;
            RequestRow::due(at as u64, sent).sent_at(sent, 1).ended(Outcome::Answered, completed)
        };
        let rows: Vec<RequestRow> = responses_s.iter().enumerate().map(ended).collect();
        let low = Observed::new(blocks, truth.measured_capacity(), None).unwrap();
        let share = |observed: &Observed| {
            let found = Predictor::new(observed, 1).predict(&Question::at(300.0, 1_000)).unwrap();
            let right = truth.station.order.words(4);
            found.stations.iter().find(|station| station.station == right).map_or(0.0, |right| right.share)
        };
        let shares = [share(&low), share(&low.clone().with_full_load(16, &Block::of(&rows, 0)))];
        assert!(shares[0] < 0.8 && shares[1] > 0.9, "{discipline:?}: {shares:?}");
    }
}

#[test]
fn delays_that_differ_do_not_count_as_service_where_requests_wait() {
    // Each request takes the same time at the server, and a random one before it.
    let truth = Truth::new(Discipline::Fifo, 1, Law::Constant { mean_s: SERVICE_S }, 0.0);
    let mut rng = stream(35, Purpose::Sample, 0);
    let block = |rho: f64| {
        let mut rows = truth.rows(rho, REQUESTS, 36);
        for row in &mut rows {
            row.sent = row.sent.map(|sent| sent - (0.5e9 * SERVICE_S * exponential(&mut rng)) as i64);
        }
        (rho * truth.capacity_per_s(), Block::of(&rows, 0))
    };
    let blocks: Vec<(f64, Block)> = [0.2, 0.35, 0.5].map(block).into();
    let observed = Observed::new(blocks, truth.measured_capacity(), None).unwrap();
    let question = Question::at(0.9 * truth.capacity_per_s(), 60_000);
    let predicted = Predictor::new(&observed, 1).predict(&question).unwrap().mean_s.value;
    // The Pollaczek–Khinchine formula, and the mean delay.
    let mean_s = (1.0 + 0.9 / (2.0 * 0.1) + 0.5) * SERVICE_S;
    assert!((predicted / mean_s - 1.0).abs() < 0.1, "{predicted} {mean_s}");
}

/// Few measurements of a capacity may happen to agree, many do not.
#[test]
fn few_measurements_of_the_capacity_that_agree_leave_the_interval_wide() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let width = |blocks, relative_sd| {
        let capacity =
            Capacity { per_s: truth.capacity_per_s(), relative_sd, blocks, requests: f64::INFINITY };
        let observed = truth.observed(Some(capacity), None);
        let found = Predictor::new(&observed, 1).capacity_per_s(&Question::at(1.0, 1)).unwrap();
        let (low, high) = found.interval.unwrap();
        (high - low) / found.value
    };
    assert!((0.05..0.1).contains(&width(3, 0.001)), "{}", width(3, 0.001));
    assert!(width(3, 0.03) > 1.2 * width(3, 0.001));
    assert!(width(40, 0.001) < 0.4 * width(3, 0.001));
    assert!(width(40, 0.03) > 0.08, "{}", width(40, 0.03));
}

#[test]
fn where_the_capacity_makes_the_interval_wide_longer_loads_are_not_advised() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let capacity =
        Capacity { per_s: truth.capacity_per_s(), relative_sd: 0.03, blocks: 5, requests: f64::INFINITY };
    let predictor = Predictor::new(&truth.observed(Some(capacity), None), 1);
    let found = predictor.predict(&Question::at(0.9 * truth.capacity_per_s(), 60_000)).unwrap();
    let advised = found.advice.unwrap();
    assert!(
        matches!(advised, Advice::SteadierCapacity { relative_sd } if (0.02..0.04).contains(&relative_sd)),
        "{advised:?}"
    );
}

/// The interval of a run that is too long to simulate is that of a shorter one, whose scatter a longer run does not make smaller.
#[test]
fn a_run_that_is_long_enough_already_is_not_advised_to_be_longer() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let capacity =
        Capacity { per_s: truth.capacity_per_s(), relative_sd: 0.0, blocks: 10_000, requests: f64::INFINITY };
    let predictor = Predictor::new(&truth.observed(Some(capacity), None), 1);
    let rate_per_s = 0.95 * truth.capacity_per_s();
    let advised = |requests: u64| predictor.predict(&Question::at(rate_per_s, requests)).unwrap().advice;
    let planned_s = |requests: u64| requests as f64 / rate_per_s;
    let short = advised(5_000);
    assert!(
        matches!(short, Some(Advice::LongerRun { duration_s }) if duration_s > planned_s(5_000)),
        "{short:?}"
    );
    let long = advised(30_000_000);
    assert!(!matches!(long, Some(Advice::LongerRun { .. })), "{long:?}");
}

/// A server that slows down as requests accumulate: closed populations show it, and a burst may then become an overload that lasts.
#[test]
fn a_speed_that_falls_with_the_number_present_makes_the_interval_reach_the_collapse() {
    let per_s = |users: u32| (users, 100.0 * (4.0 / f64::from(users.max(4))).sqrt());
    let closed = [1, 2, 4, 8, 16, 32, 64].map(per_s).to_vec();
    let station = Candidate { order: Order::SharedSpeed, servers: 1, delay_s: 0.0 };
    let constant = Truth::new(Discipline::ProcessorSharing, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let truth = Truth { station, closed: closed.clone(), ..constant };
    let observed = truth.observed(truth.measured_capacity(), None).with_populations(&closed);
    let found = Predictor::new(&observed, 1).predict(&Question::at(85.0, 20_000)).unwrap();
    assert_eq!(found.stations[0].station, Order::SharedSpeed.words(1), "{found:?}");
    assert!(found.mean_s.interval.unwrap().1 > 10.0, "{found:?}");
}

/// A burst that a server of constant speed works off may become an overload that lasts where a long queue costs a quarter of it.
#[test]
fn a_throughput_that_falls_with_a_long_queue_makes_the_interval_reach_the_overload() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let highest_s = |longer: f64| {
        let mut observed =
            truth.observed(truth.measured_capacity(), None).with_queue(64, &[longer, longer], 5_000.0);
        observed.full_users = Some(8);
        let found = Predictor::new(&observed, 1).predict(&Question::at(93.0, 20_000)).unwrap();
        assert_eq!(found.stations[0].station, truth.station.order.words(1), "{found:?}");
        found.mean_s.interval.unwrap().1
    };
    assert!(highest_s(1.33) > 10.0 * highest_s(1.0), "{} {}", highest_s(1.33), highest_s(1.0));
}

/// A server that works once for all that wait reaches its capacity in a long queue, which then forms. At 110/s service must be 1.1 times as
/// fast as with 32 present, and with 512 it is 1.5625 times: between them, on a line, as many requests are present as need that time.
#[test]
fn a_throughput_that_rises_with_a_long_queue_takes_a_long_queue() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let observed = truth.observed(truth.measured_capacity(), None).with_queue(512, &[0.64; 2], 5_000.0);
    let mut observed = observed.with_populations(&[(8, 100.0), (32, 100.0)]);
    observed.full_users = Some(8);
    let found = Predictor::new(&observed, 1).predict(&Question::at(110.0, 60_000)).unwrap();
    near(found.capacity_per_s, 156.25, 0.05);
    let present = 32.0 + 480.0 * (1.0 - 1.0 / 1.1) / 0.36;
    near(found.mean_s, present / 110.0, 0.2);
}

/// Where throughput falls with a long queue, a population in between shows whether a short queue suffices.
#[test]
fn a_throughput_that_falls_early_makes_an_overload_likelier() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let highest_s = |per_s_of_32: f64| {
        let observed = truth.observed(truth.measured_capacity(), None).with_queue(512, &[1.15; 2], 5_000.0);
        let mut observed = observed.with_populations(&[(8, 100.0), (32, per_s_of_32)]);
        observed.full_users = Some(8);
        let found = Predictor::new(&observed, 1).predict(&Question::at(92.0, 20_000)).unwrap();
        found.mean_s.interval.unwrap().1
    };
    let (early, late) = (highest_s(87.0), highest_s(100.0));
    assert!(early > 5.0 * late, "{early} {late}");
}

/// A server that wakes up once for all that wait: alone it serves 100/s, and with 64 present 150/s. At 127.5/s it is steady although service
/// at the mean number present of a server of constant speed would take longer than there is time.
#[test]
fn service_that_shortens_with_the_number_present_is_predicted_beyond_the_capacity_for_one_by_one() {
    let per_s = |users: u32| (users, 100.0 / (1.0 - libm::log(f64::from(users)) / libm::log(64.0) / 3.0));
    let closed = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64].map(per_s).to_vec();
    let station = Candidate { order: Order::SerialSpeed, servers: 1, delay_s: 0.0 };
    let constant = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let truth = Truth { station, closed, ..constant };
    let capacity = Capacity { per_s: 150.0, ..truth.measured_capacity().unwrap() };
    let predictor = Predictor::new(&truth.observed(Some(capacity), None), 1);
    let found = predictor.predict(&Question::at(127.5, 60_000)).unwrap();
    let rows = truth.rows(1.275, 400_000, 7);
    let mut responses_s: Vec<f64> =
        rows.iter().filter_map(|row| row.response_ns()).map(|ns| ns as f64 / 1e9).collect();
    near(found.mean_s, kendall_stats::mean(&responses_s), 0.1);
    responses_s.sort_by(f64::total_cmp);
    near(p99(&found), responses_s[responses_s.len() * 99 / 100], 0.15);
    assert!((0.87..0.97).contains(&(127.5 * found.service_s.value)), "{found:?}");
}

/// D/M/1: the mean response time is S/(1 − σ), where σ = exp(−(1 − σ)/ρ) is 0.7156 at 85 % (Kleinrock 1975, section 6.4).
#[test]
fn arrivals_at_equal_distances_are_predicted_as_such() {
    let poisson = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    assert_eq!(poisson.predictor().arrival_scv(), None);
    let even = Truth { even: true, ..poisson };
    assert!(even.predictor().arrival_scv().unwrap() < 0.01);
    near(even.predict(0.85).mean_s, SERVICE_S / (1.0 - 0.7156), 0.1);
}
