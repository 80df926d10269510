//! The client's side of OPAQUE.

use std::fmt;

use opaque_ke::{
    ClientLogin, ClientLoginFinishParameters, ClientRegistration, ClientRegistrationFinishParameters,
    CredentialResponse, Identifiers, RegistrationResponse,
};
use rand_core_of_opaque::OsRng;

use super::array::fixed;
use super::enforced::Enforced;
use super::{
    CONTEXT, LOG_IN_1, LOG_IN_2, LOG_IN_3, PasswordError, REGISTER_1, REGISTER_2, REGISTER_3, Stretch, Suite,
};

/// A registration that waits for the server's message. No debug output shows the factor that hides the password.
pub struct Registration {
    state: ClientRegistration<Suite>,
    password: Enforced,
}

/// A log-in that waits for the server's message.
pub struct LogIn {
    state: ClientLogin<Suite>,
    password: Enforced,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registration(…)")
    }
}

impl fmt::Debug for LogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogIn(…)")
    }
}

impl Registration {
    /// Begins a registration: the message to send.
    pub fn start(password: &str) -> (Self, [u8; REGISTER_1]) {
        let password = Enforced::new(password);
        let start = ClientRegistration::start(&mut OsRng, password.bytes()).expect(NO_LIMIT);
        (Self { state: start.state, password }, fixed(&start.message.serialize()))
    }

    /// The record that the server must keep.
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
            .finish(&mut OsRng, self.password.bytes(), response, parameters)
            .map_err(|_| PasswordError::InvalidMessage)?;
        Ok(Box::new(fixed(&finish.message.serialize())))
    }
}

impl LogIn {
    /// Begins a log-in: the message to send.
    pub fn start(password: &str) -> (Self, [u8; LOG_IN_1]) {
        let password = Enforced::new(password);
        let start = ClientLogin::start(&mut OsRng, password.bytes()).expect(NO_LIMIT);
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
            .finish(&mut OsRng, self.password.bytes(), response, parameters)
            .map_err(|_| PasswordError::WrongNameOrPassword)?;
        Ok(fixed(&finish.message.serialize()))
    }
}

const NO_LIMIT: &str = "the library hashes a password of any length that fits into memory";
