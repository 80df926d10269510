//! `kendall recover`: encrypts files, and asks a server for the plain one.

use std::fs::{self, File};
use std::io::{self, BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use kendall_recover::cipher::Cipher;
use kendall_recover::{Ask, Dialect, Hash, Keys, RequestError, Stage, algorithm, dialect, engine, request};
use kendall_stats::number;

use crate::print::{note, out};
use crate::serve::address;

/// The exit status where the server found nothing, or the files differ.
const NOT_RECOVERED: u8 = 4;

#[derive(Subcommand)]
pub(crate) enum Recover {
    /// Encrypt a file under a password, and say what a server has to be asked for it
    Encrypt(Encrypt),
    /// Ask a server to find the password of an encrypted file, and keep the file that it sends back
    Request(Request),
}

#[derive(Args)]
pub(crate) struct Encrypt {
    /// The file to encrypt
    file: PathBuf,

    /// Under this password; read from standard input if left out
    #[arg(long)]
    password: Option<String>,

    /// Where the encrypted file goes [default: FILE.enc]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Request {
    /// The encrypted file
    file: PathBuf,

    /// The digest of its password, in hexadecimal digits: 40 of SHA-1, 64 of SHA-256, 32 of MD5
    #[arg(long, value_name = "DIGEST", value_parser = hash)]
    hash: Hash,

    /// How many characters the password has: 4, or 1-5
    #[arg(long, value_name = "LENGTH", value_parser = lengths)]
    length: Lengths,

    /// The server
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3333", value_parser = address)]
    server: SocketAddr,

    /// Which protocol the server speaks: course or with-id
    #[arg(long, value_name = "NAME", default_value = "course", value_parser = dialect)]
    protocol: Dialect,

    /// Where the decrypted file goes [default: FILE without .enc, or with .plain]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Compare what comes back with this file
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

/// How many characters a password may have.
#[derive(Clone, Debug)]
struct Lengths(RangeInclusive<usize>);

fn lengths(text: &str) -> Result<Lengths, String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) if 0 < least && least <= most && most <= 255 => Ok(Lengths(least..=most)),
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

pub(crate) fn recover(recover: Recover) -> anyhow::Result<ExitCode> {
    match recover {
        Recover::Encrypt(options) => encrypt(options),
        Recover::Request(options) => ask(options),
    }
}

fn encrypt(Encrypt { file, password, out: to }: Encrypt) -> anyhow::Result<ExitCode> {
    let password = password.map_or_else(read_password, Ok)?;
    if password.is_empty() {
        bail!("the password is empty; give one with --password");
    }
    let to = to.unwrap_or_else(|| with_suffix(&file, ".enc"));
    let plain = File::open(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let key =
        Keys::new(engine().map_err(anyhow::Error::msg)?, NonZeroUsize::MIN).derive(password.as_bytes()).key;
    let bytes = written_whole(&to, |encrypted| Ok(Cipher::new(key).encrypt(&plain, encrypted)?))?;
    let digest = hex(&algorithm("sha1").map_err(anyhow::Error::msg)?.hash(password.as_bytes()));
    out(&format!(
        "{} has {bytes} bytes.\nA server finds its password by:\n  kendall recover request {} --hash {digest} --length {}\n",
        to.display(),
        to.display(),
        password.len(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn read_password() -> anyhow::Result<String> {
    if io::stdin().is_terminal() {
        note("Password:");
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the password")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn ask(options: Request) -> anyhow::Result<ExitCode> {
    let Request { file, hash, length: Lengths(lengths), server, protocol, out: to, compare } = options;
    let to = to.unwrap_or_else(|| match file.extension() {
        Some(extension) if extension == "enc" => file.with_extension(""),
        _ => with_suffix(&file, ".plain"),
    });
    if compare.is_none() && to.exists() {
        bail!("{} exists; say with --out where the decrypted file is to go", to.display());
    }
    let encrypted = File::open(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let length = encrypted.metadata().with_context(|| format!("cannot read {}", file.display()))?.len();
    let ask = Ask { hash, lengths, dialect: protocol };
    let (begun, bar) = (Instant::now(), bar(length)?);
    let mut asked_s = 0.0;
    let got = written_whole(&to, |plain| {
        Ok(request(server, &ask, (&encrypted, length), plain, |stage| match stage {
            Stage::Sent(sent) => {
                asked_s = begun.elapsed().as_secs_f64();
                bar.set_position(sent);
                bar.set_message(if sent == length { "sent; the server searches" } else { "sending" });
            }
            Stage::Come(come, of) => {
                bar.set_length(of);
                bar.set_position(come);
                bar.set_message("receiving");
            }
        })?)
    });
    bar.finish_and_clear();
    let bytes = match got {
        Ok(bytes) => bytes,
        Err(error) => {
            note(&format!("kendall: {error}"));
            let is_found_nothing = matches!(error.downcast_ref(), Some(RequestError::NoAnswer));
            return Ok(if is_found_nothing { NOT_RECOVERED.into() } else { ExitCode::FAILURE });
        }
    };
    let all_s = begun.elapsed().as_secs_f64();
    out(&format!(
        "{} has {bytes} bytes, after {} ({} of them for sending).\n",
        to.display(),
        number::time(all_s),
        number::time(asked_s),
    ))?;
    match compare {
        None => Ok(ExitCode::SUCCESS),
        Some(other) if is_same(&to, &other)? => {
            out(&format!("It is the same as {}.\n", other.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => {
            note(&format!("kendall: {} and {} differ", to.display(), other.display()));
            Ok(NOT_RECOVERED.into())
        }
    }
}

fn bar(length: u64) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bytes:>12} of {total_bytes} [{wide_bar}] {elapsed} {msg}")?;
    Ok(ProgressBar::new(length).with_style(style))
}

/// Writes a file under another name first, so that a file of this name is always whole.
fn written_whole<T>(to: &Path, write: impl FnOnce(&mut File) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let cannot = || format!("cannot write {}", to.display());
    let folder =
        to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut part = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    let written = write(part.as_file_mut())?;
    part.as_file_mut().flush().with_context(cannot)?;
    part.persist(to).with_context(cannot)?;
    Ok(written)
}

fn is_same(one: &Path, other: &Path) -> anyhow::Result<bool> {
    let open = |path: &Path| {
        fs::File::open(path)
            .map(io::BufReader::new)
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let (mut one, mut other) = (open(one)?, open(other)?);
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let length = left.len().min(right.len());
        if left[..length] != right[..length] || (length == 0 && left.len() != right.len()) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        one.consume(length);
        other.consume(length);
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
