//! The numbers of a sample with name, unit and labels, independent of the format in which they are sent.

use crate::queue::Stamped;

/// One series of numbers over time.
pub(crate) struct Series {
    /// Words with dots between: "kendall.response".
    pub(crate) name: &'static str,
    /// The UCUM unit, which OpenTelemetry requires: "s", "{request}/s".
    pub(crate) unit: &'static str,
    /// The unit as the end of a name for Prometheus.
    pub(crate) suffix: &'static str,
    pub(crate) kind: Kind,
    /// The label that distinguishes it from others of its name.
    pub(crate) label: Option<(&'static str, &'static str)>,
    pub(crate) of: fn(&Stamped) -> Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A gauge: a number at an instant.
    Gauge,
    /// A counter since the start of the watch.
    Total,
}

const fn gauge(
    name: &'static str,
    unit: &'static str,
    suffix: &'static str,
    label: Option<(&'static str, &'static str)>,
    of: fn(&Stamped) -> Option<f64>,
) -> Series {
    Series { name, unit, suffix, kind: Kind::Gauge, label, of }
}

const fn failed(outcome: &'static str, of: fn(&Stamped) -> Option<f64>) -> Series {
    let label = Some(("outcome", outcome));
    Series {
        name: "kendall.failed",
        unit: "{request}",
        suffix: "requests_total",
        kind: Kind::Total,
        label,
        of,
    }
}

/// All series; those of one name are adjacent.
pub(crate) const ALL: [Series; 13] = [
    gauge("kendall.sent", "{request}/s", "requests_per_second", None, |one| Some(one.sent_per_s)),
    gauge("kendall.answered", "{request}/s", "requests_per_second", None, |one| Some(one.answered_per_s)),
    gauge("kendall.in_flight", "{request}", "requests", None, |one| Some(one.in_flight)),
    gauge("kendall.waiting", "{request}", "requests", None, |one| Some(one.waiting)),
    gauge("kendall.response", "s", "seconds", Some(("quantile", "0.5")), |one| one.p50_s),
    gauge("kendall.response", "s", "seconds", Some(("quantile", "0.9")), |one| one.p90_s),
    gauge("kendall.response", "s", "seconds", Some(("quantile", "0.99")), |one| one.p99_s),
    gauge("kendall.cpu", "{core}", "cores", Some(("role", "server")), |one| one.server_cores),
    gauge("kendall.cpu", "{core}", "cores", Some(("role", "generator")), |one| one.generator_cores),
    failed("wrong", |one| Some(one.failed[0] as f64)),
    failed("refused", |one| Some(one.failed[1] as f64)),
    failed("timed-out", |one| Some(one.failed[2] as f64)),
    failed("unanswered", |one| Some(one.failed[3] as f64)),
];
