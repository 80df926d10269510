//! The runtime under every kendall server: sockets in, work out, in the order of one [`Discipline`].
//!
//! One thread does all I/O. It accepts, reads requests under a deadline, and admits them to a bounded queue. A
//! pool of worker threads takes from that queue and serves in chunks of about a millisecond; between two chunks
//! a worker asks whether somebody more urgent waits, and whether the client is still there. Requests that ask the
//! same at the same time, where the handler says that they do, are served as one. Every queue, buffer
//! and table has a bound, and what lies beyond the bound is refused and counted.
//!
//! What does not fit into a buffer streams. The body of a request goes into a [`Sink`] of the handler's while its work
//! waits and is done, and a worker whose work is done waits for no body. An answer may be a [`Source`], and may begin
//! before the work is over ([`Step::Begun`]): each client reads it from its start, as fast as it takes it, and a slow one
//! holds no worker. Bytes move with back-pressure, and whoever moves too few of them for too long is let go.
//!
//! What a request means is the [`Handler`]'s business: this crate knows no protocol, and neither parses nor
//! computes. It also never retries, caches or reorders beyond what the discipline says, so that a measured
//! server is the station it claims to be.
//!
//! A system whose requests are one byte, N, and which counts to N before it answers with N:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use kendall_service::{Config, Decoded, Handler, Malformed, Reply, Server, Step, Then};
//! use kendall_station::{Job, Size};
//!
//! struct Counting;
//!
//! impl Handler for Counting {
//!     type Task = (u8, u64);
//!
//!     fn max_request_bytes(&self) -> usize {
//!         1
//!     }
//!
//!     fn decode(&self, bytes: &[u8]) -> Result<Option<Decoded<(u8, u64)>>, Malformed> {
//!         let job = Job { weight: 1.0, size: Size::Exactly(bytes[0].into()), attained: 0.0 };
//!         Ok(Some(Decoded::Work { used_bytes: 1, job, task: (bytes[0], 0), key: None, body: None }))
//!     }
//!
//!     fn advance(&self, _: usize, (to, counted): &mut (u8, u64), units: u64) -> Step {
//!         *counted += units;
//!         if *counted < u64::from(*to) {
//!             Step::Continue { attained: units as f64 }
//!         } else {
//!             Step::Done(Reply::new(vec![*to], Then::Keep))
//!         }
//!     }
//!
//!     fn refusal(&self) -> Reply {
//!         Reply::new(vec![0], Then::Close)
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
mod body;
mod config;
mod connection;
mod error;
mod handler;
mod metrics;
mod pool;
mod scrape;
mod server;
mod stamps;
mod transfer;
mod worker;

pub use body::{Body, BodyFuture, Reader, Sink, Source, Whole};
pub use config::Config;
pub use error::ServiceError;
pub use handler::{Decoded, Handler, Malformed, Reply, Step, Then};
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::registry::Registry;
pub use server::{Handle, Server};
