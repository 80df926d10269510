//! The fields of messages: how each is written and read, and its bound.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::name::NAME_BYTES;

/// The most addresses of a client.
const ADDRESSES: usize = 8;
/// The most names of a page.
const NAMES: usize = 32;

/// A field of a message.
pub(crate) trait Field: Sized {
    /// Appends the field.
    fn put(&self, bytes: &mut Vec<u8>);

    /// Reads it from the beginning of the bytes and removes it from them.
    fn take(from: &mut &[u8]) -> Option<Self>;

    /// A value for tests.
    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self;
}

/// A secret that must not be printed: a token.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Secret(pub [u8; 32]);

/// A password in clear, at most 255 bytes; what must not be printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct ClearPassword(String);

/// The addresses of a client, at most 8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(Vec<SocketAddr>);

/// A page of names, at most 32.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Addresses {
    /// The first 8 of these.
    pub fn new(mut addresses: Vec<SocketAddr>) -> Self {
        addresses.truncate(ADDRESSES);
        Self(addresses)
    }

    /// The addresses in the order in which the client prefers them.
    pub fn as_slice(&self) -> &[SocketAddr] {
        &self.0
    }
}

impl ClearPassword {
    /// A password; `None` if it has more than 255 bytes.
    pub fn new(password: &str) -> Option<Self> {
        (password.len() <= usize::from(u8::MAX)).then(|| Self(password.to_owned()))
    }

    /// The password.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Names {
    /// The most names of a page.
    pub const MOST: usize = NAMES;

    /// The first 32 of these.
    pub fn new(mut names: Vec<String>) -> Self {
        names.truncate(NAMES);
        Self(names)
    }

    /// The names in their order.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Debug for ClearPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClearPassword(…)")
    }
}

impl Field for u8 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (first, rest) = from.split_first()?;
        *from = rest;
        Some(*first)
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        draw()
    }
}

impl<const N: usize> Field for [u8; N] {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (first, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(*first)
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        std::array::from_fn(|_| draw())
    }
}

/// Long arrays are boxed, so that no message is large because one is.
impl<const N: usize> Field for Box<[u8; N]> {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(&**self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        <[u8; N]>::take(from).map(Self::new)
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        Self::new(Field::draw(draw))
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Field for $number {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_be_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Field::take(from).map(Self::from_be_bytes)
            }

            #[cfg(test)]
            fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
                Self::from_be_bytes(Field::draw(draw))
            }
        })*
    };
}

numbers!(u16, u32, u64);

impl Field for Secret {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Field::take(from).map(Self)
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        Self(Field::draw(draw))
    }
}

impl Field for ClearPassword {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::try_from(self.0.len()).expect("a password has at most 255 bytes"));
        bytes.extend(self.0.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = usize::from(u8::take(from)?);
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        std::str::from_utf8(text).ok().map(|text| Self(text.to_owned()))
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        Self((0..draw() % 128).map(|_| char::from(draw())).collect())
    }
}

/// A name. One that is too long is cut at a character, so that a message is never too long to be sent.
impl Field for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        let text = &self[..self.floor_char_boundary(NAME_BYTES)];
        bytes.push(u8::try_from(text.len()).expect("a name has at most 128 bytes"));
        bytes.extend(text.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = usize::from(u8::take(from)?);
        if length > NAME_BYTES {
            return None;
        }
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        std::str::from_utf8(text).ok().map(Self::from)
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        (0..draw() % 65).map(|_| char::from(draw())).collect()
    }
}

impl Field for SocketAddr {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self.ip() {
            IpAddr::V4(ip) => {
                bytes.push(4);
                bytes.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                bytes.push(6);
                bytes.extend(ip.octets());
            }
        }
        self.port().put(bytes);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let ip: IpAddr = match u8::take(from)? {
            4 => <[u8; 4]>::take(from)?.into(),
            6 => <[u8; 16]>::take(from)?.into(),
            _ => return None,
        };
        Some(Self::new(ip, u16::take(from)?))
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        let ip: IpAddr =
            if draw() & 1 == 0 { <[u8; 4]>::draw(draw).into() } else { <[u8; 16]>::draw(draw).into() };
        Self::new(ip, Field::draw(draw))
    }
}

fn put_all<T: Field>(all: &[T], bytes: &mut Vec<u8>) {
    bytes.push(u8::try_from(all.len()).expect("no list has more than 32 elements"));
    all.iter().for_each(|one| one.put(bytes));
}

fn take_all<T: Field>(from: &mut &[u8], most: usize) -> Option<Vec<T>> {
    let count = usize::from(u8::take(from)?);
    if count > most { None } else { (0..count).map(|_| T::take(from)).collect() }
}

impl Field for Addresses {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_all(&self.0, bytes);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        take_all(from, ADDRESSES).map(Self)
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        Self((0..usize::from(draw()) % (ADDRESSES + 1)).map(|_| Field::draw(draw)).collect())
    }
}

impl Field for Names {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_all(&self.0, bytes);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        take_all(from, NAMES).map(Self)
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        Self((0..usize::from(draw()) % (NAMES + 1)).map(|_| Field::draw(draw)).collect())
    }
}
