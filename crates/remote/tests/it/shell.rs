//! Real shells on real pseudo-terminals and pipes, over CurveCP on the loopback interface.

mod attacks;
mod harness;
mod losses;
mod pipes;
mod sessions;
mod sleeping;
mod terminals;
