//! The server of a trial: started for the trial, or already running.

use std::net::SocketAddr;
use std::path::PathBuf;

use kendall_analysis::ServerUsage;

use crate::server::{Server, ServerError};

/// The server of a trial.
pub(crate) enum Serving {
    /// Started for the trial; if it writes stamps, then to this file.
    Started(Server, PathBuf),
    /// Already running.
    Running(SocketAddr),
}

impl Serving {
    /// The address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Started(server, _) => server.address(),
            Self::Running(address) => *address,
        }
    }

    /// The process of the server, if the trial started it.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Started(server, _) => Some(server.pid()),
            Self::Running(_) => None,
        }
    }

    /// The resources that it has used so far, where they are known.
    pub(crate) fn usage(&mut self) -> Result<Option<ServerUsage>, ServerError> {
        match self {
            Self::Started(server, _) => server.usage().map(Some),
            Self::Running(_) => Ok(None),
        }
    }

    /// Stops it, if the trial started it.
    pub(crate) fn stop(self) -> Result<(), ServerError> {
        match self {
            Self::Started(server, _) => server.stop(),
            Self::Running(_) => Ok(()),
        }
    }
}
