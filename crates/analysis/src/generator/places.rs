//! Every place that asks for a verdict on the generator gets the same one: for a set of loads, the headline of a result, the
//! bottleneck of the server, the check of the model's assumptions and the search for a peak agree.

use kendall_evidence::Trial;
use kendall_evidence::check::{AssumptionVerdict, Check as Assumption, Setting, check, send_lateness};
use kendall_load::Lag;
use kendall_probe::{Cost, MachineUse, ThreadUse, Timeline, Use};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Servers, Station};

use super::tests::{clean, exponential, poisson, sighting};
use super::*;
use crate::bottleneck::{AnswersSeen, Bottleneck, LoadSeen, bottleneck};

/// How late the requests of a late load left, and how long the server took for one.
const LATE_NS: i64 = 2_000_000;
const TAKES_NS: i64 = 5_000_000;

/// What is wrong with a load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nothing,
    Late,
    Waited,
    WaitedABit,
    Busy,
    Rate,
    Gaps,
    Books,
    Crowded,
}

impl Fault {
    const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Late,
        Self::Waited,
        Self::WaitedABit,
        Self::Busy,
        Self::Rate,
        Self::Gaps,
        Self::Books,
        Self::Crowded,
    ];

    /// What the generator counted.
    fn run(self) -> RunSummary {
        let mut run = clean(&exponential());
        let late = Lag { p50_ns: LATE_NS as u64, p99_ns: LATE_NS as u64, max_ns: LATE_NS as u64 };
        match self {
            Self::Nothing | Self::Crowded => {}
            Self::Late => {
                (run.lag, run.send_lag) = (late, late);
                let share = LATE_NS as f64 / (LATE_NS + TAKES_NS) as f64;
                run.lag_share = LagShare { mean: share, p50: share, p99: share };
            }
            Self::Waited => {
                (run.send_lag, run.wait_for_connection) = (late, late);
                run.waited_for_connection = run.sent;
            }
            Self::WaitedABit => run.waited_for_connection = 3,
            Self::Busy => run.generator_cpu_s = 9.3,
            Self::Rate => run.sends.per_s = 4750.0,
            Self::Gaps => run.sends.gap_cv = 0.4,
            Self::Books => run.little.responses_s = 25.25,
        }
        run
    }

    /// What the client noted of the requests, at the rate that the schedule had.
    fn rows(self) -> Vec<RequestRow> {
        let late_ns = if matches!(self, Self::Late | Self::Waited) { LATE_NS } else { 0 };
        let row = |index: u64| {
            let due = index as i64 * 200_000;
            RequestRow {
                index,
                class: 0,
                port: 1,
                scheduled: due,
                sent: Some(due + late_ns),
                first_byte: None,
                completed: Some(due + late_ns + TAKES_NS),
                queued: None,
                started: None,
                finished: None,
                service: None,
                fixed: None,
                outcome: Outcome::Answered,
                bytes_out: 1,
                bytes_in: 1,
            }
        };
        (0..1000).map(row).collect()
    }

    /// What was seen of the machine.
    fn watched(self) -> Summary {
        let of = |cpu_cores: f64| {
            let thread = ThreadUse {
                process: "p 1".into(),
                thread: "t 1".into(),
                cpu_cores: cpu_cores.min(1.0),
                waiting: 0.0,
                places: Vec::new(),
            };
            Some(Use { cpu_cores, threads: vec![thread], ..Use::default() })
        };
        let (generator, server, busy) = match self {
            Self::Crowded => (2.4, 1.5, 3.9),
            Self::Busy => (0.93, 0.5, 1.5),
            _ => (0.06, 0.5, 0.6),
        };
        Summary {
            length_s: 10.0,
            cost: Cost { cpu_s: 0.05, samples: 1000, skipped: 0, every_s: 0.01 },
            cores: 4.0,
            machine: MachineUse { cores: 4.0, busy_cores: Some(busy), ..MachineUse::default() },
            server: of(server),
            generator: of(generator),
            timeline: Timeline::default(),
            missing: Vec::new(),
        }
    }
}

/// What the check of the assumptions says of a load with this verdict: of the sends' lateness and of their rate.
fn checked(fault: Fault, verdict: &GeneratorVerdict) -> [AssumptionVerdict; 2] {
    let rows = fault.rows();
    let trials = [Trial { rows: &rows, warmup_ns: 0 }];
    let sends = sends([verdict].into_iter(), send_lateness(&trials).as_ref());
    let station = Station::new(poisson(), exponential(), Servers::MIN);
    let found = check(&trials, &station, &Setting { sends: Some(sends), ..Setting::default() });
    let of = |assumption| found.iter().find(|one| one.check == assumption).expect("it is checked").verdict;
    [Assumption::SentWhenDue, Assumption::Rate].map(of)
}

#[test]
fn all_who_ask_get_the_same_verdict() {
    // The limit of the objective lies within the interval, and the lag is as long as the limit: any fault may have decided it.
    let aim = Aim { slo: "p99<50ms".parse().unwrap(), errors_at_most: 0.01 };
    let grey = sighting(0.050, 0.1);
    for fault in Fault::ALL {
        let (run, watched) = (fault.run(), fault.watched());
        let verdict = judge(&run, &poisson(), Some(&watched), None);
        let limited = !verdict.limits.is_empty();
        let crowds = verdict.doubts.iter().any(|doubt| matches!(doubt, Doubt::Crowding(_)));

        let expected = match fault {
            Fault::Nothing => "Trustworthy",
            Fault::Waited | Fault::WaitedABit | Fault::Crowded => "Doubtful",
            _ => "GENERATOR-LIMITED",
        };
        assert!(verdict.headline().starts_with(expected), "{fault:?}: {}", verdict.headline());
        assert_eq!(limited, expected == "GENERATOR-LIMITED", "{fault:?}");

        let answers = AnswersSeen { response_s: Some(0.005), ..AnswersSeen::default() };
        let load = LoadSeen { answers, send_lag_p99_s: 0.002, verdict: &verdict };
        let blamed = matches!(bottleneck(&watched, Some(&load)), Some(Bottleneck::Generator { .. }));
        assert_eq!(blamed, matches!(fault, Fault::Late | Fault::Busy | Fault::Crowded), "{fault:?}");
        assert_eq!(blamed, verdict.process() != ProcessJudged::Sound || crowds, "{fault:?}");

        let [sent, rate] = checked(fault, &verdict);
        assert_eq!(
            sent == AssumptionVerdict::Broken,
            matches!(fault, Fault::Late | Fault::Waited),
            "{fault:?}"
        );
        assert_eq!(rate == AssumptionVerdict::Broken, fault == Fault::Rate, "{fault:?}");

        assert_eq!(verdict.decided(0.050, &grey, &aim).is_some(), limited, "{fault:?}");
    }
}

/// Without a load there is nothing to judge: however busy the other process is, the server is not said to be limited by it.
#[test]
fn without_a_verdict_the_generator_is_not_blamed() {
    for fault in Fault::ALL {
        let found = bottleneck(&fault.watched(), None);
        assert!(!matches!(found, Some(Bottleneck::Generator { .. })), "{fault:?}");
    }
}

/// A record of a version that judged nothing is judged by its rows, with the same threshold.
#[test]
fn of_a_trial_without_a_verdict_the_rows_decide() {
    let none = GeneratorVerdict::default();
    assert_eq!(checked(Fault::Late, &none)[0], AssumptionVerdict::Broken);
    assert_eq!(checked(Fault::Nothing, &none)[0], AssumptionVerdict::Holds);
}
