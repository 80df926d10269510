//! The options that make a station out of its notation, for every command that takes one.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use kendall_station::{Arrivals, Discipline, Kind, Law, Notation, Servers, Station};

use crate::class::ClassOption;
use crate::condition::{ConditionOptions, ProfileOption};
use crate::values::{Quantities, QuantityOptions};

/// More servers or users than this do not fit into memory and patience.
const MOST: u32 = 1_000_000;

/// What was recorded of a station, in place of files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedLaws {
    /// The law of its service times; the notation's letter for it is G.
    pub service: Option<Law>,
    /// Its arrivals; the notation's letter for them is G.
    pub arrivals: Option<Arrivals>,
}

/// Options of a station that Kendall's notation leaves open. A command takes the notation itself as a separate argument.
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "The station")]
pub struct StationOptions {
    #[command(flatten)]
    pub(crate) quantities: QuantityOptions,

    /// Order of service, in place of the one in the notation: fifo, lifo, priority, preemptive-priority,
    /// processor-sharing, shortest-remaining, cmu, gittins
    #[arg(long)]
    discipline: Option<Discipline>,

    /// A class of requests, once for each: its share of all requests and, where they differ, its weight (priority) and its
    /// service: name=urgent,share=0.2,weight=10,service-time=0.01 (also service-rate, service-scv, service=D)
    #[arg(long = "class", value_name = "KEY=VALUE,…")]
    classes: Vec<ClassOption>,

    /// Service times that were measured, in seconds, one a line; the notation's letter for them is G
    #[arg(long, value_name = "FILE", conflicts_with_all = ["service_rate", "service_time", "service_scv"])]
    services: Option<PathBuf>,

    /// Instants of arrival that were recorded, in seconds from the start, one a line; the notation's letter for them is G
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arrival_rate", "rho", "think_time", "arrival_scv"])]
    arrivals: Option<PathBuf>,

    /// A rate that changes over time: the rate from each instant on, in seconds from the start, as 0=20,60=80,120=20; with
    /// period=180 it begins anew, with between=lines it changes gradually
    #[arg(long, value_name = "S=PER_S,…", conflicts_with_all = ["arrival_rate", "rho", "arrivals", "think_time", "arrival_scv"])]
    rate_profile: Option<ProfileOption>,

    #[command(flatten)]
    conditions: ConditionOptions,

    /// In place of files.
    #[arg(skip)]
    given: RecordedLaws,
}

impl StationOptions {
    pub(crate) fn with(self, given: RecordedLaws) -> Self {
        Self { given, ..self }
    }

    /// The station that the notation and the options describe.
    ///
    /// # Errors
    /// Says which option is missing, or what is impossible about the station.
    pub fn station(&self, notation: &Notation) -> anyhow::Result<Station> {
        self.station_at(notation, &self.quantities.at(0, 1, None)?)
    }

    /// The station with these quantities.
    ///
    /// # Errors
    /// As [`station`](Self::station).
    pub(crate) fn station_at(&self, notation: &Notation, own: &Quantities) -> anyhow::Result<Station> {
        let notation = self.completed(notation, own);
        if notation.servers.get() > MOST || notation.population.is_some_and(|population| population > MOST) {
            bail!("{notation} is too large to simulate; at most {MOST} servers or users are possible");
        }
        let classes = self.classes.iter().map(|class| class.class(notation.service, own.service_scv));
        let classes = classes.collect::<anyhow::Result<Vec<_>>>()?;
        let recorded = self.recorded_service(notation.service)?;
        let service = match (recorded, classes.first()) {
            (Some(law), _) => law,
            // No request uses the station's own distribution, so it may be that of a class.
            (None, Some(class)) if self.quantities.lacks_service() && self.every_class_has_service() => {
                class.service.clone().expect("every class has a service time")
            }
            _ if self.needs_no_law(&notation) => {
                Kind::LogNormal.law(service_s(&notation, own)?, Some(1.0)).context("see --service-time")?
            }
            _ => law(notation.service, service_s(&notation, own)?, own.service_scv, "--service-scv")?,
        };
        let Notation { servers, capacity, .. } = notation;
        let mut station = Station {
            capacity,
            discipline: notation.order(),
            classes,
            conditions: self.conditions.conditions(),
            ..Station::new(self.arrivals(&notation, own)?, service, servers)
        };
        if let Some(utilisation) = own.rho {
            station.arrivals = at_utilisation(&station, utilisation)?;
        }
        station.validate()?;
        Ok(station)
    }

    /// The notation with what options say in its place.
    fn completed(&self, notation: &Notation, own: &Quantities) -> Notation {
        Notation {
            discipline: self.discipline.or(notation.discipline),
            servers: own.servers.and_then(Servers::new).unwrap_or(notation.servers),
            population: own.users.or(notation.population),
            ..notation.clone()
        }
    }

    /// The law of service times that were recorded, where they were.
    fn recorded_service(&self, kind: Kind) -> anyhow::Result<Option<Law>> {
        let law = match (&self.given.service, &self.services) {
            (Some(law), _) => law.clone(),
            (None, Some(path)) => recorded_services(path)?,
            (None, None) => return Ok(None),
        };
        ensure!(
            kind == Kind::General,
            "recorded service times have no named distribution: write G for them, not {kind}"
        );
        Ok(Some(law))
    }

