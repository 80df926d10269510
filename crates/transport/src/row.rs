//! The transport laboratory as a row of the table of systems.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use kendall_station::{Discipline, Servers};
use kendall_system::{
    Home, Kind as Values, LoadResult, Parameter, Serving, Settings, StationShape, System, no_limits,
};

use crate::flows::SUBCOMMANDS;
use crate::kind::Kind;
use crate::protocol::MOST_BYTES;
use crate::server::{Server, TransportOptions};
use crate::workload::{Operation, TransportWorkload};

/// The parameter of the transport, for server and workload alike.
const KIND: Parameter = Parameter {
    name: "kind",
    help: "the transport: curve (CurveCP), tcp, tls (TLS 1.3), quic or https; the same for server and workload",
    kind: Values::Word(|word| word.parse::<Kind>().map(drop)),
    default: Some("curve"),
};

/// The row of this system.
pub const ROW: System = System {
    name: "transport",
    about: "sends bytes and echoes over CurveCP, TCP, TLS, QUIC or HTTPS, to compare transports",
    default_port: 5012,
    home: Home::Here,
    server: &[
        KIND,
        Parameter {
            name: "connections",
            help: "most open connections; further ones are closed at once",
            kind: Values::Whole { least: 1, most: 1_000_000 },
            default: Some("4096"),
        },
        Parameter {
            name: "threads",
            help: "number of threads that serve connections; a connection uses at most one core",
            kind: Values::Whole { least: 1, most: 1024 },
            default: Some("1"),
        },
    ],
    workload: &[
        KIND,
        Parameter {
            name: "op",
            help: "operation of a request: bulk (the server sends bytes), echo (bytes there and back) or handshake (an echo \
                   on a new connection)",
            kind: Values::Word(|word| word.parse::<Operation>().map(drop)),
            default: Some("echo"),
        },
        Parameter {
            name: "size",
            help: "length of each request, in bytes; 1,000,000 for bulk, 64 for echo and 1 for handshake if left out",
            kind: Values::Whole { least: 1, most: MOST_BYTES },
            default: None,
        },
    ],
    // Transfers share the thread, and behind it the link, as under processor sharing.
    station: |_| StationShape::unlimited(Servers::MIN, Discipline::ProcessorSharing),
    transport: |workload| kind(workload).carrier(),
    load,
    serve,
    limits: no_limits,
    subcommands: SUBCOMMANDS,
};

fn kind(settings: &Settings) -> Kind {
    let word = settings.word("kind").expect("it has a default");
    word.parse().expect("its kind checked it")
}

fn load(to: SocketAddr, workload: &Settings, _: u64) -> LoadResult {
    let word = workload.word("op").expect("it has a default");
    let operation: Operation = word.parse().expect("its kind checked it");
    let bytes = workload.whole("size").unwrap_or_else(|| operation.usual_bytes());
    Ok(Box::new(TransportWorkload::new(to, kind(workload), operation, bytes)))
}

fn serve(server: &Settings, Serving { listen, metrics, stamps, ready, .. }: Serving) -> Result<(), String> {
    if metrics.is_some() {
        return Err("the transport server has no metrics; remove --metrics".into());
    }
    let whole = |name| server.whole(name).expect("it has a default") as usize;
    let options = TransportOptions {
        kind: kind(server),
        listen,
        connections: whole("connections"),
        threads: NonZeroUsize::new(whole("threads")).expect("its kind checked that it is at least 1"),
        stamps,
    };
    let server = Server::bind(&options).map_err(|error| error.to_string())?;
    server.run_until_signalled(ready).map_err(|error| error.to_string())
}
