//! Requests of a client.

use kendall_talk::PeerTransport;

use super::field::{Addresses, ClearPassword, Field, Secret};
use super::message::messages;
use crate::password::scram::{KEY_BYTES, NONCE_BYTES, SALT_BYTES};
use crate::password::{LOG_IN_1, LOG_IN_3, REGISTER_1, REGISTER_3};

/// The addresses at which a client can be reached, as the client itself reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The public key that the client will prove to its peer.
    pub key: [u8; 32],
    /// What carries the talk; the caller's choice counts.
    pub transport: PeerTransport,
    /// The addresses at which the contact listens, the best first.
    pub addresses: Addresses,
}

messages! {
    /// A request. Those that need a session say so; the others are open to any connection.
    Request {
        /// The first message of a registration (OPAQUE).
        1 => RegisterStart {
            /// The name as its user typed it.
            name: String,
            /// The blinded password.
            message: [u8; REGISTER_1],
        },
        /// The last message of the registration that this connection has begun.
        2 => RegisterFinish {
            /// What the server will keep.
            record: Box<[u8; REGISTER_3]>,
        },
        /// The first message of a log-in (OPAQUE). Within a session, it proves the password once more.
        3 => LogInStart {
            /// The name as its user typed it.
            name: String,
            /// The blinded password and the client's key share.
            message: [u8; LOG_IN_1],
        },
        /// The last message of the log-in that this connection has begun.
        4 => LogInFinish {
            /// The proof that the client has the password.
            message: [u8; LOG_IN_3],
        },
        /// Takes up a session on this connection, for example after a change of networks.
        5 => Resume {
            /// The token of the log-in.
            token: Secret,
        },
        /// Session: the client is still there.
        6 => StayAlive,
        /// Session: a page of the users who are there, in the order of their names.
        8 => WhoIsThere {
            /// The last name of the page before; empty for the first page.
            after: String,
        },
        /// Session: reports whether a user is there, by [`Push::Changed`](super::Push::Changed), now and when it changes.
        9 => Watch {
            /// The user.
            name: String,
        },
        /// Session: ends a watch.
        10 => Unwatch {
            /// The user.
            name: String,
        },
        /// Session: from now on, calls ring here.
        11 => WaitForCalls,
        /// Session: calls no longer ring here.
        12 => StopWaiting,
        /// Session: calls a user.
        13 => Call {
            /// The user.
            name: String,
            /// The talk: drawn anew, or that of a talk whose connection was lost.
            talk: [u8; 16],
            /// How the caller can be reached.
            contact: Contact,
        },
        /// Session: takes a call that rings here.
        14 => Accept {
            /// The call.
            call: u64,
            /// How the called client can be reached.
            contact: Contact,
        },
        /// Session: refuses a call that rings here.
        15 => Refuse {
            /// The call.
            call: u64,
        },
        /// Session: gives up a call that this client has begun.
        16 => Cancel {
            /// The call.
            call: u64,
        },
        /// Session: ends it.
        17 => LogOut,
        /// Session, within five minutes of a proof of the password: the first message of a new registration.
        18 => ChangePasswordStart {
            /// The blinded new password.
            message: [u8; REGISTER_1],
        },
        /// Session: the last message of the change that this connection has begun.
        19 => ChangePasswordFinish {
            /// What the server will keep.
            record: Box<[u8; REGISTER_3]>,
        },
        /// Session, within five minutes of a proof of the password: deletes the account.
        20 => DeleteAccount,
        /// A registration whose password the server hashes (`--auth argon2id`).
        21 => RegisterPassword {
            /// The name as its user typed it.
            name: String,
            /// The password.
            password: ClearPassword,
        },
        /// A log-in whose password the server hashes (`--auth argon2id`).
        22 => LogInPassword {
            /// The name as its user typed it.
            name: String,
            /// The password.
            password: ClearPassword,
        },
        /// A registration by SCRAM (`--auth scram`).
        23 => RegisterScram {
            /// The name as its user typed it.
            name: String,
            /// The salt of 4,096 iterations of PBKDF2.
            salt: [u8; SALT_BYTES],
            /// `StoredKey`.
            stored_key: [u8; KEY_BYTES],
            /// `ServerKey`.
            server_key: [u8; KEY_BYTES],
        },
        /// The first message of a log-in by SCRAM (`--auth scram`).
        24 => ScramStart {
            /// The name as its user typed it.
            name: String,
            /// The client's part of the nonce.
            nonce: [u8; NONCE_BYTES],
        },
        /// The last message of the log-in by SCRAM that this connection has begun.
        25 => ScramFinish {
            /// The proof that the client has the password.
            proof: [u8; KEY_BYTES],
        },
    }
}

impl Field for PeerTransport {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(match self {
            Self::CurveCp => 0,
            Self::Quic => 1,
        });
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(Self::CurveCp),
            1 => Some(Self::Quic),
            _ => None,
        }
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        if draw().is_multiple_of(2) { Self::CurveCp } else { Self::Quic }
    }
}

impl Field for Contact {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.key.put(bytes);
        self.transport.put(bytes);
        self.addresses.put(bytes);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self { key: Field::take(from)?, transport: Field::take(from)?, addresses: Field::take(from)? })
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        Self { key: Field::draw(draw), transport: Field::draw(draw), addresses: Field::draw(draw) }
    }
}
