//! The server's side of OPAQUE.
//!
//! A registration is evaluated under its own random number, which the record keeps. With the name in its place, as RFC
//! 9807 leaves open, registrations could be begun under any name to evaluate guesses for its account. For a name without an
//! account, a log-in is evaluated under a number derived from the name and a secret, and with the record of an account that no
//! password enters: its answer looks and takes the same as that for an account. Of SCRAM, such a name has a salt that is derived
//! in the same way.

use std::fmt;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use opaque_ke::{
    CredentialFinalization, CredentialRequest, Identifiers, RegistrationRequest, ServerLogin,
    ServerLoginParameters, ServerRegistration, ServerSetup,
};
use rand_core_of_opaque::{OsRng, RngCore};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::argon2id::Hashers;
use super::array::fixed;
use super::client::Registration;
use super::record::{CREDENTIAL_BYTES, Proof, Record};
use super::scram::{SALT_BYTES, Verifier};
use super::{
    AuthMethod, CONTEXT, LOG_IN_1, LOG_IN_2, LOG_IN_3, PasswordError, REGISTER_1, REGISTER_2, Stretch, Suite,
};
use crate::name::{Name, NameKey};

/// What the server's key begins with in its file.
const KEY_MAGIC: &[u8; 16] = b"kendall chat k1\n";
const SECRET_BYTES: usize = 32;

type Secret = Zeroizing<[u8; SECRET_BYTES]>;

/// The server's keys. As precious as the key of a certificate: without them no account can be entered, and with them and the
/// records, passwords can be guessed.
pub struct Passwords {
    setup: ServerSetup<Suite>,
    /// The secret of the numbers for names without an account.
    secret: Secret,
    /// The account that no password enters.
    decoy: Record,
    method: AuthMethod,
    /// The decoy account by the method of this server.
    decoy_of_method: Record,
    hashers: Hashers,
}

/// A log-in that waits for the client's proof.
#[derive(Clone)]
pub struct HalfLogIn(ServerLogin<Suite>);

/// The bytes are not a key of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAKey;

impl Passwords {
    /// A server with new keys.
    pub fn new() -> Self {
        Self::with(ServerSetup::new(&mut OsRng), draw_secret())
    }

    fn with(setup: ServerSetup<Suite>, secret: Secret) -> Self {
        let (client, first) = Registration::start(&format!("{:?}", draw_secret()));
        let credential = Self::draw_credential();
        let third =
            evaluate(&setup, &credential, &first).and_then(|second| client.finish(&second, Stretch::Off));
        let name = Name::new("decoy").expect("it is a valid name");
        let decoy = third.and_then(|third| Record::new(credential, &name, &third));
        let decoy = decoy.expect("both sides are ours");
        let hashers = Hashers::new(available_parallelism().unwrap_or(NonZeroUsize::MIN));
        Self { setup, secret, decoy_of_method: decoy.clone(), decoy, method: AuthMethod::Opaque, hashers }
    }

    /// Checks passwords by this method, and refuses accounts of the others.
    #[must_use]
    pub fn by(self, method: AuthMethod) -> Self {
        let name = Name::new("decoy").expect("it is a valid name");
        let decoy_of_method = match method {
            AuthMethod::Opaque => self.decoy.clone(),
            AuthMethod::Argon2id => {
                Record::argon2id(&name, self.hashers.hash(&format!("{:?}", draw_secret())))
            }
            AuthMethod::Scram => Record::scram(&name, Verifier::of_no_account([0; SALT_BYTES])),
        };
        Self { method, decoy_of_method, ..self }
    }

    /// How this server checks passwords.
    pub fn method(&self) -> AuthMethod {
        self.method
    }

    /// What computes the hashes of passwords in clear.
    pub(crate) fn hashers(&self) -> &Hashers {
        &self.hashers
    }

    /// The salt of SCRAM for a name without an account.
    pub(crate) fn salt_of_no_account(&self, key: &NameKey) -> [u8; SALT_BYTES] {
        self.derived("salt\0", key)
    }

    /// Bytes that are always the same for a name and a purpose, and that only this server can compute.
    fn derived<const N: usize>(&self, purpose: &str, key: &NameKey) -> [u8; N] {
        let hash = Sha256::new().chain_update(*self.secret).chain_update(purpose).chain_update(key.as_str());
        let hash: [u8; 32] = hash.finalize().into();
        *hash.first_chunk().expect("it is shorter")
    }

