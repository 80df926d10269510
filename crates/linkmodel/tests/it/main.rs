//! A link from outside: what it does to packets, and what holds whatever it is asked to be.

mod codel;
mod laws;
mod links;
mod queues;
