//! The stations of the models, made from the settings and measurements, and their answers.

use kendall_simulation::{StopRule, simulate};
use kendall_station::{Answer, Arrivals, Class, Discipline, Kind, Law, Notation, Station};
use kendall_system::StationShape;
use kendall_theory::formula;

use crate::report::point::{Modelled, Modelling, ServiceSeen};
use crate::thin::thinned;

/// Service times that a model's empirical law keeps; more are thinned evenly.
const KEPT_SERVICES: usize = 20_000;
/// Places on a formula's curve.
const CURVE_STEPS: u32 = 60;

/// The measurements that models are made from.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The arrivals as set in the experiment.
    pub arrivals: &'a Arrivals,
    /// The service times as stamped by the server, ascending.
    pub services_s: &'a [f64],
    /// The classes that came, with their shares; empty for one.
    pub classes: &'a [Class],
    /// The station of the system.
    pub shape: StationShape,
    /// The part of the response time that passes outside the station.
    pub delay_s: f64,
    /// The stop rule of the simulation, so that like is compared with like.
    pub stop: StopRule,
}

/// How closely a model's service law follows the measured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// The samples themselves.
    Full,
    /// A law with their mean and variance, for formulas that need no more.
    TwoMoments,
}

/// The squared coefficient of variation; 0 where all times are 0, as those of work that takes the server no time.
pub(crate) fn scv(variance: f64, mean: f64) -> f64 {
    if mean > 0.0 { variance / (mean * mean) } else { 0.0 }
}

