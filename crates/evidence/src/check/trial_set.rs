//! The input of the checks: the rows after the warm-up, and series made of them.

use crate::seconds::seconds;
use std::cell::OnceCell;

use kendall_record::RequestRow;
use kendall_station::{Law, Station};

use crate::Trial;
use kendall_stats::{mean, variance};

/// Trials of one combination of factors, and the station that is to model them.
pub(super) struct TrialSet<'a> {
    pub(super) station: &'a Station,
    /// Each trial with its warm-up.
    pub(super) whole: Vec<Trial<'a>>,
    /// The requests of each trial that were due after its warm-up, in that order.
    pub(super) trials: Vec<Vec<&'a RequestRow>>,
    services_s: OnceCell<Vec<f64>>,
}

impl<'a> TrialSet<'a> {
    pub(super) fn new(trials: &[Trial<'a>], station: &'a Station) -> Self {
        let after = |trial: &Trial<'a>| {
            let mut rows: Vec<&RequestRow> =
                trial.rows.iter().filter(|row| row.scheduled >= trial.warmup_ns).collect();
            rows.sort_by_key(|row| (row.scheduled, row.index));
            rows
        };
        let of_trials = trials.iter().map(after).filter(|rows| !rows.is_empty()).collect();
        Self { station, whole: trials.to_vec(), trials: of_trials, services_s: OnceCell::new() }
    }

    /// All rows after the warm-up.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'a RequestRow> {
        self.trials.iter().flatten().copied()
    }

    pub(super) fn count(&self) -> usize {
        self.trials.iter().map(Vec::len).sum()
    }

    /// The instants of each trial at which requests came to the server: by its own stamps where nearly all rows have
    /// them, else when they were sent, else when they were due. Ascending, in nanoseconds.
    pub(super) fn arrivals_ns(&self) -> Vec<Vec<i64>> {
        let has = |of: fn(&RequestRow) -> Option<i64>| {
            let count = self.rows().filter(|row| of(row).is_some()).count();
            count > 0 && 100 * count >= 99 * self.count()
        };
        let of: fn(&RequestRow) -> Option<i64> = match () {
            () if has(|row| row.queued) => |row| row.queued,
            () if has(|row| row.sent) => |row| row.sent,
            () => |row| Some(row.scheduled),
        };
        self.instants_ns(of)
    }

    /// Some instants of each trial, ascending.
    pub(super) fn instants_ns(&self, of: impl Fn(&RequestRow) -> Option<i64>) -> Vec<Vec<i64>> {
        let sorted = |rows: &Vec<&RequestRow>| {
            let mut instants: Vec<i64> = rows.iter().filter_map(|row| of(row)).collect();
            instants.sort_unstable();
            instants
        };
        self.trials.iter().map(sorted).collect()
    }

    /// The gaps between arrivals at the server, trial after trial, in seconds.
    pub(super) fn gaps_s(&self) -> Vec<f64> {
        let gaps = |instants: Vec<i64>| {
            instants.windows(2).map(|pair| seconds(pair[1] - pair[0])).collect::<Vec<_>>()
        };
        self.arrivals_ns().into_iter().flat_map(gaps).collect()
    }

    /// The service times, in the order in which the requests were due, in seconds. Without a stamped service time, service lasts from
    /// start to finish.
    pub(super) fn services_s(&self) -> &[f64] {
        self.services_s.get_or_init(|| self.rows().filter_map(service_s).collect())
    }

    /// The squared coefficient of variation of the service time: the measured one, or that of the station.
    pub(super) fn service_scv(&self) -> f64 {
        match scv(self.services_s()) {
            Some(scv) if self.services_s().len() >= 30 => scv,
            _ => self.station.service_overall().scv(),
        }
    }

    /// The squared coefficient of variation of the gaps between arrivals.
    pub(super) fn arrival_scv(&self) -> f64 {
        scv(&self.gaps_s()).unwrap_or(1.0)
    }

    /// The response times, in seconds.
    pub(super) fn responses_s(&self) -> impl Iterator<Item = f64> {
        self.rows().filter_map(|row| Some(seconds(row.response_ns()?)))
    }

    /// The mean response time, in seconds, if anything was answered.
    pub(super) fn mean_response_s(&self) -> Option<f64> {
        let responses_s: Vec<f64> = self.responses_s().collect();
        (!responses_s.is_empty()).then(|| mean(&responses_s))
    }

    /// The notation of the station with Poisson arrivals and another law of service, such as "M/U/2".
    pub(super) fn with_service(&self, law: &Law) -> String {
        format!("M/{}/{}", law.letter(), self.station.servers)
    }
}

/// The time a request kept a server busy.
pub(super) fn service_s(row: &RequestRow) -> Option<f64> {
    let spanned = || Some(row.finished? - row.started?);
    Some(seconds(row.service.or_else(spanned)?.max(0)))
}

/// Variance over squared mean; `None` for fewer than two values or a mean that is not positive.
pub(super) fn scv(values: &[f64]) -> Option<f64> {
    let found = variance(values) / mean(values).powi(2);
    (values.len() >= 2 && found.is_finite()).then_some(found)
}
