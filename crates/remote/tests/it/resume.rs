//! Interruptions at any byte: nothing half-written has a file's name, and the next copy continues where the last one ended.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use kendall_remote::RemoteError;
use kendall_remote::copy::protocol::{FileTime, identity};
use kendall_remote::copy::{CopyReport, CopySettings, Progress, download, upload};
use kendall_remote::path::TreePath;
use kendall_testbed::wait_until;
use proptest::prelude::*;

use crate::fixture::{EVERYTHING, Fixture, names};
use crate::tree::kept;

const SIZE: u64 = 24 << 20;

/// A file with bytes that do not repeat, and a hole.
fn large(path: &Path, seed: u64) {
    let file = File::create(path).unwrap();
    let mut bytes = vec![0; 10 << 20];
    let mut state = seed | 1;
    for word in bytes.as_chunks_mut::<8>().0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *word = state.to_le_bytes();
    }
    file.write_all_at(&bytes, 0).unwrap();
    file.write_all_at(&bytes[..8 << 20], SIZE - (8 << 20)).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
}

/// Waits until a copy has gone this far.
async fn reached(progress: &Progress, bytes: u64) {
    while progress.bytes() < bytes {
        tokio::task::yield_now().await;
    }
}

/// Uploads until some bytes were sent.
fn upload_until(fixture: &Fixture, source: &Path, bytes: u64) -> Option<Result<CopyReport, RemoteError>> {
    fixture.run(async {
        let (endpoint, stream) = fixture.connect().await;
        let progress = Progress::default();
        let report = tokio::select! {
            biased;
            () = reached(&progress, bytes) => None,
            report = upload(stream, vec![source.into()], "".into(), CopySettings::default(), progress.clone()) => {
                Some(report)
            }
        };
        endpoint.idle().await;
        report
    })
}

/// Downloads until some bytes have arrived.
fn download_until(fixture: &Fixture, target: &Path, bytes: u64) -> Result<CopyReport, RemoteError> {
    fixture.run(async {
        let (_endpoint, stream) = fixture.connect().await;
        let (settings, progress) = (CopySettings::default(), Progress::default());
        let counted = progress.clone();
        let stop = async move { reached(&counted, bytes).await };
        download(stream, &["large".into()], target, settings, progress, stop).await
    })
}

/// What is in a folder once the copy into it has ended: the file, or a partial one, or nothing; never both.
fn left(folder: &Path) -> Vec<String> {
    let left = names(folder);
    assert!(left.len() <= 1, "{left:?}");
    left
}

/// Whether no copy holds a partial file in this folder any more.
fn is_settled(folder: &Path) -> bool {
    let lock = |name: &String| File::open(folder.join(name)).is_ok_and(|file| file.try_lock().is_ok());
    names(folder).iter().all(lock)
}

#[test]
fn an_upload_goes_on_after_an_interruption_at_any_byte() {
    let config = ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(bytes in 1..SIZE)| {
        let fixture = Fixture::new(EVERYTHING);
        let source = fixture.path("here/large");
        large(&source, 5);
        let interrupted = upload_until(&fixture, &source, bytes);
        wait_until("the server has noticed", || is_settled(&fixture.served()));
        let left = left(&fixture.served());
        if interrupted.is_none() {
            prop_assert!(left.is_empty() || left == ["large"] || left[0].starts_with(".kendall-partial."));
        }
        let report = fixture.upload(&source, "").unwrap();
        prop_assert_eq!((report.failed, report.bytes), (0, SIZE));
        let had_partial = left.first().is_some_and(|name| name != "large");
        prop_assert_eq!(report.resumed_bytes > 0, had_partial);
        prop_assert_eq!(names(&fixture.served()), ["large"]);
        prop_assert_eq!(kept(&fixture.served().join("large")), kept(&source));
    });
}

#[test]
fn a_download_goes_on_after_an_interruption_at_any_byte() {
    let config = ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(bytes in 1..SIZE)| {
        let fixture = Fixture::new(EVERYTHING);
        let (source, here) = (fixture.served().join("large"), fixture.path("here"));
        large(&source, 6);
        let interrupted = download_until(&fixture, &here, bytes);
        let left = left(&here);
        if let Err(error) = interrupted {
            prop_assert!(matches!(error, RemoteError::Interrupted), "{error}");
            prop_assert!(left.is_empty() || left[0].starts_with(".kendall-partial."), "{left:?}");
        }
        let report = fixture.download("large", &here).unwrap();
        let had_partial = left.first().is_some_and(|name| name != "large");
        prop_assert_eq!((report.failed, report.resumed_bytes > 0), (0, had_partial));
        prop_assert_eq!(names(&here), ["large"]);
        prop_assert_eq!(kept(&here.join("large")), kept(&source));
    });
}

