//! Both ends of remote work on a command line: the server that a client means, and where a server listens.

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use kendall_curve::KeyDirectory;
use kendall_remote::{Host, Hosts, public_key};
use kendall_stats::quantity::time_s;

use crate::console::address;

const SILENCE_LEAST: Duration = Duration::from_secs(30);

// How a client finds its server. A comment for clap: a documentation comment would replace that of the subcommand.
#[derive(Args, Clone)]
#[command(next_help_heading = "Server to use")]
pub(crate) struct ClientOptions {
    /// Use this server, called NAME, instead of one from the hosts file
    #[arg(long, num_args = 3, value_names = ["NAME", "KEY", "ADDR"])]
    server: Option<Vec<String>>,

    /// The hosts file [default: ~/.config/kendall/hosts.toml]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,

    /// This client's key, which the server has to admit [default: ~/.config/kendall/key]
    #[arg(long, value_name = "DIR")]
    key_directory: Option<PathBuf>,

    /// Give up if no server has answered after this time
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    pub(crate) timeout: Duration,
}

// The address of a server of remote work, and the clients that it admits.
#[derive(Args)]
pub(crate) struct ServerOptions {
    /// The domain name that clients must give
    pub(crate) name: String,

    /// The directory of the server's key
    #[arg(value_name = "KEYDIR")]
    pub(crate) key_directory: PathBuf,

    /// Listen on this address; port 0 takes a free one
    #[arg(value_name = "ADDR", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// The public keys of the clients that are admitted, a line for each: the key and a name; the file belongs to root or this user
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized_keys: PathBuf,
}

impl ClientOptions {
    /// The server with this name on the command line, and the client's key.
    pub(crate) fn resolve(&self, host: &str) -> anyhow::Result<(Host, KeyDirectory)> {
        let host = self.host(host)?;
        let keys = self.keys(&host)?;
        Ok((host, keys))
    }

    fn host(&self, host: &str) -> anyhow::Result<Host> {
        if let Some([name, key, address]) = self.server.as_deref() {
            ensure!(
                host == name,
                "the command line names {host}, and --server names {name}: write {name} in both places"
            );
            let key = public_key(key).context("the KEY of --server must have 64 hexadecimal digits")?;
            return Ok(Host { name: name.clone(), key, address: address.clone(), key_directory: None });
        }
        let path = match &self.hosts {
            Some(path) => path.clone(),
            None => configuration()?.join("hosts.toml"),
        };
        Ok(Hosts::open(&path)?.get(host)?.clone())
    }

    fn keys(&self, host: &Host) -> anyhow::Result<KeyDirectory> {
        let directory = match self.key_directory.as_ref().or(host.key_directory.as_ref()) {
            Some(directory) => directory.clone(),
            None => configuration()?.join("key"),
        };
        KeyDirectory::open(&directory).with_context(|| {
            let shown = directory.display();
            format!(
                "this client has no key that can be read. Create one with `kendall curve keygen {shown}`, and add the key that it \
                 prints to the server's file of authorised keys"
            )
        })
    }
}

/// The folder of kendall's configuration, as the XDG Base Directory Specification defines it.
fn configuration() -> anyhow::Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".config"));
    let folder = set("XDG_CONFIG_HOME").or_else(home).context("neither XDG_CONFIG_HOME nor HOME is set")?;
    Ok(folder.join("kendall"))
}

/// A time that is greater than 0.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let time = time_s(text).and_then(|time_s| Duration::try_from_secs_f64(time_s).ok());
    time.filter(|time| !time.is_zero()).context("write a time, such as 10s or 500ms")
}

/// A limit on a peer's silence, which has to be longer than the pauses between two signs of life.
pub(crate) fn silence_limit(text: &str) -> anyhow::Result<Duration> {
    let limit = duration(text)?;
    ensure!(limit >= SILENCE_LEAST, "write 30s or more: the peer may be silent for 10 s");
    Ok(limit)
}
