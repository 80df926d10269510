//! `kendall chat` as users and scripts have it, with a real server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use kendall_testbed::{LIMIT, TempDir, tempdir, wait_until};

struct Chat {
    folder: TempDir,
    server: Child,
    address: String,
    fingerprint: Option<String>,
}

impl Drop for Chat {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Chat {
    /// A server with the users ann and bob.
    fn new(options: &[&str]) -> Self {
        let folder = tempdir().unwrap();
        fs::write(folder.path().join("password"), "correct horse\nnot this line\n").unwrap();
        fs::write(folder.path().join("wrong"), "battery staple\n").unwrap();
        let log = folder.path().join("log");
        let mut server = Command::new(env!("CARGO_BIN_EXE_kendall"))
            .args(["--log", "info", "serve", "chat", "--listen", "127.0.0.1:0", "--limits", "off"])
            .args(options)
            .env("XDG_DATA_HOME", folder.path())
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().last().unwrap().to_owned();
        let logged = fs::read_to_string(&log).unwrap();
        let fingerprint =
            logged.split_whitespace().find_map(|word| word.strip_prefix("fingerprint=")).map(str::to_owned);
        let chat = Self { folder, server, address, fingerprint };
        for name in ["ann", "bob"] {
            let mut register = vec!["register", name, "--server", &chat.address];
            if let Some(fingerprint) = &chat.fingerprint {
                register.extend(["--fingerprint", fingerprint]);
            }
            let output = chat.run(name, &register);
            assert!(output.status.success(), "{output:?}");
            assert!(text(&output.stdout).starts_with(&format!("you are {name} at ")), "{output:?}");
        }
        chat
    }

