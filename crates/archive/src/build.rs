//! The build of this program: what differs between programs of the same version.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The build of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The revision of the sources: `KENDALL_REVISION` of the environment in which the program was compiled, if it was set.
    pub revision: Option<String>,
    /// The target, as Rust names it: `x86_64-unknown-linux-gnu`.
    pub target: String,
    /// `release` or `debug`.
    pub profile: String,
    /// The version of the compiler.
    pub rustc: String,
}

impl Build {
    /// The build of this program.
    pub fn here() -> Self {
        Self {
            revision: option_env!("KENDALL_REVISION").filter(|revision| !revision.is_empty()).map(Into::into),
            target: env!("KENDALL_TARGET").into(),
            profile: env!("KENDALL_PROFILE").into(),
            rustc: env!("KENDALL_RUSTC").into(),
        }
    }
}

impl fmt::Display for Build {
    /// `4bb574d2c0de, x86_64-unknown-linux-gnu, release, rustc 1.95.0`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(revision) = &self.revision {
            write!(f, "{revision}, ")?;
        }
        write!(f, "{}, {}, rustc {}", self.target, self.profile, self.rustc)
    }
}
