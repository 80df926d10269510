//! X25519 by the fastest well-kept crate that runs on this processor.
//!
//! A server's CPU per handshake is three multiplications of a point and one of the base point. Measured side by side on
//! one machine under load (µs): x25519-dalek 3.0 91 and 27, dryoc 2.0 59 and 27, graviola 0.4 37 and 8.
//! aws-lc matches graviola, but needs a C compiler; graviola builds with rustc alone and takes its assembly from
//! s2n-bignum, which is formally verified. It needs instructions that an old processor lacks; dalek runs there.

use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// The public key of `secret`.
pub(crate) fn public_key(secret: &[u8; 32]) -> [u8; 32] {
    #[cfg(target_arch = "x86_64")]
    if has_graviola() {
        return graviola::key_agreement::x25519::StaticPrivateKey::from_array(secret).public_key().as_bytes();
    }
    portable_public_key(secret)
}

/// The secret shared by `secret` and the owner of `peer`; `None` where it is zero, which a peer can force with a point
/// of low order.
pub(crate) fn shared(secret: &[u8; 32], peer: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    #[cfg(target_arch = "x86_64")]
    if has_graviola() {
        use graviola::key_agreement::x25519::{PublicKey, StaticPrivateKey};
        let shared =
            StaticPrivateKey::from_array(secret).diffie_hellman(&PublicKey::from_array(peer)).ok()?;
        return Some(Zeroizing::new(shared.0));
    }
    portable_shared(secret, peer)
}

fn portable_public_key(secret: &[u8; 32]) -> [u8; 32] {
    PublicKey::from(&StaticSecret::from(*secret)).to_bytes()
}

fn portable_shared(secret: &[u8; 32], peer: &[u8; 32]) -> Option<Zeroizing<[u8; 32]>> {
    let shared = StaticSecret::from(*secret).diffie_hellman(&PublicKey::from(*peer));
    shared.was_contributory().then(|| Zeroizing::new(shared.to_bytes()))
}

/// What graviola requires of a processor; it panics on others.
#[cfg(target_arch = "x86_64")]
fn has_graviola() -> bool {
    is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("adx")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_crates_agree_on_any_bytes(secret: [u8; 32], peer: [u8; 32]) {
            prop_assert_eq!(public_key(&secret), portable_public_key(&secret));
            prop_assert_eq!(shared(&secret, &peer), portable_shared(&secret, &peer));
        }
    }

    #[test]
    fn points_of_low_order_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        let mut p_minus_1 = [0xff; 32];
        (p_minus_1[0], p_minus_1[31]) = (0xec, 0x7f);
        for point in [[0; 32], one, p_minus_1] {
            assert_eq!(shared(&[7; 32], &point), None);
            assert_eq!(portable_shared(&[7; 32], &point), None);
        }
    }
}
