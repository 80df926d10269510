//! SCRAM-SHA-256 (RFC 5802, RFC 7677): the client derives keys from the password with PBKDF2, and proves them for the nonces
//! of both sides.
//!
//! Messages go over the wire as fields; what is authenticated is the text of RFC 5802, without channel binding. The server
//! stores keys from which a password can be guessed at the price of one PBKDF2, and `ServerKey`, with which a thief can pass
//! for the server. Neither logs in.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rand_core_of_opaque::{OsRng, RngCore};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::enforced::Enforced;
use super::{PasswordError, Stretch};

/// The bytes of a nonce, of which the text is 24 characters.
pub const NONCE_BYTES: usize = 18;
/// The bytes of a salt.
pub const SALT_BYTES: usize = 16;
/// The bytes of keys, proofs and signatures.
pub const KEY_BYTES: usize = 32;
/// The iterations of PBKDF2: the least that RFC 7677 allows.
pub const ITERATIONS: u32 = 4096;
/// A server that asks for more wants the client to compute for minutes.
const MOST_ITERATIONS: u32 = 1_000_000;

type Key = [u8; KEY_BYTES];
/// A key that is erased when it is no longer needed.
type SecretKey = Zeroizing<Key>;

/// The data with which a server checks a password. No debug output shows its keys.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Verifier {
    /// The salt.
    pub salt: [u8; SALT_BYTES],
    /// The iterations of PBKDF2.
    pub iterations: u32,
    /// The hash of the client's key.
    pub stored_key: [u8; KEY_BYTES],
    /// The key with which the server signs.
    pub server_key: [u8; KEY_BYTES],
}

/// The server's answer to the client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The server's part of the nonce.
    pub nonce: [u8; NONCE_BYTES],
    /// The salt of the account.
    pub salt: [u8; SALT_BYTES],
    /// The iterations of PBKDF2.
    pub iterations: u32,
}

/// A log-in at the client, which waits for the challenge.
#[derive(Debug)]
pub struct LogIn {
    name: String,
    password: Enforced,
    nonce: [u8; NONCE_BYTES],
}

/// The client's proof, and how it knows the server.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The proof that the client sends.
    pub proof: [u8; KEY_BYTES],
    signature: [u8; KEY_BYTES],
}

/// A log-in at the server, which waits for the proof.
#[derive(Clone, Debug)]
pub struct HalfLogIn {
    verifier: Verifier,
    text: String,
}

impl Verifier {
    /// Makes the data that the server keeps for a password. Without a stretch, one iteration takes the place of 4,096: an
    /// account is entered with the stretch that it was registered with.
    pub fn new(password: &str, stretch: Stretch) -> Self {
        Self::with_salt(&Enforced::new(password), draw(), stretch)
    }

    fn with_salt(password: &Enforced, salt: [u8; SALT_BYTES], stretch: Stretch) -> Self {
        let (client_key, server_key) = keys(&salted(password, &salt, ITERATIONS, stretch));
        Self { salt, iterations: ITERATIONS, stored_key: hash(&client_key), server_key: *server_key }
    }

    /// A verifier that no password passes.
    pub fn of_no_account(salt: [u8; SALT_BYTES]) -> Self {
        Self { salt, iterations: ITERATIONS, stored_key: draw(), server_key: draw() }
    }
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Verifier(…)")
    }
}

impl LogIn {
    /// Begins a log-in: the nonce to send.
    pub fn start(name: &str, password: &str) -> (Self, [u8; NONCE_BYTES]) {
        let nonce = draw();
        (Self { name: name.to_owned(), password: Enforced::new(password), nonce }, nonce)
    }

    /// The proof that the client has the password.
    ///
    /// # Errors
    /// Fails where the server asks for too few iterations, which would weaken the password, or too many.
    pub fn finish(self, challenge: &Challenge, stretch: Stretch) -> Result<Proof, PasswordError> {
        let iterations = challenge.iterations;
        if !(ITERATIONS..=MOST_ITERATIONS).contains(&iterations) {
            return Err(PasswordError::Iterations { iterations });
        }
        let (client_key, server_key) = keys(&salted(&self.password, &challenge.salt, iterations, stretch));
        let text =
            text(&self.name, &encode(&self.nonce), &encode(&challenge.nonce), &challenge.salt, iterations);
        let proof = xor(&client_key, &sign(&hash(&client_key), &text));
        Ok(Proof { proof, signature: sign(&server_key, &text) })
    }
}

impl Proof {
    /// Whether the server has proved that it has the account's key.
    ///
    /// # Errors
    /// Fails where it has not.
    pub fn check(&self, signature: &[u8; KEY_BYTES]) -> Result<(), PasswordError> {
        let is_right = bool::from(self.signature.ct_eq(signature));
        if is_right { Ok(()) } else { Err(PasswordError::WrongServer) }
    }
}

impl HalfLogIn {
    /// Makes the server's half of a log-in, and its answer.
    pub fn new(name: &str, client_nonce: &[u8; NONCE_BYTES], verifier: Verifier) -> (Self, Challenge) {
        let Verifier { salt, iterations, .. } = verifier;
        let nonce = draw();
        let text = text(name, &encode(client_nonce), &encode(&nonce), &salt, iterations);
        (Self { verifier, text }, Challenge { nonce, salt, iterations })
    }

    /// Checks the client's proof, and returns the server's.
    ///
    /// # Errors
    /// Fails where the client does not have the password.
    pub fn finish(&self, proof: &[u8; KEY_BYTES]) -> Result<[u8; KEY_BYTES], PasswordError> {
        let Verifier { stored_key, server_key, .. } = &self.verifier;
        let client_key = Zeroizing::new(xor(proof, &sign(stored_key, &self.text)));
        if bool::from(hash(&client_key).ct_eq(stored_key)) {
            Ok(sign(server_key, &self.text))
        } else {
            Err(PasswordError::WrongNameOrPassword)
        }
    }
}

