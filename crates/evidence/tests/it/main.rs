//! Measurements made from known stations: what is measured, replayed, fitted, checked and streamed must find them again.

mod check;
mod check_table;
mod fit;
mod measured;
mod replay;
mod replay_room;
mod run;
mod streamed;
mod streamed_intervals;
