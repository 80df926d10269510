//! A bare station, by formula and by simulation, as `kendall solve` computes it.

use std::time::{Duration, Instant};

use kendall_evidence::fit::Load;
use kendall_simulation::{StopRule, simulate};
use kendall_station::{Answer, Arrivals, By, Discipline, Kind, Law, Notation, Servers, Station};
use kendall_stats::number::counted;
use kendall_theory::{NoFormula, formula, response_quantiles};

use super::curve::along;
use super::question::{AnsweredValues, Detail, Question};
use super::shown::{
    Axis, CurvePoint, SHARES, TABLED, TableRow, WhatIf, number_cell, pairs, share_cell, time_cell,
};

/// The station that a view without parameters shows.
pub(super) const RATE_PER_S: f64 = 20.0;
pub(super) const THINK_S: f64 = 1.0;
const SERVICE_S: f64 = 0.1;
const SERVERS: u32 = 3;
/// The squared coefficient of variation of laws that need one: for H2 it is above 1.
const SCV: f64 = 1.0;
const SCV_H2: f64 = 4.0;
/// The seed of the simulation, as on the command line.
const SEED: u64 = 1;
/// The customers of a simulation in a preview.
const PREVIEWED: u64 = 20_000;
/// The customers at each load of a simulated curve.
const CURVE_PREVIEWED: u64 = 10_000;
const CURVE_SIMULATED: u64 = 200_000;
/// The loads of a simulated curve.
const CURVE_STEPS: u32 = 16;
/// The share of the capacity at which curves end. Formulas and simulations take longest close to it.
const NEARLY: f64 = 0.99;
const NEARLY_PREVIEWED: f64 = 0.94;
/// A formula that takes longer is solved once in a preview, not twice.
const SLOW: Duration = Duration::from_millis(25);

/// A station with its law of service times by kind, as an address and a command name it.
pub(super) struct BareStation {
    kind: Kind,
    scv: Option<f64>,
    service_s: f64,
    servers: Servers,
    discipline: Discipline,
    load: Load,
    delay_s: f64,
}

impl BareStation {
    /// The station of a question, with defaults for what it leaves open.
    pub(super) fn of(question: &Question, kind: Kind) -> Self {
        let needed = kind.takes_scv() && kind != Kind::Uniform;
        let usual = if kind == Kind::Hyperexponential { SCV_H2 } else { SCV };
        let mut load = question.load(RATE_PER_S, THINK_S);
        if let Load::Closed { think_s, .. } = &mut load {
            // A law of think times needs a mean above 0.
            *think_s = think_s.max(1e-9);
        }
        Self {
            kind,
            scv: needed.then(|| question.scv.unwrap_or(usual)),
            service_s: question.service_s.unwrap_or(SERVICE_S),
            servers: question.servers.or(Servers::new(SERVERS)).unwrap_or(Servers::MIN),
            discipline: question.discipline.unwrap_or_default(),
            load,
            delay_s: question.delay_s.unwrap_or(0.0),
        }
    }

    fn notation(&self) -> Notation {
        let population = match self.load {
            Load::Closed { users, .. } => Some(users),
            Load::Open { .. } => None,
        };
        Notation {
            arrivals: Kind::Exponential,
            service: self.kind,
            servers: self.servers,
            capacity: None,
            population,
            discipline: Some(self.discipline).filter(|&discipline| discipline != Discipline::Fifo),
        }
    }

    /// The station as its requests find it: behind the delay.
    fn station(&self, load: Load) -> Result<Station, String> {
        let service = self.kind.law(self.service_s, self.scv).map_err(|error| format!("scv: {error}"))?;
        let arrivals = match load {
            Load::Open { rate_per_s } => Arrivals::poisson(rate_per_s),
            Load::Closed { users, think_s } => {
                Arrivals::Closed { population: users, think: Law::Exponential { mean_s: think_s } }
            }
        };
        let arrivals = arrivals.behind(self.delay_s);
        let station =
            Station { discipline: self.discipline, ..Station::new(arrivals, service, self.servers) };
        station.validate().map_err(|error| error.to_string())?;
        Ok(station)
    }

    fn delayed(&self, answer: Answer) -> Answer {
        answer.delayed(self.delay_s, 1.0)
    }

