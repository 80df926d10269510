//! The parameters of a server that hands chunks of its searches to a cluster.

use std::path::PathBuf;

use kendall_cluster::ClusterOptions;
use kendall_nats::{NatsAccess, NatsAddress, NatsError, NatsFiles};

use crate::{Kind, Parameter, Settings};

/// The address of the cluster.
pub const CLUSTER: Parameter = Parameter {
    name: "cluster",
    help: "NATS server (or several, comma-separated) by which workers (kendall worker) take part in searches, such as \
           nats://HOST:4222, nats://USER:PASSWORD@HOST:4222 or tls://HOST:4222; without it, this machine searches alone",
    kind: Kind::Word(|text| text.parse::<NatsAddress>().map(drop).map_err(|error| error.to_string())),
    default: None,
};

/// The credentials.
pub const NATS_CREDS: Parameter = Parameter {
    name: "nats-creds",
    help: "file with the credentials for the NATS server, as nsc writes it",
    // Not a file that an experiment would keep a copy of.
    kind: Kind::Word(|_| Ok(())),
    default: None,
};

/// The authority.
pub const NATS_CA: Parameter = Parameter {
    name: "nats-ca",
    help: "file with the certificate of the authority that signed that of the NATS server, in PEM; the system's authorities if \
           left out",
    kind: Kind::Word(|_| Ok(())),
    default: None,
};

/// The ledger.
pub const CLUSTER_LEDGER: Parameter = Parameter {
    name: "cluster-ledger",
    help: "file of the ledger of tested candidates, from which a server that starts again goes on; NAME-ledger.db in the \
           current folder if left out, with the name of the system",
    kind: Kind::Word(|_| Ok(())),
    default: None,
};

/// The options of the cluster that settings name, if they name one. A server of a trial keeps its ledger in memory.
///
/// # Errors
/// Fails if the address is invalid.
pub fn cluster_options(
    settings: &Settings,
    system: &str,
    for_trial: bool,
) -> Result<Option<ClusterOptions>, String> {
    let Some(address) = settings.word(CLUSTER.name) else { return Ok(None) };
    let address: NatsAddress = address.parse().map_err(|error: NatsError| error.to_string())?;
    let path = |name| settings.word(name).map(PathBuf::from);
    let files = NatsFiles { credentials: path(NATS_CREDS.name), authority: path(NATS_CA.name) };
    let access = NatsAccess { address, files };
    let usual = || (!for_trial).then(|| PathBuf::from(format!("{system}-ledger.db")));
    Ok(Some(ClusterOptions { access, ledger: path(CLUSTER_LEDGER.name).or_else(usual) }))
}
