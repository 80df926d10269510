//! Nonces of 16 bytes that never repeat in the life of a long-term key, whatever crashes and however many processes use it.
//!
//! A nonce is the encryption of a counter and 8 random bytes, as in the reference (`safenonce.c`), under the same key and
//! by the same cipher: so a nonce of this crate and one of NaCl's tools differ, too, as long as their counters do. The file
//! holds the first counter that no process has reserved; it is on the disk before a counter below it is used.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use curvecp::LongTermNonces;
use rand::TryRng;
use rand::rngs::SysRng;
use rustix::fs::{FlockOperation, fcntl_lock};
use zeroize::Zeroizing;

use crate::CurveError;
use crate::key_files::{SECRETS, read_exactly, write_new};

/// Counters that are reserved at once: as the reference's server.
const BLOCK: u64 = 1 << 20;
/// How long a block that could not be reserved is not tried again: an attempt uses the disk, and clients can cause many.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Locks of files exclude other processes only, so this excludes the threads of this one.
static IN_THIS_PROCESS: Mutex<()> = Mutex::new(());

/// The source of nonces of a key directory.
#[derive(Debug)]
pub struct FileNonces {
    secrets: PathBuf,
    key: Zeroizing<[u8; 32]>,
    next: u64,
    end: u64,
    /// When a further block could not be reserved, since the last one that was.
    failed: Option<Instant>,
}

impl FileNonces {
    /// Reserves a first block of nonces of a key directory.
    ///
    /// # Errors
    /// [`CurveError::File`] where a file cannot be read, locked or written, [`CurveError::KeyFileLength`],
    /// [`CurveError::NoncesUsedUp`].
    pub fn open(directory: &Path) -> Result<Self, CurveError> {
        let secrets = directory.join(SECRETS);
        let key = read_exactly(&secrets.join("noncekey"))?;
        let mut nonces = Self { secrets, key, next: 0, end: 0, failed: None };
        nonces.reserve()?;
        Ok(nonces)
    }

    /// Takes the next block for this process alone.
    fn reserve(&mut self) -> Result<(), CurveError> {
        let _threads = IN_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = self.secrets.join("lock");
        let counter = self.secrets.join("noncecounter");
        // Closing the file gives the lock back.
        let locked = OpenOptions::new().write(true).open(&lock).map_err(CurveError::file("lock", &lock))?;
        fcntl_lock(&locked, FlockOperation::LockExclusive)
            .map_err(|error| CurveError::file("lock", &lock)(error.into()))?;

        let next = u64::from_le_bytes(*read_exactly(&counter)?);
        let end = next.checked_add(BLOCK).ok_or_else(|| CurveError::NoncesUsedUp(counter.clone()))?;
        let new = self.secrets.join("noncecounter.tmp");
        _ = fs::remove_file(&new);
        write_new(&new, 0o600, &end.to_le_bytes())?;
        fs::rename(&new, &counter)
            .and_then(|()| File::open(&self.secrets)?.sync_all())
            .map_err(CurveError::file("write", &counter))?;
        (self.next, self.end) = (next, end);
        Ok(())
    }
}

impl LongTermNonces for FileNonces {
    /// `None` where a further block is needed and cannot be reserved, as on a full disk: to go on would risk a repeated nonce,
    /// which reveals what two boxes hold. The log has one line, until a block can be reserved again.
    fn next(&mut self) -> Option<[u8; 16]> {
        if self.next == self.end {
            if self.failed.is_some_and(|failed| failed.elapsed() < RETRY_AFTER) {
                return None;
            }
            let reserved = self.reserve();
            let has_failed = self.failed.take().is_some();
            if let Err(error) = reserved {
                if !has_failed {
                    tracing::error!(
                        "no connection can be opened, because there is no further nonce: {error}"
                    );
                }
                self.failed = Some(Instant::now());
                return None;
            }
        }
        let mut block = [0; 16];
        block[..8].copy_from_slice(&self.next.to_le_bytes());
        SysRng.try_fill_bytes(&mut block[8..]).expect("the system has random numbers");
        self.next += 1;
        Some(encrypt(&self.key, block))
    }
}

/// Nonces at random, for a key that is used for one connection and then erased: 128 random bits do not repeat in so few.
#[derive(Clone, Copy, Debug)]
pub struct RandomNonces;

impl LongTermNonces for RandomNonces {
    fn next(&mut self) -> Option<[u8; 16]> {
        let mut nonce = [0; 16];
        SysRng.try_fill_bytes(&mut nonce).expect("the system has random numbers");
        Some(nonce)
    }
}

/// The reference's block cipher: TEA (Wheeler and Needham 1994) with words of 64 bits (`crypto_block.c`).
fn encrypt(key: &[u8; 32], block: [u8; 16]) -> [u8; 16] {
    let ([a, b, c, d], [mut left, mut right]) = (words(key), words(&block));
    for sum in sums() {
        left = left.wrapping_add(mix(right, sum, [7, 12], [a, b]));
        right = right.wrapping_add(mix(left, sum, [16, 8], [c, d]));
    }
    let mut out = [0; 16];
    out[..8].copy_from_slice(&left.to_le_bytes());
    out[8..].copy_from_slice(&right.to_le_bytes());
    out
}

