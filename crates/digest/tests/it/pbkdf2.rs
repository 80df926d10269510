//! Every engine of this machine compared with an audited implementation of PBKDF2.

use kendall_digest::{Engine, pbkdf2};
use proptest::prelude::*;
use sha1::Sha1;

fn audited(password: &[u8], salt: &[u8], rounds: u32) -> pbkdf2::Block {
    ::pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, rounds)
}

/// Passwords that are shorter than a block of the digest, as long, and longer.
fn password() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..=64),
        1 => prop::collection::vec(any::<u8>(), 60..=70),
        1 => prop::collection::vec(any::<u8>(), 65..200),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_engine_derives_what_the_audited_one_does(
        passwords in prop::collection::vec(password(), 0..40),
        salt in prop::collection::vec(any::<u8>(), 0..150),
        rounds in 1u32..20,
    ) {
        let expected: Vec<_> = passwords.iter().map(|password| audited(password, &salt, rounds)).collect();
        let passwords: Vec<_> = passwords.iter().map(Vec::as_slice).collect();
        for engine in Engine::ALL {
            prop_assert_eq!(&pbkdf2::derive(engine, &passwords, &salt, rounds), &expected, "{}", engine);
        }
    }
}

#[test]
fn keys_of_the_course_are_derived() {
    let vectors = [
        ("test", 0xbc22_4195_2238_500f_21b2_85fd_b75d_3e77),
        ("abc", 0x7faa_8044_02d0_fa50_ff6c_2491_de3f_f46a),
        ("password", 0x0320_0387_2c3b_35d9_0b88_e7eb_904f_e8a8),
        ("linfoo", 0x7009_a98b_cf88_d54a_2512_efe4_2aa6_fd57_u128),
    ];
    let passwords = vectors.map(|(password, _)| password.as_bytes());
    for engine in Engine::available() {
        let blocks = pbkdf2::derive(engine, &passwords, b" ", 65_536);
        let keys: Vec<_> =
            blocks.iter().map(|block| u128::from_be_bytes(block[..16].try_into().unwrap())).collect();
        assert_eq!(keys, vectors.map(|(_, key)| key), "{engine}");
    }
}