/// `AuthMessage` of RFC 5802, section 3: the first messages of both sides, and the client's last one without its proof.
fn text(name: &str, client_nonce: &str, server_nonce: &str, salt: &[u8], iterations: u32) -> String {
    let name = name.replace('=', "=3D").replace(',', "=2C");
    let salt = BASE64_STANDARD.encode(salt);
    format!(
        "n={name},r={client_nonce},r={client_nonce}{server_nonce},s={salt},i={iterations},\
         c=biws,r={client_nonce}{server_nonce}"
    )
}

/// `SaltedPassword`.
fn salted(password: &Enforced, salt: &[u8], iterations: u32, stretch: Stretch) -> SecretKey {
    let rounds = if stretch == Stretch::Off { 1 } else { iterations };
    let mut key = SecretKey::default();
    pbkdf2::pbkdf2::<Hmac<Sha256>>(password.bytes(), salt, rounds, &mut *key).expect(ANY_LENGTH);
    key
}

/// `ClientKey` and `ServerKey`.
fn keys(salted: &Key) -> (SecretKey, SecretKey) {
    (Zeroizing::new(sign(salted, "Client Key")), Zeroizing::new(sign(salted, "Server Key")))
}

fn sign(key: &Key, text: &str) -> Key {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect(ANY_LENGTH);
    mac.chain_update(text).finalize().into_bytes().into()
}

fn hash(key: &Key) -> Key {
    Sha256::digest(key).into()
}

fn xor(a: &Key, b: &Key) -> Key {
    std::array::from_fn(|place| a[place] ^ b[place])
}

fn encode(nonce: &[u8; NONCE_BYTES]) -> String {
    BASE64_STANDARD.encode(nonce)
}

fn draw<const N: usize>() -> [u8; N] {
    let mut drawn = [0; N];
    OsRng.fill_bytes(&mut drawn);
    drawn
}

const ANY_LENGTH: &str = "HMAC takes a key of any length";

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_rfc_comes_out() {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap().try_into().unwrap();
        let password = Enforced::new("pencil");
        let verifier = Verifier::with_salt(&password, salt, Stretch::Argon2id);
        let text = text(
            "user",
            "rOprNGfwEbeRWgbNEkqO",
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            &salt,
            verifier.iterations,
        );
        let (client_key, server_key) = keys(&salted(&password, &salt, 4096, Stretch::Argon2id));
        let proof = xor(&client_key, &sign(&hash(&client_key), &text));
        assert_eq!(BASE64_STANDARD.encode(proof), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let server = HalfLogIn { verifier, text: text.clone() };
        let signature = server.finish(&proof).unwrap();
        assert_eq!(BASE64_STANDARD.encode(signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert_eq!(sign(&server_key, &text), signature);
    }

    fn log_in(verifier: &Verifier, password: &str, stretch: Stretch) -> Result<(), PasswordError> {
        let (client, nonce) = LogIn::start("a=b,c", password);
        let (server, challenge) = HalfLogIn::new("a=b,c", &nonce, verifier.clone());
        let proof = client.finish(&challenge, stretch)?;
        proof.check(&server.finish(&proof.proof)?)
    }

    #[test]
    fn only_the_right_password_with_its_stretch_enters() {
        let wrong = Err(PasswordError::WrongNameOrPassword);
        let verifier = Verifier::new("correct horse", Stretch::Argon2id);
        assert_eq!(log_in(&verifier, "correct horse", Stretch::Argon2id), Ok(()));
        assert_eq!(log_in(&verifier, "correct house", Stretch::Argon2id), wrong);
        assert_eq!(log_in(&verifier, "correct horse", Stretch::Off), wrong);
        assert_eq!(log_in(&Verifier::of_no_account([1; SALT_BYTES]), "", Stretch::Off), wrong);
    }

    #[test]
    fn a_replayed_proof_and_a_server_without_the_key_fail() {
        let verifier = Verifier::new("correct horse", Stretch::Off);
        let (client, nonce) = LogIn::start("alice", "correct horse");
        let (_, challenge) = HalfLogIn::new("alice", &nonce, verifier.clone());
        let proof = client.finish(&challenge, Stretch::Off).unwrap();
        let (again, _) = HalfLogIn::new("alice", &nonce, verifier.clone());
        assert_eq!(again.finish(&proof.proof), Err(PasswordError::WrongNameOrPassword));
        assert_eq!(proof.check(&[0; KEY_BYTES]), Err(PasswordError::WrongServer));
    }

    /// A thief of the record has the hash of the client's key, and needs the key.
    #[test]
    fn what_is_stored_does_not_enter() {
        let verifier = Verifier::new("correct horse", Stretch::Off);
        let (server, _) = HalfLogIn::new("alice", &[0; NONCE_BYTES], verifier.clone());
        for stolen in [verifier.stored_key, verifier.server_key] {
            let proof = xor(&stolen, &sign(&verifier.stored_key, &server.text));
            assert_eq!(server.finish(&proof), Err(PasswordError::WrongNameOrPassword));
        }
    }

    #[test]
    fn a_client_refuses_weaker_and_endless_derivations() {
        for iterations in [0, ITERATIONS - 1, MOST_ITERATIONS + 1] {
            let (client, _) = LogIn::start("alice", "x");
            let challenge = Challenge { nonce: [0; NONCE_BYTES], salt: [0; SALT_BYTES], iterations };
            let error = client.finish(&challenge, Stretch::Off).unwrap_err();
            assert_eq!(error, PasswordError::Iterations { iterations });
        }
    }
}
