//! A conversation between two peers that talk directly, over CurveCP or QUIC, once the directory
//! server of the chat system has given them each other's keys and addresses.
//!
//! - [`protocol`] has the frames that peers exchange on the encrypted stream.
//! - [`Conversation`] is what each side knows, without sockets and clocks. It outlives connections: after a reconnection no
//!   message is lost or doubled.
//! - [`Side`] is a conversation with the files of this side's disk that are sent and received in it.
//! - [`converse`] runs it over a stream.
//! - [`Meeting`] makes the stream: one UDP socket that dials and accepts, so that both peers can open the way through their
//!   address translators (NATs) at once, and a relay where there is no direct way.
//! - [`relay`] is that relay, and shows peers the addresses that the other side can reach them at. It forwards packets that
//!   it cannot read.

mod conversation;
mod converse;
mod curve;
mod event;
mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod meeting;
pub mod protocol;
mod quic;
pub mod relay;
mod side;
mod terms;
mod transfers;
mod transport;

pub use conversation::Conversation;
pub use converse::{End, converse};
pub use event::{Event, FileId, MOST_FILES, SendError, Violation};
pub use meeting::{MeetError, Meeting, Path};
pub use protocol::{Outcome, TalkId};
pub use quic::QuicStream;
pub use side::{Command, Side};
pub use transfers::{DownloadError, Upload, UploadError, safe_name};
pub use transport::{PeerConnection, PeerStream, PeerTransport};
