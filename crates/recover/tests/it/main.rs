//! The tests of this crate's public face, in one program.

mod asking;
mod finder;
mod interoperate;
mod java;
