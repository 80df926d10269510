//! What holds for the sources as such.

mod adding;
mod floors;
mod module_cycles;
