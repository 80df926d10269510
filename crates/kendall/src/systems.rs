//! The table of systems: the one place that names them.

use std::num::NonZeroUsize;
use std::thread;

use kendall_lab::{Kind, Parameter, Serving, Settings, System};
use kendall_reverse::{Options, Parameters, ReverseWorkload};
use kendall_station::{Discipline, Servers};

/// Every system that kendall ships.
pub(crate) static SYSTEMS: &[System] = &[System {
    name: "reverse",
    about: "finds the 64-bit integer behind a SHA-256 digest, by search within a range",
    default_port: 5003,
    server: &[
        Parameter {
            name: "workers",
            help: "threads that search, which are the servers of the station; as many as cores if left out",
            kind: Kind::Whole { least: 1, most: 1024 },
            default: None,
        },
        Parameter {
            name: "discipline",
            help: "order of service: fifo, lifo, priority, preemptive-priority, processor-sharing, \
                   shortest-remaining, cmu or gittins",
            kind: Kind::Word(check_discipline),
            default: Some("gittins"),
        },
    ],
    workload: &[
        Parameter {
            name: "difficulty",
            help: "width of the range that is searched",
            kind: Kind::Whole { least: 1, most: 1 << 62 },
            default: Some("300000"),
        },
        Parameter {
            name: "repeat-percent",
            help: "chance, in percent, that a request repeats an earlier one",
            kind: Kind::Number { least: 0.0, most: 100.0 },
            default: Some("0"),
        },
        Parameter {
            name: "priority-lambda",
            help: "priorities 1 to 16 are exponential with this rate, so a larger one means fewer high ones; \
                   0 makes all priorities 1",
            kind: Kind::Number { least: 0.0, most: 100.0 },
            default: Some("0"),
        },
        Parameter {
            name: "start",
            help: "where every range starts; drawn anew for each request if left out",
            kind: Kind::Whole { least: 0, most: u64::MAX },
            default: None,
        },
    ],
    station,
    load: |address, workload, seed| {
        let parameters = Parameters {
            difficulty: workload.whole("difficulty").expect("difficulty has a default"),
            repeat_percent: workload.number("repeat-percent").expect("repeat-percent has a default"),
            priority_lambda: workload.number("priority-lambda").expect("priority-lambda has a default"),
            start: workload.whole("start"),
        };
        let workload = ReverseWorkload::new(address, parameters, seed).map_err(|error| error.to_string())?;
        Ok(Box::new(workload))
    },
    serve: |server, Serving { listen, metrics, stamps, ready }| {
        let (servers, discipline) = station(server);
        let workers = NonZeroUsize::new(servers.get() as usize).expect("at least one server");
        let options = Options { workers, discipline, metrics, stamps, ..Options::new(listen) };
        kendall_reverse::serve(options, ready).map_err(|error| error.to_string())
    },
}];

/// The servers and the order of a system with the parameters `workers` and `discipline`.
fn station(server: &Settings) -> (Servers, Discipline) {
    let cores = || thread::available_parallelism().map_or(1, usize::from) as u64;
    let workers = server.whole("workers").unwrap_or_else(cores);
    let servers = u32::try_from(workers).ok().and_then(Servers::new).expect("at least one worker");
    let discipline = server.word("discipline").expect("discipline has a default");
    (servers, discipline.parse().expect("its kind checked it"))
}

fn check_discipline(name: &str) -> Result<(), String> {
    name.parse::<Discipline>().map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
