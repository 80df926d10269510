//! The messages of a copy on byte slices: encode and decode, no I/O. `docs/copy.md` describes the order in which they are sent.

use crate::frame;
use crate::path::{BadPath, TreePath};
use crate::wire::{BadMessage, Fields, put_bytes};

/// Sources of one copy, at most.
pub const MAX_ROOTS: usize = 1024;
/// Partial files that a receiver offers to continue, at most.
pub const MAX_PARTIALS: usize = 32;
/// Bytes of all paths in a request, at most: it has to fit into a frame.
pub const MAX_REQUEST: usize = 512 << 10;

const PUT: u8 = 16;
const GET: u8 = 17;
const HAVE: u8 = 18;
const TOTAL: u8 = 32;
const FOLDER: u8 = 33;
const FILE: u8 = 34;
/// The kind of frames that carry a file's bytes.
pub const DATA: u8 = 35;
const HOLE: u8 = 36;
const FILE_END: u8 = 37;
const SYMLINK: u8 = 38;
const HARD_LINK: u8 = 39;
const PROBLEM: u8 = 40;
const DONE: u8 = 41;
const FAILED: u8 = 48;
const FINISHED: u8 = 49;

/// The options of a copy that a client requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// Keep owner and group by number, which only root can.
    pub owner: bool,
    /// Keep the set-user-ID, set-group-ID and sticky bits.
    pub special_bits: bool,
    /// Wait until the disk has every file before it gets its name.
    pub sync: bool,
    /// The sender counts files and bytes, so that the time left is known.
    pub count: bool,
}

impl CopyOptions {
    fn encode(self) -> u16 {
        [self.owner, self.special_bits, self.sync, self.count]
            .iter()
            .enumerate()
            .fold(0, |bits, (number, on)| bits | u16::from(*on) << number)
    }

    fn decode(bits: u16) -> Self {
        let on = |number: u16| bits >> number & 1 == 1;
        Self { owner: on(0), special_bits: on(1), sync: on(2), count: on(3) }
    }
}

/// A source that a client asks for. On the wire it is its path, with `/.` at the end where the content is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The entry's path in the served folder.
    pub path: TreePath,
    /// Whether the content of the folder is wanted, and not the folder.
    pub is_content: bool,
}

impl Wanted {
    /// A source as a user writes it.
    ///
    /// # Errors
    /// [`BadPath`] where it contains `..`.
    pub fn new(path: &[u8]) -> Result<Self, BadPath> {
        let normal = TreePath::normalised(path)?;
        Ok(Self { is_content: normal.is_empty() || path.ends_with(b"/."), path: normal })
    }

    /// The name of the entry at the target; empty where its content goes there.
    pub fn name(&self) -> &[u8] {
        let last = self.path.as_bytes().rsplit(|byte| *byte == b'/').next();
        last.filter(|_| !self.is_content).unwrap_or_default()
    }

    fn encode(&self) -> Vec<u8> {
        [self.path.as_bytes(), if self.is_content { b"/." } else { b"" }].concat()
    }
}

/// A partial file at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The identity of the file that it belongs to: see [`identity`].
    pub identity: [u8; 8],
    /// The partial file's length in bytes.
    pub length: u64,
    /// BLAKE3 of these bytes.
    pub digest: [u8; 32],
}

/// The identity of a file, by which its partial copy can be found again: path within its source, length and time of change. A
/// match proves nothing: the digest of a partial file does.
pub fn identity(path: &TreePath, size: u64, modified: FileTime) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new_derive_key("kendall remote copy 2026 identity of a file");
    hasher.update(&size.to_le_bytes()).update(&modified.s.to_le_bytes()).update(&modified.ns.to_le_bytes());
    hasher.update(path.as_bytes());
    let digest = hasher.finalize();
    *digest.as_bytes().first_chunk().expect("a digest has 32 bytes")
}

/// A time of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTime {
    /// Seconds since 1970.
    pub s: i64,
    /// Nanoseconds within the second.
    pub ns: u32,
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The permission bits, 0 to 0o7777.
    pub mode: u16,
    /// Owner by number.
    pub uid: u32,
    /// Group by number.
    pub gid: u32,
    /// Time of the last access.
    pub accessed: FileTime,
    /// Time of the last change of the content.
    pub modified: FileTime,
}

