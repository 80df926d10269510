//! `kendall recover`: encrypts files, and sends requests for the plain ones.

use std::fs::{self, File};
use std::io::{self, BufRead};
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kendall_files::Output;
use kendall_stats::number;
use kendall_system::{
    Caller, Console, Kind, Parameter, Settings, Subcommand, SubcommandEnd, Subcommands, Transfer,
    digest_engine,
};

use crate::cipher::Cipher;
use crate::{Algorithm, Ask, Dialect, Hash, Keys, RequestError, Stage, request};

const IS_SET: &str = "it must be given or has a default, and its kind checked it";

/// The subcommands of this system.
pub(crate) const SUBCOMMANDS: Subcommands = Subcommands {
    about: "Encrypt a file, or request the plain one from a server",
    all: &[
        Subcommand {
            name: "encrypt",
            about: "Encrypt a file under a password, and print the request that recovers it",
            arguments: &[Parameter {
                name: "file",
                help: "file to encrypt",
                kind: Kind::File,
                default: None,
            }],
            options: &[
                Parameter {
                    name: "password",
                    help: "password to encrypt under; read from standard input if left out",
                    kind: Kind::Text(|_| Ok(())),
                    default: None,
                },
                Parameter {
                    name: "out",
                    help: "file that gets the encrypted bytes; FILE.enc if left out",
                    kind: Kind::File,
                    default: None,
                },
            ],
            caller: Caller::User,
            run: encrypt,
        },
        Subcommand {
            name: "request",
            about: "Have a server find the password of an encrypted file, and save the file that it returns",
            arguments: &[Parameter { name: "file", help: "encrypted file", kind: Kind::File, default: None }],
            options: &[
                Parameter {
                    name: "hash",
                    help: "digest of its password, in hexadecimal digits: 40 of SHA-1, 64 of SHA-256, 32 of MD5; must be given",
                    kind: Kind::Word(|text| hash(text).map(drop)),
                    default: None,
                },
                Parameter {
                    name: "length",
                    help: "number of characters of the password: 4, or 1-5; must be given",
                    kind: Kind::Word(|text| lengths(text).map(drop)),
                    default: None,
                },
                Parameter {
                    name: "server",
                    help: "address of the server",
                    kind: Kind::Word(|text| address(text).map(drop)),
                    default: Some("127.0.0.1:3333"),
                },
                Parameter {
                    name: "protocol",
                    help: "protocol of the server: course or with-id",
                    kind: Kind::Word(|name| Dialect::named(name).map(drop)),
                    default: Some("course"),
                },
                Parameter {
                    name: "out",
                    help: "file that gets the decrypted bytes; FILE without .enc, or with .plain, if left out",
                    kind: Kind::File,
                    default: None,
                },
                Parameter {
                    name: "compare",
                    help: "file to compare the decrypted one with",
                    kind: Kind::File,
                    default: None,
                },
            ],
            caller: Caller::User,
            run: request_file,
        },
    ],
};

/// The range of a password's length.
fn lengths(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) if 0 < least && least <= most && most <= 255 => Ok(least..=most),
        _ => Err(format!("must be a number of characters, such as 4, or a range, such as 1-5, not {text:?}")),
    }
}

fn hash(text: &str) -> Result<Hash, String> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let wrong = || format!("must be 40, 64 or 32 hexadecimal digits, not {text:?}");
    let bytes: Vec<u8> =
        digits.ok_or_else(wrong)?.chunks(2).map(|pair| pair.iter().fold(0, |n, d| n << 4 | d)).collect();
    match text.len() {
        40 => Ok(Hash::Sha1(bytes.try_into().expect("20 bytes"))),
        64 => Ok(Hash::Sha256(bytes.try_into().expect("32 bytes"))),
        32 => Ok(Hash::Md5(bytes.try_into().expect("16 bytes"))),
        _ => Err(wrong()),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|_| "must be HOST:PORT, such as 127.0.0.1:3333")?;
    addresses.next().ok_or_else(|| "the host has no address".into())
}