    fn arrivals(&self, notation: &Notation, own: &Quantities) -> anyhow::Result<Arrivals> {
        match (&self.given.arrivals, &self.arrivals) {
            (Some(arrivals), _) => return recorded_arrivals(notation).map(|()| arrivals.clone()),
            (None, Some(path)) => {
                recorded_arrivals(notation)?;
                let text = kendall_stdio::read(path)?;
                return Arrivals::trace(&text).with_context(|| path.display().to_string());
            }
            (None, None) => {}
        }
        if let Some(ProfileOption(profile)) = &self.rate_profile {
            let poisson = notation.arrivals == Kind::Exponential && notation.population.is_none();
            ensure!(
                poisson,
                "--rate-profile needs an open Poisson stream: write M for the arrivals, and no population"
            );
            return Ok(Arrivals::Varying(profile.clone()));
        }
        let gap = law(notation.arrivals, gap_s(notation, own)?, own.arrival_scv, "--arrival-scv")?;
        Ok(match notation.population {
            Some(population) => Arrivals::Closed { population, think: gap },
            None => Arrivals::Open { gap },
        })
    }

    /// Whether the law of service is left open, and every mean is the same for all laws of its mean: Poisson arrivals share the server.
    pub(crate) fn needs_no_law(&self, notation: &Notation) -> bool {
        let shares = self.discipline.or(notation.discipline).is_some_and(Discipline::shares);
        let poisson = notation.arrivals == Kind::Exponential && notation.population.is_none();
        let open =
            !self.quantities.states_service_scv() && !self.has_recorded_services() && self.classes.is_empty();
        shares && poisson && open && notation.service == Kind::General
    }

    fn has_recorded_services(&self) -> bool {
        self.services.is_some() || self.given.service.is_some()
    }

    fn every_class_has_service(&self) -> bool {
        self.classes.iter().all(ClassOption::has_service)
    }

    /// Whether a utilisation is all that is known of the rates, so that the service time is the unit of time.
    pub(crate) fn times_are_relative(&self) -> bool {
        self.quantities.states_utilisation()
            && self.quantities.lacks_service()
            && !self.has_recorded_services()
            && (self.classes.is_empty() || !self.every_class_has_service())
    }

    /// Whether something is stated that only a single station can have.
    pub(crate) fn is_of_one_station(&self) -> bool {
        let of_several = Self { quantities: self.quantities.clone(), ..Self::default() };
        *self != of_several
    }

    /// The mean service time, where it is given.
    pub fn service_mean_s(&self) -> Option<f64> {
        self.quantities.at(0, 1, None).ok()?.service_s()
    }
}

/// The mean gap between arrivals, or the mean think time of a population.
fn gap_s(notation: &Notation, own: &Quantities) -> anyhow::Result<f64> {
    match (notation.population, own.think_time, own.arrival_rate.or(own.rho)) {
        (Some(_), Some(think_s), _) => Ok(think_s),
        (None, _, Some(rate_per_s)) => Ok(1.0 / rate_per_s),
        (Some(_), None, Some(_)) => {
            bail!("{notation} has a closed population: give --think-time, not --arrival-rate or --rho")
        }
        (Some(_), None, None) => bail!("{notation} has a closed population: give its --think-time"),
        (None, Some(_), None) => {
            bail!("{notation} is an open station: give --arrival-rate, not --think-time")
        }
        (None, None, None) => {
            bail!("{notation} is an open station: give its --arrival-rate, --rho, or --arrivals from a file")
        }
    }
}

fn service_s(notation: &Notation, own: &Quantities) -> anyhow::Result<f64> {
    own.service_s().with_context(|| {
        format!("the service time of {notation} is missing: give --service-rate or --service-time")
    })
}

/// The station's arrivals at the rate that makes its servers so busy.
fn at_utilisation(station: &Station, utilisation: f64) -> anyhow::Result<Arrivals> {
    let scaled = station
        .arrivals
        .rate_per_s()
        .zip(station.offered_utilisation())
        .and_then(|(rate_per_s, now)| station.arrivals.at_rate(rate_per_s * utilisation / now));
    scaled.context("--rho needs arrivals with a distribution; leave out --arrivals and --rate-profile")
}

fn law(kind: Kind, mean_s: f64, scv: Option<f64>, option: &str) -> anyhow::Result<Law> {
    kind.law(mean_s, scv).with_context(|| format!("see {option}"))
}

/// One of the service times of a file, each as likely as the other.
fn recorded_services(path: &Path) -> anyhow::Result<Law> {
    let mut samples_s = Vec::new();
    for (number, line) in kendall_stdio::read(path)?.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let sample_s = line.parse::<f64>().ok().filter(|sample_s| sample_s.is_finite() && *sample_s >= 0.0);
        let must = || {
            let place = format!("{}, line {}", path.display(), number + 1);
            format!(
                "{place}: {line:?} is not a service time; write one number of seconds per line, not negative"
            )
        };
        samples_s.push(sample_s.with_context(must)?);
    }
    Law::empirical(samples_s).with_context(|| path.display().to_string())
}

/// # Errors
/// Fails where the notation leaves no place for recorded arrivals.
fn recorded_arrivals(notation: &Notation) -> anyhow::Result<()> {
    let kind = notation.arrivals;
    ensure!(
        kind == Kind::General,
        "recorded arrivals have no named distribution: write G for them, not {kind}"
    );
    ensure!(
        notation.population.is_none(),
        "{notation} has a closed population, whose users determine the arrivals: leave the recorded ones out"
    );
    Ok(())
}
