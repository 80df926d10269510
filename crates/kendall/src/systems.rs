//! The table of systems: the one place that names them.

mod hold;
mod http;
mod recover;
mod reverse;
mod textsearch;

use kendall_lab::System;
pub(crate) use recover::{algorithm, dialect};
pub(crate) use reverse::{engine, search_one};
pub(crate) use textsearch::backtracking;

/// Every system that kendall ships.
pub(crate) static SYSTEMS: &[System] =
    &[reverse::REVERSE, recover::RECOVER, textsearch::TEXTSEARCH, hold::HOLD, http::HTTP];

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_lab::Settings;

    #[test]
    fn every_parameter_stands_in_the_documentation() {
        let page = include_str!("../../../docs/experiments.md");
        let own = SYSTEMS.iter().flat_map(|system| system.server.iter().chain(system.workload));
        for parameter in own.chain(kendall_lab::LOAD) {
            assert!(page.contains(&format!("| `{}` |", parameter.name)), "{} is missing", parameter.name);
        }
    }

    #[test]
    fn every_default_is_a_valid_value() {
        for system in SYSTEMS {
            let server = Settings::defaults(system.server);
            (system.station)(&server);
            let workload = Settings::defaults(system.workload);
            assert!((system.load)(([127, 0, 0, 1], 1).into(), &workload, 1).is_ok());
        }
    }
}
