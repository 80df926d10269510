//! A report as the laboratory would make it, from a small queue computed here: two servers, uniform service times,
//! models M/M/2 and M/G/2. The last rate is more than the servers can do.

use kendall_analysis::{
    Counts, Curve, Factor, FactorKind, Growth, Modelled, Modelling, Point, Report, ServiceSeen,
    ServiceSpread, TrialLine,
};
use kendall_station::{Answer, By, Estimate, Law, QUANTILES, Quantile, Summary};
use kendall_stats::random;

const SERVERS: usize = 2;
const TRIALS: u64 = 3;
const DELAY_S: f64 = 0.4e-3;
const MEAN_S: f64 = 9.5e-3;

/// A page without its script and without the data of its plots, which no reader reads as text.
#[allow(dead_code, reason = "not every test reads pages")]
pub(crate) fn without_script(page: &str) -> String {
    let script = format!("<script>\n{}</script>", kendall_report::script::SCRIPT);
    let page = page.replacen(&script, "", 1);
    let mut parts = page.split("<script type=\"application/json\" class=\"plot\">");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("</script>").expect("data ends").1)
}

/// The report of the sample experiment.
pub(crate) fn report() -> Report {
    let rates: [f64; 6] = [40.0, 85.0, 125.0, 160.0, 190.0, 230.0];
    let runs: Vec<Vec<Run>> = rates
        .iter()
        .map(|&rate| (0..TRIALS).map(|trial| run(rate, &uniform(), 8000, trial)).collect())
        .collect();
    Report {
        name: "sample".to_owned(),
        question: "How long do requests to a server with two workers take as their rate grows?".to_owned(),
        notes: String::new(),
        started_utc: "2026-11-21 04:15:00".to_owned(),
        command: "kendall run experiments/sample.toml".to_owned(),
        machine: [("processor", "2 cores"), ("kernel", "Linux 6.12"), ("kendall", "0.1.0"), ("seed", "7")]
            .map(|(what, value)| (what.to_owned(), value.to_owned()))
            .to_vec(),
        letters: Vec::new(),
        factors: vec![Factor {
            name: "rate".to_owned(),
            unit: "/s".to_owned(),
            kind: FactorKind::Number,
            is_load: true,
            values: rates.iter().map(f64::to_string).collect(),
        }],
        points: rates.iter().zip(&runs).map(|(&rate, runs)| point(rate, runs)).collect(),
        trials: trials(&rates, &runs),
        trial_views: vec![],
        links: vec![],
        traffic: kendall_analysis::traffic::Traffic::default(),
        scaling: vec![],
        effects: vec![],
        planned_trials: rates.len() * TRIALS as usize,
        curves: vec![curve("M/M/2", 1.0), curve("M/G/2", 1.0 / 3.0)],
        published: vec![],
        checks: vec![],
        resources: vec![],
        expected: Vec::new(),
        doubts: Vec::new(),
        machine_limits: Vec::new(),
        experiment_toml:
            "question = \"How long do requests take?\"\n\n[load]\nrate = [40, 85, 125, 160, 190, 230]\n"
                .to_owned(),
    }
}

/// The sample with a second factor.
#[allow(dead_code, reason = "not every test compares groups")]
pub(crate) fn grouped() -> Report {
    let mut report = report();
    report.factors.push(Factor {
        name: "length".to_owned(),
        unit: "kB".to_owned(),
        kind: FactorKind::Number,
        is_load: false,
        values: vec![],
    });
    report.curves.clear();
    let doubled = |point: &Point, length: &str, factor: f64| {
        let mut point = point.clone();
        point.settings.push(("length".to_owned(), length.to_owned()));
        let mean_s = &mut point.measured.response.mean_s;
        *mean_s = Estimate::within(factor * mean_s.value, factor * mean_s.half_width());
        point
    };
    let twice = |(length, factor)| report.points.iter().map(move |point| doubled(point, length, factor));
    report.points = [("3", 1.0), ("30", 1.5)].into_iter().flat_map(twice).collect();
    report
}

