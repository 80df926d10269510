//! How a database is opened.

/// How sentences lie in memory and are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// As in the file; a search passes over all rows and tests each that is of its types. The basic server of the course.
    Flat,
    /// Type by type; a search tests the rows of its types, one after the other.
    ByType,
    /// Type by type, with an index of trigrams; a plan chooses the fastest way for each pattern.
    #[default]
    Indexed,
}

impl Layout {
    /// All, in the order in which they are listed to users.
    pub const ALL: [Self; 3] = [Self::Flat, Self::ByType, Self::Indexed];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::ByType => "by-type",
            Self::Indexed => "indexed",
        }
    }
}

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// How sentences lie.
    pub layout: Layout,
    /// The most memory that the index takes, in bytes; what it does not cover is scanned. Without effect but on [`Layout::Indexed`].
    pub index_memory_bytes: u64,
    /// How many threads read and index.
    pub threads: usize,
    /// Whether the index is kept beside the file.
    pub saving: Saving,
}

/// Whether an index is kept from one time to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Saving {
    /// In a file beside the data, with `.index` after its name.
    #[default]
    Beside,
    /// One that is there is read; what it does not cover is scanned, and none is made.
    Existing,
    /// Not at all.
    Off,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            index_memory_bytes: u64::MAX,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            saving: Saving::default(),
        }
    }
}

/// Where an index came from: its shards, each of some 256 MB of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexSource {
    /// How many were made.
    pub shards_built: usize,
    /// How many were read from the file beside the data.
    pub shards_read: usize,
    /// Why the index is not kept, or was not read, in words.
    pub fault: Option<String>,
}
