//! The index in a file next to the data, so that a database is ready once it is read.
//!
//! After a header follow, for each shard, the checksum of its text, and its tables with their checksums. So a list is only used for
//! the very text that it was built from, whatever the modification times of files, and after an append only the new part is built.
//! A file is replaced by renaming a complete one over it; a file that is not such an index is never touched.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kendall_files::Replacement;

use super::shard::Shard;

/// The first bytes of an index file, with the version of its format.
const MAGIC: &[u8; 16] = b"kendall-trigram\n";
const VERSION: u32 = 1;

/// The text of a shard: its blocks, and a checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Of {
    pub(crate) blocks: Range<usize>,
    pub(crate) checksum: u32,
}

/// The path of the index of a data file.
pub(crate) fn path_of(data: &Path) -> PathBuf {
    data.with_added_extension("index")
}

/// Reads the shards of these texts in order, as far as the file has complete ones, or until it is stopped. `Err` gives the reason why
/// it has no shard.
pub(crate) fn read(path: &Path, wanted: &[Of], stop: &AtomicBool) -> Result<Vec<Shard>, Fault> {
    let file = File::open(path).map_err(Fault::from)?;
    let mut left = file.metadata().map_err(Fault::from)?.len();
    let mut from = BufReader::with_capacity(1 << 20, file);
    let mut magic = [0; 16];
    from.read_exact(&mut magic).map_err(|_| Fault::Foreign)?;
    if magic != *MAGIC {
        return Err(Fault::Foreign);
    }
    if number(&mut from)? != VERSION {
        return Err(Fault::Torn);
    }
    let mut shards = Vec::new();
    for of in wanted.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        let head = (number(&mut from), number(&mut from), number(&mut from));
        let (Ok(start), Ok(end), Ok(checksum)) = head else { break };
        if (Of { blocks: start as usize..end as usize, checksum }) != *of {
            break;
        }
        let Ok(shard) = shard(&mut from, &mut left) else { break };
        shards.push(shard);
    }
    Ok(shards)
}

/// The reason why no index can be read.
#[derive(Debug)]
pub(crate) enum Fault {
    Absent,
    Foreign,
    Torn,
    Unreadable(io::Error),
}

impl From<io::Error> for Fault {
    fn from(reason: io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            io::ErrorKind::UnexpectedEof => Self::Torn,
            _ => Self::Unreadable(reason),
        }
    }
}

fn shard(from: &mut impl Read, left: &mut u64) -> Result<Shard, Fault> {
    let trigrams = words(&part(from, left)?);
    let first_entries = words(&part(from, left)?);
    let lines = words(&part(from, left)?);
    let ends = words(&part(from, left)?);
    let segments = part(from, left)?.as_chunks().0.iter().map(|two| u16::from_le_bytes(*two)).collect();
    let data = part(from, left)?;
    let shard = Shard { trigrams, first_entries, lines, segments, ends, data };
    if shard.is_sound() { Ok(shard) } else { Err(Fault::Torn) }
}

/// A length, a checksum and the given number of bytes. The length is only trusted up to the size of the file.
fn part(from: &mut impl Read, left: &mut u64) -> Result<Vec<u8>, Fault> {
    let length = u64::from(number(from)?) | u64::from(number(from)?) << 32;
    let checksum = number(from)?;
    *left = left.checked_sub(length).ok_or(Fault::Torn)?;
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    if crc32fast::hash(&bytes) == checksum { Ok(bytes) } else { Err(Fault::Torn) }
}

fn number(from: &mut impl Read) -> Result<u32, Fault> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect()
}

/// Writes shards with the checksums of their texts. If it is stopped, the file stays as it was.
pub(crate) fn write<'a>(
    path: &Path,
    shards: impl Iterator<Item = (Of, &'a Shard)>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let replacement = Replacement::of(path)?;
    write_to(replacement.handle()?, shards, stop)?;
    replacement.commit()
}

fn write_to<'a>(
    file: File,
    shards: impl Iterator<Item = (Of, &'a Shard)>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, file);
    to.write_all(MAGIC)?;
    to.write_all(&VERSION.to_le_bytes())?;
    for (of, shard) in shards {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        for number in [of.blocks.start as u32, of.blocks.end as u32, of.checksum] {
            to.write_all(&number.to_le_bytes())?;
        }
        for table in [&shard.trigrams, &shard.first_entries, &shard.lines, &shard.ends] {
            let bytes: Vec<u8> = table.iter().flat_map(|word| word.to_le_bytes()).collect();
            write_part(&mut to, &bytes)?;
        }
        let segments: Vec<u8> = shard.segments.iter().flat_map(|word| word.to_le_bytes()).collect();
        write_part(&mut to, &segments)?;
        write_part(&mut to, &shard.data)?;
    }
    to.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

fn write_part(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(&crc32fast::hash(bytes).to_le_bytes())?;
    to.write_all(bytes)
}
