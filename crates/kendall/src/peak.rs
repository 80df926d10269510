//! `kendall peak`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use kendall_evidence::expect::ExpectationVerdict;
use kendall_evidence::fit::Slo;
use kendall_evidence::peak::{Aim, Outcome, Probe, Why};
use kendall_lab::{
    DisturbedProbes, Event, Peak, PeakError, PeakPlan, PeakSetting, UnfinishedBy, peak as find,
};
use kendall_station::Estimate;
use kendall_stats::number::{rough_time, significant, time, time_with_interval};

use crate::awake::AwakeOption;
use crate::gate::Gate;
use crate::options::{positive_time, share};
use crate::target::{Target, TargetSettings};
use crate::{INTERRUPTED, print, quiet};

#[derive(Args)]
pub(crate) struct PeakOptions {
    /// The server and the requests, as a URL, as for kendall load
    #[arg(value_name = "URL")]
    target: String,

    #[command(flatten)]
    asked: TargetSettings,

    /// The objective: the mean response time or a quantile below a limit, such as 'p99<50ms' or 'mean<0.2s'
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Slo,

    /// The share of requests that may lack a right answer
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = share)]
    errors: f64,

    /// Duration of a probe; inconclusive probes are repeated four times as long, and low rates are probed longer to get enough requests
    #[arg(short, long, alias = "probe", value_name = "DURATION", default_value = "5s", value_parser = positive_time)]
    duration: Duration,

    /// End the search after this time with what it knows by then; Ctrl-C does the same at once
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = positive_time)]
    budget: Duration,

    /// At most this many connections
    #[arg(short, long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    connections: u32,

    /// Give up a request after this time
    #[arg(short, long, value_name = "DURATION", default_value = "30s", value_parser = positive_time)]
    timeout: Duration,

    /// Seed of requests, arrivals and the order of confirmations; drawn at random if left out, and printed
    #[arg(long)]
    seed: Option<u64>,

    #[command(flatten)]
    awake: AwakeOption,

    #[command(flatten)]
    gate: Gate,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn peak(options: &PeakOptions) -> anyhow::Result<ExitCode> {
    let target = Target::read(&options.target, &options.asked)?;
    let plan = PeakPlan {
        aim: Aim { slo: options.slo, errors_at_most: options.errors },
        probe: options.duration,
        budget: options.budget,
        setting: PeakSetting {
            connections: options.connections,
            timeout: options.timeout,
            threads: kendall_experiment::Threads::default(),
            seed: options.seed.unwrap_or_else(kendall_lab::drawn_seed),
            servers: quiet::servers(target.address),
        },
    };
    if !options.json {
        quiet::warn(&plan.setting.servers);
    }
    let _awake = options.awake.keep()?;
    let workload = |seed: u64| (target.system.load)(target.address, &target.workload, seed);
    let cancel = crate::interrupt::ctrl_c()?;
    let mut tell = |event: &Event<'_>| {
        if let (false, Some(line)) = (options.json, line(event, plan.aim.slo)) {
            print::note(&line);
        }
    };
    let found = match find(&workload, &plan, &mut tell, &cancel) {
        Err(PeakError::Interrupted) => return Ok(ExitCode::from(INTERRUPTED)),
        found => found?,
    };
    if options.json {
        print::json(&found)?;
    } else {
        print::out(&(answer(&found).join("\n") + "\n"))?;
    }
    if found.unfinished == Some(UnfinishedBy::Interrupt) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::from(options.gate.status(Some(verdict(&found)), true)))
}

/// Whether a rate was found that meets the objective, with the range in which the highest one lies.
fn verdict(peak: &Peak) -> ExpectationVerdict {
    let has = |outcome: Outcome| peak.found.probes.iter().any(|probe| probe.outcome == outcome);
    match peak.found.rate_per_s {
        // Without its confirmations, the range is what a few probes say.
        _ if peak.unfinished.is_some() => ExpectationVerdict::Undecided,
        Some(rate) if range(rate).is_some() => ExpectationVerdict::Met,
        None if has(Outcome::Fail) && !has(Outcome::Pass) && !has(Outcome::Grey) => {
            ExpectationVerdict::Failed
        }
        _ => ExpectationVerdict::Undecided,
    }
}

/// The highest rate up to which every probe passed and the lowest from which every one failed, if both are known.
fn range(rate: Estimate) -> Option<(f64, f64)> {
    rate.interval.filter(|(low, high)| *low > 0.0 && high.is_finite())
}

/// What happens, as a line.
fn line(event: &Event<'_>, slo: Slo) -> Option<String> {
    Some(match event {
        Event::Users(users, per_s) => {
            let noun = if *users == 1 { "user" } else { "users" };
            format!("  {users:>3} {noun:<6} {:>8}/s", significant(*per_s, 4))
        }
        Event::Light(light, curve) => {
            let servers =
                if light.servers == 1 { "one server".into() } else { format!("{} servers", light.servers) };
            let guess = curve.highest_per_s(slo).map_or_else(
                || "it predicts that no rate meets the objective".to_owned(),
                |rate| format!("it predicts {slo} up to {}/s", significant(rate, 3)),
            );
            format!("A request alone takes {}; the model {servers}: {guess}", time(light.response_s))
        }
        Event::Asking(ask, length) if ask.why == Why::Longer => {
            format!("  … again at {}/s, for {:.0} s", significant(ask.rate_per_s, 4), length.as_secs_f64())
        }
        Event::Asking(ask, _) if ask.why == Why::Again => {
            format!("  … again at {}/s, because the probe was disturbed", significant(ask.rate_per_s, 4))
        }
        Event::Expected(length) => {
            let length = rough_time(length.as_secs_f64());
            format!("A search takes about {length} (--budget ends it earlier); so far:")
        }
        Event::Asking(..) => return None,
        Event::Probed(probe, disturbed) => {
            let disturbed = disturbed.map_or_else(String::new, |seen| format!("; {seen}"));
            format!("{}{disturbed}", probed(probe))
        }
    })
}