    /// The keys as their file has them.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let setup = Zeroizing::new(self.setup.serialize());
        Zeroizing::new([&KEY_MAGIC[..], &*self.secret, &setup].concat())
    }

    /// Reads the keys of a file.
    ///
    /// # Errors
    /// Fails on bytes that [`encode`](Self::encode) did not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotAKey> {
        let rest = bytes.strip_prefix(KEY_MAGIC).ok_or(NotAKey)?;
        let (&secret, setup) = rest.split_first_chunk().ok_or(NotAKey)?;
        let setup = ServerSetup::deserialize(setup).map_err(|_| NotAKey)?;
        Ok(Self::with(setup, Zeroizing::new(secret)))
    }

    /// The record of the account that no password enters, as a store would have it.
    pub fn decoy(&self) -> Vec<u8> {
        self.decoy_of_method.encode()
    }

    /// A number for a registration.
    pub fn draw_credential() -> [u8; CREDENTIAL_BYTES] {
        let mut credential = [0; CREDENTIAL_BYTES];
        OsRng.fill_bytes(&mut credential);
        credential
    }

    /// The second message of a registration.
    ///
    /// # Errors
    /// Fails on bytes that are not its first message.
    pub fn register(
        &self,
        credential: &[u8; CREDENTIAL_BYTES],
        first: &[u8; REGISTER_1],
    ) -> Result<[u8; REGISTER_2], PasswordError> {
        evaluate(&self.setup, credential, first)
    }

    /// The second message of a log-in, whether there is an account of this name or not.
    ///
    /// # Errors
    /// Fails on bytes that are not its first message.
    pub fn log_in(
        &self,
        key: &NameKey,
        record: Option<&Record>,
        first: &[u8; LOG_IN_1],
    ) -> Result<(HalfLogIn, Box<[u8; LOG_IN_2]>), PasswordError> {
        // Hashed in either case, so that both take the same.
        let hidden: [u8; CREDENTIAL_BYTES] = self.derived("", key);
        let Proof::Opaque { credential, record: stored } = record.unwrap_or(&self.decoy).proof() else {
            return Err(PasswordError::InvalidMessage);
        };
        let credential = if record.is_some() { credential } else { &hidden };
        let stored = ServerRegistration::deserialize(&**stored).map_err(|_| PasswordError::InvalidMessage)?;
        let request = CredentialRequest::deserialize(first).map_err(|_| PasswordError::InvalidMessage)?;
        let start =
            ServerLogin::start(&mut OsRng, &self.setup, Some(stored), request, credential, parameters())
                .map_err(|_| PasswordError::InvalidMessage)?;
        Ok((HalfLogIn(start.state), Box::new(fixed(&start.message.serialize()))))
    }
}

/// Whether the client has proved that it has the password.
///
/// # Errors
/// Fails where it has not.
pub fn finish_log_in(half: &HalfLogIn, third: &[u8; LOG_IN_3]) -> Result<(), PasswordError> {
    let third = CredentialFinalization::deserialize(third).map_err(|_| PasswordError::WrongNameOrPassword)?;
    let finished = half.0.clone().finish(third, parameters());
    finished.map(drop).map_err(|_| PasswordError::WrongNameOrPassword)
}

fn draw_secret() -> Secret {
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    OsRng.fill_bytes(&mut *secret);
    secret
}

fn parameters() -> ServerLoginParameters<'static, 'static> {
    ServerLoginParameters { context: Some(CONTEXT), identifiers: Identifiers::default() }
}

fn evaluate(
    setup: &ServerSetup<Suite>,
    credential: &[u8; CREDENTIAL_BYTES],
    first: &[u8; REGISTER_1],
) -> Result<[u8; REGISTER_2], PasswordError> {
    let request = RegistrationRequest::deserialize(first).map_err(|_| PasswordError::InvalidMessage)?;
    let start =
        ServerRegistration::start(setup, request, credential).map_err(|_| PasswordError::InvalidMessage)?;
    Ok(fixed(&start.message.serialize()))
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passwords(…)")
    }
}

impl fmt::Debug for HalfLogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HalfLogIn(…)")
    }
}
