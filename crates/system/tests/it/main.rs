//! The requirements of a system.

mod adding;
