//! The answer for a server that stamps nothing, from its calibration.
//!
//! Its mean service time S and the delay D outside of it are measured apart from the trials. Then the utilisation of its c
//! servers is X·S/c at the throughput X (the utilisation law: Denning and Buzen, "The Operational Analysis of Queueing Network
//! Models", 1978, section 4), and a request has waited for what its response time is above S + D. Single waiting times are
//! blurred by how much service times vary; their mean is not, as long as few requests are faster than S + D.

use crate::seconds::seconds;
use kendall_station::{Answer, By, ClassAnswer, Servers};
use serde::{Deserialize, Serialize};

use super::{NotMeasured, RowClass, Trial, each_in_order, mean, rate, seen_by_clients, times, windows};

/// The parameters of a server that were measured before the trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// The server's mean service time, in seconds.
    pub service_s: f64,
    /// The delay of a request outside the station, in seconds.
    pub delay_s: f64,
}

/// Makes an answer from the clients' measurements in the trials of one combination and the calibration of the server. Rows of
/// class i belong to `classes[i]`, as in [`measured`](super::measured).
///
/// # Errors
/// Fails where nothing was due or answered in any trial.
pub fn calibrated(
    trials: &[Trial<'_>],
    servers: Servers,
    classes: &[RowClass],
    known: Calibrated,
) -> Result<Answer, NotMeasured> {
    let windows = windows(trials)?;
    let client = seen_by_clients(&windows)?;
    let requests = windows.iter().map(|window| window.rows.len() as u64).sum();
    let nothing = || NotMeasured::NothingAnswered { requests };
    let unloaded_ns = ((known.service_s + known.delay_s) * 1e9) as i64;
    let of_class = |class: Option<usize>| {
        move |row: &&kendall_record::RequestRow| class.is_none_or(|class| row.class as usize == class)
    };
    let response = |class| times(&windows, of_class(class), |row| row.response_ns());
    let waiting =
        |class| times(&windows, of_class(class), |row| row.response_ns().map(|ns| (ns - unloaded_ns).max(0)));
    let weighted = each_in_order(&windows, |row| {
        let weight = classes.get(row.class as usize).map_or(1.0, |class| class.weight);
        Some(weight * seconds(row.response_ns()?))
    });
    let by_class = |(class, RowClass { name, .. }): (usize, &RowClass)| {
        Some(ClassAnswer {
            name: name.clone(),
            response: response(Some(class))?,
            waiting: waiting(Some(class))?,
            throughput_per_s: rate(&windows, |window, from, to| {
                window.class_throughput_per_s(class, from, to)
            }),
        })
    };
    let busy_s = known.service_s / f64::from(servers.get());
    let several = if classes.len() > 1 { classes } else { &[] };
    Ok(Answer {
        by: By::Measurement { requests, trials: windows.len() as u64 },
        p_wait: rate(&windows, |window, from, to| window.met_share(servers, from, to)),
        utilisation: rate(&windows, |window, from, to| busy_s * window.throughput_per_s(from, to)),
        waiting: waiting(None).ok_or_else(nothing)?,
        response: client.response,
        throughput_per_s: client.throughput_per_s,
        in_system: client.in_system,
        lost: client.lost,
        weighted_response_s: mean(&weighted),
        classes: several.iter().enumerate().filter_map(by_class).collect(),
    })
}

#[cfg(test)]
mod tests {
    use kendall_record::{Outcome, RequestRow};
    use kendall_station::Law;
    use kendall_stats::random::{Purpose, stream};

    use super::*;
    use crate::measured::measured;

    const SERVICE_NS: i64 = 1_000_000;
    const DELAY_NS: i64 = 40_000;

    /// A trial of M/D/1 at a load of 0.7, by Lindley's recurrence, with half the delay before service and half behind it.
    fn rows(n: u64) -> Vec<RequestRow> {
        let mut rng = stream(11, Purpose::Arrivals, 0);
        let gap = Law::Exponential { mean_s: SERVICE_NS as f64 / 0.7 };
        let (mut due, mut free) = (0, 0);
        let row = |index| {
            due += gap.sample(&mut rng) as i64;
            let queued = due + DELAY_NS / 2;
            let started = queued.max(free);
            free = started + SERVICE_NS;
            RequestRow {
                queued: Some(queued),
                started: Some(started),
                finished: Some(free),
                service: Some(SERVICE_NS),
                bytes_out: 1,
                bytes_in: 1,
                ..RequestRow::due(index, due).sent_at(due, 1).ended(Outcome::Answered, free + DELAY_NS / 2)
            }
        };
        (0..n).map(row).collect()
    }

    #[test]
    fn constant_service_is_measured_without_stamps_as_with_them() {
        let stamped = rows(20_000);
        let clear = |row: &RequestRow| RequestRow {
            queued: None,
            started: None,
            finished: None,
            service: None,
            fixed: None,
            ..row.clone()
        };
        let unstamped: Vec<RequestRow> = stamped.iter().map(clear).collect();
        let known = Calibrated { service_s: SERVICE_NS as f64 / 1e9, delay_s: DELAY_NS as f64 / 1e9 };
        let with = measured(&[Trial { rows: &stamped, warmup_ns: 0 }], Servers::MIN, &[]).unwrap();
        let without =
            calibrated(&[Trial { rows: &unstamped, warmup_ns: 0 }], Servers::MIN, &[], known).unwrap();
        assert_eq!(without.response, with.response);
        assert_eq!(without.throughput_per_s, with.throughput_per_s);
        let near = |a: kendall_station::Estimate, b: kendall_station::Estimate, within: f64| {
            assert!((a.value - b.value).abs() <= within * b.value, "{a:?} {b:?}");
        };
        near(without.waiting.mean_s, with.waiting.mean_s, 1e-6);
        near(without.utilisation, with.utilisation, 1e-3);
        // A request is over for its client half a delay after it is for the server, and met half a delay before.
        near(without.p_wait, with.p_wait, 0.06);
    }

    #[test]
    fn a_trial_without_answers_is_no_measurement() {
        let refused = |row: RequestRow| RequestRow { outcome: Outcome::Refused, ..row };
        let rows: Vec<RequestRow> = rows(10).into_iter().map(refused).collect();
        let known = Calibrated { service_s: 0.001, delay_s: 0.0 };
        let found = calibrated(&[Trial { rows: &rows, warmup_ns: 0 }], Servers::MIN, &[], known);
        assert!(matches!(found, Err(NotMeasured::NothingAnswered { requests: 10 })), "{found:?}");
    }
}