fn path(settings: &Settings, name: &str) -> Option<PathBuf> {
    settings.word(name).map(PathBuf::from)
}

fn encrypt(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let file = path(settings, "file").expect(IS_SET);
    let password = match settings.word("password") {
        Some(password) => password.to_owned(),
        None => console.ask("Password:").map_err(|error| format!("cannot read the password: {error}"))?,
    };
    if password.is_empty() {
        return Err("the password is empty; give one with --password".into());
    }
    let to = path(settings, "out").unwrap_or_else(|| with_suffix(&file, ".enc"));
    let plain = open(&file)?;
    let key = Keys::new(digest_engine()?, NonZeroUsize::MIN).derive(password.as_bytes()).key;
    let bytes = written_whole(&to, |encrypted| {
        Cipher::new(key).encrypt(&plain, encrypted).map_err(|error| cannot_write(&to, &error))
    })?;
    let digest = hex(&Algorithm::Sha1.hash(password.as_bytes()));
    console.print(&format!(
        "{} has {bytes} bytes.\nA server finds its password by:\n  kendall recover request {} --hash {digest} --length {}\n",
        to.display(),
        to.display(),
        password.len(),
    ))?;
    Ok(SubcommandEnd::Done)
}

fn request_file(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let file = path(settings, "file").expect(IS_SET);
    let given = |name| settings.word(name).ok_or_else(|| format!("--{name} is missing; see --help"));
    let ask = Ask {
        hash: hash(given("hash")?)?,
        lengths: lengths(given("length")?)?,
        dialect: Dialect::named(given("protocol")?)?,
    };
    let server = address(given("server")?)?;
    let to = path(settings, "out").unwrap_or_else(|| match file.extension() {
        Some(extension) if extension == "enc" => file.with_extension(""),
        _ => with_suffix(&file, ".plain"),
    });
    let compare = path(settings, "compare");
    check_target(&to, compare.as_deref())?;
    let encrypted = open(&file)?;
    let of_bytes =
        encrypted.metadata().map_err(|error| format!("cannot read {}: {error}", file.display()))?.len();
    let begun = Instant::now();
    let (mut sent_s, mut found_nothing) = (0.0, false);
    let got = written_whole(&to, |plain| {
        let watch = |stage| {
            if matches!(stage, Stage::Sent(_)) {
                sent_s = begun.elapsed().as_secs_f64();
            }
            console.progress(transfer(stage, of_bytes));
        };
        request(server, &ask, (&encrypted, of_bytes), plain, watch).map_err(|error| {
            found_nothing = matches!(error, RequestError::NoAnswer);
            error.to_string()
        })
    });
    console.progress_ended();
    let bytes = match got {
        Ok(bytes) => bytes,
        Err(why) if found_nothing => return Ok(SubcommandEnd::NotAsExpected(why)),
        Err(why) => return Err(why),
    };
    console.print(&format!(
        "{} has {bytes} bytes, after {} ({} of them for sending).\n",
        to.display(),
        number::time(begun.elapsed().as_secs_f64()),
        number::time(sent_s),
    ))?;
    match compare {
        None => Ok(SubcommandEnd::Done),
        Some(other) if is_same(&to, &other)? => {
            console.print(&format!("It is the same as {}.\n", other.display()))?;
            Ok(SubcommandEnd::Done)
        }
        Some(other) => {
            Ok(SubcommandEnd::NotAsExpected(format!("{} and {} differ", to.display(), other.display())))
        }
    }
}

/// Checks that the decrypted file replaces no file that is needed: without a file to compare it with, it replaces none.
fn check_target(to: &Path, compare: Option<&Path>) -> Result<(), String> {
    let place = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    let Some(other) = compare else {
        // A device or a pipe is written directly.
        if to.is_file() {
            return Err(format!(
                "{} exists; give another path for the decrypted file with --out",
                to.display()
            ));
        }
        return Ok(());
    };
    let of_other = place(other).map_err(|error| format!("cannot read {}: {error}", other.display()))?;
    if place(to).is_ok_and(|of_to| of_to == of_other) {
        return Err(format!(
            "{} would be replaced by the decrypted file and then compared with itself; give another path with --out",
            other.display()
        ));
    }
    Ok(())
}

