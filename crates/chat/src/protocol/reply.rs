//! Messages of the server: answers to requests, and messages without a request.

use std::net::SocketAddr;

use kendall_talk::PeerTransport;

use super::field::{Addresses, Field, Names, Secret};
use super::message::{codes, messages};
use super::request::Contact;
use crate::password::scram::{KEY_BYTES, NONCE_BYTES, SALT_BYTES};
use crate::password::{LOG_IN_2, REGISTER_2};

/// The lowest kind of a push; answers have lower ones.
pub(crate) const FIRST_PUSH: u8 = 128;

/// A message from the directory server to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryMessage {
    /// The answer to a request.
    Answer(Answer),
    /// A message without a request.
    Push(Push),
}

messages! {
    /// The answer to a request.
    Answer {
        /// The request is done, and there is no more to report.
        1 => Done,
        /// The request has failed.
        2 => Failed {
            /// The fault of the request.
            why: Blame,
            /// After how many milliseconds another attempt has a chance; 0 where waiting changes nothing.
            retry_ms: u32,
        },
        /// The second message of a registration or of a change of the password.
        3 => RegisterContinue {
            /// The evaluated password and the server's public key.
            message: [u8; REGISTER_2],
        },
        /// The second message of a log-in.
        4 => LogInContinue {
            /// The evaluated password, the masked record, and the server's key share.
            message: Box<[u8; LOG_IN_2]>,
        },
        /// The client has a session, and this connection carries it.
        5 => InSession {
            /// What takes up the session on another connection.
            token: Secret,
            /// The account's name, as others see it.
            name: String,
            /// How long the session lasts without a request, in milliseconds.
            lease_ms: u32,
        },
        /// Users who are there.
        6 => Users {
            /// In the order of their names.
            names: Names,
            /// 1 if more names follow.
            more: u8,
        },
        /// The called user's clients ring.
        8 => Ringing {
            /// The call.
            call: u64,
        },
        /// The call is accepted: the peer awaits the client.
        9 => Joined {
            /// The peer.
            peer: Reachable,
            /// What this client announces itself with at the meeting point.
            token: [u8; 16],
        },
        /// The second message of a log-in by SCRAM.
        10 => ScramContinue {
            /// The server's part of the nonce.
            nonce: [u8; NONCE_BYTES],
            /// The salt of the account.
            salt: [u8; SALT_BYTES],
            /// The iterations of PBKDF2.
            iterations: u32,
        },
        /// The client has a session by SCRAM, and this connection carries it.
        11 => ScramDone {
            /// The proof that the server has the account's key.
            signature: [u8; KEY_BYTES],
            /// What takes up the session on another connection.
            token: Secret,
            /// The account's name, as others see it.
            name: String,
            /// How long the session lasts without a request, in milliseconds.
            lease_ms: u32,
        },
    }
}

messages! {
    /// A message without a request.
    Push {
        /// Whether a watched user is there: at the beginning of the watch, and when it changes. That a name has no account looks
        /// like absence.
        128 => Changed {
            /// The user, by the name that the watch was asked for with.
            name: String,
            /// Whether the user is there.
            presence: Presence,
        },
        /// A call rings here.
        129 => Incoming {
            /// The call.
            call: u64,
            /// The caller.
            name: String,
            /// The talk that the caller begins, or goes on with.
            talk: [u8; 16],
        },
        /// The call that this client began is accepted.
        130 => Accepted {
            /// The call.
            call: u64,
            /// The peer.
            peer: Reachable,
            /// What this client announces itself with at the meeting point.
            token: [u8; 16],
        },
        /// A call is over without a conversation.
        131 => CallEnded {
            /// The call.
            call: u64,
            /// The reason why the call ended.
            why: EndOfCall,
        },
        /// The session is over.
        132 => SessionEnded {
            /// The reason why the session ended.
            why: EndOfSession,
        },
        /// The peer of an accepted call has announced itself at the meeting point.
        133 => PeerSeen {
            /// The call.
            call: u64,
            /// The address that its announcement came from.
            address: SocketAddr,
        },
    }
}

codes! {
    /// The reason why a request failed.
    Blame {
        /// The name breaks the rules of names.
        1 => InvalidName,
        /// A name that looks like it is taken.
        2 => NameTaken,
        /// There is no such account, or this is not its password.
        3 => WrongNameOrPassword,
        /// Too many attempts of late.
        4 => TooManyAttempts,
        /// The server has no capacity left.
        5 => Busy,
        /// The request needs a session.
        6 => NoSession,
        /// The connection carries a session already, of another account.
        7 => OtherSession,
        /// The message belongs to no exchange that this connection has begun.
        8 => OutOfOrder,
        /// The called user cannot be reached: absent, not waiting for calls, or without an account.
        9 => Unreachable,
        /// There is no such call, or not any more.
        10 => NoSuchCall,
        /// The client has as many calls or watches as it may have.
        11 => TooMuch,
        /// The password must be proved first, by a log-in in the session.
        12 => ProofNeeded,
        /// The account was changed or deleted meanwhile, or the log-in took too long.
        13 => AccountChanged,
        /// The store of accounts failed. The operator finds the reason in the log.
        14 => StoreFailed,
        /// The message is not one of OPAQUE.
        15 => InvalidMessage,
        /// The server, or the account, uses another method of authentication.
        16 => OtherMethod,
    }
}

codes! {
    /// Whether a user is there.
    Presence {
        /// The user has no session.
        0 => Away,
        /// The user has a session.
        1 => There,
    }
}

codes! {
    /// The reason why a call is over without a conversation.
    EndOfCall {
        /// The called user refused it.
        1 => Refused,
        /// The caller gave it up or is gone.
        2 => Cancelled,
        /// No client of the called user took it in time.
        3 => Unanswered,
        /// Another client of the called user took or refused it.
        4 => Elsewhere,
        /// The called user is gone.
        5 => Gone,
    }
}

codes! {
    /// The reason why a session is over.
    EndOfSession {
        /// The session is older than sessions may be.
        1 => Expired,
        /// Another connection took the session up.
        2 => TakenUp,
        /// The password was changed.
        3 => PasswordChanged,
        /// The account was deleted.
        4 => AccountDeleted,
        /// The account has too many sessions, and this was the oldest.
        5 => Displaced,
    }
}

/// A peer and how it can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reachable {
    /// The peer's name.
    pub name: String,
    /// The peer's description of itself.
    pub contact: Contact,
    /// The address from which the peer's connection comes, as the server sees it.
    pub seen_from: SocketAddr,
}

impl Field for Reachable {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.name.put(bytes);
        self.contact.put(bytes);
        self.seen_from.put(bytes);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self { name: Field::take(from)?, contact: Field::take(from)?, seen_from: Field::take(from)? })
    }

    #[cfg(test)]
    fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
        Self { name: Field::draw(draw), contact: Field::draw(draw), seen_from: Field::draw(draw) }
    }
}

impl Contact {
    /// A client that does not publish its addresses.
    pub fn unlisted(key: [u8; 32]) -> Self {
        Self { key, transport: PeerTransport::default(), addresses: Addresses::default() }
    }
}
