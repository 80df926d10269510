//! Networks of stations, and the models of the textbooks by name.

use kendall_simulation::simulate_network_watched;
use kendall_solvecli::words;
use kendall_theory::{batch, network_formula};
use pyo3::prelude::*;

use crate::errors::{failed, no_network_formula, not_simulated};
use crate::json;
use crate::watching::watched;

/// Stations with routes between them, open or with a closed population.
#[pyclass(frozen, module = "kendall._kendall")]
pub(crate) struct Network(kendall_station::Network);

#[pymethods]
impl Network {
    /// The network of a file's keys: as TOML.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let table: toml::Table = toml::from_str(text).map_err(failed)?;
        words::network(table).map(Self).map_err(failed)
    }

    /// The network as JSON.
    fn to_json(&self) -> PyResult<String> {
        json(&self.0)
    }

    /// What queueing theory says.
    fn formula(&self) -> PyResult<String> {
        json(&network_formula(&self.0).map_err(|why| no_network_formula(&why))?)
    }

    /// The bounds of a closed network, or nothing for an open one.
    fn bounds(&self) -> PyResult<Option<String>> {
        words::bounds(&self.0).map(|bounds| json(&bounds)).transpose()
    }

    /// What the simulation says.
    #[pyo3(signature = (options, notify=None))]
    fn simulate(&self, py: Python<'_>, options: Vec<String>, notify: Option<Py<PyAny>>) -> PyResult<String> {
        let (stop, seed) = words::simulation(&options).map_err(failed)?;
        let network = &self.0;
        let answer =
            watched(py, notify.as_ref(), |progress| simulate_network_watched(network, stop, seed, progress))?;
        json(&answer.map_err(|why| not_simulated(&why))?)
    }
}

/// Every quantity of a model, as JSON; its inputs are a JSON object.
#[pyfunction]
pub(crate) fn model(name: &str, inputs: &str) -> PyResult<String> {
    json(&words::model(name, inputs).map_err(failed)?)
}

/// The models: name, description, inputs, quantities.
#[pyfunction]
pub(crate) fn models() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    batch::models().map(|model| (model.name, model.about, model.inputs, model.quantities)).collect()
}
