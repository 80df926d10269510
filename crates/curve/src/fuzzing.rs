//! What must hold for any files of a key directory.

use std::fs;

use kendall_testbed::fuzz::{Script, Target};

use crate::KeyDirectory;
use crate::key_files::SECRETS;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[Target { name: "curve-keys", seeds, run }];

/// Both keys, each with its length before it: a directory is opened where they have their length and are a pair.
fn run(input: &[u8]) {
    let folder = kendall_testbed::tempdir().expect("there is a folder for temporary files");
    let mut script = Script(input);
    let mut key = || {
        let length = script.number(1) as usize;
        script.bytes(length)
    };
    let (secret, public) = (key(), key());
    let secrets = folder.path().join(SECRETS);
    fs::create_dir(&secrets).expect("the folder is writable");
    fs::write(secrets.join("secretkey"), secret).expect("the folder is writable");
    fs::write(folder.path().join("publickey"), public).expect("the folder is writable");
    match KeyDirectory::open(folder.path()) {
        Ok(keys) => assert!(secret.len() == 32 && keys.public_key().0 == *public),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let secret = crate::curvecp::SecretKey::from_bytes([7; 32]);
    let pair = [&[32][..], &[7; 32], &[32], &secret.public_key().0].concat();
    vec![pair, [&[31][..], &[7; 31], &[33], &[8; 33]].concat()]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
