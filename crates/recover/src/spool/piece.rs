//! Pieces of files in memory, and the budget for them.
//!
//! Pieces are mapped. The allocator would keep the memory of a flood, because small objects lie between pieces in its heap, and it
//! writes zeros over a whole piece before the first byte arrives. The kernel provides a page when it is written, and gets all
//! pages back.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use memmap2::MmapMut;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{FREE_BYTES, PIECE_BYTES, STAGES, SpoolOptions};

/// The budget that all spools share.
pub(crate) struct SpoolBudget {
    pub(super) memory_left: AtomicU64,
    pub(super) disk_left: AtomicU64,
    pub(super) folder: PathBuf,
    /// Unused pieces, the oldest first.
    free: Mutex<VecDeque<MmapMut>>,
    /// A permit for each of [`STAGES`].
    stages: Arc<Semaphore>,
}

impl SpoolBudget {
    pub(crate) fn new(options: SpoolOptions) -> Arc<Self> {
        Arc::new(Self {
            memory_left: options.memory_bytes.into(),
            disk_left: options.disk_bytes.into(),
            folder: options.folder,
            free: Mutex::new(VecDeque::new()),
            stages: Arc::new(Semaphore::new(STAGES)),
        })
    }

    /// A piece for a file of which this many bytes are missing, while the budget lasts.
    pub(super) fn piece(self: &Arc<Self>, left: u64) -> Option<Piece> {
        let mut piece = self.unreserved(left).ok()?;
        let bytes = piece.len() as u64;
        reserve(&self.memory_left, bytes).then(|| {
            piece.reserved = bytes;
            piece
        })
    }

    /// A piece outside the budget.
    pub(super) fn unreserved(self: &Arc<Self>, left: u64) -> io::Result<Piece> {
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let bytes = self.known(size).map_or_else(|| MmapMut::map_anon(size), Ok)?;
        Ok(Piece { bytes: Some(bytes), reserved: 0, budget: Arc::clone(self) })
    }

    /// An unused piece of this size.
    fn known(&self, size: usize) -> Option<MmapMut> {
        let mut free = self.free();
        let place = free.iter().rposition(|piece| piece.len() == size)?;
        free.remove(place)
    }

    /// Waits for a stage.
    pub(super) async fn stage(self: &Arc<Self>, left: u64) -> io::Result<Stage> {
        let permit = Arc::clone(&self.stages).acquire_owned().await.expect("the semaphore is never closed");
        Ok(Stage { piece: self.unreserved(left)?, _permit: permit })
    }

    fn free(&self) -> MutexGuard<'_, VecDeque<MmapMut>> {
        self.free.lock().expect("no thread panics while it holds the lock")
    }
}

impl fmt::Debug for SpoolBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "budget in {}", self.folder.display())
    }
}

/// Takes this much from what is left, if there is enough.
pub(super) fn reserve(left: &AtomicU64, bytes: u64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
}

/// A piece of a file in memory, which returns to the budget when it is dropped.
pub(super) struct Piece {
    /// `None` while it is dropped.
    bytes: Option<MmapMut>,
    /// Its share of the budget.
    reserved: u64,
    budget: Arc<SpoolBudget>,
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }
}

impl DerefMut for Piece {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.as_deref_mut().unwrap_or_default()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.budget.memory_left.fetch_add(self.reserved, Ordering::Relaxed);
        let mut free = self.budget.free();
        if free.len() == FREE_BYTES / PIECE_BYTES {
            free.pop_front();
        }
        free.extend(self.bytes.take());
    }
}

/// A piece on its way to a file, held from the moment that its bytes can be read until they are written.
pub(super) struct Stage {
    pub(super) piece: Piece,
    _permit: OwnedSemaphorePermit,
}
