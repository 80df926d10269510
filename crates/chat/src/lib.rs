//! The directory server of a chat between two clients: accounts, presence and rendezvous. What two users say to each other does
//! not pass through it.
//!
//! [`name`] decides which names there may be side by side, [`password`] checks passwords that the server never sees,
//! [`protocol`] is the wire, and [`directory`] is the part of the server that needs no socket, no clock and no store.
//! [`server`] adds these, [`client`] makes every request, and [`workload`] makes many.
//!
//! ```
//! use kendall_chat::name::Name;
//!
//! // Names that look alike have the same key, and a store keeps one account for each key.
//! assert_eq!(Name::new("Paul")?.key(), Name::new("pau1")?.key());
//! assert!(Name::new("p\u{430}ul").is_err(), "a Cyrillic letter among Latin ones");
//! # Ok::<(), kendall_chat::name::NameError>(())
//! ```

pub mod client;
pub mod directory;
pub mod name;
pub mod password;
pub mod protocol;
mod row;
pub mod server;
pub mod workload;

pub use row::ROW;
