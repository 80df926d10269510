//! What must hold for any files of hosts and of admitted keys.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use kendall_curve::curvecp::PublicKey;
use kendall_testbed::fuzz::with_file;

use crate::authorized::AuthorizedKeys;
use crate::hosts::{Hosts, public_key};

/// A host has an address for its name, or the file is an error in words.
pub(super) fn hosts(input: &[u8]) {
    with_file("hosts.toml", input, |path| match Hosts::open(path) {
        Ok(hosts) => assert!(hosts.get("none such").is_err()),
        Err(error) => assert!(!error.to_string().is_empty()),
    });
}

pub(super) fn host_seeds() -> Vec<Vec<u8>> {
    let key = "07".repeat(32);
    let host =
        format!("[backup]\nname = \"server.example\"\nkey = \"{key}\"\naddress = \"192.0.2.7:10000\"\n");
    vec![(host + "key-directory = \"/home/ann/key\"\n").into()]
}

/// A key that is admitted has a name, and there are no more keys than lines.
pub(super) fn keys(input: &[u8]) {
    with_file("authorized", input, |path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("the file is there");
        let Ok(keys) = AuthorizedKeys::open(path) else { return };
        assert!(keys.count() <= input.split(|byte| *byte == b'\n').count());
        let admitted = keys.client(&PublicKey([7; 32]));
        assert!(
            admitted.is_none_or(
                |client| !client.name.is_empty() && client.user.is_none_or(|user| !user.is_empty())
            )
        );
    });
    if let Some(key) = std::str::from_utf8(input).ok().and_then(public_key) {
        assert_eq!(public_key(&format!("{key:?}")), Some(key));
    }
}

pub(super) fn key_seeds() -> Vec<Vec<u8>> {
    let key = "07".repeat(32);
    vec![format!("# clients\n\n{key} ann's laptop\n{} user=bob b\n", "ab".repeat(32)).into(), key.into()]
}
