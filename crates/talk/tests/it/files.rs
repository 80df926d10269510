//! Files in talks on the loopback interface.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use kendall_talk::{Command, Event, FileId, Outcome, PeerTransport, Side, Upload};
use kendall_testbed::tempdir;
use tokio::sync::watch;

use crate::peers::{TALK, User, introduce, meet};
use crate::talks::{BOTH, any, met};

/// A file without a pattern that a shift would keep.
fn make(path: &Path, size: usize) -> Vec<u8> {
    let bytes: Vec<u8> =
        (0..size as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
    fs::write(path, &bytes).unwrap();
    bytes
}

async fn pair(transport: PeerTransport) -> [User; 2] {
    let ([(first, _), (second, _)], _) = met(transport).await;
    [first, second].map(|stream| User::new(Side::new(TALK), stream))
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

async fn kept(user: &mut User) -> std::path::PathBuf {
    match user.find(|event| matches!(event, Event::Kept { .. } | Event::FileFailed { .. })).await {
        Event::Kept { path, .. } => path,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn files_arrive_whole_while_messages_flow_and_none_takes_anothers_place() {
    for transport in BOTH {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        let [mut ann, mut bob] = pair(transport).await;
        let path = from.path().join("photo.raw");
        let bytes = make(&path, 20_000_000);
        let file = ann.hand(Upload::open(&path).unwrap(), &mut bob, to.path()).await;
        // What is said now has not to wait for the file.
        bob.find(|event| matches!(event, Event::Progress { .. })).await;
        ann.say("do you see it?").await;
        assert_eq!(bob.hear(1).await, ["do you see it?"]);
        let first = kept(&mut bob).await;
        assert!(fs::read(&first).unwrap() == bytes);
        ann.see(Event::Settled { file: FileId::Own(file), outcome: Outcome::Whole }).await;
        ann.hand(Upload::open(&path).unwrap(), &mut bob, to.path()).await;
        assert_eq!(kept(&mut bob).await, to.path().join("photo (2).raw"));
        File::create(from.path().join("empty")).unwrap();
        bob.hand(Upload::open(&from.path().join("empty")).unwrap(), &mut ann, to.path()).await;
        assert_eq!(kept(&mut ann).await, to.path().join("empty"));
        assert_eq!(names(to.path()), ["empty", "photo (2).raw", "photo.raw"]);
    }
}

#[tokio::test]
async fn a_file_goes_on_over_another_connection_where_it_was_cut() {
    for transport in BOTH {
        go_on(transport).await;
    }
}

async fn go_on(transport: PeerTransport) {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("film");
    let bytes = make(&path, 6_000_000);
    // By the relay alone, whose rate makes the break come while the file is on its way.
    let introduction = introduce(any()).await;
    let (unknown, nothing) = watch::channel(Vec::new());
    let join = |side| meet(transport, side, any(), nothing.clone(), introduction.address);
    let (first, second) = tokio::join!(join(0), join(1));
    let ann = User::new(Side::new(TALK), first.unwrap().0);
    let mut bob = User::new(Side::new(TALK), second.unwrap().0);
    let file = ann.hand(Upload::open(&path).unwrap(), &mut bob, to.path()).await;
    let is_moving = |event: Event| matches!(event, Event::Progress { bytes: 1.., .. });
    bob.find(is_moving).await;
    introduction.handle.close(introduction.pair.replace(None).unwrap());
    let ((ann, ..), (bob, ..)) = tokio::join!(ann.end(), bob.end());
    assert!(!names(to.path()).contains(&"film".to_owned()), "the break came too late");
    introduction.open();
    let (first, second) = tokio::join!(join(0), join(1));
    let (mut ann, mut bob) = (User::new(ann, first.unwrap().0), User::new(bob, second.unwrap().0));
    // The first thing that ann learns is how much there was.
    let Event::Progress { bytes: there, .. } =
        ann.find(|event| matches!(event, Event::Progress { .. })).await
    else {
        unreachable!("it was found")
    };
    assert!(there > 0);
    assert!(fs::read(kept(&mut bob).await).unwrap() == bytes);
    ann.see(Event::Settled { file: FileId::Own(file), outcome: Outcome::Whole }).await;
    drop(unknown);
}

#[tokio::test]
async fn what_is_refused_or_cannot_be_kept_leaves_nothing() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let [mut ann, mut bob] = pair(PeerTransport::CurveCp).await;
    // No disk has so much.
    let huge = from.path().join("huge");
    File::create(&huge).unwrap().set_len(1 << 43).unwrap();
    let settled = |file, outcome| Event::Settled { file, outcome };

    let file = ann.hand(Upload::open(&huge).unwrap(), &mut bob, to.path()).await;
    let failed = bob.find(|event| matches!(event, Event::FileFailed { .. })).await;
    assert!(matches!(failed, Event::FileFailed { ref why, .. } if why.contains("bytes left")), "{failed:?}");
    ann.see(settled(FileId::Own(file), Outcome::Failed)).await;

    ann.commands.send(Command::Offer(Upload::open(&huge).unwrap())).await.unwrap();
    let offered = bob.find(|event| matches!(event, Event::Offered { .. })).await;
    let Event::Offered { file, .. } = offered else { unreachable!("it was found") };
    bob.commands.send(Command::Cancel(FileId::Peer(file))).await.unwrap();
    ann.see(settled(FileId::Own(file), Outcome::Refused)).await;

    // Taken back, before it is taken and while it is on its way.
    ann.commands.send(Command::Offer(Upload::open(&huge).unwrap())).await.unwrap();
    bob.find(|event| matches!(event, Event::Offered { .. })).await;
    ann.commands.send(Command::Cancel(FileId::Own(file + 1))).await.unwrap();
    bob.see(settled(FileId::Peer(file + 1), Outcome::Withdrawn)).await;
    // It takes far longer than a command, and any disk has so much left.
    let large = from.path().join("large");
    File::create(&large).unwrap().set_len(1 << 29).unwrap();
    let file = ann.hand(Upload::open(&large).unwrap(), &mut bob, to.path()).await;
    bob.find(|event| matches!(event, Event::Progress { .. })).await;
    ann.commands.send(Command::Cancel(FileId::Own(file))).await.unwrap();
    bob.see(settled(FileId::Peer(file), Outcome::Withdrawn)).await;

    // It becomes shorter while it is read.
    let shrinking = from.path().join("shrinking");
    make(&shrinking, 100_000);
    let upload = Upload::open(&shrinking).unwrap();
    File::options().write(true).open(&shrinking).unwrap().set_len(50_000).unwrap();
    let file = ann.hand(upload, &mut bob, to.path()).await;
    ann.see(Event::FileFailed { file: FileId::Own(file), why: "it has become shorter".to_owned() }).await;
    bob.see(settled(FileId::Peer(file), Outcome::Withdrawn)).await;

    // The end of the talk ends what is on its way.
    let file = ann.hand(Upload::open(&large).unwrap(), &mut bob, to.path()).await;
    bob.find(|event| matches!(event, Event::Progress { .. })).await;
    bob.commands.send(Command::Leave).await.unwrap();
    let ended = |file| Event::FileFailed { file, why: "the talk has ended".to_owned() };
    ann.see(ended(FileId::Own(file))).await;
    bob.see(ended(FileId::Peer(file))).await;
    // The threads that write have their own time to remove what they wrote.
    drop((ann.end().await, bob.end().await));
    kendall_testbed::wait_until("nothing is left", || names(to.path()).is_empty());
}

#[tokio::test]
async fn bytes_that_change_while_they_are_sent_are_not_kept() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let [ann, mut bob] = pair(PeerTransport::Quic).await;
    let path = from.path().join("changing");
    make(&path, 1_000_000);
    let upload = Upload::open(&path).unwrap();
    // The digest is that of the bytes which were sent, so a file that changes before its bytes are read is whole nonetheless.
    File::options().write(true).open(&path).unwrap().write_all_at(b"new", 0).unwrap();
    ann.hand(upload, &mut bob, to.path()).await;
    assert!(fs::read(kept(&mut bob).await).unwrap().starts_with(b"new"));
    assert!(Upload::open(from.path()).unwrap_err().to_string().contains("is not a file"));
    assert!(Upload::open(&from.path().join("none")).unwrap_err().to_string().contains("cannot read"));
}
