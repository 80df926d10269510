//! Passwords as the same bytes on every keyboard.

use std::borrow::Cow;
use std::fmt;

use precis_profiles::OpaqueString;
use precis_profiles::precis_core::profile::PrecisFastInvocation;
use zeroize::Zeroizing;

/// A password under OpaqueString of PRECIS (RFC 8265); one that this profile excludes is used as it is. No debug output shows
/// it.
pub(super) struct Enforced(Zeroizing<Vec<u8>>);

impl Enforced {
    pub(super) fn new(password: &str) -> Self {
        let enforced = OpaqueString::enforce(password).unwrap_or(Cow::Borrowed(password));
        Self(Zeroizing::new(enforced.into_owned().into_bytes()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Enforced(…)")
    }
}
