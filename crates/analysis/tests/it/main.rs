//! The public face of the analysis.

mod limits;
mod traffic;