    fn capacity_per_s(&self) -> f64 {
        f64::from(self.servers.get()) / self.service_s
    }

    /// The command that prints the same numbers.
    fn command(&self) -> String {
        let mut words = vec!["kendall solve".to_owned(), self.notation().to_string()];
        match self.load {
            Load::Open { rate_per_s } => words.push(format!("--arrival-rate {rate_per_s}")),
            Load::Closed { think_s, .. } => words.push(format!("--think-time {think_s}")),
        }
        words.push(format!("--service-time {}", self.service_s));
        words.extend(self.scv.map(|scv| format!("--service-scv {scv}")));
        if self.delay_s > 0.0 {
            words.push(format!("--delay {}", self.delay_s));
        }
        words.join(" ")
    }

    fn answered(&self, question: &Question) -> AnsweredValues {
        AnsweredValues {
            scv: self.scv,
            service: Some(self.service_s),
            servers: Some(self.servers.get()),
            discipline: Some(self.discipline.name()),
            delay: Some(self.delay_s),
            ..AnsweredValues::of(question, self.load)
        }
    }

    /// The answer, with a curve if one is requested.
    ///
    /// # Errors
    /// Fails where there is no such station.
    pub(super) fn answer(
        &self,
        question: &Question,
        detail: Detail,
        with_curve: bool,
    ) -> Result<WhatIf, String> {
        let station = self.station(self.load)?;
        let answered = self.answered(question);
        let axis = match self.load {
            Load::Open { rate_per_s } => Axis::of_rates(rate_per_s, self.capacity_per_s()),
            Load::Closed { users, .. } => Axis::of_users(users),
        };
        let began = Instant::now();
        let by_formula = formula(&station).map(|answer| self.delayed(answer));
        let mut shown = WhatIf {
            address: answered.address(),
            answered,
            command: self.command(),
            axis: Some(axis),
            columns: vec!["formula", "simulation"],
            ..WhatIf::default()
        };
        shown.distribution = match &by_formula {
            Ok(answer) if detail == Detail::Preview && began.elapsed() > SLOW => {
                pairs(&answer.response.quantiles, 0.0)
            }
            _ => pairs(&response_quantiles(&station, &SHARES).unwrap_or_default(), self.delay_s),
        };
        let simulated = match &by_formula {
            Err(why @ NoFormula::Unstable { .. }) => {
                shown.unstable = Some(why.to_string());
                None
            }
            _ => Some(simulate(&station, stop(detail), SEED).map(|answer| self.delayed(answer))),
        };
        let (by_formula, no_formula) = split(by_formula);
        let (by_simulation, no_simulation) = simulated.map_or((None, None), split);
        if shown.unstable.is_none() {
            shown.no_answer.extend(no_formula.map(|why| format!("Formula: no answer. {why}.")));
            shown.no_answer.extend(no_simulation.map(|why| format!("Simulation: no answer. {why}.")));
            shown.rows = rows(by_formula.as_ref(), by_simulation.as_ref());
        }
        shown.mean = by_formula.as_ref().or(by_simulation.as_ref()).map(|answer| answer.response.mean_s);
        shown.notes = [&by_formula, &by_simulation].into_iter().flatten().map(source).collect();
        if let Some(answer) = &by_simulation {
            shown.simulated = pairs(&answer.response.quantiles, 0.0);
            shown.effort.push(customers(answer, detail));
        }
        if with_curve {
            let (curve, effort) = self.curve(detail);
            shown.curve = Some(curve);
            shown.effort.extend(effort);
        }
        Ok(shown)
    }

    /// Response times along the load: by formula where that has quantiles, otherwise by simulation.
    fn curve(&self, detail: Detail) -> (Vec<CurvePoint>, Option<String>) {
        let point =
            |at: f64, answer: Option<Answer>| Some(CurvePoint::of(at, &self.delayed(answer?).response));
        let steps = if detail == Detail::Full { 64 } else { 32 };
        let by_formula = along(&self.loads(steps, detail), detail, |at| {
            point(at, self.station(self.load_at(at)).ok().and_then(|station| formula(&station).ok()))
        });
        if by_formula.iter().any(|point| point.p99.is_some()) {
            return (by_formula, None);
        }
        let customers = if detail == Detail::Full { CURVE_SIMULATED } else { CURVE_PREVIEWED };
        let points = along(&self.loads(CURVE_STEPS, detail), detail, |at| {
            let station = self.station(self.load_at(at)).ok()?;
            point(at, simulate(&station, StopRule::customers(customers), SEED).ok())
        });
        let effort = format!(
            "The curves are simulated, with {} at each load, because no formula has their quantiles.",
            counted(customers, "customer")
        );
        (points, Some(effort))
    }

