//! The program itself, with kendall.

mod soak;
