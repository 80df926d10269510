//! One request, its class, and whether its connection can carry another.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One request, as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its class, an index into [`Workload::classes`](crate::Workload::classes).
    pub class: u32,
    /// What is sent. Requests that are alike share their bytes.
    pub bytes: Bytes,
    /// What is sent behind that, if anything. Only over [`Route::Bytes`](crate::Route::Bytes).
    pub body: Option<Body>,
}

impl Request {
    /// A request without a body.
    pub fn new(class: u32, bytes: Bytes) -> Self {
        Self { class, bytes, body: None }
    }

    /// How many bytes it has in all.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.body.as_ref().map_or(0, Body::length)
    }
}

/// A body too long to be held by every request that sends it: one piece over and over, and an end. A gigabyte
/// takes the memory of the piece, which is shared by all requests that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// What is repeated; not empty if `repeated_bytes` is not 0.
    pub piece: Bytes,
    /// How many bytes of repetitions are sent; the last may be cut.
    pub repeated_bytes: u64,
    /// What is sent last.
    pub end: Bytes,
}

impl Body {
    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.repeated_bytes + self.end.len() as u64
    }

    /// The bytes from a place on, as far as one piece of memory holds them; empty at its end.
    pub fn from(&self, place: u64) -> &[u8] {
        let Some(left) = self.repeated_bytes.checked_sub(place).filter(|left| *left > 0) else {
            let past = usize::try_from(place - self.repeated_bytes).unwrap_or(usize::MAX);
            return self.end.get(past..).unwrap_or_default();
        };
        let rest = &self.piece[(place % self.piece.len() as u64) as usize..];
        &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))]
    }
}

/// A class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestClass {
    /// What it is called.
    pub name: String,
    /// Its priority: what a second of its delay costs, beside that of the other classes.
    pub weight: f64,
    /// The chance that a request is of this class, where the workload draws it, from 0 to 1: whether this many came is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl RequestClass {
    /// A class whose share nobody chose.
    pub fn new(name: impl Into<String>, weight: f64) -> Self {
        Self { name: name.into(), weight, share: None }
    }
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It can.
    Keep,
    /// It is spent.
    Close,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_its_piece_over_and_over_and_then_its_end() {
        for repeated in [0, 1, 3, 4, 10] {
            let body = Body { piece: Bytes::from_static(b"abc"), repeated_bytes: repeated, end: "xy".into() };
            let mut all = Vec::new();
            while !body.from(all.len() as u64).is_empty() {
                all.extend_from_slice(body.from(all.len() as u64));
            }
            let expected = [&b"abcabcabcabc"[..repeated as usize], b"xy"].concat();
            assert_eq!((all, body.length()), (expected, repeated + 2));
        }
    }
}
