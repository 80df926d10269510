//! What a system needs to be one.

mod adding;
