//! The client's side of OPAQUE. The password is enforced by OpaqueString of PRECIS (RFC 8265), so that it is the same bytes on
//! every keyboard; a password that this profile excludes is used as it is.

use std::borrow::Cow;

use opaque_ke::{
    ClientLogin, ClientLoginFinishParameters, ClientRegistration, ClientRegistrationFinishParameters,
    CredentialResponse, Identifiers, RegistrationResponse,
};
use precis_profiles::OpaqueString;
use precis_profiles::precis_core::profile::PrecisFastInvocation;
use rand_core_of_opaque::OsRng;

use super::array::fixed;
use super::{
    CONTEXT, LOG_IN_1, LOG_IN_2, LOG_IN_3, PasswordError, REGISTER_1, REGISTER_2, REGISTER_3, Stretch, Suite,
};

/// A registration that waits for the server's message.
#[derive(Debug)]
pub struct Registration {
    state: ClientRegistration<Suite>,
    password: Enforced,
}

/// A log-in that waits for the server's message.
#[derive(Debug)]
pub struct LogIn {
    state: ClientLogin<Suite>,
    password: Enforced,
}

/// A password that no debug output shows.
struct Enforced(Vec<u8>);

impl std::fmt::Debug for Enforced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Enforced(…)")
    }
}

impl Drop for Enforced {
    fn drop(&mut self) {
        // Best effort, without unsafe code: the compiler could remove it, and the allocation may have moved before.
        self.0.fill(0);
        std::hint::black_box(&self.0);
    }
}

impl Enforced {
    fn new(password: &str) -> Self {
        let enforced = OpaqueString::enforce(password).unwrap_or(Cow::Borrowed(password));
        Self(enforced.as_bytes().to_vec())
    }
}

impl Registration {
    /// Begins a registration: the message to send.
    pub fn start(password: &str) -> (Self, [u8; REGISTER_1]) {
        let password = Enforced::new(password);
        let start = ClientRegistration::start(&mut OsRng, &password.0).expect(NO_LIMIT);
        (Self { state: start.state, password }, fixed(&start.message.serialize()))
    }

    /// What the server is to keep.
    ///
    /// # Errors
    /// Fails on bytes that are not the server's message.
    pub fn finish(
        self,
        second: &[u8; REGISTER_2],
        stretch: Stretch,
    ) -> Result<Box<[u8; REGISTER_3]>, PasswordError> {
        let response =
            RegistrationResponse::deserialize(second).map_err(|_| PasswordError::InvalidMessage)?;
        let parameters = ClientRegistrationFinishParameters::new(Identifiers::default(), Some(&stretch));
        let finish = self
            .state
            .finish(&mut OsRng, &self.password.0, response, parameters)
            .map_err(|_| PasswordError::InvalidMessage)?;
        Ok(Box::new(fixed(&finish.message.serialize())))
    }
}

impl LogIn {
    /// Begins a log-in: the message to send.
    pub fn start(password: &str) -> (Self, [u8; LOG_IN_1]) {
        let password = Enforced::new(password);
        let start = ClientLogin::start(&mut OsRng, &password.0).expect(NO_LIMIT);
        (Self { state: start.state, password }, fixed(&start.message.serialize()))
    }

    /// The proof that the client has the password.
    ///
    /// # Errors
    /// Fails where the account does not have this password, and on bytes that are not the server's message.
    pub fn finish(self, second: &[u8; LOG_IN_2], stretch: Stretch) -> Result<[u8; LOG_IN_3], PasswordError> {
        let response = CredentialResponse::deserialize(second).map_err(|_| PasswordError::InvalidMessage)?;
        let parameters =
            ClientLoginFinishParameters::new(Some(CONTEXT), Identifiers::default(), Some(&stretch));
        let finish = self
            .state
            .finish(&mut OsRng, &self.password.0, response, parameters)
            .map_err(|_| PasswordError::WrongNameOrPassword)?;
        Ok(fixed(&finish.message.serialize()))
    }
}

const NO_LIMIT: &str = "the library hashes a password of any length that fits into memory";
