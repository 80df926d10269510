//! The stores as their callers see them: one suite over every store, restarts, and servers that are killed in the middle.

mod crash;
mod outage;
mod peers;
mod suite;
