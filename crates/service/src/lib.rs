//! The runtime under every kendall server: sockets in, work out, in the order of one [`Discipline`].
//!
//! One thread does all I/O. It accepts, reads requests under a deadline, and admits them to a bounded queue. A pool of
//! worker threads takes requests from that queue and serves in chunks of about a millisecond; between two chunks a worker
//! checks whether a more urgent request waits, and whether the client is still connected. An [`Interrupt`] signals that
//! in the middle of a chunk. Equal requests at the same time, where the handler identifies them, are served as one. Every
//! queue, buffer and table has a limit; requests beyond it are rejected and counted.
//!
//! Data that does not fit into a buffer is streamed. The body of a request goes into a [`Sink`] of the handler while its
//! work waits and runs, and a worker whose work is done does not wait for the body. An answer may be a [`Source`], and
//! may begin before the work is over ([`Step::Begun`]): each client reads it from its start, at its own pace, and a slow
//! one blocks no worker. Bytes move with back-pressure, and the server disconnects a client that moves too few of them
//! for too long.
//!
//! For lasting connections over which the server also sends messages without a request, a system implements [`Sessions`]
//! instead of [`Handler`]: each session has an [`Outlet`] through which any thread may push messages.
//!
//! The meaning of a request belongs to the [`Handler`]: this crate knows no protocol, and neither parses nor computes. It
//! also never retries, caches or reorders beyond the discipline, so that a measured server is the station it claims to
//! be.
//!
//! A system whose requests are one byte, N, and which counts to N before it answers with N:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use kendall_service::{Config, Decoded, Decoding, Handler, Reply, Server, Step, Then, Turn};
//! use kendall_station::{Job, Size};
//!
//! struct Counting;
//!
//! impl Handler for Counting {
//!     type Task = (u64, u64);
//!     type Answer = u64;
//!
//!     fn decode(&self, bytes: &[u8]) -> Decoding<Self> {
//!         let to = bytes[0].into();
//!         let job = Job { size: Size::Exactly(bytes[0].into()), ..Job::new() };
//!         Ok(Some(Decoded::work(1, job, (to, 0))))
//!     }
//!
//!     fn advance(&self, (to, counted): &mut (u64, u64), turn: &mut Turn<u64>) -> Step<u64> {
//!         *counted += turn.units();
//!         if counted < to { Step::Continue { attained: turn.units() as f64 } } else { Step::Done(*to) }
//!     }
//!
//!     fn encode(&self, answer: u64) -> Reply {
//!         Reply::new(vec![answer as u8], Then::Keep)
//!     }
//!
//!     fn refusal(&self) -> u64 {
//!         0
//!     }
//! }
//!
//! let server = Server::bind(Config::new("127.0.0.1:0".parse()?), Counting)?;
//! let (address, handle) = (server.local_addr(), server.handle());
//! let running = std::thread::spawn(|| server.run());
//!
//! let mut client = TcpStream::connect(address)?;
//! let mut answer = [0];
//! client.write_all(&[42])?;
//! client.read_exact(&mut answer)?;
//! assert_eq!(answer, [42]);
//!
//! handle.shut_down();
//! running.join().expect("the server does not panic")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Discipline`]: kendall_station::Discipline

mod accept;
mod answer_events;
mod config;
mod connection;
mod error;
mod handler;
mod interrupt;
mod lasting;
mod metrics;
mod outlet;
mod pool;
mod reply;
mod scrape;
mod server;
mod sessions;
mod shared;
mod socket;
mod stamps;
mod station;
mod transfer;
mod turn;
mod upload;
mod worker;

pub use config::Config;
pub use error::ServiceError;
pub use handler::{Decoded, Decoding, Handler, Malformed};
pub use interrupt::Interrupt;
pub use outlet::{Message, Outlet, PushError, SessionLimits, WhenFull};
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::registry::Registry;
pub use reply::{Body, BodyFuture, Reader, Reply, Source, Then, WholeBody};
pub use server::{Handle, Server};
pub use sessions::{Delivery, InSessions, SessionDecoded, SessionDecoding, Sessions};
pub use shared::System;
pub use turn::{Step, Turn};
pub use upload::Sink;