/// The progress of the file to the server, or back.
fn transfer(stage: Stage, of_bytes: u64) -> Transfer {
    match stage {
        Stage::Sent(bytes) if bytes == of_bytes => {
            Transfer { bytes, of_bytes, what: "sent; the server searches" }
        }
        Stage::Sent(bytes) => Transfer { bytes, of_bytes, what: "sending" },
        Stage::Come(bytes, of_bytes) => Transfer { bytes, of_bytes, what: "receiving" },
    }
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// Writes a file that the user named; a regular one is always complete.
fn written_whole<T>(to: &Path, write: impl FnOnce(&mut File) -> Result<T, String>) -> Result<T, String> {
    let mut output = Output::open(to).map_err(|error| cannot_write(to, &error))?;
    let written = write(output.file())?;
    output.finish().map_err(|error| cannot_write(to, &error))?;
    Ok(written)
}

fn is_same(one: &Path, other: &Path) -> Result<bool, String> {
    let (mut left, mut right) = (io::BufReader::new(open(one)?), io::BufReader::new(open(other)?));
    let cannot_read = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| format!("cannot read {}: {error}", path.display())
    };
    loop {
        let bytes = left.fill_buf().map_err(cannot_read(one))?;
        let other_bytes = right.fill_buf().map_err(cannot_read(other))?;
        let length = bytes.len().min(other_bytes.len());
        if bytes[..length] != other_bytes[..length] || (length == 0 && bytes.len() != other_bytes.len()) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        left.consume(length);
        right.consume(length);
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn hex(hash: &Hash) -> String {
    let digest: &[u8] = match hash {
        Hash::Sha1(digest) => digest,
        Hash::Sha256(digest) => digest,
        Hash::Md5(digest) => digest,
    };
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_to_compare_with_is_not_where_the_decrypted_one_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        ["original", "other"].iter().for_each(|name| fs::write(path(name), name).unwrap());
        let check = |to: &str, compare: Option<&str>| {
            check_target(&path(to), compare.map(path).as_deref()).map_err(|why| {
                let words = ["compared with itself", "exists", "cannot read"];
                words.into_iter().find(|words| why.contains(words)).unwrap()
            })
        };
        let itself = Err("compared with itself");
        assert_eq!(check("original", Some("original")), itself);
        assert_eq!(check("original", Some("./original")), itself);
        assert_eq!(check("original", Some("other")), Ok(()));
        assert_eq!(check("new", Some("other")), Ok(()));
        assert_eq!(check("new", Some("./new")), Err("cannot read"));
        assert_eq!(check("original", None), Err("exists"));
        assert_eq!(check("new", None), Ok(()));
    }

    #[test]
    fn files_are_compared_to_their_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, bytes) in [("one", &b"abc"[..]), ("same", b"abc"), ("longer", b"abcd"), ("other", b"abd")]
        {
            fs::write(path(name), bytes).unwrap();
        }
        let is_same = |name| is_same(&path("one"), &path(name)).unwrap();
        assert_eq!([is_same("same"), is_same("longer"), is_same("other")], [true, false, false]);
    }

    #[test]
    fn a_digest_reads_back_and_lengths_are_checked() {
        let digits = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(hex(&hash(digits).unwrap()), digits);
        assert!(hash("abc").is_err() && hash(&"g".repeat(40)).is_err());
        assert_eq!((lengths("4"), lengths("1-5")), (Ok(4..=4), Ok(1..=5)));
        assert!(["0", "5-3", "1-256", "x"].iter().all(|text| lengths(text).is_err()));
    }
}
