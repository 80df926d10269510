//! One station.

use kendall_simulation::{
    Fate, SimulationError, StopRule, Traced, simulate_network_watched, simulate_traced, simulate_watched,
};
use kendall_solvecli::{RecordedLaws, words};
use kendall_station::{Answer, Arrivals, Law, Network};
use kendall_theory::{approximations, formula, plan};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{failed, no_formula, not_simulated};
use crate::json;
use crate::watching::watched;

/// A station, with the time that each request spends outside of it.
#[pyclass(frozen, module = "kendall._kendall")]
pub(crate) struct Station {
    station: kendall_station::Station,
    /// As requests meet it, behind the delay.
    behind: kendall_station::Station,
    delay_s: f64,
}

impl Station {
    fn delayed(&self, answer: Answer) -> Answer {
        answer.delayed(self.delay_s, self.station.mean_weight())
    }

    /// An answer as JSON. Where requests share the servers none waits, so there is no chance of waiting.
    fn answer(&self, answer: Answer) -> PyResult<String> {
        let mut value = serde_json::to_value(self.delayed(answer)).map_err(failed)?;
        if self.station.discipline.shares() {
            value["p_wait"] = serde_json::Value::Null;
        }
        json(&value)
    }
}

#[pymethods]
impl Station {
    /// The station of a notation and of options of the command line; `services` and `arrivals` are bytes of doubles, in seconds.
    #[new]
    #[pyo3(signature = (notation, options, services=None, arrivals=None, delay_s=0.0))]
    fn new(
        notation: &str,
        options: Vec<String>,
        services: Option<&[u8]>,
        arrivals: Option<&[u8]>,
        delay_s: f64,
    ) -> PyResult<Self> {
        if !(delay_s.is_finite() && delay_s >= 0.0) {
            return Err(failed(format!("the delay is {delay_s} s; it must be a time, not negative")));
        }
        let service = services.map(|bytes| Law::empirical(doubles(bytes))).transpose().map_err(failed)?;
        let arrivals = arrivals.map(|bytes| instants(&doubles(bytes))).transpose()?;
        let station =
            words::station(notation, &options, RecordedLaws { service, arrivals }).map_err(failed)?;
        let behind =
            kendall_station::Station { arrivals: station.arrivals.behind(delay_s), ..station.clone() };
        Ok(Self { station, behind, delay_s })
    }

    /// Kendall's notation.
    #[getter]
    fn notation(&self) -> String {
        self.station.to_string()
    }

    /// The utilisation that is offered, where arrivals have a rate.
    #[getter]
    fn offered_utilisation(&self) -> Option<f64> {
        self.station.offered_utilisation()
    }

    /// Requests per second, where arrivals have a rate.
    #[getter]
    fn arrival_rate(&self) -> Option<f64> {
        self.station.arrivals.rate_per_s()
    }

    /// The station as JSON.
    fn to_json(&self) -> PyResult<String> {
        json(&self.station)
    }

    /// What queueing theory says.
    fn formula(&self) -> PyResult<String> {
        self.answer(formula(&self.behind).map_err(|why| no_formula(&why))?)
    }

    /// What the simulation says, run as long as the options of the command line say.
    #[pyo3(signature = (options, notify=None))]
    fn simulate(&self, py: Python<'_>, options: Vec<String>, notify: Option<Py<PyAny>>) -> PyResult<String> {
        let (stop, seed) = words::simulation(&options).map_err(failed)?;
        let behind = &self.behind;
        let is_plain = behind.conditions.are_none() && !matches!(behind.arrivals, Arrivals::Varying(_));
        let answer = watched(py, notify.as_ref(), |progress| match is_plain {
            true => simulate_watched(behind, stop, seed, progress),
            false => simulate_network_watched(&Network::from(behind), stop, seed, progress)
                .map(|answer| answer.overall),
        })?;
        self.answer(answer.map_err(|why| not_simulated(&why))?)
    }

    /// The customers of a run from an empty station that were served: bytes of doubles by the name of the quantity.
    fn trace<'py>(&self, py: Python<'py>, customers: u64, seed: u64) -> PyResult<Bound<'py, PyDict>> {
        let columns =
            py.detach(|| Columns::of(&self.behind, customers, seed)).map_err(|why| not_simulated(&why))?;
        let found = PyDict::new(py);
        for (name, values) in columns.0 {
            let bytes = PyBytes::new_with(py, 8 * values.len(), |bytes| {
                for (to, value) in bytes.chunks_exact_mut(8).zip(&values) {
                    to.copy_from_slice(&value.to_ne_bytes());
                }
                Ok(())
            })?;
            found.set_item(name, bytes)?;
        }
        Ok(found)
    }

    /// How long to measure for a precision.
    fn plan(&self, py: Python<'_>, precision: f64) -> PyResult<String> {
        if !(1e-6..1.0).contains(&precision) {
            return Err(failed("the precision must be at least 0.000001 and below 1, such as 0.05"));
        }
        let planned = watched(py, None, |_| plan(&self.station, precision))?;
        json(&planned.map_err(failed)?)
    }

    /// The textbooks' approximations of the wait.
    fn approximations(&self) -> PyResult<String> {
        json(&approximations(&self.station).map_err(failed)?)
    }
}

/// The times of the customers of one run that were served, in seconds.
struct Columns([(&'static str, Vec<f64>); 4]);

impl Columns {
    fn of(station: &kendall_station::Station, customers: u64, seed: u64) -> Result<Self, SimulationError> {
        let names = ["arrival_s", "service_s", "waiting_s", "response_s"];
        let mut columns = Self(names.map(|name| (name, Vec::new())));
        let stop = StopRule::Runs { customers, runs: 1 };
        simulate_traced(station, stop, seed, &mut |customer| columns.add(customer))?;
        Ok(columns)
    }

    fn add(&mut self, customer: &Traced) {
        if customer.run > 0 || customer.fate != Fate::Served {
            return;
        }
        let values = [customer.arrival_s, customer.service_s, customer.waiting_s, customer.response_s()];
        for ((_, column), value) in self.0.iter_mut().zip(values) {
            column.push(value);
        }
    }
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    let (chunks, _) = bytes.as_chunks::<8>();
    chunks.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
}

fn instants(instants_s: &[f64]) -> PyResult<Arrivals> {
    let lines: Vec<String> = instants_s.iter().map(ToString::to_string).collect();
    Arrivals::trace(&lines.join("\n")).map_err(failed)
}
