//! Remote work over CurveCP between machines that know each other by public keys.

pub mod shell;