fn probed(probe: &Probe) -> String {
    let seen = &probe.sighting;
    let outcome = match probe.outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::Grey => "grey",
    };
    let mut words = vec![match seen.value_s {
        Some(value) if value.value.is_finite() => {
            time_with_interval(value.value, value.interval.filter(|(_, high)| high.is_finite()))
        }
        Some(_) => "beyond the limit when it was stopped".to_owned(),
        None => "too few requests".to_owned(),
    }];
    if seen.grows {
        words.push("unstable: the number in the system grows".into());
    }
    if seen.is_overloaded() {
        words.push(format!("only {:.0} % finished in time", seen.achieved_share * 100.0));
    }
    if seen.errors.value > 0.0 {
        words.push(format!("errors {}", print::percent(seen.errors.value)));
    }
    let why = if probe.ask.why == Why::Confirm { "  (to confirm)" } else { "" };
    format!("  {outcome} {:>8}/s  {}{why}", significant(probe.ask.rate_per_s, 4), words.join(", "))
}

fn answer(peak: &Peak) -> Vec<String> {
    let slo = peak.aim.slo;
    let mut lines = Vec::new();
    let rate = |value: f64| format!("{}/s", significant(value, 3));
    match peak.found.rate_per_s {
        Some(found) => {
            let (shown, meaning) = match range(found) {
                Some((low, high)) => (
                    format!(" [{}, {}]", significant(low, 3), significant(high, 3)),
                    "in brackets: the range in which 95 of 100 searches end (docs/peak.md)",
                ),
                None => (String::new(), "no range: some probes were inconclusive; use a longer --duration"),
            };
            lines.push(format!("{slo} up to {}{shown}", rate(found.value)));
            lines.push(format!("  {meaning}"));
        }
        None => lines.push(no_rate(peak)),
    }
    let light = &peak.light;
    if let Some(knee) = peak.found.curve.knee() {
        let (at, response) = (rate(knee.rate_per_s), time(knee.response_s));
        lines.push(format!(
            "{:<10} {at}, where throughput ÷ response time is highest: {response} there",
            "knee"
        ));
    }
    lines.push(match peak.usl_peak {
        Some((users, per_s)) => {
            format!(
                "{:<10} {} with {} users (universal scalability law)",
                "USL peak",
                rate(per_s),
                significant(users, 2)
            )
        }
        None => format!("{:<10} none: throughput does not fall as users are added", "USL peak"),
    });
    let most = light.throughput_per_s.iter().map(|point| point.1).fold(0.0, f64::max);
    lines.push(format!("{:<10} {} measured with a closed population", "most", rate(most)));
    let plain = match peak.found.plain_probes {
        0 => String::new(),
        plain => format!("; doubling and halving from a light load would take {plain}"),
    };
    lines.push(format!("{:<10} {}{plain}; seed {}", "probes", peak.found.probes.len(), peak.seed));
    lines.extend(peak.unfinished.as_ref().map(unfinished));
    lines.extend(peak.disturbed.as_ref().map(|seen| disturbed(peak, seen)));
    lines
}

/// Why the search ended before its confirmations.
fn unfinished(by: &UnfinishedBy) -> String {
    let (why, advice) = match by {
        UnfinishedBy::Interrupt => ("Interrupted".into(), ""),
        UnfinishedBy::Budget => {
            ("The budget is spent".into(), " Give a larger --budget, or shorter probes with --duration.")
        }
        UnfinishedBy::Generator { rate_per_s, why } => (
            format!("At {rate_per_s:.0}/s the generator is the limit and not the system ({why})"),
            " Give the generator its own core, or another machine.",
        ),
    };
    format!("{why}: the search was not confirmed, and this is what its probes say so far.{advice}")
}

/// What other work the machine did during probes.
fn disturbed(peak: &Peak, DisturbedProbes { probes, worst }: &DisturbedProbes) -> String {
    let all = peak.found.probes.len();
    match peak.found.doubtful() {
        0 => format!("Remark: in {probes} of {all} probes {worst}; those that did not pass were repeated."),
        counted => format!(
            "Doubt: in {probes} of {all} probes {worst}, and {counted} count although they were repeated. Wait until it is quiet \
             (kendall doctor --wait-quiet 1m), or measure on another machine."
        ),
    }
}

fn no_rate(peak: &Peak) -> String {
    let probes = &peak.found.probes;
    let any = |outcome: Outcome| probes.iter().any(|probe| probe.outcome == outcome);
    let slowest = probes.iter().map(|probe| probe.ask.rate_per_s).fold(f64::INFINITY, f64::min);
    let fastest = probes.iter().map(|probe| probe.ask.rate_per_s).fold(0.0, f64::max);
    let slo = peak.aim.slo;
    match (any(Outcome::Pass), any(Outcome::Fail)) {
        (true, true) => format!(
            "{slo}: the probes contradict each other: low rates failed and higher ones passed, so the server or the machine is not \
             steady"
        ),
        (true, false) => format!("{slo}: every tried rate meets it, up to {}/s", significant(fastest, 3)),
        (false, _) if any(Outcome::Grey) => format!(
            "{slo}: undecided, because down to {}/s no probe passed and some were inconclusive; use a longer --duration",
            significant(slowest, 3)
        ),
        (false, _) => {
            format!("{slo} is not met at any tried rate, down to {}/s", significant(slowest, 3))
        }
    }
}
