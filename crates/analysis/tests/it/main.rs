//! The public face of the analysis.

mod traffic;
