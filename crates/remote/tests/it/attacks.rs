//! Clients that do not keep to the protocol, or try to leave the served folder.

use std::fs;
use std::os::unix::fs::symlink;

use kendall_remote::copy::protocol::{CopyOptions, DATA, FileEnd, FileTime, Message, Metadata, SourcePath};
use kendall_remote::frame;
use kendall_remote::opening::{Hello, Service, VERSION};
use kendall_remote::path::TreePath;
use kendall_testbed::wait_until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{EVERYTHING, Fixture, names};

pub(crate) fn place(path: &str) -> SourcePath {
    SourcePath { root: 0, path: TreePath::new(path).unwrap() }
}

fn hello(version: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    Hello { version, service: Service::Copy }.encode(&mut bytes);
    bytes
}

/// An upload of the content of a folder to the served folder, as far as the request.
fn opening() -> Vec<u8> {
    let mut bytes = hello(VERSION);
    let (options, target, names) = (CopyOptions::default(), Vec::new(), vec![Vec::new()]);
    Message::Put { options, target, names }.encode(&mut bytes);
    bytes
}

pub(crate) fn file(path: &str, size: u64) -> Message {
    let metadata = Metadata { mode: 0o644, modified: FileTime { s: 7, ns: 7 }, ..Metadata::default() };
    Message::File { place: place(path), metadata, size, has_links: false, resumes: None }
}

pub(crate) fn put_file(out: &mut Vec<u8>, path: &str, content: &[u8]) {
    file(path, content.len() as u64).encode(out);
    frame::append(out, DATA, content);
    Message::FileEnd(FileEnd::Whole(*blake3(content))).encode(out);
}

/// The digest that a receiver expects, as it is of the crate's own sender.
fn blake3(content: &[u8]) -> Box<[u8; 32]> {
    Box::new(*::blake3::hash(content).as_bytes())
}

/// Sends bytes, and returns what the server answers until it ends its stream.
fn answer(fixture: &Fixture, bytes: &[u8]) -> String {
    fixture.run(async {
        let (_endpoint, mut stream) = fixture.connect().await;
        // A server that has had enough ends the connection.
        _ = stream.write_all(bytes).await;
        _ = stream.shutdown().await;
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    })
}

/// Uploads these messages.
fn send(fixture: &Fixture, write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = opening();
    write(&mut bytes);
    let answer = answer(fixture, &bytes);
    // Data may be on its way to the disk still.
    wait_until("the session is over", || {
        !names(&fixture.served()).iter().any(|name| name.starts_with(".kendall"))
    });
    assert_eq!(names(&fixture.path("outside")), ["secret"], "{answer}");
    assert_eq!(fs::read_to_string(fixture.path("outside/secret")).unwrap(), "secret");
    answer
}

fn fixture() -> Fixture {
    let fixture = Fixture::new(EVERYTHING);
    fs::write(fixture.path("outside/secret"), "secret").unwrap();
    fixture
}

/// The frame of a file whose path is not valid.
fn raw_path(out: &mut Vec<u8>, path: &str) {
    let mut frame = Vec::new();
    file(&"x".repeat(path.len()), 0).encode(&mut frame);
    let at = frame.windows(path.len()).position(|part| part.iter().all(|byte| *byte == b'x')).unwrap();
    frame[at..at + path.len()].copy_from_slice(path.as_bytes());
    out.extend(frame);
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let fixture = fixture();
    for path in ["../outside/new", "/etc/new", "a/../../outside/new", "..", "./new", "a//new"] {
        send(&fixture, |out| {
            raw_path(out, path);
            Message::FileEnd(FileEnd::Whole(*blake3(b""))).encode(out);
            Message::Done.encode(out);
        });
        assert_eq!(names(&fixture.served()), [""; 0], "{path}");
    }
    let mut bytes = hello(VERSION);
    let (options, names_) = (CopyOptions::default(), vec![b"a".to_vec()]);
    Message::Put { options, target: b"../outside/".to_vec(), names: names_ }.encode(&mut bytes);
    assert!(answer(&fixture, &bytes).contains("without \"..\""));
}

#[test]
fn names_of_sources_are_single_names() {
    let fixture = fixture();
    for name in ["../outside", "a/b", "..", "/etc", ".kendall-partial.x"] {
        let mut bytes = hello(VERSION);
        let options = CopyOptions::default();
        let put = Message::Put { options, target: Vec::new(), names: vec![name.into(), b"other".to_vec()] };
        put.encode(&mut bytes);
        put_file(&mut bytes, "", b"planted");
        Message::Done.encode(&mut bytes);
        answer(&fixture, &bytes);
        assert_eq!(names(&fixture.served()), [""; 0], "{name}");
        assert_eq!(names(&fixture.path("outside")), ["secret"]);
    }
}

