//! How a database is opened.

/// The layout of sentences in memory, and the method of search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The order of the file; a search visits all rows and tests each one that is of its types. The basic server of the
    /// course.
    Flat,
    /// Type by type; a search tests the rows of its types, one after the other.
    ByType,
    /// Type by type, with an index of trigrams; a plan chooses the fastest method for each pattern.
    #[default]
    Indexed,
}

impl Layout {
    /// Every layout, in the order in which they are listed to users.
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
    /// The layout of sentences.
    pub layout: Layout,
    /// The most memory of the index, in bytes; text that it does not cover is scanned. Only [`Layout::Indexed`] uses it.
    pub index_memory_bytes: u64,
    /// The number of threads that read and index.
    pub threads: usize,
    /// Whether the index is saved next to the file.
    pub saving: Saving,
}

/// Whether an index is saved for the next time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Saving {
    /// The index is saved next to the data, with `.index` after its name.
    #[default]
    Beside,
    /// An existing index is read; text that it does not cover is scanned, and no index is built.
    Existing,
    /// Not saved.
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

/// The origin of an index: its shards, each of some 256 MB of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexSource {
    /// The number of shards that were built.
    pub shards_built: usize,
    /// The number of shards that were read from the file next to the data.
    pub shards_read: usize,
    /// The reason why the index is not saved, or was not read.
    pub fault: Option<String>,
}
