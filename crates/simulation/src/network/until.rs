//! The event that ends the service of a server.

/// The first event of a server in service.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Until {
    Done,
    /// After this much service it may be overtaken.
    Overtaken(f64),
    /// The server breaks down.
    Broken,
}
