//! The engines through the public interface: compared with whole hash functions, audited implementations and the
//! portable engine.

mod gpu;
mod password;
mod pbkdf2;
mod sha256;
