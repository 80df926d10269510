//! The stores as callers see them: one suite over every store, restarts, and servers that are killed during calls.

mod crash;
mod outage;
mod peers;
mod suite;
