//! Hostile files: damaged copies of everything that kendall reads, its own records included.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::fixtures::Fixtures;
use super::judge::{acts_on_terminal, run};
use super::process::{Sink, Start};
use super::world::World;
use kendall_testbed::hostile::{Draw, campaign, damaged, damaged_text};

/// Files that a user writes, and the commands that read them.
const WRITTEN: &[(&str, &[&str])] = &[
    ("x.toml", &["plan x.toml", "plan x.toml --json", "run x.toml --results=out"]),
    ("net.toml", &["solve net.toml --customers=2000", "solve net.toml --customers=2000 --bounds --json"]),
    (
        "table.csv",
        &[
            "fit table.csv",
            "fit table.csv --json",
            "predict table.csv --rate=30",
            "check table.csv",
            "check table.csv --json",
        ],
    ),
    ("batch.csv", &["solve --batch=batch.csv"]),
    ("numbers", &["compare numbers a=numbers", "compare a=numbers,numbers b=numbers --json"]),
    (
        "instants",
        &[
            "solve G/M/1 --arrivals=instants --service-rate=9 --customers=500",
            "solve M/G/1 --services=instants --arrival-rate=0.5 --customers=500",
        ],
    ),
    (
        "requests.toml",
        &["load http://127.0.0.1:1/ --rate=20 --requests=1 --quiet --requests-file=requests.toml"],
    ),
    (
        "requests.jsonl",
        &["load http://127.0.0.1:1/ --rate=20 --requests=1 --quiet --requests-file=requests.jsonl"],
    ),
    ("words.txt", &["serve recover --listen=127.0.0.1:0 --dictionary=words.txt"]),
    (
        "lines.txt",
        &[
            "textsearch query lines.txt ;a",
            "textsearch index lines.txt",
            "serve textsearch --listen=127.0.0.1:0 --data=lines.txt",
        ],
    ),
    (
        "key/publickey",
        &["curve show key", "curve cat server.example {key} 127.0.0.1:1 --timeout=100ms --key-directory=key"],
    ),
    ("authorized", &["curve serve-files server.example key 127.0.0.1:0 folder --authorized-keys=authorized"]),
    ("hosts.toml", &["curve shell --hosts=hosts.toml --key-directory=key --timeout=100ms host true"]),
    (
        "notes.enc",
        &[
            "recover request notes.enc --hash=a9993e364706816aba3e25717850c26c9cd0d89d --length=3 --server=127.0.0.1:1 --out=out",
        ],
    ),
    ("password", &["chat register ann --server=127.0.0.1:1 --password-file=password"]),
];

/// Commands that read the folder of a run or of a recorded load, here {}.
const READING: &[&str] = &[
    "report {}",
    "report {} --json",
    "report {} --trial=none",
    "fit {}",
    "check {}",
    "compare {} a={}",
    "export {} --format=csv --format=json --format=parquet --format=hdr --out=out",
    "export {} --format=openmetrics --out=out",
    "run --resume={}",
    "web . --listen=127.0.0.1:0",
];

#[test]
fn no_file_makes_kendall_fail_badly() {
    let fixtures = Fixtures::with_records();
    let recorded: Vec<PathBuf> = ["run", "record"].iter().flat_map(|folder| fixtures.files(folder)).collect();
    assert!(recorded.len() > 12, "{recorded:?}");
    campaign("files", 400, |number, draw| {
        let world = fixtures.world();
        // Two of three cases damage records, which other people make.
        let command = if number % 3 == 0 {
            let (name, commands) = WRITTEN[number as usize / 3 % WRITTEN.len()];
            damage(&world.here().join(name), draw);
            draw.pick(commands).to_owned()
        } else {
            let name = &recorded[(number - number / 3) as usize % recorded.len()];
            let folder = name.iter().next().unwrap().to_str().unwrap();
            if draw.percent(10) {
                replace(&world, name, draw)
            } else {
                damage(&world.here().join(name), draw)
            }
            draw.pick(READING).replace("{}", folder)
        };
        let command = command.replace("{key}", &fixtures.key);
        let arguments: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        let goes_on = ["run ", "serve ", "load ", "web ", "curve ", "chat "]
            .iter()
            .any(|name| command.starts_with(name));
        let ended = run(&Start { world: &world, arguments, stdin: Vec::new(), stdout: Sink::Kept, goes_on })?;
        // These give back what they read, as grep does.
        let gives_back = command.starts_with("solve --batch") || command.starts_with("textsearch query");
        if !gives_back && acts_on_terminal(&ended) {
            return Err(format!(
                "kendall {command}: what the file says reaches the terminal with control characters"
            ));
        }
        Ok(())
    });
}

fn damage(path: &Path, draw: &mut Draw) {
    let valid = fs::read(path).unwrap();
    let damaged = match std::str::from_utf8(&valid) {
        Ok(text) => damaged_text(text, draw),
        Err(_) => damaged(&valid, draw),
    };
    fs::write(path, damaged).unwrap();
}

/// Puts something that is not a file in the place of one: a folder, a link to where no command may write, a device.
fn replace(world: &World, name: &Path, draw: &mut Draw) {
    let path = world.here().join(name);
    fs::remove_file(&path).unwrap();
    match draw.below(5) {
        0 => fs::create_dir(&path).unwrap(),
        1 => symlink(world.path("guard/file"), &path).unwrap(),
        2 => symlink("/dev/zero", &path).unwrap(),
        3 => symlink(path.file_name().unwrap(), &path).unwrap(),
        _ => {}
    }
}
