//! Kendall's notation as text: "M/M/6", "M/G/2/50", "D/M/1", "M/M/4/∞/20/PS".
//!
//! The notation names the kinds of laws, not their rates, so parsing gives a [`Notation`]; together with rates,
//! that becomes a [`Station`].

use std::fmt;
use std::str::FromStr;

use crate::arrivals::Arrivals;
use crate::conditions::Conditions;
use crate::discipline::Discipline;
use crate::law::{Law, Part};
use crate::station::{Servers, Station};

/// The kind of a law, as its letter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// M: exponential.
    Exponential,
    /// D: constant.
    Constant,
    /// E followed by the number of stages.
    Erlang(u32),
    /// H followed by the number of phases, which is 2.
    Hyperexponential,
    /// U: uniform.
    Uniform,
    /// LN: log-normal.
    LogNormal,
    /// Pa: Pareto.
    Pareto,
    /// G or GI: any law.
    General,
}

/// A station without its rates: A/S/c/K/N/D.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notation {
    /// The kind of the gaps between arrivals, or of the think time.
    pub arrivals: Kind,
    /// The kind of the service time.
    pub service: Kind,
    /// How many servers.
    pub servers: Servers,
    /// The capacity of the station; `None` is unlimited.
    pub capacity: Option<u64>,
    /// Users of a closed population; `None` for an open stream.
    pub population: Option<u32>,
    /// The discipline; `None` where it is not named, which is FIFO unless the context says otherwise.
    pub discipline: Option<Discipline>,
}

/// The reason why a text is not a station.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NotationError {
    #[error("{0:?} is not in Kendall's notation; write arrivals/service/servers, such as M/M/6 or M/G/2/50")]
    TooShort(String),
    #[error("{0:?} has parts after the discipline, which must be last: A/S/c/K/N/D")]
    TooLong(String),
    #[error("{0:?} is not a law; known are M, D, E2 (any number of stages), H2, U, LN, Pa and G")]
    Law(String),
    #[error("{0:?} is not a number of servers; it must be a whole number from 1 on")]
    Servers(String),
    #[error("{0:?} is neither a capacity or population (a whole number or ∞) nor a discipline")]
    Part(String),
    #[error("a law of kind {0} needs its squared coefficient of variation in addition to its mean")]
    NeedsScv(Kind),
    #[error("a law of kind {kind} cannot have a squared coefficient of variation of {scv}; {must}")]
    Scv { kind: Kind, scv: f64, must: &'static str },
}

impl Kind {
    /// Whether a law of this kind takes a squared coefficient of variation in addition to its mean.
    pub fn takes_scv(self) -> bool {
        match self {
            Self::Exponential | Self::Constant | Self::Erlang(_) => false,
            Self::Hyperexponential | Self::Uniform | Self::LogNormal | Self::Pareto | Self::General => true,
        }
    }

