//! The transports themselves, a module each.

pub(crate) mod curve;
pub(crate) mod https;
pub(crate) mod quic;
pub(crate) mod tcp;
pub(crate) mod tls;
