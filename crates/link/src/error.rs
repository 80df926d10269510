//! The reason why a link cannot be emulated.

use std::io;
use std::path::PathBuf;

use kendall_linkmodel::Fault;
use kendall_record::RecordError;

/// The reason why a link cannot be emulated.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LinkError {
    #[error(transparent)]
    Settings(#[from] Fault),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot keep the log of the link in {}: {source}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("cannot {step}: {source}{}", advice(source))]
    Step { step: String, source: io::Error },
    #[error("{0}")]
    Refused(String),
    #[error("the process that emulates the link has ended ({how})")]
    Gone { how: String },
    #[error("the server ended before it listened ({status}): {command}")]
    ServerEnded { command: String, status: String },
    #[error("interrupted before the server listened: {command}")]
    Interrupted { command: String },
    #[error("the server does not listen after {within_s} s; give it more with --wait: {command}")]
    NotListening { command: String, within_s: f64 },
    #[error(
        "the server listens on its loopback address only, which the other end of the link cannot reach; let it listen on 10.0.0.2 or 0.0.0.0: {command}"
    )]
    OnLoopback { command: String },
    #[error("no link can be emulated here:\n{0}")]
    Nowhere(String),
}

impl LinkError {
    pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Step { step: step.into(), source }
    }
}

/// What to do about a denied permission.
fn advice(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        " (the kernel lets only root do this here: be root, or allow namespaces for users: sysctl \
         kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, \
         user.max_user_namespaces=10000; in a container, --cap-add SYS_ADMIN,NET_ADMIN)"
    } else {
        ""
    }
}