/// The path of a file or folder: the number of its source on the command line, and the path within that source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePath {
    /// The number of the source.
    pub root: u16,
    /// The path within it; empty for the source itself.
    pub path: TreePath,
}

/// How the content of a file ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEnd {
    /// The file is complete. BLAKE3 of the bytes that were sent, and where there were holes of those, too (see `docs/copy.md`).
    Whole([u8; 32]),
    /// The sender could not send it whole; a sentence for the user.
    Broken(String),
    /// The sender stopped because the receiver reported that the file failed.
    Stopped,
}

/// A message. Bulk data is not one: its frames go by in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Client: copy what I send into this path of the served folder.
    Put {
        /// The options of the copy.
        options: CopyOptions,
        /// The target, as the user wrote it.
        target: Vec<u8>,
        /// The last name of each source; empty for the content of a folder.
        names: Vec<Vec<u8>>,
    },
    /// Client: send me these paths of the served folder.
    Get {
        /// The options of the copy.
        options: CopyOptions,
        /// The sources.
        wanted: Vec<Wanted>,
    },
    /// Receiver: I have the beginnings of these files. The sender waits for it.
    Have(Vec<Partial>),
    /// Sender: there are this many files and bytes in all.
    Total {
        /// Files, folders and links.
        entries: u64,
        /// Bytes of files.
        bytes: u64,
    },
    /// A folder.
    Folder {
        /// The path of the entry.
        place: SourcePath,
        /// Beside the content.
        metadata: Metadata,
    },
    /// A file, whose data, holes and end follow.
    File {
        /// The path of the entry.
        place: SourcePath,
        /// Beside the content.
        metadata: Metadata,
        /// The length of the file.
        size: u64,
        /// Whether hard links to it may follow.
        has_links: bool,
        /// The content begins after the bytes of this partial file, by its number in [`Message::Have`].
        resumes: Option<u16>,
    },
    /// The next bytes of the file are zeros that take no place on the disk.
    Hole(u64),
    /// The end of a file's content.
    FileEnd(FileEnd),
    /// A symbolic link.
    Symlink {
        /// The path of the entry.
        place: SourcePath,
        /// Beside the content.
        metadata: Metadata,
        /// The target of the link: any bytes, never followed.
        target: Vec<u8>,
    },
    /// Another name of an earlier file.
    HardLink {
        /// The path of the entry.
        place: SourcePath,
        /// The number of that file: folders, files and links count from 0.
        of: u64,
    },
    /// An entry that the sender cannot send; a sentence for the user.
    Problem(String),
    /// Sender: that was all.
    Done,
    /// Receiver: this entry failed; a sentence for the user.
    Failed {
        /// The number of the entry.
        entry: u64,
        /// The error that occurred.
        text: String,
    },
    /// Receiver: everything that did not fail is in its place.
    Finished {
        /// Files, folders and links in their place.
        entries: u64,
        /// Entries that failed.
        failed: u64,
    },
}