    /// The law of this kind with the given mean. `scv`, the squared coefficient of variation, is needed for H2,
    /// LN, Pa and G, may be given for U (1/3 if not: from 0 to twice the mean), and must fit the others.
    ///
    /// For G, which is any law, it is the usual one with these two moments: a mixture of two Erlang laws below
    /// 1 (Tijms 2003, section B.1) and a hyperexponential one with balanced means above.
    ///
    /// # Errors
    /// Fails where `scv` is missing or impossible for the kind.
    pub fn law(self, mean_s: f64, scv: Option<f64>) -> Result<Law, NotationError> {
        let refuse = |must| Err(NotationError::Scv { kind: self, scv: scv.unwrap_or(f64::NAN), must });
        let need = scv.ok_or(NotationError::NeedsScv(self));
        let implied = match self {
            Self::Exponential => Some(1.0),
            Self::Constant => Some(0.0),
            Self::Erlang(shape) => Some(1.0 / f64::from(shape)),
            _ => None,
        };
        if let (Some(implied), Some(scv)) = (implied, scv)
            && (implied - scv).abs() > 1e-6
        {
            return refuse("the kind determines it, so leave it out");
        }
        Ok(match self {
            Self::Exponential => Law::Exponential { mean_s },
            Self::Constant => Law::Constant { mean_s },
            Self::Erlang(shape) => Law::Erlang { shape, mean_s },
            Self::Uniform => {
                let spread = (3.0 * scv.unwrap_or(1.0 / 3.0)).sqrt();
                if spread.is_nan() || spread <= 0.0 || spread > 1.0 + 1e-12 {
                    return refuse("it must be above 0 and at most 1/3");
                }
                Law::Uniform { low_s: mean_s * (1.0 - spread).max(0.0), high_s: mean_s * (1.0 + spread) }
            }
            Self::LogNormal => match need? {
                scv if scv > 0.0 => Law::LogNormal { mean_s, scv },
                _ => return refuse("it must be positive"),
            },
            Self::Pareto => match need? {
                scv if scv > 0.0 => Law::Pareto { shape: 1.0 + (1.0 + 1.0 / scv).sqrt(), mean_s },
                _ => return refuse("it must be positive"),
            },
            Self::Hyperexponential => match need? {
                scv if scv > 1.0 => balanced_hyperexponential(mean_s, scv),
                _ => return refuse("it must be above 1"),
            },
            Self::General => match need? {
                // Below that an Erlang law would have tens of thousands of stages.
                scv if (0.0..1e-4).contains(&scv) => Law::Constant { mean_s },
                1.0 => Law::Exponential { mean_s },
                scv if scv > 1.0 && scv.is_finite() => balanced_hyperexponential(mean_s, scv),
                scv if (1e-4..1.0).contains(&scv) => mixed_erlang(mean_s, scv),
                _ => return refuse("it must be zero or more, and finite"),
            },
        })
    }
}

/// Two phases with equal shares of the load (Tijms 2003, section B.1).
fn balanced_hyperexponential(mean_s: f64, scv: f64) -> Law {
    let p = 0.5 * (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt());
    Law::Hyperexponential { parts: vec![(p, mean_s / (2.0 * p)), (1.0 - p, mean_s / (2.0 * (1.0 - p)))] }
}

/// Erlang with k − 1 or with k stages of the same rate, 1/k ≤ scv ≤ 1/(k − 1) (Tijms 2003, section B.1).
fn mixed_erlang(mean_s: f64, scv: f64) -> Law {
    let k = (1.0 / scv).ceil().max(2.0);
    let p = (k * scv - (k * (1.0 + scv) - k * k * scv).max(0.0).sqrt()) / (1.0 + scv);
    let stage_s = mean_s / (k - p);
    let erlang = |stages: f64| Law::Erlang { shape: stages as u32, mean_s: stages * stage_s };
    if p <= 0.0 {
        return erlang(k);
    }
    Law::Mixture {
        parts: vec![
            Part { probability: p, of: erlang(k - 1.0) },
            Part { probability: 1.0 - p, of: erlang(k) },
        ],
    }
}

impl Notation {
    /// The order of service: the one named, or FIFO.
    pub fn order(&self) -> Discipline {
        self.discipline.unwrap_or_default()
    }

    /// The station that this notation and its laws describe. `gap` is the law of the gaps between arrivals, or
    /// of the think time where the notation names a population.
    pub fn station(&self, gap: Law, service: Law) -> Station {
        let arrivals = match self.population {
            Some(population) => Arrivals::Closed { population, think: gap },
            None => Arrivals::Open { gap },
        };
        Station {
            arrivals,
            service,
            servers: self.servers,
            capacity: self.capacity,
            discipline: self.order(),
            classes: Vec::new(),
            conditions: Conditions::default(),
        }
    }
}

