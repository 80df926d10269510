//! The tests of this crate's public face, in one program.

mod directory;
