//! The parameters of a server that hands chunks of its searches to a cluster.

use std::path::PathBuf;

use kendall_cluster::{ClusterAccess, ClusterAddress, ClusterOptions};

use crate::{Kind, Parameter, Settings};

/// The address of the cluster.
pub const CLUSTER: Parameter = Parameter {
    name: "cluster",
    help: "NATS server (or several, comma-separated) by which workers (kendall worker) take part in searches, such as \
           nats://HOST:4222, nats://USER:PASSWORD@HOST:4222 or tls://HOST:4222; without it, this machine searches alone",
    kind: Kind::Word(|text| text.parse::<ClusterAddress>().map(drop).map_err(|error| error.to_string())),
    default: None,
};

/// The credentials.
pub const CLUSTER_CREDS: Parameter = Parameter {
    name: "cluster-creds",
    help: "file with the credentials for the cluster, as nsc writes it",
    // Not a file that an experiment would keep a copy of.
    kind: Kind::Word(|_| Ok(())),
    default: None,
};

/// The authority.
pub const CLUSTER_CA: Parameter = Parameter {
    name: "cluster-ca",
    help: "file with the certificate of the authority that signed the cluster's, in PEM; the system's authorities if left out",
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
    let address: ClusterAddress =
        address.parse().map_err(|error: kendall_cluster::ClusterError| error.to_string())?;
    let path = |name| settings.word(name).map(PathBuf::from);
    let access =
        ClusterAccess { address, credentials: path(CLUSTER_CREDS.name), authority: path(CLUSTER_CA.name) };
    let usual = || (!for_trial).then(|| PathBuf::from(format!("{system}-ledger.db")));
    Ok(Some(ClusterOptions { access, ledger: path(CLUSTER_LEDGER.name).or_else(usual) }))
}
