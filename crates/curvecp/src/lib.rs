//! CurveCP, the encrypted transport over UDP, as a pure state machine.
//!
//! Bytes and instants go in; bytes and the next deadline come out. This crate opens no socket, reads no clock and
//! starts no thread, so hours of protocol time run in milliseconds and every run is a function of its inputs.
//! An instant is a [`Duration`](std::time::Duration) since an origin that the caller chooses.
