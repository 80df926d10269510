//! The messages of a copy: every one survives encoding, and no bytes make a decoder panic.

use kendall_remote::copy::protocol::{
    CopyOptions, FileEnd, FileTime, Message, Metadata, Partial, SourcePath, Wanted,
};
use kendall_remote::frame::HEADER;
use kendall_remote::path::TreePath;
use proptest::collection::vec;
use proptest::prelude::*;

fn path() -> impl Strategy<Value = TreePath> {
    let name = vec(1..=255_u8, 1..9).prop_map(|name| {
        let name: Vec<u8> = name.into_iter().map(|byte| if byte == b'/' { b'x' } else { byte }).collect();
        if matches!(&name[..], b"." | b"..") { b"dots".to_vec() } else { name }
    });
    vec(name, 0..4).prop_map(|names| TreePath::new(names.join(&b'/')).unwrap())
}

fn place() -> impl Strategy<Value = SourcePath> {
    (any::<u16>(), path()).prop_map(|(root, path)| SourcePath { root, path })
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let time = || (any::<i64>(), 0..1_000_000_000_u32).prop_map(|(s, ns)| FileTime { s, ns });
    (0..0o10000_u16, any::<u32>(), any::<u32>(), time(), time())
        .prop_map(|(mode, uid, gid, accessed, modified)| Metadata { mode, uid, gid, accessed, modified })
}

fn options() -> impl Strategy<Value = CopyOptions> {
    any::<[bool; 4]>().prop_map(|[owner, special_bits, sync, count]| CopyOptions {
        owner,
        special_bits,
        sync,
        count,
    })
}

fn message() -> impl Strategy<Value = Message> {
    let bytes = || vec(any::<u8>(), 0..20);
    let wanted = path().prop_flat_map(|path| {
        any::<bool>().prop_map(move |content| {
            let is_content = content || path.is_empty();
            Wanted { path: path.clone(), is_content }
        })
    });
    let partial = (any::<[u8; 8]>(), any::<u64>(), any::<[u8; 32]>())
        .prop_map(|(identity, length, digest)| Partial { identity, length, digest });
    prop_oneof![
        (options(), bytes(), vec(bytes(), 1..4)).prop_map(|(options, target, names)| Message::Put {
            options,
            target,
            names
        }),
        (options(), vec(wanted, 1..4)).prop_map(|(options, wanted)| Message::Get { options, wanted }),
        vec(partial, 0..4).prop_map(Message::Have),
        (any::<u64>(), any::<u64>()).prop_map(|(entries, bytes)| Message::Total { entries, bytes }),
        (place(), metadata()).prop_map(|(place, metadata)| Message::Folder { place, metadata }),
        (place(), metadata(), 0..u64::MAX / 2, any::<bool>(), any::<Option<u16>>()).prop_map(
            |(place, metadata, size, has_links, resumes)| Message::File {
                place,
                metadata,
                size,
                has_links,
                resumes
            }
        ),
        any::<u64>().prop_map(Message::Hole),
        any::<[u8; 32]>().prop_map(|digest| Message::FileEnd(FileEnd::Whole(digest))),
        ".{0,9}".prop_map(|text| Message::FileEnd(FileEnd::Broken(text))),
        Just(Message::FileEnd(FileEnd::Stopped)),
        (place(), metadata(), bytes()).prop_map(|(place, metadata, target)| Message::Symlink {
            place,
            metadata,
            target
        }),
        (place(), any::<u64>()).prop_map(|(place, of)| Message::HardLink { place, of }),
        ".{0,9}".prop_map(Message::Problem),
        Just(Message::Done),
        (any::<u64>(), ".{0,9}").prop_map(|(entry, text)| Message::Failed { entry, text }),
        (any::<u64>(), any::<u64>()).prop_map(|(entries, failed)| Message::Finished { entries, failed }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_decoded_as_it_was_encoded(message in message()) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        prop_assert_eq!(Message::decode(bytes[4], &bytes[HEADER..]), Ok(message.clone()));
        // A message that ends early, or goes on, is not valid.
        if bytes.len() > HEADER && !matches!(message, Message::Have(_)) {
            prop_assert!(Message::decode(bytes[4], &bytes[HEADER..bytes.len() - 1]).is_err());
        }
        bytes.push(0);
        prop_assert!(Message::decode(bytes[4], &bytes[HEADER..]).is_err());
    }
}
