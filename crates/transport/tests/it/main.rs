//! The laboratory's server and workload over every transport, on real sockets.

mod abuse;
mod load;
mod serving;
mod streams;
mod uploads;