    fn command(&self, profile: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
        command
            .args(["chat", "--profile", profile, "--password-file", "password"])
            .args(words)
            .env("XDG_DATA_HOME", self.folder.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, profile: &str, words: &[&str]) -> Output {
        self.command(profile, words).output().unwrap()
    }

    /// A receiver that takes calls.
    fn receive(&self, words: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut receiver = self
            .command("bob", &[&["recv", "--json"], words].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(receiver.stdout.take().unwrap());
        let mut ready = String::new();
        lines.read_line(&mut ready).unwrap();
        assert_eq!(ready, "{\"event\":\"ready\"}\n");
        (receiver, lines)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The texts of the messages among lines of JSON.
fn texts(mut lines: impl Read) -> Vec<String> {
    let mut all = String::new();
    lines.read_to_string(&mut all).unwrap();
    let objects = all.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    objects.filter(|it| it["event"] == "message").map(|it| it["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn messages_arrive_once_and_in_order() {
    let chat = Chat::new(&[]);
    let (mut receiver, lines) = chat.receive(&["--count", "2001"]);
    let received = std::thread::spawn(|| texts(lines));
    let sent = chat.run("ann", &["send", "bob", "lunch?\nat noon", "--json"]);
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(
        text(&sent.stdout),
        "{\"event\":\"delivered\",\"to\":\"bob\",\"messages\":1,\"files\":0,\"path\":\"direct\"}\n"
    );
    let many: Vec<String> = (0..2000).map(|number| format!("number {number} ✓")).collect();
    let mut sender = chat.command("ann", &["send", "bob", "--lines"]).stdin(Stdio::piped()).spawn().unwrap();
    sender.stdin.take().unwrap().write_all(many.join("\n").as_bytes()).unwrap();
    assert!(sender.wait().unwrap().success());
    assert_eq!(received.join().unwrap(), [vec!["lunch?\nat noon".to_owned()], many].concat());
    assert!(receiver.wait().unwrap().success());
    let who = chat.run("ann", &["who", "--json"]);
    assert_eq!(text(&who.stdout), "{\"name\":\"ann\"}\n");
}

#[test]
fn files_are_sent_and_kept_as_far_as_the_receiver_takes_them() {
    let chat = Chat::new(&[]);
    let plan = chat.folder.path().join("plan.txt");
    fs::write(&plan, "first\n".repeat(200_000)).unwrap();
    // Refused where the receiver takes none, and where there is no room.
    for options in [&[][..], &["--files", "inbox", "--files-limit", "1MB"]] {
        let (mut receiver, _lines) = chat.receive(&[&["--count", "1"], options].concat());
        let sent = chat.run("ann", &["send", "bob", "--file", "plan.txt"]);
        assert_eq!(sent.status.code(), Some(4), "{sent:?}");
        assert!(text(&sent.stderr).contains("bob declined the file plan.txt"), "{sent:?}");
        receiver.kill().unwrap();
        receiver.wait().unwrap();
    }
    let (mut receiver, lines) = chat.receive(&["--count", "4", "--files", "inbox"]);
    for _ in 0..2 {
        let sent = chat.run("ann", &["send", "bob", "the plan", "--file", "plan.txt", "--json"]);
        assert!(sent.status.success(), "{sent:?}");
        assert!(text(&sent.stdout).contains("\"messages\":1,\"files\":1"), "{sent:?}");
    }
    assert!(receiver.wait().unwrap().success());
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let places: Vec<&str> = events.iter().filter_map(|event| event["path"].as_str()).collect();
    assert!(
        places[0].ends_with("/inbox/plan.txt") && places[1].ends_with("/inbox/plan (2).txt"),
        "{places:?}"
    );
    for place in places {
        assert_eq!(fs::read(place).unwrap(), fs::read(&plan).unwrap());
    }
    let sent = chat.run("ann", &["send", "bob", "--file", "none"]);
    assert!(text(&sent.stderr).contains("cannot read none"), "{sent:?}");
}

#[test]
fn scripts_learn_from_the_exit_status_what_happened() {
    let chat = Chat::new(&[]);
    let status = |output: Output| (output.status.code().unwrap(), text(&output.stderr));
    let (code, said) = status(chat.run("ann", &["send", "bob", "hello"]));
    assert_eq!(
        (code, said.as_str()),
        (3, "kendall: bob cannot be reached: absent, not waiting for calls, or without an account\n")
    );
    let (code, said) = status(chat.run("bob", &["recv", "--count", "1", "--timeout", "100ms"]));
    assert_eq!((code, said.as_str()), (3, "kendall: only 0 of 1 messages arrived in time\n"));
    let (mut receiver, _) = chat.receive(&["--from", "carl"]);
    let (code, said) = status(chat.run("ann", &["send", "bob", "hello"]));
    assert_eq!((code, said.as_str()), (4, "kendall: bob refused the call\n"));
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    let wrong = chat.run("ann", &["who", "--password-file", "wrong"]);
    assert_eq!(status(wrong), (6, "kendall: the name or the password is wrong\n".to_owned()));
    let (code, said) = status(chat.run("other", &["who"]));
    assert!(code == 1 && said.contains("the profile other has no account yet"), "{said}");
    let (code, said) = status(chat.run("other", &["register", "ANN", "--server", &chat.address]));
    assert!(code == 1 && said.contains("the name, or one that looks like it, is taken"), "{said}");
    let (code, said) = status(chat.run("other", &["login", "ann", "--server", "192.0.2.1:5011"]));
    assert!(code == 1 && said.contains("name the fingerprint of its certificate"), "{said}");
    let (code, _) = status(chat.run("ann", &["send", "bob", ""]));
    assert_eq!(code, 1);
    let deleted = chat.run("ann", &["delete"]);
    assert!(deleted.status.success());
    assert_eq!(chat.run("ann", &["who"]).status.code(), Some(1));
}

#[test]
fn a_peer_with_another_key_is_not_talked_to() {
    let chat = Chat::new(&[]);
    let (mut receiver, lines) = chat.receive(&["--count", "1"]);
    assert!(chat.run("ann", &["send", "bob", "hello"]).status.success());
    assert_eq!(texts(lines), ["hello"]);
    assert!(receiver.wait().unwrap().success());
    let numbers = text(&chat.run("ann", &["peers"]).stdout);
    assert!(numbers.ends_with("  bob\n") && numbers.len() == 35 + 6, "{numbers}");
    fs::remove_dir_all(chat.folder.path().join("kendall/chat/bob/key")).unwrap();
    let key = Command::new(env!("CARGO_BIN_EXE_kendall"))
        .args(["curve", "keygen"])
        .arg(chat.folder.path().join("kendall/chat/bob/key"))
        .output();
    assert!(key.unwrap().status.success());
    let (mut receiver, lines) = chat.receive(&["--count", "1"]);
    let warned = chat.run("ann", &["send", "bob", "secret"]);
    assert_eq!(warned.status.code(), Some(5));
    assert!(text(&warned.stderr).contains("bob has another key than before"), "{warned:?}");
    assert!(chat.run("ann", &["peers", "--forget", "bob"]).status.success());
    assert!(chat.run("ann", &["send", "bob", "hello again"]).status.success());
    assert_eq!(texts(lines), ["hello again"]);
    assert!(receiver.wait().unwrap().success());
}

#[test]
fn two_users_talk_line_by_line_over_tls() {
    let chat = Chat::new(&["--tls"]);
    assert!(chat.fingerprint.is_some());
    let start = |profile, words: &[&str]| {
        let pipes = || Stdio::piped();
        let mut child =
            chat.command(profile, words).stdin(pipes()).stdout(pipes()).stderr(pipes()).spawn().unwrap();
        let said = std::thread::spawn({
            let mut stderr = child.stderr.take().unwrap();
            move || {
                let mut said = Vec::new();
                stderr.read_to_end(&mut said).unwrap();
                text(&said)
            }
        });
        (child, said)
    };
    let type_line = |to: &mut ChildStdin, line: &str| to.write_all(format!("{line}\n").as_bytes()).unwrap();
    let (mut bob, bob_said) = start("bob", &["talk"]);
    wait_until("bob is there", || text(&chat.run("ann", &["who"]).stdout).contains("bob"));
    let (mut ann, ann_said) = start("ann", &["talk", "bob"]);
    let (mut to_ann, mut to_bob) = (ann.stdin.take().unwrap(), bob.stdin.take().unwrap());
    let (mut from_ann, mut from_bob) =
        (BufReader::new(ann.stdout.take().unwrap()), BufReader::new(bob.stdout.take().unwrap()));
    // Bob's answer to the question whether to take the call; before it rings, a line means nothing.
    std::thread::sleep(LIMIT / 60);
    type_line(&mut to_bob, "y");
    type_line(&mut to_ann, "good \u{1b}[2J morning");
    let line = |from: &mut BufReader<std::process::ChildStdout>| {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(line(&mut from_bob), "ann: good \\u{1b}[2J morning\n");
    type_line(&mut to_bob, "and to you");
    assert_eq!(line(&mut from_ann), "bob: and to you\n");
    type_line(&mut to_ann, "/quit");
    assert!(ann.wait().unwrap().success() && bob.wait().unwrap().success());
    assert!(ann_said.join().unwrap().contains("talking with bob (direct)"));
    let said = bob_said.join().unwrap();
    assert!(
        said.contains("ann calls. Take the call? [y/n]") && said.contains("ann has ended the talk"),
        "{said}"
    );
}

/// Starts a server without `--store`, with these folders of its user, and returns it with where it listens.
fn serve_in(folder: &Path, options: &[&str]) -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_kendall"))
        .args(["serve", "chat", "--listen", "127.0.0.1:0", "--limits", "off"])
        .args(options)
        .env("XDG_DATA_HOME", folder.join("data"))
        .env("TMPDIR", folder.join("tmp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (server, line.split_whitespace().last().unwrap().to_owned())
}

/// Runs a command of `kendall chat` with a profile for each server.
fn chat_at(folder: &Path, profile: &str, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall"))
        .args(["chat", "--profile", profile, "--password-file", "password"])
        .args(words)
        .env("XDG_DATA_HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_server_without_a_store_keeps_accounts_for_its_user_and_those_of_trials_apart() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("password"), "correct horse\n").unwrap();
    fs::create_dir(folder.join("tmp")).unwrap();
    let place = folder.join("data/kendall/chat-server");
    // A killed server has lost nothing at the next start.
    let (mut server, address) = serve_in(folder, &[]);
    let registered = chat_at(folder, "first", &["register", "ann", "--server", &address]);
    assert!(registered.status.success(), "{registered:?}");
    server.kill().unwrap();
    server.wait().unwrap();
    let modes = [("", 0o700), ("accounts.db", 0o600), ("keys/password.key", 0o600)];
    for (file, mode) in modes {
        let found = fs::metadata(place.join(file)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{file}");
    }
    let (mut server, address) = serve_in(folder, &[]);
    let entered = chat_at(folder, "second", &["login", "ann", "--server", &address]);
    assert!(entered.status.success(), "{entered:?}");
    server.kill().unwrap();
    server.wait().unwrap();
    // The laboratory starts servers like the first of these.
    let before = fs::read(place.join("accounts.db")).unwrap();
    for (profile, option) in [("third", "--until-stdin-ends"), ("fourth", "--throwaway")] {
        let (mut server, address) = serve_in(folder, &[option]);
        assert_eq!(fs::read_dir(folder.join("tmp")).unwrap().count(), 1, "a folder of the trial");
        let registered = chat_at(folder, profile, &["register", "ann", "--server", &address]);
        assert!(registered.status.success(), "the user's accounts are not there: {registered:?}");
        drop(server.stdin.take());
        let pid = rustix::process::Pid::from_child(&server);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(server.wait().unwrap().success());
        assert_eq!(fs::read_dir(folder.join("tmp")).unwrap().count(), 0, "it ends with the server");
    }
    assert!(fs::read(place.join("accounts.db")).unwrap() == before, "trials leave the user's accounts alone");
}

#[test]
fn a_load_can_pin_the_certificate_of_a_trial_and_of_no_other_server() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("tmp")).unwrap();
    for (option, is_pinned) in [("--until-stdin-ends", true), ("--throwaway", false)] {
        let (mut server, address) = serve_in(folder, &["--tls", option]);
        let loaded = Command::new(env!("CARGO_BIN_EXE_kendall"))
            .args(["load", &format!("chat://{address}?fingerprint=trial"), "--json"])
            .args(["--arrivals", "closed", "--users", "2", "--duration", "300ms"])
            .output()
            .unwrap();
        let report: serde_json::Value = serde_json::from_slice(&loaded.stdout).unwrap();
        let answered = report["run"]["ended"][0].as_u64().unwrap();
        assert_eq!(answered > 0, is_pinned, "{report}");
        server.kill().unwrap();
        server.wait().unwrap();
    }
}