impl Observed<'_> {
    /// Mean and variation of the service times, where the server reported them.
    pub fn service(&self) -> Option<ServiceSeen> {
        let n = self.services_s.len();
        if n == 0 {
            return None;
        }
        let mean_s = self.services_s.iter().sum::<f64>() / n as f64;
        let variance = self.services_s.iter().map(|s| (s - mean_s).powi(2)).sum::<f64>() / n as f64;
        Some(ServiceSeen { mean_s, scv: scv(variance, mean_s), n: n as u64 })
    }

    /// The stations to compare with, each once: those of the file, or the one that the settings describe. One that names no
    /// order or no capacity has that of the system, and one without a population has that of the load.
    pub fn notations(&self, models: &[Notation]) -> Vec<Notation> {
        let population = match self.arrivals {
            Arrivals::Closed { population, .. } => Some(*population),
            Arrivals::Attended(users) => Some(users.most()),
            Arrivals::Open { .. } | Arrivals::Trace { .. } | Arrivals::Varying(_) | Arrivals::Sessions(_) => {
                None
            }
        };
        let StationShape { servers, discipline, capacity } = self.shape;
        // FIFO goes without saying.
        let discipline = Some(discipline).filter(|&discipline| discipline != Discipline::Fifo);
        let arrivals = self.arrivals.letter().parse().unwrap_or(Kind::General);
        let own = Notation { arrivals, service: Kind::General, servers, capacity, population, discipline };
        let mut filled: Vec<Notation> = Vec::new();
        for model in models {
            let model = Notation {
                capacity: model.capacity.or(capacity),
                population: model.population.or(population),
                discipline: model.discipline.or(discipline),
                ..model.clone()
            };
            if !filled.contains(&model) {
                filled.push(model);
            }
        }
        if filled.is_empty() { vec![own] } else { filled }
    }

    /// The station that a notation means here, or why it cannot be.
    pub fn station(&self, notation: &Notation, precision: Precision) -> Result<Station, String> {
        let service = self.service().ok_or("the server did not report its service times")?;
        let law = match (notation.service, precision) {
            (Kind::General, Precision::Full) => {
                Law::empirical(thinned(self.services_s, KEPT_SERVICES)).map_err(|error| error.to_string())?
            }
            (kind, _) => law(kind, service.mean_s, service.scv)?,
        };
        let mut station = notation.station(Law::Constant { mean_s: 0.0 }, law);
        station.arrivals = self.arrivals(notation)?;
        station.classes = self.classes.to_vec();
        Ok(station)
    }

    /// The arrivals themselves where the notation says G or names their own kind; else a renewal stream of the kind
    /// it says, with their mean and variation.
    fn arrivals(&self, notation: &Notation) -> Result<Arrivals, String> {
        let kind = notation.arrivals;
        let own = kind == Kind::General || self.arrivals.letter().parse() == Ok(kind);
        let stream = |mean_s, scv| Ok(Arrivals::Open { gap: law(kind, mean_s, scv)? });
        match (self.arrivals, notation.population) {
            (Arrivals::Closed { population, .. }, Some(users)) if users != *population => {
                Err(format!("the load was of {population} users, not of {users}"))
            }
            (Arrivals::Attended(users), Some(most)) if most != users.most() => {
                Err(format!("the load was of up to {} users, not of {most}", users.most()))
            }
            (Arrivals::Closed { .. } | Arrivals::Attended(_), _) => Ok(self.arrivals.behind(self.delay_s)),
            (_, Some(_)) => Err("it has a population, and the load was an open stream".into()),
            (_, None) if own => Ok(self.arrivals.clone()),
            (Arrivals::Open { gap }, None) => stream(gap.mean_s(), gap.scv()),
            (Arrivals::Trace { instants_s }, None) => {
                let gaps = instants_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
                let gaps = Law::empirical(gaps).map_err(|error| error.to_string())?;
                stream(gaps.mean_s(), gaps.scv())
            }
            // Of the same mean rate, which then stays.
            (Arrivals::Varying(profile), None) => stream(1.0 / profile.mean_rate_per_s(), 1.0),
            (Arrivals::Sessions(sessions), None) => stream(1.0 / sessions.rate_per_s(), 1.0),
        }
    }

    /// The answers of each station, by formula and by simulation, with the delay outside it added.
    pub fn answers(&self, notations: &[Notation], varied: Varied, seed: u64) -> Vec<Modelled> {
        let answer_of = |notation: &Notation| {
            let station = self.station(notation, Precision::Full);
            let ask = |way: &dyn Fn(&Station) -> Modelling| match &station {
                Ok(station) => delayed(way(station), self.delay_s, station.mean_weight()),
                Err(why) => Modelling::NoAnswer(why.clone()),
            };
            Modelled {
                notation: self.label(notation, varied),
                formula: ask(&|station| formula(station).into()),
                simulation: ask(&|station| simulate(station, self.stop, seed).into()),
            }
        };
        notations.iter().map(answer_of).collect()
    }

    /// Rate and the formula's answer for a station at it, the delay included, up to `most_per_s` or to the end of stability.
    pub fn curve(&self, notation: &Notation, most_per_s: f64) -> Vec<(f64, Answer)> {
        let Ok(station) = self.station(notation, Precision::TwoMoments) else { return Vec::new() };
        let at = |step: u32| {
            let rate_per_s = most_per_s * f64::from(step) / f64::from(CURVE_STEPS);
            let arrivals = station.arrivals.at_rate(rate_per_s)?;
            let answer = formula(&Station { arrivals, ..station.clone() }).ok()?;
            Some((rate_per_s, answer.delayed(self.delay_s, station.mean_weight())))
        };
        (1..=CURVE_STEPS).map_while(at).collect()
    }

    /// How a model is called in a report. Along an axis of users it is one model, with N for their number; where the order of
    /// service or the capacity varies it is one model too, of the order and with the capacity, K, of its point.
    pub fn label(&self, notation: &Notation, varied: Varied) -> String {
        let discipline = notation.discipline.filter(|_| !varied.discipline);
        let named = Notation { discipline, ..notation.clone() };
        let mut parts: Vec<String> = named.to_string().split('/').map(str::to_owned).collect();
        if varied.capacity && notation.capacity.is_some() && notation.capacity == self.shape.capacity {
            parts[3] = "K".into();
        }
        if let (Arrivals::Closed { .. } | Arrivals::Attended(_), Some(population)) =
            (self.arrivals, parts.get_mut(4))
        {
            *population = "N".into();
        }
        parts.join("/")
    }
}

