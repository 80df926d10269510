//! Passwords as the same bytes on every keyboard.

use std::borrow::Cow;
use std::fmt;

use precis_profiles::OpaqueString;
use precis_profiles::precis_core::profile::PrecisFastInvocation;

/// A password under OpaqueString of PRECIS (RFC 8265); one that this profile excludes is used as it is. No debug output shows
/// it.
pub(super) struct Enforced(Vec<u8>);

impl Enforced {
    pub(super) fn new(password: &str) -> Self {
        let enforced = OpaqueString::enforce(password).unwrap_or(Cow::Borrowed(password));
        Self(enforced.as_bytes().to_vec())
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

impl Drop for Enforced {
    fn drop(&mut self) {
        // Best effort, without unsafe code: the compiler could remove it, and the allocation may have moved before.
        self.0.fill(0);
        std::hint::black_box(&self.0);
    }
}
