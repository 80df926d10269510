//! The storage of encrypted files while they arrive and while their passwords are searched for: in memory, as long as a
//! budget shared by all requests lasts, then in temporary files without a name, which disappear when they are closed.
//!
//! If the key is known before the file arrives, the part in memory is decrypted on arrival, while it is still in the
//! processor's cache and the client is busier than the server. The part on disk always stays encrypted.
//!
//! Files of any number and length take no more memory than the budget, [`FREE_BYTES`], [`STAGES`] pieces of [`PIECE_BYTES`],
//! and such a piece for each answer that is being sent from disk. A connection that waits for bytes holds no piece outside
//! the budget.

mod piece;

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::mem::take;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kendall_service::{BodyFuture, Reader};
use tokio::task::spawn_blocking;

pub(crate) use self::piece::SpoolBudget;
use self::piece::{Piece, Stage, reserve};
use crate::cipher::{BLOCK, Cipher};

/// The size of a piece, in memory, to a file and from it. A whole number of the cipher's blocks.
pub const PIECE_BYTES: usize = 256 * 1024;
/// The memory of finished files that is kept for the next ones, at most: the first use of a page costs more than all others. A file
/// of 50 MB fits.
pub const FREE_BYTES: usize = 64 << 20;
/// The pieces, over all requests, whose bytes are on their way to temporary files: more than the runtime has threads that
/// write files.
pub const STAGES: usize = 16;

/// The limits of the storage, and its folder.
#[derive(Clone, Debug)]
pub struct SpoolOptions {
    /// The most bytes in memory, over all requests.
    pub memory_bytes: u64,
    /// The most bytes in temporary files, over all requests.
    pub disk_bytes: u64,
    /// The folder of the temporary files.
    pub folder: PathBuf,
}

impl Default for SpoolOptions {
    /// 256 MiB in memory and 16 GiB in files, in the environment's folder for temporary files.
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, disk_bytes: 16 << 30, folder: std::env::temp_dir() }
    }
}

/// The part of a file for which there was no memory.
struct Disk {
    file: Arc<File>,
    reservation: Reservation,
    written: u64,
    stage: Option<Stage>,
}

impl Disk {
    async fn open(budget: &Arc<SpoolBudget>, bytes: u64) -> io::Result<Self> {
        if !reserve(&budget.disk_left, bytes) {
            let full = "the limit of temporary files is reached; raise --spool-disk";
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        let folder = budget.folder.clone();
        let reservation = Reservation { bytes, budget: Arc::clone(budget) };
        let opened = spawn_blocking(move || {
            let failed = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot make a temporary file in {}: {error}", folder.display()),
                )
            };
            tempfile::tempfile_in(&folder).map_err(failed)
        });
        let file = Arc::new(opened.await.map_err(io::Error::other)??);
        Ok(Self { file, reservation, written: 0, stage: None })
    }

    /// Writes this many bytes of the stage, and releases it.
    async fn write(&mut self, bytes: usize) -> io::Result<()> {
        if let Some(stage) = self.stage.take()
            && bytes > 0
        {
            let (file, at) = (Arc::clone(&self.file), self.written);
            let write = move || file.write_all_at(&stage.piece[..bytes], at);
            spawn_blocking(write).await.map_err(io::Error::other)??;
            self.written += bytes as u64;
        }
        Ok(())
    }
}