    /// Ascending loads for a curve: rates nearly up to the capacity, denser where the curve is steep, or users up to twice the given
    /// number.
    fn loads(&self, steps: u32, detail: Detail) -> Vec<f64> {
        let share = |step: u32| f64::from(step) / f64::from(steps);
        let mut loads: Vec<f64> = match self.load {
            Load::Open { .. } => {
                let nearly = if detail == Detail::Full { NEARLY } else { NEARLY_PREVIEWED };
                let top_per_s = nearly * self.capacity_per_s();
                (1..=steps).map(|step| top_per_s * (1.0 - (1.0 - share(step)).powi(2))).collect()
            }
            Load::Closed { users, .. } => {
                (1..=steps).map(|step| (2.0 * f64::from(users) * share(step)).round().max(1.0)).collect()
            }
        };
        loads.dedup();
        loads
    }

    fn load_at(&self, at: f64) -> Load {
        match self.load {
            Load::Open { .. } => Load::Open { rate_per_s: at },
            Load::Closed { think_s, .. } => Load::Closed { users: at as u32, think_s },
        }
    }
}

fn stop(detail: Detail) -> StopRule {
    match detail {
        Detail::Full => StopRule::default(),
        Detail::Preview => StopRule::customers(PREVIEWED),
    }
}

fn split<E: ToString>(answer: Result<Answer, E>) -> (Option<Answer>, Option<String>) {
    match answer {
        Ok(answer) => (Some(answer), None),
        Err(why) => (None, Some(why.to_string())),
    }
}

/// The numbers that `kendall solve` prints, in its order.
fn rows(by_formula: Option<&Answer>, by_simulation: Option<&Answer>) -> Vec<TableRow> {
    let row = |name: &str, cell: &dyn Fn(Option<&Answer>) -> String| {
        TableRow::new(name, vec![cell(by_formula), cell(by_simulation)])
    };
    let mut rows = vec![
        row("utilisation", &|answer| share_cell(answer.map(|answer| answer.utilisation))),
        row("response time, mean", &|answer| time_cell(answer.map(|answer| answer.response.mean_s))),
    ];
    rows.extend(TABLED.iter().map(|(name, p)| {
        row(&format!("response time, {name}"), &|answer| {
            time_cell(answer.and_then(|answer| answer.response.quantile(*p)))
        })
    }));
    rows.push(row("waiting time, mean", &|answer| time_cell(answer.map(|answer| answer.waiting.mean_s))));
    rows.push(row("in the station, mean", &|answer| number_cell(answer.map(|answer| answer.in_system))));
    rows.push(row("throughput, 1/s", &|answer| number_cell(answer.map(|answer| answer.throughput_per_s))));
    rows
}

/// The source of an answer, as a sentence.
fn source(answer: &Answer) -> String {
    match &answer.by {
        By::Formula { source, approximate: None } => format!("Formula: {source}."),
        By::Formula { source, approximate: Some(how) } => {
            format!("Formula: {source} (approximation: {how}).")
        }
        By::Simulation { needed: Some(needed), .. } => format!(
            "Doubt: this close to saturation the station needs about {} to reach steady state, so the simulation describes a station that \
             is still filling.",
            counted(*needed, "customer")
        ),
        By::Simulation { .. } | By::Measurement { .. } => {
            "The band of the distribution is the 95 % interval of the simulation.".to_owned()
        }
    }
}

