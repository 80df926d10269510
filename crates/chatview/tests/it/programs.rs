//! Two programs, a real server, and a terminal for each.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use kendall_chat::directory::Limits;
use kendall_chat::password::server::Passwords;
use kendall_chat::server::store::Memory;
use kendall_chat::server::{DirectoryOptions, bind};
use kendall_chatview::{Chat, chat};
use kendall_service::Config;
use kendall_testbed::{Running, TempDir, tempdir, wait_until};
use rustix::process::Signal;

use crate::terminal::OnTerminal;

/// The command line of a program that a test starts, its words separated by line breaks.
const WORDS: &str = "KENDALL_CHATVIEW_WORDS";

/// Where this file is in the folder of a program, it panics.
const PANIC: &str = "panic-now";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    chat: Chat,
}

/// The test program itself is `kendall chat`, which is in a crate above this one.
#[test]
fn is_the_program() {
    let Ok(words) = env::var(WORDS) else { return };
    let Line { chat: line } = Line::parse_from(std::iter::once("chat").chain(words.split('\n')));
    std::thread::spawn(|| {
        while !Path::new(PANIC).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("on purpose");
    });
    let done = chat(line).map_err(|error| eprintln!("kendall: {error:#}"));
    let status = done.map_or(1, |code| (0..=u8::MAX).find(|status| ExitCode::from(*status) == code).unwrap());
    // Without the report of the test.
    std::process::exit(status.into());
}

/// A server with the users ann and bob, and the folder of their profiles.
pub(crate) struct Chats {
    folder: TempDir,
    pub(crate) server: Running,
}

impl Chats {
    pub(crate) fn new() -> Self {
        let folder = tempdir().unwrap();
        fs::write(folder.path().join("password"), "correct horse\n").unwrap();
        let chats = Self { folder, server: serve("127.0.0.1:0".parse().unwrap()) };
        for name in ["ann", "bob"] {
            let registered = chats.run(&[
                "--profile",
                name,
                "register",
                name,
                "--server",
                &chats.server.address.to_string(),
            ]);
            assert!(registered.status.success(), "{registered:?}");
        }
        chats
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let words = [&["--password-file", "password"], words].concat().join("\n");
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "programs::is_the_program", "--nocapture", "--quiet"])
            .env(WORDS, words)
            .env("XDG_DATA_HOME", self.folder.path())
            // Without a folder for downloads.
            .env("HOME", self.folder.path())
            .env_remove("NO_COLOR")
            .current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).stdin(Stdio::null()).output().unwrap()
    }

    fn open(&self, name: &str, columns: u16, rows: u16) -> OnTerminal {
        let program = OnTerminal::start(self.command(&["--profile", name, "open"]), columns, rows);
        program.expect(&format!("{name}: online"));
        program
    }

    fn profile(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("kendall/chat").join(name)
    }
}

fn serve(listen: SocketAddr) -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let options = DirectoryOptions {
        service: Config {
            workers: NonZeroUsize::new(4).unwrap(),
            grace: Duration::from_millis(10),
            ..Config::new(listen)
        },
        limits: Limits { attempts: None, ..Limits::default() },
        store: Arc::new(Memory::default()),
        runtime: runtime.unwrap(),
        passwords: Passwords::new(),
        identity: None,
    };
    let server = bind(options).unwrap();
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run())
}

/// Ann calls bob with a first message, and bob takes the call.
fn meet(ann: &mut OnTerminal, bob: &mut OnTerminal) {
    ann.type_in("/open bob\r");
    ann.expect("bob, there");
    ann.type_in("lunch?\r");
    bob.expect("ann calls");
    bob.type_in("/accept\r");
    bob.expect("ann: lunch?");
    ann.expect("bob: direct");
}