/// Which parts of the system's station vary in an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Varied {
    /// Whether the order of service varies.
    pub discipline: bool,
    /// Whether the capacity varies.
    pub capacity: bool,
}

/// A law of a kind with a measured mean and variation, as far as the kind has room for the latter.
pub fn law(kind: Kind, mean_s: f64, scv: f64) -> Result<Law, String> {
    let scv = match kind {
        // Measured times that are uniform from 0 vary now a little more, now a little less than that.
        Kind::Uniform => Some(scv.min(1.0 / 3.0)),
        kind => kind.takes_scv().then_some(scv),
    };
    kind.law(mean_s, scv).map_err(|error| error.to_string())
}

/// A model's answer with the delay outside the station added to its response times.
fn delayed(modelling: Modelling, delay_s: f64, mean_weight: f64) -> Modelling {
    match modelling {
        Modelling::Answer(answer) => Modelling::Answer(Box::new(answer.delayed(delay_s, mean_weight))),
        Modelling::NoAnswer(why) => Modelling::NoAnswer(why),
    }
}

#[cfg(test)]
mod tests {
    use kendall_station::Servers;

    use super::*;

    fn observed<'a>(arrivals: &'a Arrivals, discipline: Discipline, classes: &'a [Class]) -> Observed<'a> {
        Observed {
            arrivals,
            services_s: &[0.1, 0.2, 0.3],
            classes,
            shape: StationShape::unlimited(Servers::MIN, discipline),
            delay_s: 0.5,
            stop: StopRule::default(),
        }
    }

    fn model(text: &str) -> Notation {
        text.parse().unwrap()
    }

    #[test]
    fn without_a_model_the_station_is_the_one_that_was_set() {
        let poisson = Arrivals::poisson(2.0);
        let named = |discipline| observed(&poisson, discipline, &[]).notations(&[])[0].to_string();
        assert_eq!(named(Discipline::Fifo), "M/G/1");
        assert_eq!(named(Discipline::Gittins), "M/G/1/Gittins");
        let closed = Arrivals::Closed { population: 5, think: Law::Constant { mean_s: 1.0 } };
        assert_eq!(observed(&closed, Discipline::Fifo, &[]).notations(&[])[0].to_string(), "D/G/1/∞/5");
    }

    #[test]
    fn a_model_is_of_the_systems_order_unless_it_names_another() {
        let poisson = Arrivals::poisson(2.0);
        let seen = observed(&poisson, Discipline::Gittins, &[]);
        let notations = seen.notations(&[model("M/M/1"), model("M/M/1/FIFO")]);
        let order = |i: usize| seen.station(&notations[i], Precision::Full).unwrap().discipline;
        assert_eq!((order(0), order(1)), (Discipline::Gittins, Discipline::Fifo));
        assert_eq!(notations[0].to_string(), "M/M/1/Gittins");
    }

    #[test]
    fn a_model_has_the_systems_capacity_unless_it_names_another() {
        let poisson = Arrivals::poisson(20.0);
        let mut seen = observed(&poisson, Discipline::Fifo, &[]);
        seen.shape.capacity = Some(8);
        assert_eq!(seen.notations(&[])[0].to_string(), "M/G/1/8");
        let notations = seen.notations(&[model("M/M/1"), model("M/M/1/8"), model("M/M/1/64")]);
        assert_eq!(notations, [model("M/M/1/8"), model("M/M/1/64")]);
        let labels = |capacity| {
            notations
                .iter()
                .map(|of| seen.label(of, Varied { discipline: false, capacity }))
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(true), ["M/M/1/K", "M/M/1/64"]);
        assert_eq!(labels(false), ["M/M/1/8", "M/M/1/64"]);
        // Four times the load that the server can do: it has an answer, and the formula's line does not end at a rate of 5/s.
        let answers = seen.answers(&notations[..1], Varied::default(), 1);
        for way in [&answers[0].formula, &answers[0].simulation] {
            let lost = way.answer().expect("a station of limited capacity has a steady state").lost;
            assert!((lost.value - 0.75).abs() < 0.01, "{lost:?}");
        }
        assert_eq!(seen.curve(&notations[0], 20.0).last().unwrap().0, 20.0);
    }

