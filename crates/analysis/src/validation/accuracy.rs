//! How right predictions are over the validations of several servers, and how right simple methods are on the same data.
//!
//! Errors are relative: 0.2 for a prediction that is 20 % above or below the measurement. Medians are over servers, so that a server
//! that breaks every assumption counts once. A load that the generator limited does not count: its response times are not the server's.

use kendall_prediction::Baseline;
use kendall_stats::median;

use super::{Compared, Validated, ValidationReport};

/// The quantities that the summary is about.
pub const QUANTITIES: [&str; 2] = ["mean", "p99"];

/// The summary of several validations.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// The mean and p99 at each predicted share of the capacity, in ascending order of the shares.
    pub errors: Vec<ShareErrors>,
    /// The number of servers with a load that counts.
    pub servers: usize,
    /// The loads that do not count, because the generator limited them.
    pub generator_limited: usize,
    /// Every measured value that counts, other quantiles included.
    pub values: usize,
    /// The measured values that lie within the interval of their prediction.
    pub inside: usize,
    /// The measured values that are far outside: [`Compared::is_confidently_wrong`].
    pub confidently_wrong: usize,
    /// The simple methods.
    pub baselines: Vec<BaselineErrors>,
}

/// The errors of one quantity at one share of the capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareErrors {
    /// The share of the capacity.
    pub share: f64,
    /// "mean" or "p99".
    pub quantity: &'static str,
    /// The number of loads, each of another server.
    pub loads: usize,
    /// The median error.
    pub error: f64,
    /// The median error beyond the noise of the measurement.
    pub beyond_noise: f64,
    /// The median half-width of the intervals of the predictions, over the predicted values.
    pub half_width: f64,
    /// The measured values that lie within their interval.
    pub inside: usize,
}

/// The errors of a simple method for one quantity, over all loads of the stations of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselineErrors {
    /// The method.
    pub baseline: Baseline,
    /// "mean" or "p99".
    pub quantity: &'static str,
    /// Whether the stations have one server or several.
    pub stations: StationKind,
    /// The number of loads that the method has a prediction for.
    pub loads: usize,
    /// The median error.
    pub error: f64,
    /// The median error of kendall's predictions of the same loads.
    pub of_kendall: f64,
}

/// Stations by their number of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationKind {
    /// One server.
    OneServer,
    /// Two servers or more.
    SeveralServers,
}

impl StationKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::OneServer, Self::SeveralServers];

    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneServer => "one server",
            Self::SeveralServers => "several servers",
        }
    }

    /// The kind to which most draws of the predictions of a validation belong.
    pub fn of(report: &ValidationReport) -> Self {
        let stations = report.loads.iter().flat_map(|load| &load.predicted.prediction.stations);
        let (mut one, mut several) = (0.0, 0.0);
        for station in stations {
            *(if station.servers == 1 { &mut one } else { &mut several }) += station.share;
        }
        if several > one { Self::SeveralServers } else { Self::OneServer }
    }
}

impl BaselineErrors {
    /// The error of the method over that of kendall.
    pub fn ratio(&self) -> f64 {
        self.error / self.of_kendall
    }
}

impl Accuracy {
    /// Summarises validations.
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a ValidationReport>) -> Self {
        let reports: Vec<&ValidationReport> = reports.into_iter().collect();
        let loads = reports.iter().flat_map(|report| &report.loads);
        let all = || reports.iter().flat_map(|report| counted(report)).flat_map(|load| &load.compared);
        Self {
            errors: by_share(&reports),
            servers: reports.iter().filter(|report| counted(report).next().is_some()).count(),
            generator_limited: loads.filter(|load| load.generator_limited).count(),
            values: all().count(),
            inside: all().filter(|compared| compared.inside).count(),
            confidently_wrong: all().filter(|compared| compared.is_confidently_wrong()).count(),
            baselines: baselines(&reports),
        }
    }
}

/// The loads that count.
fn counted(report: &ValidationReport) -> impl Iterator<Item = &Validated> {
    report.loads.iter().filter(|load| !load.generator_limited)
}

fn by_share(reports: &[&ValidationReport]) -> Vec<ShareErrors> {
    let loads: Vec<&Validated> = reports.iter().flat_map(|report| counted(report)).collect();
    let mut shares: Vec<f64> = loads.iter().map(|load| load.predicted.share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let of = |quantity: &'static str, share: f64| {
        let same = loads.iter().filter(|load| load.predicted.share == share);
        let compared: Vec<&Compared> = same.filter_map(|load| load.quantity(quantity)).collect();
        let middle = |value: fn(&Compared) -> f64| {
            median(&compared.iter().map(|compared| value(compared)).collect::<Vec<_>>())
        };
        (!compared.is_empty()).then(|| ShareErrors {
            share,
            quantity,
            loads: compared.len(),
            error: middle(|compared| compared.error.abs()),
            beyond_noise: middle(|compared| compared.error_beyond_noise.abs()),
            half_width: middle(Compared::half_width),
            inside: compared.iter().filter(|compared| compared.inside).count(),
        })
    };
    let pairs = QUANTITIES.iter().flat_map(|quantity| shares.iter().map(move |share| (*quantity, *share)));
    pairs.filter_map(|(quantity, share)| of(quantity, share)).collect()
}

fn baselines(reports: &[&ValidationReport]) -> Vec<BaselineErrors> {
    let of = |stations: StationKind, baseline: Baseline, quantity: &'static str| {
        let same = reports.iter().filter(|report| StationKind::of(report) == stations);
        let loads = same.flat_map(|report| counted(report));
        let pair = |load: &Validated| {
            let simple = load.baselines.iter().find(|simple| simple.baseline == baseline)?;
            let predicted_s = if quantity == "mean" { simple.mean_s } else { simple.p99_s }?;
            let compared = load.quantity(quantity)?;
            Some(((predicted_s / compared.measured_s.value - 1.0).abs(), compared.error.abs()))
        };
        let (errors, of_kendall): (Vec<f64>, Vec<f64>) = loads.filter_map(pair).unzip();
        (!errors.is_empty()).then(|| BaselineErrors {
            baseline,
            quantity,
            stations,
            loads: errors.len(),
            error: median(&errors),
            of_kendall: median(&of_kendall),
        })
    };
    let mut found = Vec::new();
    for stations in StationKind::ALL {
        for quantity in QUANTITIES {
            found.extend(Baseline::ALL.into_iter().filter_map(|baseline| of(stations, baseline, quantity)));
        }
    }
    found
}
