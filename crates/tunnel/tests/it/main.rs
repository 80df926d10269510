//! Tunnels between network namespaces.

mod hostile;
mod network;
mod tunnels;
