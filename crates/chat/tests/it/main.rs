//! The tests of this crate's public face, in one program.

mod abuse;
mod directory;
mod durable;
mod killed;
mod load;
mod methods;
mod peers;
mod requests;
mod secrets;
mod serving;
mod tls;