/// Disk space, which is given back when this is dropped.
struct Reservation {
    bytes: u64,
    budget: Arc<SpoolBudget>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.disk_left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// One file that waits, or arrives.
pub(crate) struct Spool {
    budget: Arc<SpoolBudget>,
    length: u64,
    filled: u64,
    /// If the key is known: pieces are decrypted on arrival.
    cipher: Option<Arc<Cipher>>,
    pieces: Vec<Piece>,
    in_last: usize,
    disk: Option<Disk>,
    /// The last block as it arrived, still encrypted.
    last_block: [u8; BLOCK],
}

impl Spool {
    /// A file of this many bytes, none of which has arrived, and its cipher, if that is known already.
    pub(crate) fn new(budget: &Arc<SpoolBudget>, length: u64, cipher: Option<Cipher>) -> Self {
        Self {
            budget: Arc::clone(budget),
            length,
            filled: 0,
            cipher: cipher.map(Arc::new),
            pieces: Vec::new(),
            in_last: 0,
            disk: None,
            last_block: [0; BLOCK],
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The last block of the cipher, once all bytes have arrived.
    pub(crate) fn last_block(&self) -> [u8; BLOCK] {
        self.last_block
    }

    /// A buffer for the next bytes.
    pub(crate) async fn buffer(&mut self) -> io::Result<&mut [u8]> {
        let left = self.length - self.filled;
        let is_full = self.pieces.last().is_none_or(|piece| piece.len() == self.in_last);
        if self.disk.is_none() && is_full {
            match self.budget.piece(left) {
                Some(piece) => {
                    self.pieces.push(piece);
                    self.in_last = 0;
                }
                None => self.disk = Some(Disk::open(&self.budget, left).await?),
            }
        }
        if let Some(disk) = &mut self.disk {
            disk.stage = Some(self.budget.stage(left).await?);
        }
        Ok(self.open_room())
    }

    /// Records that this many bytes are in the buffer.
    pub(crate) async fn filled(&mut self, bytes: usize) -> io::Result<()> {
        let last_block = next_last(self.last_block, &self.open_room()[..bytes]);
        self.last_block = last_block;
        self.filled += bytes as u64;
        match &mut self.disk {
            None => self.filled_last(bytes),
            Some(disk) => disk.write(bytes).await?,
        }
        Ok(())
    }

    /// Records this many bytes of the last piece in memory, and decrypts its whole blocks.
    fn filled_last(&mut self, bytes: usize) {
        let begun = self.in_last / BLOCK * BLOCK;
        self.in_last += bytes;
        if let (Some(cipher), Some(piece)) = (&self.cipher, self.pieces.last_mut()) {
            cipher.decrypt_blocks(&mut piece[begun..self.in_last / BLOCK * BLOCK]);
        }
    }

    fn open_room(&mut self) -> &mut [u8] {
        match &mut self.disk {
            Some(disk) => disk.stage.as_mut().map_or(&mut [], |stage| &mut stage.piece),
            None => match self.pieces.last_mut() {
                Some(piece) => &mut piece[self.in_last..],
                None => &mut [],
            },
        }
    }

    /// A reader of the decrypted file: `head`, then this many bytes.
    pub(crate) fn decrypted(mut self, head: Vec<u8>, cipher: Cipher, plain_bytes: u64) -> Decrypted {
        Decrypted {
            head,
            cipher: Arc::new(cipher),
            is_plain: self.cipher.is_some(),
            pieces: take(&mut self.pieces).into(),
            disk: self.disk.take(),
            read: 0,
            left: plain_bytes,
            current: Current::Nothing,
        }
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.filled, self.length)
    }
}

/// The last bytes of the previous ones and the new ones.
fn next_last(mut last: [u8; BLOCK], come: &[u8]) -> [u8; BLOCK] {
    match come.last_chunk() {
        Some(last) => *last,
        None => {
            last.rotate_left(come.len());
            last[BLOCK - come.len()..].copy_from_slice(come);
            last
        }
    }
}

/// A file that is being returned, decrypted piece by piece.
pub(crate) struct Decrypted {
    /// The bytes before the file.
    head: Vec<u8>,
    cipher: Arc<Cipher>,
    /// Whether the pieces were decrypted on arrival.
    is_plain: bool,
    pieces: VecDeque<Piece>,
    disk: Option<Disk>,
    /// The number of bytes of the file on disk that were read.
    read: u64,
    left: u64,
    current: Current,
}

/// The piece that is being sent.
enum Current {
    Nothing,
    Piece(Piece),
    Bytes(Vec<u8>),
}

impl Decrypted {
    async fn next(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 && self.head.is_empty() {
            return Ok(&[]);
        }
        let whole = self.fetch().await?;
        let length = whole.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= length as u64;
        if !self.head.is_empty() {
            // One packet carries it with the beginning of the file.
            let mut bytes = take(&mut self.head);
            bytes.extend_from_slice(&self.current()[..length]);
            self.current = Current::Bytes(bytes);
            return Ok(self.current());
        }
        Ok(&self.current()[..length])
    }

    fn current(&self) -> &[u8] {
        match &self.current {
            Current::Nothing => &[],
            Current::Piece(piece) => piece,
            Current::Bytes(bytes) => bytes,
        }
    }

    /// Makes the next piece the current one, decrypted with its padding; returns its length.
    async fn fetch(&mut self) -> io::Result<usize> {
        if let Some(mut piece) = self.pieces.pop_front() {
            if !self.is_plain {
                self.cipher.decrypt_blocks(&mut piece);
            }
            self.current = Current::Piece(piece);
        } else if let Some(disk) = &self.disk {
            // The last piece is sent, and can be used again.
            self.current = Current::Nothing;
            let mut piece = disk.reservation.budget.unreserved(disk.written - self.read)?;
            let (file, cipher, at) = (Arc::clone(&disk.file), Arc::clone(&self.cipher), self.read);
            let read = move || {
                file.read_exact_at(&mut piece, at)?;
                cipher.decrypt_blocks(&mut piece);
                io::Result::Ok(piece)
            };
            let piece = spawn_blocking(read).await.map_err(io::Error::other)??;
            self.read += piece.len() as u64;
            self.current = Current::Piece(piece);
        }
        Ok(self.current().len())
    }
}

impl Reader for Decrypted {
    fn piece(&mut self) -> BodyFuture<'_, &[u8]> {
        Box::pin(self.next())
    }
}

impl fmt::Debug for Decrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes to be sent", self.left)
    }
}

#[cfg(test)]
mod tests {
    use kendall_testbed::alone;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::cipher::encrypted_bytes;