#[test]
fn a_partial_file_with_other_content_is_not_continued() {
    let fixture = Fixture::new(EVERYTHING);
    let source = fixture.path("here/large");
    large(&source, 7);
    // Interruptions are not exact: the file may have got through.
    let interrupted = || {
        _ = upload_until(&fixture, &source, 4 << 20);
        wait_until("the server has noticed", || is_settled(&fixture.served()));
        let left = left(&fixture.served());
        left.first().is_some_and(|name| name != "large") || {
            left.iter().for_each(|name| fs::remove_file(fixture.served().join(name)).unwrap());
            false
        }
    };
    assert!((0..50).any(|_| interrupted()), "no copy could be interrupted");
    // The same length and time of change, but other bytes.
    large(&source, 8);
    let report = fixture.upload(&source, "").unwrap();
    assert_eq!((report.failed, report.resumed_bytes), (0, 0));
    assert_eq!(names(&fixture.served()), ["large"]);
    assert_eq!(kept(&fixture.served().join("large")), kept(&source));
}

/// Leaves a partial file of a file in the served folder, as an interrupted copy does.
fn leave_partial(fixture: &Fixture, name: &str, source: &Path, length: usize) {
    let modified = FileTime { s: 1_000_000_000, ns: 0 };
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let path = digits(&blake3::hash(name.as_bytes()).as_bytes()[..8]);
    let identity = digits(&identity(&TreePath::default(), SIZE, modified));
    let content = fs::read(source).unwrap();
    let partial = fixture.served().join(format!(".kendall-partial.{path}.{identity}"));
    fs::write(partial, &content[..length]).unwrap();
}

#[test]
fn of_two_equal_files_one_continues_the_partial_file() {
    let fixture = Fixture::new(EVERYTHING);
    let sources = ["a", "b"].map(|name| fixture.path("here").join(name));
    sources.iter().for_each(|source| large(source, 10));
    leave_partial(&fixture, "a", &sources[0], 5 << 20);
    let report = fixture.upload_all(&sources, "").unwrap();
    assert_eq!((report.failed, report.resumed_bytes), (0, 5 << 20), "{:?}", report.failures);
    assert_eq!(names(&fixture.served()), ["a", "b"]);
    sources.iter().zip(["a", "b"]).for_each(|(source, name)| {
        assert_eq!(kept(&fixture.served().join(name)), kept(source));
    });
}

#[test]
fn several_sources_go_into_a_folder_even_if_one_is_missing() {
    let fixture = Fixture::new(EVERYTHING);
    let (there, missing) = (fixture.path("here/there"), fixture.path("here/missing"));
    fs::write(&there, "content").unwrap();
    fs::write(fixture.served().join("file"), "other").unwrap();
    let report = fixture.upload_all(&[there.clone(), missing.clone()], "inbox").unwrap();
    assert_eq!((report.entries, report.failed), (1, 1));
    assert_eq!(names(&fixture.served().join("inbox")), ["there"]);
    assert!(fixture.upload_all(&[there, missing], "file").is_err(), "it is not a folder");
    assert_eq!(fs::read(fixture.served().join("file")).unwrap(), b"other");
}

#[test]
fn a_server_that_ends_during_a_copy_leaves_what_can_be_continued() {
    let mut fixture = Fixture::new(EVERYTHING);
    let source = fixture.path("here/large");
    large(&source, 9);
    let progress = Progress::default();
    let (counted, served) = (progress.clone(), fixture.served());
    let (stream, endpoint) = fixture.run(async {
        let (endpoint, stream) = fixture.connect().await;
        (stream, endpoint)
    });
    let sources = vec![source];
    let runtime = crate::fixture::runtime();
    let sending = runtime
        .spawn(async move { upload(stream, sources, "".into(), CopySettings::default(), progress).await });
    wait_until("the copy has begun", || counted.bytes() > 1 << 20);
    fixture.stop();
    let sent = runtime.block_on(sending).unwrap();
    drop(endpoint);
    let left = left(&served);
    match sent {
        Ok(_) => assert_eq!(left, ["large"]),
        Err(error) => assert!(matches!(error, RemoteError::Lost(_)), "{error}"),
    }
}