#[test]
fn two_users_talk_at_forty_and_at_a_hundred_and_twenty_columns() {
    let chats = Chats::new();
    let (mut ann, mut bob) = (chats.open("ann", 120, 30), chats.open("bob", 40, 12));
    meet(&mut ann, &mut bob);
    ann.expect("✓✓ you: lunch?");
    bob.type_in("\u{1b}[200~yes\nat \u{202e}noon\u{1b}[201~\r");
    ann.expect("bob: yes");
    ann.expect("at \\u{202e}noon");
    bob.resize(100, 30);
    bob.expect("● ann");
    ann.resize(40, 12);
    // Crossterm 0.29 leaves keys unread that come together with the signal, until the next key.
    wait_until("ann's screen is narrow", || ann.shown().starts_with("bob, there"));
    ann.type_in("fine by me\r");
    bob.expect("ann: fine by me");
    ann.expect("you: fine by me");
    ann.type_in("/bye\r");
    bob.expect("ann has ended the talk");
    bob.expect("ann: no talk");
    ann.type_in("/quit\r");
    assert!(ann.ended().success());
    bob.type_in("\u{4}");
    assert!(bob.ended().success());
    let kept = chats.run(&["--profile", "bob", "history", "ann", "--json"]);
    let lines = String::from_utf8(kept.stdout).unwrap();
    let said = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        [&object["from"], &object["text"], &object["delivered"]].map(ToString::to_string).join(" ")
    };
    assert_eq!(
        // The test program itself also writes lines.
        lines.lines().filter(|line| line.starts_with('{')).map(said).collect::<Vec<_>>(),
        [r#""ann" "lunch?" null"#, "\"bob\" \"yes\\nat \u{202e}noon\" true", r#""ann" "fine by me" null"#],
        "{lines}"
    );
}

#[test]
fn a_new_user_is_asked_for_an_account_and_is_there() {
    let chats = Chats::new();
    let mut eve = OnTerminal::start(chats.command(&["--profile", "eve", "open"]), 100, 24);
    eve.expect("Directory server [127.0.0.1:5011]:");
    eve.type_in("nowhere\n");
    eve.expect("Fingerprint");
    eve.type_in("\n");
    eve.expect("cannot find the server \"nowhere\"");
    eve.type_in(&format!("{}\n\n", chats.server.address));
    eve.expect("new or mine [new]:");
    eve.type_in("\n");
    eve.expect("Your name there:");
    eve.type_in("ann\n");
    eve.expect("is taken: choose another");
    eve.type_in("eve\n");
    eve.expect("eve: online");
    eve.type_in("/quit\r");
    assert!(eve.ended().success());
    assert!(chats.profile("eve").join("account.toml").exists());
}

#[test]
fn files_go_from_one_to_the_other_and_are_refused_or_cancelled() {
    let chats = Chats::new();
    let (mut ann, mut bob) = (chats.open("ann", 120, 30), chats.open("bob", 100, 30));
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(|number| number.to_le_bytes()).collect();
    fs::write(chats.folder.path().join("my plan.pdf"), &bytes).unwrap();
    meet(&mut ann, &mut bob);
    ann.type_in("/file none\r");
    ann.expect("cannot read none");
    // As a terminal writes a file that is dropped onto it.
    ann.type_in("\u{1b}[200~/file '~/my plan.pdf'\u{1b}[201~\r");
    ann.expect("you offer my plan.pdf (12.0 MB)");
    bob.expect("ann offers my plan.pdf (12.0 MB)");
    bob.type_in("/take\r");
    bob.expect("is there:");
    ann.expect("my plan.pdf (12.0 MB) has arrived");
    let kept = chats.profile("bob").join("files/my plan.pdf");
    assert!(fs::read(kept).unwrap() == bytes);
    bob.type_in("/file my plan.pdf\r");
    ann.expect("bob offers my plan.pdf");
    ann.type_in("/decline\r");
    bob.expect("ann does not take my plan.pdf");
    bob.type_in("/file my plan.pdf\r");
    ann.expect("/take or /decline");
    bob.type_in("/cancel\r");
    ann.expect("bob has taken my plan.pdf back");
    bob.expect("my plan.pdf: cancelled");
}

