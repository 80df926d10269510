//! Messages that leave the server.

use kendall_service::Message;

use crate::protocol::{DirectoryMessage, Frame, VERSION, encode_greeting, encode_said};

/// A message that leaves the server.
#[derive(Clone, Debug)]
pub enum Wire {
    /// The answer to a client's greeting.
    Greeting,
    /// An answer or a push.
    Frame(Frame<DirectoryMessage>),
}

impl Message for Wire {
    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Greeting => bytes.extend(encode_greeting(VERSION)),
            Self::Frame(frame) => encode_said(frame, bytes),
        }
    }
}
