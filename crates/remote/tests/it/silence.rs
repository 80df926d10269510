//! A peer whose machine answers and whose program does not: it hangs, or is stopped, at each stage of a copy.

use std::fs;
use std::time::Duration;

use kendall_curve::Stream;
use kendall_remote::RemoteError;
use kendall_remote::copy::protocol::{CopyOptions, Message, Wanted};
use kendall_remote::copy::{CopySettings, FilePolicy, Progress, download, upload};
use kendall_remote::frame;
use kendall_remote::opening::{ALIVE, Hello, Service, VERSION};
use kendall_testbed::wait_until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use crate::attacks::{file, put_file};
use crate::fixture::{EVERYTHING, Fixture, names};
use crate::hostile_server::against;

const LIMIT: Duration = Duration::from_secs(2);

fn request(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    Hello { version: VERSION, service: Service::Copy }.encode(&mut bytes);
    message.encode(&mut bytes);
    bytes
}

fn put() -> Message {
    Message::Put { options: CopyOptions::default(), target: Vec::new(), names: vec![b"new".to_vec()] }
}

#[test]
fn a_client_that_hangs_loses_its_session_at_each_stage() {
    // The only session at a time: the server serves again once the one that hangs has ended.
    let policy = FilePolicy { silence_limit: LIMIT, ..EVERYTHING };
    let fixture = Fixture::with_sessions(policy, 1, 1);
    fs::write(fixture.served().join("old"), "old").unwrap();
    let after_request = request(&put());
    let mut within_a_file = after_request.clone();
    file("", 9).encode(&mut within_a_file);
    let wanted = Wanted::new(b"old").unwrap();
    let before_its_list = request(&Message::Get { options: CopyOptions::default(), wanted: vec![wanted] });
    for (stage, bytes) in [
        ("after its request", after_request),
        ("within a file", within_a_file),
        ("before its list of partial files", before_its_list),
    ] {
        let ended = fixture.run(async {
            let (_endpoint, mut stream) = fixture.connect().await;
            stream.write_all(&bytes).await.unwrap();
            // The connection stays, but nothing is sent.
            let read =
                tokio::time::timeout(Duration::from_secs(50), stream.read_to_end(&mut Vec::new())).await;
            read.is_ok()
        });
        assert!(ended, "the session of a client that hangs {stage} goes on");
        let copied = fixture.path("here/old");
        assert_eq!(fixture.download("old", &copied).unwrap().failed, 0, "{stage}");
        fs::remove_file(copied).unwrap();
    }
    wait_until("nothing half-written is left", || names(&fixture.served()) == ["old"]);
}

#[test]
fn a_client_that_is_slow_and_says_so_keeps_its_session() {
    let fixture = Fixture::new(FilePolicy { silence_limit: LIMIT, ..EVERYTHING });
    let answer = fixture.run(async {
        let (_endpoint, mut stream) = fixture.connect().await;
        stream.write_all(&request(&put())).await.unwrap();
        for _ in 0..6 {
            sleep(LIMIT / 2).await;
            let mut sign = Vec::new();
            frame::append(&mut sign, ALIVE, &[]);
            stream.write_all(&sign).await.unwrap();
        }
        let mut rest = Vec::new();
        put_file(&mut rest, "", b"slow");
        Message::Done.encode(&mut rest);
        stream.write_all(&rest).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer).await;
        answer
    });
    assert_eq!(fs::read_to_string(fixture.served().join("new")).unwrap(), "slow", "{answer:?}");
}

#[test]
fn a_server_that_hangs_is_an_error_that_says_so() {
    let settings = CopySettings { silence_limit: LIMIT, ..CopySettings::default() };
    // Its program reads, so the stream itself does not block, and never answers.
    let hang =
        async |mut stream: Stream| while !matches!(stream.read(&mut [0; 1000]).await, Ok(0) | Err(_)) {};
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    fs::write(&new, "new").unwrap();
    let sent = against(folder.path(), hang, async |stream| {
        upload(stream, vec![new], Vec::new(), settings, Progress::default()).await
    });
    assert!(matches!(sent, Err(RemoteError::Silent(_))), "{sent:?}");
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    let received = against(folder.path(), hang, async |stream| {
        let never = std::future::pending();
        download(stream, &[b"old".to_vec()], &here, settings, Progress::default(), never).await
    });
    let said = received.unwrap_err().to_string();
    assert!(said.starts_with("the peer has sent nothing for 2 s: its program hangs"), "{said}");
    assert!(!here.exists(), "nothing half-written is left");
}
