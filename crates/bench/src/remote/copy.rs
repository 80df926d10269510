//! Copies of one large file and of many small ones, in memory where the system has such a folder.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::ends::Ends;
use super::sshd::Sshd;
use crate::common::{ROUNDS, median, ratio};
use crate::curve::raw_stream;

const LARGE: usize = 1_000_000_000;
const SMALL_FILES: usize = 10_000;

/// Seconds that the parts of a round took.
struct Round {
    raw: f64,
    large: f64,
    small: f64,
    scp: Option<f64>,
}

pub(super) fn table(page: &mut String, ends: &Ends, sshd: Option<&Sshd>) {
    prepare(&ends.path(""));
    let served = ends.path("served");
    fs::create_dir(&served).expect("the folder can be written");
    let server = ends.serve("serve-files", &[served.to_str().expect("it is text"), "--read-write"]);
    let put = |source: &str| {
        let mut command = ends.client("copy", &server);
        let took = timed(command.arg("--quiet").arg(ends.path(source)).arg(Ends::at_server("")));
        remove(&served.join(source));
        took
    };
    let scp = |sshd: &Sshd| {
        let mut command = sshd.client("scp", "-P");
        command.args(["-r", "-p"]).arg(ends.path("small")).arg(format!("127.0.0.1:{}", served.display()));
        let took = timed(&mut command);
        remove(&served.join("small"));
        took
    };
    let round =
        |_| Round { raw: raw_stream(LARGE), large: put("large"), small: put("small"), scp: sshd.map(scp) };
    let rounds: Vec<Round> = (0..ROUNDS).map(round).collect();
    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
    let _ = writeln!(
        page,
        "**Copy**, whole programs from start to end, files in {}:\n\n\
         | | | |\n| --- | ---: | --- |\n\
         | 1 GB over a plain stream of `curve`, from memory | {:.0} MB/s | |\n\
         | 1 GB in one file | {:.0} MB/s | {:.2} of the plain stream (at least 0.9 wanted) |\n\
         | {SMALL_FILES} files of 1 kB | {:.0} files/s | |",
        ends.path("").parent().expect("it is a folder in another").display(),
        LARGE as f64 / 1e6 / of(|round| round.raw),
        LARGE as f64 / 1e6 / of(|round| round.large),
        of(|round| round.raw / round.large),
        SMALL_FILES as f64 / of(|round| round.small),
    );
    if sshd.is_some() {
        let theirs = |round: &Round| round.scp.unwrap_or(f64::NAN);
        let _ = writeln!(
            page,
            "| the same by `scp -r -p` | {:.0} files/s | `copy` is {} times as fast (at least 2 wanted) |",
            SMALL_FILES as f64 / median(rounds.iter().map(theirs)),
            ratio(median(rounds.iter().map(|round| theirs(round) / round.small))),
        );
    }
}

fn timed(command: &mut Command) -> f64 {
    let begin = Instant::now();
    let status = command.status().expect("the program is installed");
    assert!(status.success(), "{command:?} failed");
    begin.elapsed().as_secs_f64()
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.expect("it was copied");
}

/// Writes the files to copy. Their bytes are pseudo-random, so that nothing can be compressed or left out as a hole.
fn prepare(folder: &Path) {
    let mut state = 1_u64;
    let mut piece = vec![0; 1 << 20];
    for word in piece.as_chunks_mut::<8>().0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *word = state.to_le_bytes();
    }
    let written = || {
        let mut file = File::create(folder.join("large"))?;
        let mut left = LARGE;
        while left > 0 {
            let most = left.min(piece.len());
            file.write_all(&piece[..most])?;
            left -= most;
        }
        for number in 0..SMALL_FILES {
            let inner = folder.join("small").join(format!("{:02}", number % 100));
            fs::create_dir_all(&inner)?;
            fs::write(inner.join(number.to_string()), &piece[number..number + 1000])?;
        }
        std::io::Result::Ok(())
    };
    written().expect("the folder can be written");
}
