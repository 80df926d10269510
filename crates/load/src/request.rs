//! A request, its class, and the reuse of its connection.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// One request, in the form in which it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The request's class, an index into [`Workload::classes`](crate::Workload::classes).
    pub class: u32,
    /// The bytes to send. Equal requests share them.
    pub bytes: Bytes,
    /// The body to send after that, if any. Only over [`Route::Bytes`](crate::Route::Bytes).
    pub body: Option<Body>,
}

impl Request {
    /// A request without a body.
    pub fn new(class: u32, bytes: Bytes) -> Self {
        Self { class, bytes, body: None }
    }

    /// The total number of its bytes.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.body.as_ref().map_or(0, Body::length)
    }
}

/// A body too long for each request to hold it: one repeated piece, and an end. A gigabyte takes the memory of the piece, which
/// equal requests share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The repeated piece; not empty if `repeated_bytes` is not 0.
    pub piece: Bytes,
    /// The number of bytes of repetitions; the last may be cut.
    pub repeated_bytes: u64,
    /// The bytes at the end.
    pub end: Bytes,
}

impl Body {
    /// The number of its bytes.
    pub fn length(&self) -> u64 {
        self.repeated_bytes + self.end.len() as u64
    }

    /// The bytes from a position on, up to the end of one piece of memory; empty at its end.
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
    /// The name of the class.
    pub name: String,
    /// The priority of the class: the cost of a second of its delay, relative to the other classes.
    pub weight: f64,
    /// The probability that a request is of this class, if the workload draws it, from 0 to 1: a check compares it with the
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl RequestClass {
    /// A class without a defined share.
    pub fn new(name: impl Into<String>, weight: f64) -> Self {
        Self { name: name.into(), weight, share: None }
    }
}

/// The reuse of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The connection can carry another request.
    Keep,
    /// The connection cannot carry another request.
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