#[test]
fn links_that_a_client_plants_are_not_followed() {
    let fixture = fixture();
    let outside = fixture.path("outside").into_os_string().into_encoded_bytes();
    let link = |out: &mut Vec<u8>, path: &str, target: &[u8]| {
        let (place, metadata) = (place(path), Metadata::default());
        Message::Symlink { place, metadata, target: target.to_vec() }.encode(out);
    };
    let answer = send(&fixture, |out| {
        link(out, "absolute", &outside);
        link(out, "relative", b"../outside");
        put_file(out, "absolute/new", b"planted");
        put_file(out, "relative/new", b"planted");
        // A folder of the same name must not turn the link into one.
        Message::Folder { place: place("absolute"), metadata: Metadata::default() }.encode(out);
        put_file(out, "absolute/secret", b"planted");
        // Links are replaced, not written through.
        link(out, "secret", b"../outside/secret");
        put_file(out, "secret", b"planted");
        Message::Done.encode(out);
    });
    assert!(answer.contains("cannot write absolute/new"), "{answer}");
    assert!(answer.contains("cannot write relative/new"), "{answer}");
    assert!(answer.contains("cannot write absolute:"), "{answer}");
    assert!(!fixture.served().join("secret").is_symlink());
}

#[test]
fn a_hard_link_is_only_to_a_file_of_the_same_copy() {
    let fixture = fixture();
    symlink("../outside", fixture.served().join("link")).unwrap();
    for of in [0, 1, u64::MAX] {
        let answer = send(&fixture, |out| {
            put_file(out, "file", b"file");
            Message::HardLink { place: place("hard"), of }.encode(out);
            Message::Done.encode(out);
        });
        assert!(answer.contains("the file that it links to failed"), "{answer}");
    }
    assert_eq!(names(&fixture.served()), ["file", "link"]);
}

#[test]
fn content_that_is_not_as_announced_is_not_put_in_place() {
    let fixture = fixture();
    let answer = send(&fixture, |out| {
        file("damaged", 4).encode(out);
        frame::append(out, DATA, b"good");
        Message::FileEnd(FileEnd::Whole(*blake3(b"evil"))).encode(out);
        file("short", 9).encode(out);
        frame::append(out, DATA, b"good");
        Message::FileEnd(FileEnd::Whole(*blake3(b"good"))).encode(out);
        Message::Done.encode(out);
    });
    assert!(
        answer.contains("damaged arrived damaged") && answer.contains("short arrived damaged"),
        "{answer}"
    );
    send(&fixture, |out| {
        file("long", 3).encode(out);
        frame::append(out, DATA, b"more than three bytes");
    });
    send(&fixture, |out| {
        file("hole", 3).encode(out);
        Message::Hole(u64::MAX).encode(out);
    });
    assert_eq!(names(&fixture.served()), [""; 0]);
}

#[test]
fn messages_out_of_order_end_the_session_and_leave_nothing() {
    let fixture = fixture();
    let write: [fn(&mut Vec<u8>); 8] = [
        |out| frame::append(out, DATA, b"no file"),
        |out| Message::FileEnd(FileEnd::Stopped).encode(out),
        |out| Message::Hole(1).encode(out),
        |out| {
            file("a", 9).encode(out);
            file("b", 9).encode(out);
        },
        |out| {
            file("a", 9).encode(out);
            Message::Done.encode(out);
        },
        |out| Message::Have(Vec::new()).encode(out),
        |out| out.extend_from_slice(&[255; 5]),
        |out| {
            let Message::File { place, metadata, size, .. } = file("a", 9) else { unreachable!() };
            Message::File { place, metadata, size, has_links: true, resumes: Some(3) }.encode(out);
        },
    ];
    for (number, write) in write.into_iter().enumerate() {
        send(&fixture, write);
        assert_eq!(names(&fixture.served()), [""; 0], "{number}");
    }
    // The server serves on.
    fs::write(fixture.path("here/new"), "new").unwrap();
    assert_eq!(fixture.upload(&fixture.path("here/new"), "").unwrap().failed, 0);
}

#[test]
fn links_in_the_served_folder_do_not_lead_a_download_out_of_it() {
    let fixture = fixture();
    symlink(fixture.path("outside"), fixture.served().join("link")).unwrap();
    for path in ["link/secret", "link/.", "link/"] {
        let report = fixture.download(path, &fixture.path("here")).unwrap();
        // What a link points to is not read; the link itself may be copied.
        let copied = names(&fixture.path("here"));
        assert!(report.failed == 1 || copied == ["link"], "{path}: {report:?} {copied:?}");
        assert!(!fixture.path("here/secret").exists(), "{path}");
    }
    assert!(fixture.download("../outside/secret", &fixture.path("here")).is_err());
}

#[test]
fn other_versions_and_services_are_refused_by_name() {
    let fixture = fixture();
    assert!(answer(&fixture, &hello(VERSION + 1)).contains("run the same version of kendall on both sides"));
    let mut bytes = Vec::new();
    Hello { version: VERSION, service: Service::Unknown(99) }.encode(&mut bytes);
    assert!(answer(&fixture, &bytes).contains("this server serves files only"));
    assert!(answer(&fixture, b"GET / HTTP/1.1\r\n\r\n").contains("frame of"));
}