impl FromStr for Kind {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let stages = |letter| text.strip_prefix(letter).and_then(|rest| rest.parse::<u32>().ok());
        Ok(match text.to_uppercase().as_str() {
            "M" => Self::Exponential,
            "D" => Self::Constant,
            "U" => Self::Uniform,
            "LN" => Self::LogNormal,
            "PA" => Self::Pareto,
            "G" | "GI" => Self::General,
            _ => match (stages(['E', 'e']), stages(['H', 'h'])) {
                (Some(shape @ 1..=10_000), _) => Self::Erlang(shape),
                (_, Some(2)) => Self::Hyperexponential,
                _ => return Err(NotationError::Law(text.into())),
            },
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exponential => write!(f, "M"),
            Self::Constant => write!(f, "D"),
            Self::Erlang(shape) => write!(f, "E{shape}"),
            Self::Hyperexponential => write!(f, "H2"),
            Self::Uniform => write!(f, "U"),
            Self::LogNormal => write!(f, "LN"),
            Self::Pareto => write!(f, "Pa"),
            Self::General => write!(f, "G"),
        }
    }
}

impl FromStr for Notation {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let mut parts: Vec<&str> = text.split('/').map(str::trim).collect();
        if parts.len() < 3 {
            return Err(NotationError::TooShort(text.into()));
        }
        let discipline = match parts[3..].last().and_then(|last| last.parse().ok()) {
            Some(discipline) => {
                parts.pop();
                Some(discipline)
            }
            None => None,
        };
        if parts.len() > 5 {
            return Err(NotationError::TooLong(text.into()));
        }
        let population = match limit(parts.get(4))? {
            Some(users) => Some(u32::try_from(users).map_err(|_| NotationError::Part(parts[4].into()))?),
            None => None,
        };
        Ok(Self {
            arrivals: parts[0].parse()?,
            service: parts[1].parse()?,
            servers: parts[2].parse().map_err(|_| NotationError::Servers(parts[2].into()))?,
            capacity: limit(parts.get(3))?,
            population,
            discipline,
        })
    }
}

/// A whole number from 1 on; `None` where it is missing, empty or infinite.
fn limit(part: Option<&&str>) -> Result<Option<u64>, NotationError> {
    match part.copied() {
        None | Some("" | "∞" | "inf" | "infinity" | "*") => Ok(None),
        Some(number) => match number.parse() {
            Ok(value @ 1..) => Ok(Some(value)),
            _ => Err(NotationError::Part(number.into())),
        },
    }
}

/// Without the parts at its end that are not named.
impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.arrivals, self.service, self.servers)?;
        write_tail(f, self.capacity, self.population, self.discipline)
    }
}

/// Kendall's notation, without the parts at its end that are at their default.
impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let population = match self.arrivals {
            Arrivals::Closed { population, .. } => Some(population),
            Arrivals::Attended(ref users) => Some(users.most()),
            _ => None,
        };
        let service = self.service_overall().letter();
        write!(f, "{}/{service}/{}", self.arrivals.letter(), self.servers)?;
        let named = Some(self.discipline).filter(|&discipline| discipline != Discipline::Fifo);
        write_tail(f, self.capacity, population, named)
    }
}