/// The multiples of the golden ratio, one for each of the 32 rounds.
fn sums() -> impl DoubleEndedIterator<Item = u64> {
    (1..=32_u64).map(|round| round.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn mix(word: u64, sum: u64, [left, right]: [u32; 2], [first, second]: [u64; 2]) -> u64 {
    (word << left).wrapping_add(first) ^ word.wrapping_add(sum) ^ (word >> right).wrapping_add(second)
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    std::array::from_fn(|i| {
        u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("a word has 8 bytes"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::UdpSocket;
    use std::thread;
    use std::time::Duration;

    use curvecp::{ClientConfig, DomainName, Endpoint, Extension, SecretKey, TransmitBuffer};
    use rand::rand_core::UnwrapErr;

    use super::*;
    use crate::KeyDirectory;
    use crate::reference::{self, Peer};

    fn decrypt(key: &[u8; 32], block: [u8; 16]) -> [u64; 2] {
        let ([a, b, c, d], [mut left, mut right]) = (words(key), words(&block));
        for sum in sums().rev() {
            right = right.wrapping_sub(mix(left, sum, [16, 8], [c, d]));
            left = left.wrapping_sub(mix(right, sum, [7, 12], [a, b]));
        }
        [left, right]
    }

    fn counter(directory: &Path) -> u64 {
        u64::from_le_bytes(*read_exactly(&directory.join(SECRETS).join("noncecounter")).unwrap())
    }

    #[test]
    fn a_nonce_hides_a_counter_that_starts_where_the_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("key");
        let mut nonces = KeyDirectory::create(&directory).unwrap().nonces().unwrap();
        assert_eq!(counter(&directory), BLOCK);
        for expected in 0..100 {
            let nonce = nonces.next().unwrap();
            assert_eq!(decrypt(&nonces.key, nonce)[0], expected);
        }
    }

    #[test]
    fn sources_of_one_directory_never_share_a_counter() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("key");
        let keys = KeyDirectory::create(&directory).unwrap();
        let starts: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..5).map(|_| keys.nonces().unwrap().next).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        // A source that is dropped with its block unused is what a crash leaves.
        assert_eq!(starts.iter().collect::<HashSet<_>>().len(), 20);
        assert!(starts.iter().all(|start| start % BLOCK == 0));
        assert_eq!(counter(&directory), 20 * BLOCK);
    }

    #[test]
    fn a_source_goes_on_in_a_further_block_and_stops_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("key");
        let keys = KeyDirectory::create(&directory).unwrap();
        let (mut first, _second) = (keys.nonces().unwrap(), keys.nonces().unwrap());
        first.next = first.end;
        let nonce = first.next().unwrap();
        assert_eq!(decrypt(&first.key, nonce)[0], 2 * BLOCK);
        let file = directory.join(SECRETS).join("noncecounter");
        fs::write(&file, (u64::MAX - 5).to_le_bytes()).unwrap();
        assert!(matches!(keys.nonces(), Err(CurveError::NoncesUsedUp(path)) if path == file));
    }

    #[test]
    fn a_source_that_cannot_reserve_has_no_nonce_until_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("key");
        let mut nonces = KeyDirectory::create(&directory).unwrap().nonces().unwrap();
        nonces.next = nonces.end;
        let (file, away) = (directory.join(SECRETS).join("noncecounter"), folder.path().join("away"));
        fs::rename(&file, &away).unwrap();
        assert_eq!((nonces.next(), nonces.next()), (None, None));
        fs::rename(&away, &file).unwrap();
        assert_eq!(nonces.next(), None, "the disk is not tried again at once");
        nonces.failed = Instant::now().checked_sub(RETRY_AFTER);
        let nonce = nonces.next().unwrap();
        assert_eq!(decrypt(&nonces.key, nonce)[0], BLOCK);
        assert_eq!(nonces.failed, None);
    }

    #[test]
    fn the_reference_makes_its_nonces_from_the_same_counter_by_the_same_cipher() {
        if !reference::is_here() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("key");
        let keys = KeyDirectory::create(&directory).unwrap();
        let ours = keys.nonces().unwrap();
        let server = Peer::server(&directory, "true");
        let config = ClientConfig {
            identity: SecretKey::from_bytes([1; 32]),
            server: keys.public_key(),
            server_extension: Extension::default(),
            name: DomainName::new(reference::NAME).unwrap(),
            addresses: vec![server.address],
            extension: None,
            capabilities: Default::default(),
            message: Default::default(),
        };
        let now = Duration::ZERO;
        let mut client = Endpoint::new(now, None, Box::new(UnwrapErr(SysRng)), Box::new(RandomNonces));
        client.connect(now, config).unwrap();
        let mut hello = TransmitBuffer::new(1);
        assert!(client.poll_transmit(now, &mut hello));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut cookie = [0; 200];
        let answered = (0..100).any(|_| {
            socket.send_to(hello.transmits().next().unwrap().bytes, server.address).unwrap();
            matches!(socket.recv(&mut cookie), Ok(200))
        });
        assert!(answered, "the server sends no Cookie");
        let counter = decrypt(&ours.key, cookie[40..56].try_into().unwrap())[0];
        assert!((BLOCK..2 * BLOCK).contains(&counter), "{counter:#x}");
    }
}
