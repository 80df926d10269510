//! Passwords by OPAQUE (RFC 9807) in the suite ristretto255-SHA512, HKDF-SHA-512, HMAC-SHA-512 and 3DH.
//!
//! The server never sees a password, and what it stores cannot be used to log in. The client stretches the password; the server
//! cannot see whether it did. [`client`] is the client's side and [`server`] the server's; messages are arrays of bytes,
//! so that no other module knows the library. [`record`] is what the stores keep. [`argon2id`] and [`scram`] are the methods
//! that experiments compare with OPAQUE.

pub mod argon2id;
mod array;
pub mod client;
mod enforced;
mod group;
mod method;
pub mod record;
pub mod scram;
pub mod server;

pub use method::AuthMethod;

use opaque_ke::errors::InternalError;
use opaque_ke::generic_array::{ArrayLength, GenericArray};
use opaque_ke::ksf::Ksf;
use opaque_ke::{CipherSuite, Ristretto255, TripleDh, argon2};
use sha2_of_opaque::Sha512;

use group::KeyGroup;

/// The first message of a registration, from the client.
pub const REGISTER_1: usize = 32;
/// The second, from the server.
pub const REGISTER_2: usize = 64;
/// The third, from the client.
pub const REGISTER_3: usize = 192;
/// The first message of a log-in, from the client.
pub const LOG_IN_1: usize = 96;
/// The second, from the server.
pub const LOG_IN_2: usize = 320;
/// The third, from the client.
pub const LOG_IN_3: usize = 64;

/// Both sides mix it into the key exchange, so that a log-in to another protocol or version does not pass here.
const CONTEXT: &[u8] = b"kendall chat, opaque-v1";

/// The suite.
#[derive(Debug)]
struct Suite;

impl CipherSuite for Suite {
    type OprfCs = Ristretto255;
    type KeyExchange = TripleDh<KeyGroup, Sha512>;
    type Ksf = Stretch;
}

/// How a client stretches a password, so that a thief of the server's records and key needs long for each guess. An account
/// is entered with the stretch that it was registered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stretch {
    /// Argon2id with 19 MiB, two passes and one lane, the first recommendation of the OWASP password storage cheat sheet.
    #[default]
    Argon2id,
    /// None: for benchmarks, where the stretch of 10 ms would make the load generator the bottleneck. A server does the same
    /// work with either.
    Off,
}

/// The reason why a message of OPAQUE was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// The bytes are not a message of the protocol.
    #[error("the peer sent bytes that are not a message of OPAQUE")]
    InvalidMessage,
    /// The peer failed its proof: at the client, that the account has this password.
    #[error("there is no such account, or this is not its password")]
    WrongNameOrPassword,
    /// The server asks for fewer iterations of PBKDF2 than protect the password, or for more than a client computes.
    #[error(
        "the server requests {iterations} iterations of PBKDF2, but a client accepts only 4,096 to 1,000,000"
    )]
    Iterations {
        /// The number of iterations that the server requests.
        iterations: u32,
    },
    /// The server has not proved that it has the account's key.
    #[error("the server has not proved that it knows the account; check its address and its fingerprint")]
    WrongServer,
}