/// The sample as categories: two cases, and under each three ways to serve, of weighted requests.
#[allow(dead_code, reason = "not every test compares categories")]
pub(crate) fn categories() -> Report {
    let mut report = report();
    let factor = |name: &str, values: &[&str]| Factor {
        name: name.to_owned(),
        unit: String::new(),
        kind: FactorKind::Category,
        is_load: false,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let (cases, ways) = (["many easy", "one big"], ["fifo", "priority", "gittins"]);
    report.factors = vec![factor("case", &cases), factor("discipline", &ways)];
    report.curves.clear();
    let levels = cases.iter().flat_map(|case| ways.iter().map(move |way| (*case, *way)));
    for (at, (point, (case, way))) in report.points.iter_mut().zip(levels).enumerate() {
        point.settings =
            vec![("case".to_owned(), case.to_owned()), ("discipline".to_owned(), way.to_owned())];
        point.x = (at / ways.len()) as f64;
        let mean_s = Estimate::within(0.1 * (at + 1) as f64, 0.005);
        point.measured.response.mean_s = mean_s;
        point.measured.weighted_response_s = Some(Estimate::within(2.0 * mean_s.value, 0.01));
    }
    report
}

fn uniform() -> Law {
    Law::Uniform { low_s: 0.0, high_s: 2.0 * MEAN_S }
}

/// Response, waiting and service times of one trial, in order of arrival.
struct Run {
    response_s: Vec<f64>,
    waiting_s: Vec<f64>,
    service_s: Vec<f64>,
    length_s: f64,
}

/// Requests served first come, first served: each goes to the server that is free first.
fn run(rate_per_s: f64, service: &Law, requests: usize, trial: u64) -> Run {
    let mut rng = random::stream(7 + trial, random::Purpose::Trial, rate_per_s as u64);
    let gap = Law::exponential_rate(rate_per_s);
    let (mut now_s, mut free_s) = (0.0, [0.0f64; SERVERS]);
    let mut run = Run { response_s: vec![], waiting_s: vec![], service_s: vec![], length_s: 0.0 };
    for _ in 0..requests {
        now_s += gap.sample(&mut rng);
        let service_s = service.sample(&mut rng);
        free_s.sort_by(f64::total_cmp);
        let start_s = free_s[0].max(now_s);
        free_s[0] = start_s + service_s;
        run.response_s.push(free_s[0] - now_s + DELAY_S);
        run.waiting_s.push(start_s - now_s);
        run.service_s.push(service_s);
    }
    run.length_s = free_s.into_iter().fold(now_s, f64::max);
    run
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of trial means with its interval: 4.303 is Student's t for three trials.
fn over_trials(means: &[f64]) -> Estimate {
    let centre = mean(means);
    let square = |value: &f64| (value - centre).powi(2);
    let deviation = (means.iter().map(square).sum::<f64>() / (means.len() - 1) as f64).sqrt();
    Estimate::within(centre, 4.303 * deviation / (means.len() as f64).sqrt())
}

fn summary(of: fn(&Run) -> &Vec<f64>, runs: &[Run]) -> Summary {
    let mut all: Vec<f64> = runs.iter().flat_map(|run| of(run).iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let quantile =
        |p: f64| Quantile { p, value_s: Estimate::exact(all[(p * (all.len() - 1) as f64) as usize]) };
    Summary {
        mean_s: over_trials(&runs.iter().map(|run| mean(of(run))).collect::<Vec<_>>()),
        variance_s2: None,
        quantiles: QUANTILES.map(quantile).to_vec(),
    }
}

fn answer(by: By, rate_per_s: f64, response: Summary, waiting: Summary) -> Answer {
    let utilisation = (rate_per_s * MEAN_S / SERVERS as f64).min(1.0);
    let in_system = Estimate::exact(rate_per_s * response.mean_s.value);
    Answer {
        by,
        response,
        waiting,
        p_wait: Estimate::exact(utilisation),
        throughput_per_s: Estimate::exact(utilisation * SERVERS as f64 / MEAN_S),
        utilisation: Estimate::exact(utilisation),
        in_system,
        lost: Estimate::exact(0.0),
        weighted_response_s: None,
        classes: vec![],
    }
}

fn measured(rate_per_s: f64, runs: &[Run]) -> Answer {
    let by = By::Measurement { requests: 24_000, trials: TRIALS };
    answer(by, rate_per_s, summary(|run| &run.response_s, runs), summary(|run| &run.waiting_s, runs))
}

fn simulated(rate_per_s: f64, service: &Law) -> Modelling {
    let runs: Vec<Run> = (10..13).map(|seed| run(rate_per_s, service, 40_000, seed)).collect();
    let by = By::Simulation { customers: 120_000, runs: None, seed: 10, needed: None };
    let response = summary(|run| &run.response_s, &runs);
    Modelling::Answer(Box::new(answer(by, rate_per_s, response, summary(|run| &run.waiting_s, &runs))))
}

/// M/M/2 in closed form; for M/G/2 the wait of M/M/2 × (1 + squared coefficient of variation) / 2 (Allen–Cunneen).
fn wait_s(rate_per_s: f64, scv: f64) -> Option<f64> {
    let utilisation = rate_per_s * MEAN_S / SERVERS as f64;
    (utilisation < 1.0)
        .then(|| MEAN_S * utilisation.powi(2) / (1.0 - utilisation.powi(2)) * (1.0 + scv) / 2.0)
}

fn formula(rate_per_s: f64, scv: f64) -> Modelling {
    let Some(wait_s) = wait_s(rate_per_s, scv) else {
        return Modelling::NoAnswer("utilisation is 1 or more, so the queue grows without bound".to_owned());
    };
    let summary = |mean_s| Summary { mean_s: Estimate::exact(mean_s), variance_s2: None, quantiles: vec![] };
    let by = By::Formula { source: "Erlang C".to_owned(), approximate: None };
    let mut answer = answer(by, rate_per_s, summary(wait_s + MEAN_S + DELAY_S), summary(wait_s));
    if scv == 1.0 {
        // M/M/2: P(T > t) = e^{-μt} (1 + P(wait) (1 − e^{-μ(1−2ρ)t}) / (1 − 2ρ)), solved by bisection.
        let utilisation = rate_per_s * MEAN_S / 2.0;
        let (p_wait, room) = (2.0 * utilisation.powi(2) / (1.0 + utilisation), 1.0 - 2.0 * utilisation);
        let tail = |t_s: f64| {
            let services = t_s / MEAN_S;
            let extra = if room.abs() < 1e-9 { services } else { -(-services * room).exp_m1() / room };
            (-services).exp() * (1.0 + p_wait * extra)
        };
        let quantile = |p: f64| {
            let (mut low, mut high) = (0.0, 100.0);
            for _ in 0..80 {
                let middle = (low + high) / 2.0;
                if tail(middle) > 1.0 - p { low = middle } else { high = middle }
            }
            Quantile { p, value_s: Estimate::exact(low + DELAY_S) }
        };
        answer.response.quantiles = QUANTILES.map(quantile).to_vec();
    }
    Modelling::Answer(Box::new(answer))
}

fn curve(notation: &str, scv: f64) -> Curve {
    let at = |step: u32| {
        let rate_per_s = f64::from(step) * 0.5;
        Some((rate_per_s, wait_s(rate_per_s, scv)?))
    };
    let mean_waiting_s: Vec<(f64, f64)> = (1..500).filter_map(at).collect();
    let response = |&(rate_per_s, wait_s): &(f64, f64)| (rate_per_s, wait_s + MEAN_S + DELAY_S);
    let mean_response_s = mean_waiting_s.iter().map(response).collect();
    Curve {
        notation: notation.to_owned(),
        group: vec![],
        mean_response_s,
        mean_waiting_s,
        throughput_per_s: vec![],
    }
}

fn point(rate_per_s: f64, runs: &[Run]) -> Point {
    let stable = rate_per_s * MEAN_S < SERVERS as f64;
    let unstable =
        || Modelling::NoAnswer("utilisation is 1 or more, so the queue grows without bound".to_owned());
    let model = |notation: &str, scv: f64, law: Law| Modelled {
        notation: notation.to_owned(),
        formula: formula(rate_per_s, scv),
        simulation: if stable { simulated(rate_per_s, &law) } else { unstable() },
    };
    let mut responses_s: Vec<f64> =
        runs.iter().flat_map(|run| run.response_s.iter().step_by(12).copied()).collect();
    responses_s.sort_by(f64::total_cmp);
    let service: Vec<f64> = runs.iter().flat_map(|run| run.service_s.iter().copied()).collect();
    let mean_s = mean(&service);
    let scv = service.iter().map(|value| (value / mean_s - 1.0).powi(2)).sum::<f64>() / service.len() as f64;
    let half = |late: bool| {
        let half = |run: &Run| mean(&run.response_s[if late { 4000..8000 } else { 0..4000 }]);
        mean(&runs.iter().map(half).collect::<Vec<_>>())
    };
    Point {
        settings: vec![("rate".to_owned(), rate_per_s.to_string())],
        x: rate_per_s,
        offered_per_s: Some(rate_per_s),
        measured: measured(rate_per_s, runs),
        delay_s: DELAY_S,
        models: vec![
            model("M/M/2", 1.0, Law::Exponential { mean_s: MEAN_S }),
            model("M/G/2", 1.0 / 3.0, uniform()),
        ],
        tail_s: tail(&responses_s),
        spread: Some(spread(&service)),
        responses_s,
        service: Some(ServiceSeen { mean_s, scv, n: service.len() as u64 }),
        fixed_s: None,
        capacity: None,
        utilisation_offered: Some(rate_per_s * mean_s / SERVERS as f64),
        growing: (!stable).then(|| Growth { first_half_s: half(false), second_half_s: half(true) }),

        total_time_s: None,
        replay: None,
        expected: None,
    }
}

/// Some quantiles of an ascending sample.
fn tail(sorted_s: &[f64]) -> Vec<(f64, f64)> {
    let last = (sorted_s.len() - 1) as f64;
    [0.0, 0.5, 0.9, 0.99, 0.999].map(|p| (p, sorted_s[(p * last) as usize])).to_vec()
}

/// Service times, uniform from 0 to twice the mean, in ten intervals, and the law that they were drawn from.
fn spread(service_s: &[f64]) -> ServiceSpread {
    let edges_s: Vec<f64> = (0..=10).map(|edge| 2.0 * MEAN_S * f64::from(edge) / 10.0).collect();
    let share = |pair: &[f64]| {
        let within = service_s.iter().filter(|time_s| (pair[0]..pair[1]).contains(*time_s)).count();
        within as f64 / service_s.len() as f64
    };
    let shares = edges_s.windows(2).map(share).collect();
    ServiceSpread { edges_s, shares, laws: vec![("U, the uniform law".to_owned(), vec![0.1; 10])] }
}

fn trials(rates: &[f64], runs: &[Vec<Run>]) -> Vec<TrialLine> {
    let mut trials = Vec::new();
    for trial in 0..TRIALS {
        for (point, rate) in rates.iter().enumerate() {
            let run = &runs[point][trial as usize];
            let sent = run.response_s.len() as u64;
            trials.push(TrialLine {
                id: format!("{:03}-rate={rate}", trials.len() + 1),
                point: Some(point),
                seed: 7 + trial,
                response_s: None,
                response_p99_s: None,
                weighted_response_s: None,
                counts: Counts { sent, answered: sent, ..Counts::default() },
                little_gap: Some(1e-4),
                send_lag_p99_s: Some(0.2e-3),
                left_out: None,
                server_cpu_cores: Some(run.service_s.iter().sum::<f64>() / run.length_s),
                doubts: vec![],
                limits: Vec::new(),
                is_replaced: false,
            });
        }
    }
    trials
}