/// Writes the parts /K/N/D, each only where it differs from the default.
fn write_tail(
    f: &mut fmt::Formatter<'_>,
    capacity: Option<u64>,
    population: Option<u32>,
    discipline: Option<Discipline>,
) -> fmt::Result {
    match (capacity, population) {
        (Some(capacity), _) => write!(f, "/{capacity}")?,
        (None, Some(_)) => write!(f, "/∞")?,
        (None, None) => {}
    }
    if let Some(population) = population {
        write!(f, "/{population}")?;
    }
    match discipline {
        Some(discipline) => write!(f, "/{}", discipline.notation()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn common_stations_read_and_print_back() {
        for text in [
            "M/M/6",
            "M/G/2/50",
            "D/M/1",
            "M/M/4/∞/20",
            "E3/H2/2",
            "LN/Pa/1/PS",
            "M/M/1/FIFO",
            "M/M/4/9/20/SRPT",
        ] {
            assert_eq!(text.parse::<Notation>().unwrap().to_string(), text);
        }
        let read = |text: &str| text.parse::<Notation>().unwrap();
        assert_eq!(read("m/m/4/inf/20/fcfs"), read("M/M/4/∞/20/FIFO"));
        assert_eq!(read("M/GI/1/gittins").discipline, Some(Discipline::Gittins));
        assert_eq!(read("M/M/1//PS"), read("M/M/1/PS"));
        let (named, silent) = (read("M/M/1/FIFO"), read("M/M/1"));
        assert_eq!((named.discipline, silent.discipline), (Some(Discipline::Fifo), None));
        assert_eq!((named.order(), silent.order()), (Discipline::Fifo, Discipline::Fifo));
        assert_eq!(read("M/M/1/LIFO").order(), Discipline::Lifo);
    }

    #[test]
    fn faults_are_named() {
        let fault = |text: &str| text.parse::<Notation>().unwrap_err().to_string();
        assert!(fault("M/M").contains("arrivals/service/servers"));
        assert!(fault("Q/M/1").starts_with("\"Q\" is not a law"));
        assert!(fault("E0/M/1").contains("not a law"));
        assert!(fault("M/M/0").contains("number of servers"));
        assert!(fault("M/M/1/PS/5").contains("neither a capacity"));
        assert!(fault("M/M/1/5/6/7/8").contains("after the discipline"));
        assert!(fault("M/M/1/0").contains("neither"));
    }

    #[test]
    fn a_kind_with_mean_and_variation_gives_a_law_with_both() {
        let cases = [
            (Kind::General, 0.3),
            (Kind::General, 0.905),
            (Kind::General, 4.0),
            (Kind::Hyperexponential, 2.5),
            (Kind::LogNormal, 2.0),
            (Kind::Pareto, 0.5),
            (Kind::Uniform, 0.2),
        ];
        for (kind, scv) in cases {
            let law = kind.law(0.25, Some(scv)).unwrap();
            assert!((law.mean_s() - 0.25).abs() < 1e-12, "{kind}");
            assert!((law.scv() - scv).abs() < 1e-9, "{kind}: {} for {scv}", law.scv());
            assert_eq!(law.validate(), Ok(()));
        }
        assert_eq!(Kind::Uniform.law(1.0, None), Ok(Law::Uniform { low_s: 0.0, high_s: 2.0 }));
        assert!(matches!(Kind::General.law(1.0, None), Err(NotationError::NeedsScv(Kind::General))));
        assert!(Kind::Exponential.law(1.0, Some(2.0)).unwrap_err().to_string().contains("leave it out"));
        assert!(Kind::Hyperexponential.law(1.0, Some(0.5)).is_err());
        for scv in [0.0, 1e-9, 9.9e-5] {
            assert_eq!(Kind::General.law(1.0, Some(scv)), Ok(Law::Constant { mean_s: 1.0 }));
        }
        for scv in [-1e-9, f64::NAN, f64::INFINITY] {
            assert!(Kind::General.law(1.0, Some(scv)).is_err(), "{scv}");
        }
    }

    #[test]
    fn a_kind_takes_the_variation_that_it_does_not_imply() {
        for text in ["M", "D", "E2", "H2", "U", "LN", "Pa", "G"] {
            let kind: Kind = text.parse().unwrap();
            // 2 for kinds above 1, 0.2 for U: the law has the variation that was given.
            let law = [2.0, 0.2].into_iter().find_map(|scv| kind.law(1.0, Some(scv)).ok());
            assert_eq!(kind.takes_scv(), law.is_some(), "{kind}");
        }
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Exponential),
            Just(Kind::Constant),
            (1u32..100).prop_map(Kind::Erlang),
            Just(Kind::Hyperexponential),
            Just(Kind::Uniform),
            Just(Kind::LogNormal),
            Just(Kind::Pareto),
            Just(Kind::General)
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            (arrivals, service) in (kinds(), kinds()),
            servers in 1u32..100_000,
            capacity in prop::option::of(1u64..1000),
            population in prop::option::of(1u32..1000),
            discipline in prop::option::of(prop::sample::select(Discipline::ALL.to_vec())),
        ) {
            let servers = Servers::new(servers).unwrap();
            let notation = Notation { arrivals, service, servers, capacity, population, discipline };
            prop_assert_eq!(notation.to_string().parse(), Ok(notation));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}") {
            drop(text.parse::<Notation>());
        }
    }
}