impl Message {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = frame::begin(out, self.kind());
        match self {
            Self::Put { options, target, names } => {
                out.extend_from_slice(&options.encode().to_le_bytes());
                put_bytes(out, target);
                put_list(out, names.iter().map(Vec::as_slice));
            }
            Self::Get { options, wanted } => {
                out.extend_from_slice(&options.encode().to_le_bytes());
                let wanted: Vec<Vec<u8>> = wanted.iter().map(Wanted::encode).collect();
                put_list(out, wanted.iter().map(Vec::as_slice));
            }
            Self::Have(partials) => partials.iter().for_each(|partial| {
                out.extend_from_slice(&partial.identity);
                out.extend_from_slice(&partial.length.to_le_bytes());
                out.extend_from_slice(&partial.digest);
            }),
            Self::Total { entries: one, bytes: two } | Self::Finished { entries: one, failed: two } => {
                out.extend_from_slice(&one.to_le_bytes());
                out.extend_from_slice(&two.to_le_bytes());
            }
            Self::Folder { place, metadata } => {
                put_place(out, place);
                put_metadata(out, metadata);
            }
            Self::File { place, metadata, size, has_links, resumes } => {
                put_place(out, place);
                put_metadata(out, metadata);
                out.extend_from_slice(&size.to_le_bytes());
                out.push(u8::from(*has_links) | u8::from(resumes.is_some()) << 1);
                out.extend(resumes.iter().flat_map(|number| number.to_le_bytes()));
            }
            Self::Hole(bytes) => out.extend_from_slice(&bytes.to_le_bytes()),
            Self::FileEnd(FileEnd::Whole(digest)) => {
                out.push(0);
                out.extend_from_slice(digest);
            }
            Self::FileEnd(FileEnd::Broken(text)) => {
                out.push(1);
                put_bytes(out, text.as_bytes());
            }
            Self::FileEnd(FileEnd::Stopped) => out.push(2),
            Self::Symlink { place, metadata, target } => {
                put_place(out, place);
                put_metadata(out, metadata);
                put_bytes(out, target);
            }
            Self::HardLink { place, of } => {
                put_place(out, place);
                out.extend_from_slice(&of.to_le_bytes());
            }
            Self::Problem(text) => put_bytes(out, text.as_bytes()),
            Self::Done => {}
            Self::Failed { entry, text } => {
                out.extend_from_slice(&entry.to_le_bytes());
                put_bytes(out, text.as_bytes());
            }
        }
        frame::end(out, start);
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Put { .. } => PUT,
            Self::Get { .. } => GET,
            Self::Have(_) => HAVE,
            Self::Total { .. } => TOTAL,
            Self::Folder { .. } => FOLDER,
            Self::File { .. } => FILE,
            Self::Hole(_) => HOLE,
            Self::FileEnd(_) => FILE_END,
            Self::Symlink { .. } => SYMLINK,
            Self::HardLink { .. } => HARD_LINK,
            Self::Problem(_) => PROBLEM,
            Self::Done => DONE,
            Self::Failed { .. } => FAILED,
            Self::Finished { .. } => FINISHED,
        }
    }

    /// Reads the body of a frame.
    ///
    /// # Errors
    /// [`BadMessage`] for a kind that does not exist, and where the body does not have the fields of its kind.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, BadMessage> {
        let mut fields = Fields::new(body, name(kind));
        let fields = &mut fields;
        let message = match kind {
            PUT => {
                let (options, target) = (CopyOptions::decode(fields.u16()?), fields.bytes()?.to_vec());
                Self::Put { options, target, names: list(fields)?.into_iter().map(<[u8]>::to_vec).collect() }
            }
            GET => {
                let options = CopyOptions::decode(fields.u16()?);
                let wanted = list(fields)?.into_iter().map(Wanted::new).collect::<Result<_, _>>();
                Self::Get { options, wanted: wanted.map_err(|_| fields.bad())? }
            }
            HAVE => return have(body),
            TOTAL => Self::Total { entries: fields.u64()?, bytes: fields.u64()? },
            FOLDER => Self::Folder { place: place(fields)?, metadata: metadata(fields)? },
            FILE => file(fields)?,
            HOLE => Self::Hole(fields.u64()?),
            FILE_END => Self::FileEnd(match fields.u8()? {
                0 => FileEnd::Whole(fields.array()?),
                1 => FileEnd::Broken(fields.text()?),
                2 => FileEnd::Stopped,
                _ => return Err(fields.bad()),
            }),
            SYMLINK => Self::Symlink {
                place: place(fields)?,
                metadata: metadata(fields)?,
                target: fields.bytes()?.to_vec(),
            },
            HARD_LINK => Self::HardLink { place: place(fields)?, of: fields.u64()? },
            PROBLEM => Self::Problem(fields.text()?),
            DONE => Self::Done,
            FAILED => Self::Failed { entry: fields.u64()?, text: fields.text()? },
            FINISHED => Self::Finished { entries: fields.u64()?, failed: fields.u64()? },
            _ => return Err(fields.bad()),
        };
        fields.end()?;
        Ok(message)
    }
}

