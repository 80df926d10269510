//! Servers that send a client what it has not asked for.

use std::fs;
use std::path::Path;

use kendall_curve::curvecp::{DomainName, Extension, ServerConfig};
use kendall_curve::{Endpoint, KeyDirectory, Stream};
use kendall_remote::copy::protocol::{Message, Metadata, SourcePath};
use kendall_remote::copy::{CopyReport, CopySettings, Progress, download};
use kendall_remote::path::TreePath;
use kendall_remote::{Host, RemoteError, dial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::attacks::{file, place, put_file};
use crate::fixture::{NAME, any, names, runtime};

/// Connects a client to a server that does this with the stream.
pub(crate) fn against<T, F>(
    folder: &Path,
    serve: impl FnOnce(Stream) -> F + Send + 'static,
    client: impl AsyncFnOnce(Stream) -> T,
) -> T
where
    F: Future<Output = ()> + Send,
{
    let keys = KeyDirectory::create(&folder.join("server")).unwrap();
    let me = KeyDirectory::create(&folder.join("me")).unwrap();
    runtime().block_on(async {
        let config =
            ServerConfig::new(keys.secret().clone(), Extension::default(), DomainName::new(NAME).unwrap());
        let server = Endpoint::server(any(), config, keys.nonces().unwrap()).unwrap();
        let address = server.address().to_string();
        tokio::spawn(async move { serve(server.accept().await.unwrap()).await });
        let host = Host { name: NAME.into(), key: keys.public_key(), address, key_directory: None };
        client(dial(&host, &me).await.unwrap().stream).await
    })
}

/// Downloads `wanted` from a server that sends these messages, into a folder `here` beside one `outside`.
fn download_from(
    wanted: &str,
    write: impl FnOnce(&mut Vec<u8>),
) -> (tempfile::TempDir, Result<CopyReport, RemoteError>) {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    fs::create_dir(&here).unwrap();
    fs::create_dir(folder.path().join("outside")).unwrap();
    let mut bytes = Vec::new();
    write(&mut bytes);
    let serve = async move |mut stream: Stream| {
        _ = stream.write_all(&bytes).await;
        _ = stream.shutdown().await;
        while !matches!(stream.read(&mut [0; 1000]).await, Ok(0) | Err(_)) {}
    };
    let report = against(folder.path(), serve, async |stream| {
        let (settings, progress) = (CopySettings::default(), Progress::default());
        download(stream, &[wanted.into()], &here, settings, progress, std::future::pending()).await
    });
    assert_eq!(names(&folder.path().join("outside")), [""; 0]);
    (folder, report)
}

#[test]
fn a_server_cannot_choose_other_names_than_those_asked_for() {
    // The attack of CVE-2019-6111 on scp: `.bashrc` in place of what the user named.
    let (folder, report) = download_from("wanted", |out| {
        let Message::File { metadata, size, .. } = file("x", 0) else { unreachable!() };
        let path = TreePath::new(".bashrc").unwrap();
        Message::File {
            place: SourcePath { root: 1, path },
            metadata,
            size,
            has_links: false,
            resumes: None,
        }
        .encode(out);
        Message::FileEnd(kendall_remote::copy::protocol::FileEnd::Stopped).encode(out);
        put_file(out, "", b"what was wanted");
        Message::Done.encode(out);
    });
    assert_eq!(report.unwrap().failed, 1);
    assert_eq!(names(&folder.path().join("here")), ["wanted"]);
}

#[test]
fn a_server_cannot_write_through_a_link_that_it_plants() {
    let (folder, report) = download_from("wanted", |out| {
        let target = b"../outside".to_vec();
        Message::Symlink { place: place(""), metadata: Metadata::default(), target }.encode(out);
        put_file(out, "planted", b"planted");
        Message::Done.encode(out);
    });
    assert_eq!(report.unwrap().failed, 1);
    assert_eq!(names(&folder.path().join("here")), ["wanted"]);
}

#[test]
fn words_of_a_server_do_not_control_the_terminal() {
    let (_, report) = download_from("wanted", |out| {
        Message::Problem("\x1b]0;owned\x07".into()).encode(out);
        Message::Done.encode(out);
    });
    assert_eq!(report.unwrap().failures, ["\\u{1b}]0;owned\\u{7}"]);
    let (_, report) = download_from("wanted", |out| {
        put_file(out, "", b"x");
    });
    assert!(matches!(report, Err(RemoteError::Lost(_))));
}
