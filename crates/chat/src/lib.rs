//! The directory server of a chat between two clients.

pub mod client;
pub mod directory;
pub mod name;

pub mod password;
pub mod protocol;
pub mod server;
pub mod workload;