/// What a kind is called in errors.
fn name(kind: u8) -> &'static str {
    match kind {
        PUT => "Put",
        GET => "Get",
        HAVE => "Have",
        TOTAL => "Total",
        FOLDER => "Folder",
        FILE => "File",
        HOLE => "Hole",
        FILE_END => "FileEnd",
        SYMLINK => "Symlink",
        HARD_LINK => "HardLink",
        PROBLEM => "Problem",
        DONE => "Done",
        FAILED => "Failed",
        FINISHED => "Finished",
        _ => "of an unknown kind",
    }
}

fn put_list<'a>(out: &mut Vec<u8>, items: impl ExactSizeIterator<Item = &'a [u8]>) {
    let count = u16::try_from(items.len()).expect("the callers bound the sources of a copy");
    out.extend_from_slice(&count.to_le_bytes());
    items.for_each(|item| put_bytes(out, item));
}

fn list<'a>(fields: &mut Fields<'a>) -> Result<Vec<&'a [u8]>, BadMessage> {
    let count = usize::from(fields.u16()?);
    if count == 0 || count > MAX_ROOTS {
        return Err(fields.bad());
    }
    (0..count).map(|_| fields.bytes()).collect()
}

fn put_place(out: &mut Vec<u8>, place: &SourcePath) {
    out.extend_from_slice(&place.root.to_le_bytes());
    put_bytes(out, place.path.as_bytes());
}

fn place(fields: &mut Fields<'_>) -> Result<SourcePath, BadMessage> {
    let root = fields.u16()?;
    let bytes = fields.bytes()?;
    Ok(SourcePath { root, path: path(bytes, fields)? })
}

fn path(bytes: &[u8], fields: &Fields<'_>) -> Result<TreePath, BadMessage> {
    TreePath::new(bytes).map_err(|_| fields.bad())
}

fn put_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    out.extend_from_slice(&metadata.mode.to_le_bytes());
    out.extend_from_slice(&metadata.uid.to_le_bytes());
    out.extend_from_slice(&metadata.gid.to_le_bytes());
    for instant in [metadata.accessed, metadata.modified] {
        out.extend_from_slice(&instant.s.to_le_bytes());
        out.extend_from_slice(&instant.ns.to_le_bytes());
    }
}

fn metadata(fields: &mut Fields<'_>) -> Result<Metadata, BadMessage> {
    let (mode, uid, gid) = (fields.u16()?, fields.u32()?, fields.u32()?);
    let (accessed, modified) = (instant(fields)?, instant(fields)?);
    if mode > 0o7777 {
        return Err(fields.bad());
    }
    Ok(Metadata { mode, uid, gid, accessed, modified })
}

fn instant(fields: &mut Fields<'_>) -> Result<FileTime, BadMessage> {
    let (s, ns) = (fields.i64()?, fields.u32()?);
    if ns >= 1_000_000_000 {
        return Err(fields.bad());
    }
    Ok(FileTime { s, ns })
}

fn file(fields: &mut Fields<'_>) -> Result<Message, BadMessage> {
    let (place, metadata, size) = (place(fields)?, metadata(fields)?, fields.u64()?);
    let flags = fields.u8()?;
    if flags > 3 || i64::try_from(size).is_err() {
        return Err(fields.bad());
    }
    let resumes = if flags & 2 == 0 { None } else { Some(fields.u16()?) };
    Ok(Message::File { place, metadata, size, has_links: flags & 1 == 1, resumes })
}

fn have(body: &[u8]) -> Result<Message, BadMessage> {
    let (partials, rest) = body.as_chunks::<48>();
    if !rest.is_empty() || partials.len() > MAX_PARTIALS {
        return Err(BadMessage(name(HAVE)));
    }
    let partial = |bytes: &[u8; 48]| {
        let mut fields = Fields::new(bytes, name(HAVE));
        Ok(Partial { identity: fields.array()?, length: fields.u64()?, digest: fields.array()? })
    };
    Ok(Message::Have(partials.iter().map(partial).collect::<Result<_, _>>()?))
}
