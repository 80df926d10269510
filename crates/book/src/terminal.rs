//! A shell that runs the commands of a page in its own folder and network, so that pages can use the same ports at once. All its
//! processes end with it.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::page::{Page, Ran};

/// The most seconds for a page.
const LIMIT: &str = "150";
/// Between the output of a command and its status.
const MARK: char = '\u{1e}';
/// Waits until the last command listens, if it does not end.
const WAIT: &str = "while kill -0 $! 2>/dev/null && [ \"$(sockets)\" -le $before ]; do sleep 0.05; done";
/// What a script begins with: a function that counts the sockets on which servers listen.
const BEGIN: &str = "exec 2>&1
ip link set lo up
sockets() { cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 2>/dev/null | awk '$4 == \"0A\" || $4 == \"07\"' | wc -l; }
";

/// A folder in which commands run.
#[derive(Debug)]
pub struct Terminal<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// The program `kendall`.
    pub program: &'a Path,
}

impl Terminal<'_> {
    /// Whether this machine permits a network for a page.
    pub fn is_possible() -> bool {
        let tried = isolated().args(["ip", "link", "set", "lo", "up"]).output();
        tried.is_ok_and(|tried| tried.status.success())
    }

    /// Runs the commands of a page. Measurements last a second or two, because only their statuses count.
    ///
    /// # Panics
    /// Where no shell can be started.
    pub fn run(&self, page: &Page) -> Vec<Ran> {
        let mut script = BEGIN.to_owned();
        for step in page.steps() {
            let command = shortened(&step.command);
            script += &match step.serves {
                true => {
                    format!("before=$(sockets); {command} &\n{WAIT}; status=0\n")
                }
                false => format!("{command}\nstatus=$?\n"),
            };
            script += "printf '\\036%s\\036' $status; (exit $status)\n";
        }
        let programs = self.program.parent().expect("it is in a folder").to_owned();
        let paths = env::var_os("PATH").unwrap_or_default();
        let path: OsString =
            env::join_paths([programs].into_iter().chain(env::split_paths(&paths))).expect("no colon in it");
        let log = self.folder.join(".terminal");
        let output = File::create(&log).expect("the folder takes files");
        isolated()
            .args(["sh", "-c", &script])
            .current_dir(self.folder)
            .env("PATH", path)
            .env("HOME", self.folder)
            .stdout(output)
            .status()
            .expect("timeout can be started");
        let text = String::from_utf8_lossy(&std::fs::read(&log).expect("it was written")).into_owned();
        let parts: Vec<&str> = text.split(MARK).collect();
        let pairs = parts.chunks_exact(2);
        // What follows the last status is of a command that did not end.
        let rest = pairs.remainder().iter().map(|rest| Ran { output: (*rest).to_owned(), status: -1 });
        let ended = pairs
            .clone()
            .map(|pair| Ran { output: pair[0].to_owned(), status: pair[1].parse().unwrap_or(-1) });
        ended.chain(rest).collect()
    }
}

fn isolated() -> Command {
    let mut command = Command::new("timeout");
    command.args([
        "--kill-after=5",
        LIMIT,
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--",
    ]);
    command
}

/// A command that measures for a tenth of its time, between one and four seconds, and searches for twelve.
fn shortened(command: &str) -> String {
    let command = &command.replacen("kendall peak ", "kendall peak --budget 12s ", 1);
    let words: Vec<&str> = command.split(' ').collect();
    let is_length = |at: usize| at > 0 && ["--duration", "-d", "--low-duration"].contains(&words[at - 1]);
    let is_long = |word: &str| word.ends_with(['s', 'm']) && !word.ends_with("ms");
    let short = |word: &str| {
        let seconds = word.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok());
        format!("{}s", seconds.map_or(1, |seconds| (seconds / 10).clamp(1, 4)))
    };
    let word = |(at, word): (usize, &str)| match is_length(at) && is_long(word) {
        true => short(word),
        false => word.to_owned(),
    };
    words.iter().copied().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_long_measurements_are_shortened() {
        assert_eq!(shortened("kendall load -d 20s --duration 300ms"), "kendall load -d 2s --duration 300ms");
        assert_eq!(shortened("kendall peak URL -d 4s"), "kendall peak --budget 12s URL -d 1s");
        assert_eq!(shortened("sleep 2s; echo 'a  b'"), "sleep 2s; echo 'a  b'");
    }

    #[test]
    fn a_page_runs_in_one_shell_with_its_own_network() {
        if !Terminal::is_possible() {
            return kendall_testbed::left_out("a network namespace cannot be made");
        }
        if !kendall_testbed::has_peer("python3", "--version") {
            return;
        }
        let text = "<!-- first: word=hello -->\n```console\n$ python3 -m http.server 8080 --bind 127.0.0.1 &\n$ echo $word; (exit 4)\n\
                    hello\n$ echo $?\n4\n$ python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8080)); print(1)'\n1\n```\n";
        let page = Page::read(text).unwrap();
        let program = PathBuf::from("/nowhere/kendall");
        // Two at once use the same port.
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let folder = kendall_testbed::tempdir().unwrap();
                    let ran = Terminal { folder: folder.path(), program: &program }.run(&page);
                    assert!(page.with(&ran).unwrap().contains("print(1)'\n1\n"), "{ran:?}");
                });
            }
        });
    }
}
