//! What must hold for any bytes that a peer of a copy sends.

use crate::copy::protocol::{
    CopyOptions, DATA, FileEnd, FileTime, Message, Metadata, Partial, SourcePath, Wanted,
};
use crate::frame::{self, Frame, FrameDecoder};
use crate::opening::{Hello, Service, VERSION};
use crate::path::TreePath;

/// Reads a stream that arrives in pieces, whose length the first byte says. What is accepted is encoded to the same bytes.
pub(super) fn run(input: &[u8]) {
    let Some((piece, stream)) = input.split_first() else { return };
    let mut decoder = FrameDecoder::new(DATA);
    for mut piece in stream.chunks(usize::from(*piece).max(1)) {
        loop {
            match decoder.next(&mut piece) {
                Ok(Some(Frame::Whole { kind, body })) => check(kind, body),
                Ok(Some(Frame::Data(_))) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

fn check(kind: u8, body: &[u8]) {
    _ = Hello::decode(kind, body);
    let Ok(message) = Message::decode(kind, body) else { return };
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    let mut rest = &bytes[..];
    let mut decoder = FrameDecoder::new(DATA);
    let Ok(Some(Frame::Whole { kind, body })) = decoder.next(&mut rest) else {
        panic!("{message:?} has a frame")
    };
    assert_eq!(Message::decode(kind, body), Ok(message));
}

/// Streams with every kind of message.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let place = SourcePath { root: 1, path: TreePath::new("a/b").expect("it is valid") };
    let metadata = Metadata { mode: 0o755, modified: FileTime { s: -1, ns: 9 }, ..Metadata::default() };
    let options = CopyOptions { sync: true, ..CopyOptions::default() };
    let wanted = vec![Wanted::new(b"a/.").expect("it is valid"), Wanted::new(b"b").expect("it is valid")];
    let (target, names) = (b"t/".to_vec(), vec![b"n\xff".to_vec(), Vec::new()]);
    let symlink = Message::Symlink { place: place.clone(), metadata, target: b"../x".to_vec() };
    let requests = [
        Message::Put { options, target, names },
        Message::Get { options, wanted },
        Message::Have(vec![Partial { identity: [1; 8], length: 2, digest: [3; 32] }]),
    ];
    let entries = [
        Message::Total { entries: 4, bytes: 5 },
        Message::Folder { place: place.clone(), metadata },
        Message::File { place: place.clone(), metadata, size: 6, has_links: true, resumes: Some(7) },
        Message::Hole(8),
        Message::FileEnd(FileEnd::Whole([9; 32])),
        Message::FileEnd(FileEnd::Broken("text".into())),
        Message::FileEnd(FileEnd::Stopped),
        symlink,
        Message::HardLink { place, of: 10 },
        Message::Problem("text".into()),
        Message::Done,
        Message::Failed { entry: 11, text: "text".into() },
        Message::Finished { entries: 12, failed: 13 },
    ];
    let stream = |messages: &[Message]| {
        let mut bytes = vec![20];
        Hello { version: VERSION, service: Service::Copy }.encode(&mut bytes);
        messages.iter().for_each(|message| message.encode(&mut bytes));
        frame::append(&mut bytes, DATA, b"some bytes of a file");
        bytes
    };
    vec![stream(&requests), stream(&entries)]
}
