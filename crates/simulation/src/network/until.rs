//! What ends the service that a server gives.

/// What a server in service comes to first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Until {
    Done,
    /// After so much service it may be overtaken.
    Overtaken(f64),
    /// The server breaks down.
    Broken,
}