fn customers(answer: &Answer, detail: Detail) -> String {
    let customers = match answer.by {
        By::Simulation { customers, .. } => counted(customers, "customer"),
        By::Formula { .. } | By::Measurement { .. } => "no customer".to_owned(),
    };
    match detail {
        Detail::Full => format!("Simulation: {customers} after the warm-up, seed {SEED}, as the command."),
        Detail::Preview => {
            format!("Preview: {customers} are simulated; the full simulation follows when the controls rest.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::ServiceLaw;
    use super::*;

    fn answer(query: &[(&str, &str)], detail: Detail) -> WhatIf {
        let pairs: Vec<(String, String)> =
            query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let question = Question::of(&pairs).unwrap();
        let ServiceLaw::Of(kind) = question.law else { panic!("a bare station") };
        BareStation::of(&question, kind).answer(&question, detail, true).unwrap()
    }

    #[test]
    fn an_open_station_has_the_numbers_of_the_formula_and_the_delay() {
        let found = answer(
            &[("rate", "20"), ("service", "0.1"), ("servers", "3"), ("delay", "20ms")],
            Detail::Preview,
        );
        let service = Law::Exponential { mean_s: 0.1 };
        let station = Station::new(Arrivals::poisson(20.0), service, Servers::new(3).unwrap());
        let theory = formula(&station).unwrap().delayed(0.02, 1.0);
        let at = |p: f64| found.distribution.iter().find(|(share, _)| *share == p).unwrap().1.value;
        for p in [0.5, 0.99] {
            assert!((at(p) / theory.response.quantile(p).unwrap().value - 1.0).abs() < 1e-9);
        }
        assert_eq!(found.rows[1].cells[0], time_cell(Some(theory.response.mean_s)));
        // The curve is that of the formula, which ends at the capacity.
        let curve = found.curve.unwrap();
        let last = curve.last().unwrap();
        let there = Station { arrivals: Arrivals::poisson(last.at), ..station };
        assert_eq!(last.mean, formula(&there).unwrap().delayed(0.02, 1.0).response.mean_s);
        assert!((28.0..30.0).contains(&last.at), "{last:?}");
        assert_eq!(found.command, "kendall solve M/M/3 --arrival-rate 20 --service-time 0.1 --delay 0.02");
        let (_, simulated) = found.simulated.last().unwrap();
        assert!(simulated.interval.is_some(), "{simulated:?}");
    }

    #[test]
    fn users_are_those_of_the_closed_formula_and_think_for_longer_behind_a_delay() {
        let query = [("users", "20"), ("think", "1"), ("service", "0.1"), ("servers", "2"), ("delay", "0.5")];
        let found = answer(&query, Detail::Preview);
        let think = Law::Exponential { mean_s: 1.5 };
        let arrivals = Arrivals::Closed { population: 20, think };
        let station = Station::new(arrivals, Law::Exponential { mean_s: 0.1 }, Servers::new(2).unwrap());
        let theory = formula(&station).unwrap();
        let here = found.curve.unwrap().into_iter().find(|point| point.at == 20.0).unwrap();
        assert!((here.mean.value - theory.response.mean_s.value - 0.5).abs() < 1e-12);
        assert_eq!(found.command, "kendall solve M/M/2/∞/20 --think-time 1 --service-time 0.1 --delay 0.5");
    }

    #[test]
    fn an_unstable_station_says_so_and_keeps_its_curve() {
        let found = answer(&[("rate", "40"), ("service", "0.1"), ("servers", "3")], Detail::Preview);
        let why = found.unstable.unwrap();
        assert!(why.contains("unstable: utilisation would be 1.33"), "{why}");
        assert!(found.distribution.is_empty() && found.rows.is_empty() && found.simulated.is_empty());
        assert!(found.curve.unwrap().last().unwrap().at > 28.0);
    }

    #[test]
    fn a_station_without_a_formula_is_simulated() {
        let query = [("rate", "20"), ("servers", "3"), ("discipline", "shortest-remaining"), ("law", "LN")];
        let found = answer(&query, Detail::Full);
        assert!(found.no_answer[0].starts_with("Formula: no answer."), "{:?}", found.no_answer);
        let curve = found.curve.unwrap();
        assert!(curve.iter().any(|point| point.p99.is_some()), "{curve:?}");
        assert!(found.effort.iter().any(|effort| effort.contains("curves are simulated")));
        assert_eq!(found.answered.scv, Some(1.0));
    }
}
