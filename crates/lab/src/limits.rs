//! Measures what the machine allows the system of a run: each limit alone, once, before the trials.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_analysis::machine_limits::{LIMITS, MeasuredLimit, MeasuredValue, SettingsLimits};
use kendall_archive::write_json;
use kendall_experiment::{Trial, settings};
use kendall_system::MachineLimit;

use crate::lab::{Lab, LabError};
use crate::trial::Bench;
use crate::trial_error::TrialError;
use crate::view::View;

/// How long each limit is measured.
const DURING: Duration = Duration::from_millis(500);

impl Lab {
    /// Measures those limits of these trials that no earlier trial had. If a limit cannot be measured, the reason is recorded and
    /// the run continues.
    pub(crate) fn measure_limits(
        &self,
        bench: Bench<'_>,
        left: &[Trial],
        view: &View,
        cancel: &AtomicBool,
    ) -> Result<(), LabError> {
        let mut known = SettingsLimits::read(&self.run)?;
        for trial in left {
            let combination = &self.run.combinations()[trial.combination];
            if SettingsLimits::of(combination, &known).is_some() || cancel.load(Ordering::Relaxed) {
                continue;
            }
            let server = combination.server.rooted(bench.system.server, bench.files);
            let workload = combination.workload.rooted(bench.system.workload, bench.files);
            let all = (bench.system.limits)(&server, &workload);
            if all.is_empty() {
                continue;
            }
            view.show_activity("measuring what the machine itself allows …");
            let mut limits = Vec::new();
            for limit in &all {
                let earlier =
                    known.iter().flat_map(|known| &known.limits).find(|known| known.name == limit.name);
                let measured = match earlier {
                    Some(earlier) => earlier.clone(),
                    None => {
                        measured(bench, limit).map_err(|source| self.failed(self.run.folder(), source))?
                    }
                };
                limits.push(measured);
            }
            known.push(SettingsLimits { settings: settings(combination), limits });
            write_json(&self.run.folder().join(LIMITS), &known)?;
        }
        Ok(())
    }
}

/// A limit where server and generator meet.
fn measured(bench: Bench<'_>, limit: &MachineLimit) -> Result<MeasuredLimit, TrialError> {
    let found = bench.off_link(|| Ok((limit.measure)(DURING)))?;
    Ok(MeasuredLimit { name: limit.name.clone(), demand: limit.demand.into(), value: value(found) })
}

/// The record of a measurement. A value that is not positive is invalid: no share of it could be used.
fn value(found: Result<f64, String>) -> MeasuredValue {
    match found {
        Ok(value) if value.is_finite() && value > 0.0 => MeasuredValue::Value(value),
        Ok(value) => MeasuredValue::NotMeasured(format!("the measurement gave {value}")),
        Err(why) => MeasuredValue::NotMeasured(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_that_gave_no_limit_is_recorded_with_the_reason() {
        assert_eq!(value(Ok(0.5)), MeasuredValue::Value(0.5));
        assert_eq!(
            value(Err("the disk is full".to_owned())),
            MeasuredValue::NotMeasured("the disk is full".to_owned())
        );
        for (gave, word) in [(0.0, "0"), (f64::INFINITY, "inf"), (f64::NAN, "NaN")] {
            assert_eq!(value(Ok(gave)), MeasuredValue::NotMeasured(format!("the measurement gave {word}")));
        }
    }
}
