//! Tunnels between network namespaces.

mod hostile;
mod iperf;
mod network;
mod tunnels;
