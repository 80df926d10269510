//! The directory server of a chat between two clients: accounts, presence and rendezvous. What two users say to each other
//! is encrypted between them, and passes through the server only where they have no direct way.
//!
//! [`name`] decides which names there may be side by side, [`password`] checks passwords that the server never sees,
//! [`protocol`] is the wire, and [`directory`] is all of the server that needs neither socket nor clock nor store.
//! [`server`] gives it these, [`client`] makes every request, [`peer`] leads from a call to a stream between two clients, and
//! [`workload`] makes many requests.
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
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod hybrid;
mod limits;
mod mlkem;
pub mod name;
pub mod password;
pub mod peer;
pub mod protocol;
mod row;
pub mod server;
mod store_choice;
pub mod workload;

pub use row::ROW;
