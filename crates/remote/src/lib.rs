//! Remote work over CurveCP, between machines that know each other by public keys.
//!
//! [`copy`] copies files and trees between this machine and a folder of a server, both ways. [`shell`] runs shells and commands at
//! a server, in sessions that outlive their connections. What any such service needs is
//! beside it: the keys that a server admits ([`AuthorizedKeys`]), the servers that a client knows ([`Hosts`]), how either
//! names a file of the other ([`Operand`]), connections ([`dial`]), sessions of a server ([`serve`]) and [frames](frame).

pub mod copy;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
pub mod opening;
pub mod path;
pub mod shell;

mod authorized;
mod dial;
mod error;
mod hosts;
mod operand;
mod refusal_log;
mod serve;
mod session;
mod wire;

pub use authorized::{AuthorizedClient, AuthorizedKeys};
pub use dial::{Dialled, NoAnswer, dial, dial_with};
pub use error::RemoteError;
pub use hosts::{Host, Hosts, public_key};
pub use operand::Operand;
pub use serve::{Sessions, Stop, serve};
pub use session::SILENCE_LIMIT;
pub use wire::BadMessage;