    #[test]
    fn classes_are_modelled_in_every_order() {
        let class = |name: &str, share, weight| Class { name: name.into(), share, weight, service: None };
        let classes = [class("1", 0.7, 1.0), class("2", 0.3, 2.0)];
        let poisson = Arrivals::poisson(2.0);
        let seen = observed(&poisson, Discipline::Priority, &classes);
        let station = |text: &str| seen.station(&seen.notations(&[model(text)])[0], Precision::Full).unwrap();
        assert_eq!(station("M/G/1").classes.len(), 2);
        // FIFO ignores weights, but its weighted response uses them.
        assert_eq!(station("M/G/1/FIFO").classes.len(), 2);
    }

    #[test]
    fn arrivals_are_their_own_unless_the_model_says_otherwise() {
        let erlang = Arrivals::Open { gap: Law::Erlang { shape: 2, mean_s: 0.5 } };
        let seen = observed(&erlang, Discipline::Fifo, &[]);
        let arrivals = |text: &str| {
            seen.station(&text.parse().unwrap(), Precision::Full).map(|station| station.arrivals)
        };
        assert_eq!(arrivals("G/G/1"), Ok(erlang.clone()));
        assert_eq!(arrivals("M/G/1"), Ok(Arrivals::poisson(2.0)));
        assert!(arrivals("M/G/1/∞/5").unwrap_err().contains("open stream"));

        let trace = Arrivals::trace("0\n1\n3\n").unwrap();
        let seen = observed(&trace, Discipline::Fifo, &[]);
        let station = |text: &str| seen.station(&text.parse().unwrap(), Precision::Full).unwrap();
        assert_eq!(station("G/G/1").arrivals, trace);
        assert_eq!(station("M/G/1").arrivals, Arrivals::Open { gap: Law::Exponential { mean_s: 1.5 } });
    }

    #[test]
    fn a_user_thinks_for_the_delay_as_well() {
        let closed = Arrivals::Closed { population: 5, think: Law::Exponential { mean_s: 1.0 } };
        let seen = observed(&closed, Discipline::Fifo, &[]);
        let notation = &seen.notations(&[model("M/M/1")])[0];
        let think = Law::Exponential { mean_s: 1.5 };
        let station = seen.station(notation, Precision::Full).unwrap();
        assert_eq!(station.arrivals, Arrivals::Closed { population: 5, think });
        assert_eq!(seen.label(notation, Varied::default()), "M/M/1/∞/N");
        let gittins = model("M/M/1/∞/5/Gittins");
        assert_eq!(seen.label(&gittins, Varied::default()), "M/M/1/∞/N/Gittins");
        assert_eq!(seen.label(&gittins, Varied { discipline: true, capacity: false }), "M/M/1/∞/N");
        assert!(
            seen.station(&"M/M/1/∞/7".parse().unwrap(), Precision::Full).unwrap_err().contains("5 users")
        );
    }

    #[test]
    fn work_that_takes_no_time_does_not_vary() {
        let poisson = Arrivals::poisson(0.5);
        let seen = Observed { services_s: &[0.0; 3], ..observed(&poisson, Discipline::Fifo, &[]) };
        assert_eq!(seen.service(), Some(ServiceSeen { mean_s: 0.0, scv: 0.0, n: 3 }));
    }

    #[test]
    fn a_uniform_model_takes_measured_times_that_vary_a_little_more() {
        let services_s = [0.0, 0.0, 1.0, 1.0];
        let poisson = Arrivals::poisson(0.5);
        let seen = Observed { services_s: &services_s, ..observed(&poisson, Discipline::Fifo, &[]) };
        assert!(seen.station(&"M/U/1".parse().unwrap(), Precision::Full).is_ok());
    }
}
