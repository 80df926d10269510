//! HTTP workloads with real servers, and with faulty ones.

mod http3;
mod nasty;
mod nginx;
mod run;
