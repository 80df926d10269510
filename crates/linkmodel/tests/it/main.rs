//! A link through its public interface: its effects on packets, and the laws that hold for any settings.

mod codel;
mod laws;
mod links;
mod queues;
