//! How a session opens, whatever it is for: the client names the protocol, its version and a service, and the server may refuse.
//! The client continues at once with the first message of the service, so a session that is accepted costs no round trip.

use crate::frame;
use crate::wire::{BadMessage, Fields, put_bytes};

/// The version of the protocol. A server refuses other versions by name.
pub const VERSION: u16 = 2;

/// First bytes of an opening.
const MAGIC: &[u8; 8] = b"kndremot";

/// Kinds of frames that all services share; those of a service begin at 16.
/// A client's first message.
pub const HELLO: u8 = 1;
/// The server's answer where it does not serve the client.
pub const REFUSED: u8 = 2;
/// A sign of life, from an end that has had nothing else to send for a while.
pub const ALIVE: u8 = 3;

/// A service that a session requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Service {
    /// Copies of files and trees.
    Copy,
    /// IP packets of a virtual private network.
    Tunnel,
    /// A service that this version does not have.
    Unknown(u8),
}

/// A client's first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The version that the client speaks.
    pub version: u16,
    /// The requested service.
    pub service: Service,
}

impl Hello {
    /// Appends the frame.
    pub fn encode(self, out: &mut Vec<u8>) {
        let service = match self.service {
            Service::Copy => 1,
            Service::Tunnel => 2,
            Service::Unknown(number) => number,
        };
        let start = frame::begin(out, HELLO);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.push(service);
        frame::end(out, start);
    }

    /// Reads the body of a frame of its kind. Later versions may append fields, so bytes after the known ones are ignored.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, BadMessage> {
        let mut fields = Fields::new(body, "Hello");
        if kind != HELLO || fields.array::<8>()? != *MAGIC {
            return Err(fields.bad());
        }
        let version = fields.u16()?;
        let service = match fields.u8()? {
            1 => Service::Copy,
            2 => Service::Tunnel,
            number => Service::Unknown(number),
        };
        Ok(Self { version, service })
    }
}

/// Appends a refusal: a sentence for the user of the client.
pub fn encode_refused(out: &mut Vec<u8>, text: &str) {
    let start = frame::begin(out, REFUSED);
    put_bytes(out, text.as_bytes());
    frame::end(out, start);
}

/// Reads the body of a refusal.
///
/// # Errors
/// [`BadMessage`].
pub fn decode_refused(body: &[u8]) -> Result<String, BadMessage> {
    let mut fields = Fields::new(body, "Refused");
    let text = fields.text()?;
    fields.end()?;
    Ok(text)
}
