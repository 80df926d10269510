//! Who may do what.

use std::fs;
use std::time::Duration;

use kendall_curve::KeyDirectory;
use kendall_remote::copy::protocol::CopyOptions;
use kendall_remote::copy::{Access, FilePolicy};
use kendall_remote::{Host, RemoteError, SILENCE_LIMIT, dial};

use crate::fixture::{EVERYTHING, Fixture, names};

const READ_ONLY: FilePolicy = FilePolicy {
    access: Access::ReadOnly,
    allow_owner: false,
    allow_special_bits: false,
    silence_limit: SILENCE_LIMIT,
};

#[test]
fn a_client_that_is_not_admitted_gets_no_answer_and_is_told_what_to_check() {
    let fixture = Fixture::new(EVERYTHING);
    let stranger = KeyDirectory::create(&fixture.path("stranger")).unwrap();
    let no_answer = |host: Host| {
        fixture.run(async {
            let dialled = dial(&host, &stranger).await.unwrap();
            dialled.no_answer().within(Duration::from_millis(700)).await.to_string()
        })
    };
    let error = no_answer(fixture.host().clone());
    assert!(error.contains(&format!("authorised keys? {:?}", stranger.public_key())), "{error}");
    let wrong_key = Host { key: stranger.public_key(), ..fixture.host().clone() };
    assert!(no_answer(wrong_key).contains("does `kendall curve show` print there"));
}

#[test]
fn a_folder_that_is_served_for_downloads_takes_no_upload() {
    let fixture = Fixture::new(READ_ONLY);
    fs::write(fixture.served().join("file"), "file").unwrap();
    fs::write(fixture.path("here/new"), "new").unwrap();
    let error = fixture.upload(&fixture.path("here/new"), "").unwrap_err();
    assert!(matches!(&error, RemoteError::Refused(text) if text.contains("--read-write")), "{error}");
    assert_eq!(fixture.download("file", &fixture.path("here")).unwrap().failed, 0);
    assert_eq!(names(&fixture.served()), ["file"]);
}

#[test]
fn owners_and_special_bits_need_the_consent_of_the_server() {
    let fixture = Fixture::new(FilePolicy { access: Access::ReadWrite, ..READ_ONLY });
    let path = fixture.path("here/new");
    fs::write(&path, "new").unwrap();
    for (options, wanted) in [
        (CopyOptions { owner: true, ..CopyOptions::default() }, "--allow-owner"),
        (CopyOptions { special_bits: true, ..CopyOptions::default() }, "--allow-special-bits"),
    ] {
        let error = fixture.upload_with(&path, "", options).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn sessions_beyond_the_limit_are_refused_with_a_reason() {
    for (most, most_per_key, reason) in
        [(1, 4, "it has 1 sessions already"), (4, 1, "your key has 1 sessions")]
    {
        let fixture = Fixture::with_sessions(EVERYTHING, most, most_per_key);
        fs::write(fixture.served().join("file"), "file").unwrap();
        // A session that has not said what it wants.
        let first = fixture.run(async {
            let (endpoint, mut stream) = fixture.connect().await;
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"\x00").await.unwrap();
            assert!(stream.connection().established().await);
            (endpoint, stream)
        });
        let error = fixture.download("file", &fixture.path("here")).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        drop(first);
        let again = || fixture.download("file", &fixture.path("here")).is_ok();
        kendall_testbed::wait_until("the place is free again", again);
    }
}