impl Ksf for Stretch {
    fn hash<L: ArrayLength<u8>>(
        &self,
        input: GenericArray<u8, L>,
    ) -> Result<GenericArray<u8, L>, InternalError> {
        match self {
            // The library's default parameters are 19 MiB, two passes, one lane; a test says so.
            Self::Argon2id => argon2::Argon2::default().hash(input),
            Self::Off => Ok(input),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::client::{LogIn, Registration};
    use super::record::Record;
    use super::server::{Passwords, finish_log_in};
    use super::*;
    use crate::name::Name;

    fn registered(server: &Passwords, password: &str) -> Record {
        let (client, first) = Registration::start(password);
        let credential = Passwords::draw_credential();
        let second = server.register(&credential, &first).unwrap();
        let third = client.finish(&second, Stretch::Off).unwrap();
        Record::new(credential, &Name::new("alice").unwrap(), &third).unwrap()
    }

    /// Whether a log-in passes at the client and at the server.
    fn log_in(server: &Passwords, record: Option<&Record>, password: &str) -> bool {
        let (client, first) = LogIn::start(password);
        let (half, second) = server.log_in(Name::new("alice").unwrap().key(), record, &first).unwrap();
        match client.finish(&second, Stretch::Off) {
            Ok(third) => finish_log_in(&half, &third).is_ok(),
            Err(error) => {
                assert_eq!(error, PasswordError::WrongNameOrPassword);
                assert!(finish_log_in(&half, &[7; LOG_IN_3]).is_err());
                false
            }
        }
    }

    #[test]
    fn secrets_erase_themselves_and_have_no_debug_output() {
        fn erases<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let clear = crate::protocol::ClearPassword::new("correct horse").unwrap();
        let token = crate::protocol::Secret([7; 32]);
        let verifier = scram::Verifier::new("correct horse", Stretch::Off);
        erases(&clear);
        erases(&token);
        erases(&verifier);
        let server = Passwords::new();
        let name = Name::new("alice").unwrap();
        let shown = [
            format!("{clear:?}"),
            format!("{token:?}"),
            format!("{verifier:?}"),
            format!("{:?}", Registration::start("correct horse").0),
            format!("{:?}", LogIn::start("correct horse").0),
            format!("{:?}", registered(&server, "correct horse")),
            format!("{:?}", Record::argon2id(&name, server.hashers().hash("correct horse"))),
        ];
        for text in shown {
            assert!(text.contains("(…)") && !text.contains("horse") && !text.contains('['), "{text}");
        }
    }

    #[test]
    fn only_the_right_password_enters() {
        let server = Passwords::new();
        let record = registered(&server, "correct horse");
        assert!(log_in(&server, Some(&record), "correct horse"));
        assert!(!log_in(&server, Some(&record), "correct house"));
        assert!(!log_in(&server, None, "correct horse"), "a name without an account");
        let again = Record::decode(&record.encode()).unwrap();
        assert_eq!((again.shown(), &again), ("alice", &record));
        assert!(log_in(&server, Some(&again), "correct horse"));
        assert!(!log_in(&Passwords::new(), Some(&record), "correct horse"), "another server's keys");
    }

    #[test]
    fn a_log_in_with_another_exchanges_proof_fails() {
        let server = Passwords::new();
        let record = registered(&server, "correct horse");
        let key = Name::new("alice").unwrap();
        let (client, first) = LogIn::start("correct horse");
        let (_, second) = server.log_in(key.key(), Some(&record), &first).unwrap();
        let third = client.finish(&second, Stretch::Off).unwrap();
        let (half, _) = server.log_in(key.key(), Some(&record), &first).unwrap();
        assert_eq!(finish_log_in(&half, &third), Err(PasswordError::WrongNameOrPassword), "a replay");
    }

    /// The same blinded password gives the same evaluation for the same name, as an account does; another name gives another.
    #[test]
    fn a_name_without_an_account_answers_like_one_with() {
        let server = Passwords::new();
        let record = registered(&server, "correct horse");
        let (_, first) = LogIn::start("guess");
        let evaluated = |name: &str, record| {
            let (_, second) = server.log_in(Name::new(name).unwrap().key(), record, &first).unwrap();
            second[..32].to_vec()
        };
        assert_eq!(evaluated("alice", Some(&record)), evaluated("alice", Some(&record)));
        assert_eq!(evaluated("bob", None), evaluated("bob", None));
        assert_ne!(evaluated("bob", None), evaluated("carol", None));
        assert_ne!(evaluated("bob", None), evaluated("alice", Some(&record)));
    }

    /// Each registration has its own credential number, so beginning registrations under a name evaluates no guess for
    /// its account, before it is registered or after.
    #[test]
    fn registrations_under_a_name_say_nothing_of_its_account() {
        let server = Passwords::new();
        let (_, first) = Registration::start("guess");
        let evaluated = || server.register(&Passwords::draw_credential(), &first).unwrap()[..32].to_vec();
        assert_ne!(evaluated(), evaluated());
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        let server = Passwords::new();
        let name = Name::new("alice").unwrap();
        assert_eq!(server.register(&[0; 16], &[0xff; 32]), Err(PasswordError::InvalidMessage));
        assert!(server.log_in(name.key(), None, &[0xff; 96]).is_err());
        assert_eq!(Record::new([0; 16], &name, &[0xff; 192]), Err(PasswordError::InvalidMessage));
    }

    #[test]
    fn the_stretch_is_what_the_documentation_says() {
        let defaults = argon2::Params::default();
        assert_eq!((defaults.m_cost(), defaults.t_cost(), defaults.p_cost()), (19 * 1024, 2, 1));
        let (client, first) = Registration::start("x");
        let server = Passwords::new();
        let second = server.register(&[1; 16], &first).unwrap();
        let stretched = client.finish(&second, Stretch::Argon2id).unwrap();
        let record = Record::new([1; 16], &Name::new("alice").unwrap(), &stretched).unwrap();
        assert!(!log_in(&server, Some(&record), "x"), "without the stretch the password does not enter");
    }
}
