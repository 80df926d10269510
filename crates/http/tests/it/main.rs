//! HTTP workloads against real servers, and against servers that misbehave.

mod http3;
mod nasty;
mod nginx;
mod run;