    fn filled(budget: &Arc<SpoolBudget>, bytes: &[u8], at_once: usize) -> io::Result<Spool> {
        fill(Spool::new(budget, bytes.len() as u64, None), bytes, at_once)
    }

    fn fill(mut spool: Spool, bytes: &[u8], at_once: usize) -> io::Result<Spool> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut left = bytes;
            while !left.is_empty() {
                let space = spool.buffer().await?;
                let taken = space.len().min(left.len()).min(at_once);
                space[..taken].copy_from_slice(&left[..taken]);
                spool.filled(taken).await?;
                left = &left[taken..];
            }
            Ok(spool)
        })
    }

    fn read(mut decrypted: Decrypted) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut all = Vec::new();
            loop {
                let piece = decrypted.piece().await.unwrap();
                if piece.is_empty() {
                    return all;
                }
                all.extend_from_slice(piece);
            }
        })
    }

    fn budget(memory_bytes: usize, disk_bytes: usize) -> Arc<SpoolBudget> {
        let folder = std::env::temp_dir();
        SpoolBudget::new(SpoolOptions {
            memory_bytes: memory_bytes as u64,
            disk_bytes: disk_bytes as u64,
            folder,
        })
    }

    /// All in memory, none, and some of both, with a key that is known before or only afterwards; then the whole budget is
    /// free again.
    #[test]
    fn a_file_is_returned_from_memory_and_disk_and_its_budget_is_released() {
        let key = [7; 16];
        for length in [0, 1, 15, 16, 1000, PIECE_BYTES - 16, PIECE_BYTES, 3 * PIECE_BYTES + 5] {
            let plain: Vec<u8> = (0..length).map(|i| (i * 13 + i / 250) as u8).collect();
            let mut encrypted = Vec::new();
            Cipher::new(key).encrypt(plain.as_slice(), &mut encrypted).unwrap();
            assert_eq!(encrypted.len() as u64, encrypted_bytes(length as u64));
            for (memory_bytes, is_known) in [0, PIECE_BYTES, 8 * PIECE_BYTES]
                .into_iter()
                .flat_map(|bytes| [(bytes, false), (bytes, true)])
            {
                let budget = budget(memory_bytes, 8 * PIECE_BYTES);
                let cipher = is_known.then(|| Cipher::new(key));
                let spool = Spool::new(&budget, encrypted.len() as u64, cipher);
                let spool = fill(spool, &encrypted, 100_003).unwrap();
                assert_eq!(spool.last_block()[..], encrypted[encrypted.len() - BLOCK..]);
                let all = read(spool.decrypted(b"head".to_vec(), Cipher::new(key), length as u64));
                assert!(all == [b"head", plain.as_slice()].concat(), "{length} {memory_bytes}");
                let left = [&budget.memory_left, &budget.disk_left].map(|left| left.load(Ordering::Relaxed));
                assert_eq!(left, [memory_bytes as u64, 8 * PIECE_BYTES as u64]);
            }
        }
    }

    #[test]
    fn the_last_block_is_known_however_small_the_pieces_were() {
        let bytes: Vec<u8> = (0..64).collect();
        for at_once in [1, 3, 16, 17, 64] {
            assert_eq!(filled(&budget(1000, 0), &bytes, at_once).unwrap().last_block()[..], bytes[48..]);
        }
    }

    #[test]
    fn the_budget_is_a_limit_and_the_error_names_the_option() {
        let budget = budget(PIECE_BYTES, PIECE_BYTES);
        let first = filled(&budget, &vec![1; 2 * PIECE_BYTES], PIECE_BYTES).unwrap();
        let error = filled(&budget, &[1; 16], 16).map(drop).unwrap_err().to_string();
        assert!(error.contains("--spool-disk"), "{error}");
        drop(first);
        assert!(filled(&budget, &[1; 16], 16).is_ok());
        let nowhere = SpoolBudget::new(SpoolOptions {
            memory_bytes: 0,
            folder: "/nowhere".into(),
            ..Default::default()
        });
        let error = filled(&nowhere, &[1; 16], 16).map(drop).unwrap_err().to_string();
        assert!(error.contains("/nowhere"), "{error}");
        assert_eq!(nowhere.disk_left.load(Ordering::Relaxed), 16 << 30);
    }

    #[test]
    fn disk_space_is_released_where_no_descriptor_is_left_for_the_file() {
        // The limit of descriptors is for the whole process.
        if !alone("spool::tests::disk_space_is_released_where_no_descriptor_is_left_for_the_file") {
            return;
        }
        let budget = budget(0, PIECE_BYTES);
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).unwrap();
        let error = filled(&budget, &[1; 16], 16).map(drop).unwrap_err();
        setrlimit(Resource::Nofile, limit).unwrap();
        assert!(error.to_string().contains("cannot make a temporary file"), "{error}");
        assert_eq!(budget.disk_left.load(Ordering::Relaxed), PIECE_BYTES as u64);
        assert!(filled(&budget, &[1; 16], 16).is_ok());
    }
}
