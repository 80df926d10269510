//! The server of a trial: one that is started for it, or one that runs already.

use std::net::SocketAddr;
use std::path::PathBuf;

use kendall_analysis::ServerUsage;

use crate::server::{Server, ServerError};

/// The server of a trial.
pub(crate) enum Serving {
    /// Started for it; where it stamps, into this file.
    Started(Server, PathBuf),
    /// It ran already.
    Running(SocketAddr),
}

impl Serving {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Started(server, _) => server.address(),
            Self::Running(address) => *address,
        }
    }

    /// Its process, if it was started for the trial.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Started(server, _) => Some(server.pid()),
            Self::Running(_) => None,
        }
    }

    /// What it has used so far, where that can be known.
    pub(crate) fn usage(&mut self) -> Result<Option<ServerUsage>, ServerError> {
        match self {
            Self::Started(server, _) => server.usage().map(Some),
            Self::Running(_) => Ok(None),
        }
    }

    /// Stops it, if it was started for the trial.
    pub(crate) fn stop(self) -> Result<(), ServerError> {
        match self {
            Self::Started(server, _) => server.stop(),
            Self::Running(_) => Ok(()),
        }
    }
}
