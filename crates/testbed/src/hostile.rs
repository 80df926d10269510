//! Hostile input from a seed: cases that can be repeated by their numbers, damage to valid input, and values that no option
//! accepts.

mod campaign;
mod draw;
mod mutation;
mod values;

pub use campaign::campaign;
pub use draw::Draw;
pub use mutation::{damaged, damaged_text};
pub use values::value;