#[test]
fn a_peer_that_is_killed_gets_what_was_said_meanwhile_when_it_is_back() {
    let chats = Chats::new();
    let (mut ann, mut bob) = (chats.open("ann", 80, 24), chats.open("bob", 80, 24));
    meet(&mut ann, &mut bob);
    bob.signal(Signal::KILL);
    drop(bob);
    ann.expect("offline");
    ann.type_in("are you back?\r");
    ann.expect("·  you: are you back?");
    let mut bob = chats.open("bob", 80, 24);
    // The earlier conversation is there at once, and the call rings when ann's program has noticed.
    bob.expect("ann: lunch?");
    bob.expect("ann calls");
    bob.type_in("\u{1b}a");
    bob.expect("ann: are you back?");
    assert_eq!(bob.shown().matches("ann: lunch?").count(), 1);
    ann.expect("✓✓ you: are you back?");
}

#[test]
fn a_directory_that_is_gone_is_said_and_dialled_again_while_the_talk_goes_on() {
    let chats = Chats::new();
    let (mut ann, mut bob) = (chats.open("ann", 80, 24), chats.open("bob", 80, 24));
    meet(&mut ann, &mut bob);
    chats.server.stop();
    ann.expect("ann: offline, again in");
    ann.type_in("still here?\r");
    bob.expect("ann: still here?");
}

#[test]
fn a_changed_key_is_warned_of_and_nothing_is_sent() {
    let chats = Chats::new();
    let (mut ann, mut bob) = (chats.open("ann", 80, 24), chats.open("bob", 80, 24));
    let known = chats.profile("ann").join("known-peers");
    fs::write(&known, format!("bob {}\n", "ab".repeat(32))).unwrap();
    ann.type_in("/open bob\r");
    ann.type_in("secret\r");
    bob.expect("ann calls");
    bob.type_in("/accept\r");
    ann.expect("WARNING: bob has another key than before");
    bob.expect("ann refused the call");
    ann.type_in("/trust\r");
    bob.expect("ann calls");
    bob.type_in("/accept\r");
    bob.expect("ann: secret");
}

#[test]
fn a_signal_gives_the_terminal_back_and_a_profile_is_open_once() {
    let chats = Chats::new();
    let mut ann = chats.open("ann", 80, 24);
    assert!(!ann.is_restored());
    let mut second = OnTerminal::start(chats.command(&["--profile", "ann", "open"]), 80, 24);
    second.expect("the profile is open in another program");
    assert!(!second.ended().success());
    ann.signal(Signal::TERM);
    assert!(ann.ended().success());
    let piped = chats.run(&["--profile", "ann", "open"]);
    assert!(String::from_utf8_lossy(&piped.stderr).contains("needs a terminal"), "{piped:?}");
}

#[test]
fn a_panic_gives_the_terminal_back_and_says_why() {
    let chats = Chats::new();
    let mut ann = chats.open("ann", 80, 24);
    fs::write(chats.folder.path().join(PANIC), "").unwrap();
    assert!(!ann.ended().success());
    ann.expect("on purpose");
}

#[test]
fn a_torn_history_is_said_and_the_rest_is_shown() {
    let chats = Chats::new();
    let (mut ann, mut bob) = (chats.open("ann", 80, 24), chats.open("bob", 80, 24));
    meet(&mut ann, &mut bob);
    ann.expect("✓✓ you: lunch?");
    ann.type_in("/quit\r");
    assert!(ann.ended().success());
    let file = only_file(&chats.profile("ann").join("history"));
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 5]).unwrap();
    let ann = chats.open("ann", 80, 24);
    ann.expect("the last record of the history with bob");
    ann.expect("you: lunch?");
}

fn only_file(folder: &Path) -> std::path::PathBuf {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    files.remove(0)
}
