//! Errors of callers. A fault of a peer is not an error: the endpoint stays silent, as the protocol requires.

/// A mistake of the caller, worded for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A label of the domain name has more than 63 bytes.
    #[error("\"{0}\" is not a valid domain name: a label has more than 63 bytes")]
    LongLabel(String),
    /// The domain name needs more than 255 bytes on the wire.
    #[error("\"{0}\" is not a valid domain name: it needs more than 255 bytes")]
    LongName(String),
    /// A client was given no address, or more than eight.
    #[error("a client needs 1 to 8 server addresses, not {0}")]
    AddressCount(usize),
    /// The server's public key is one of the few points that every secret key maps to zero.
    #[error("the server's public key is not usable: it gives the same shared secret with every key")]
    WeakServerKey,
    /// Another connection of this endpoint already uses this client extension.
    #[error("another connection of this endpoint uses the same client extension")]
    ExtensionInUse,
    /// The connection was closed and forgotten, or never existed.
    #[error("there is no such connection")]
    UnknownConnection,
}
