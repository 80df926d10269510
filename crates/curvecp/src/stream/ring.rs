//! Bytes of a stream by their position, in a ring that grows with its contents.

/// Byte p of the stream is at p less the origin, modulo the capacity, a power of two. The owner decides which positions are
/// held; the ring holds none of it until [`reserve`](Self::reserve) and frees everything at [`clear`](Self::clear).
#[derive(Debug, Default)]
pub(crate) struct Ring {
    bytes: Vec<u8>,
    /// The position of the first byte of memory.
    origin: u64,
}

/// Below this the ring does not bother to be smaller.
const SMALLEST: usize = 4096;

impl Ring {
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Makes it hold `[start, stop)`. What it held of `[start, held)` stays.
    pub(crate) fn reserve(&mut self, start: u64, held: u64, stop: u64) {
        if start == held {
            // The memory used last is still in the caches.
            self.origin = start;
        }
        let needed = (stop - start) as usize;
        if needed <= self.bytes.len() {
            return;
        }
        let capacity = needed.next_power_of_two().max(SMALLEST);
        let mut grown = Self { bytes: vec![0; capacity], origin: start };
        let mut at = start;
        while at < held {
            let piece = self.piece(at, held);
            grown.put(at, &self.bytes[piece.clone()]);
            at += piece.len() as u64;
        }
        *self = grown;
    }

    /// Copies bytes in at a position. The owner has reserved it.
    pub(crate) fn put(&mut self, position: u64, bytes: &[u8]) {
        let stop = position + bytes.len() as u64;
        let mut at = position;
        while at < stop {
            let piece = self.piece(at, stop);
            let from = (at - position) as usize;
            at += piece.len() as u64;
            let length = piece.len();
            self.bytes[piece].copy_from_slice(&bytes[from..from + length]);
        }
    }

    /// Copies bytes out from a position.
    pub(crate) fn get(&self, position: u64, into: &mut [u8]) {
        let stop = position + into.len() as u64;
        let mut at = position;
        while at < stop {
            let piece = self.piece(at, stop);
            let from = (at - position) as usize;
            into[from..from + piece.len()].copy_from_slice(&self.bytes[piece.clone()]);
            at += piece.len() as u64;
        }
    }

    /// Frees everything.
    pub(crate) fn clear(&mut self) {
        self.bytes = Vec::new();
    }

    /// Where the longest piece from `at` that lies in one run of memory and ends before `stop` is.
    fn piece(&self, at: u64, stop: u64) -> std::ops::Range<usize> {
        let index = at.wrapping_sub(self.origin) as usize & (self.bytes.len() - 1);
        index..self.bytes.len().min(index + (stop - at) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_growth_and_the_end_of_memory() {
        let mut ring = Ring::default();
        let bytes: Vec<u8> = (0..40_000_u32).map(|i| (i % 251) as u8).collect();
        let base = 3_000_000_017;
        ring.reserve(base, base, base + 100);
        ring.put(base, &bytes[..100]);
        for (held, stop) in [(100, 5_000), (5_000, 40_000)] {
            ring.reserve(base, base + held, base + stop);
            ring.put(base + held, &bytes[held as usize..stop as usize]);
        }
        let mut out = vec![0; 40_000];
        ring.get(base, &mut out);
        assert_eq!(out, bytes);
        assert_eq!(ring.capacity(), 65_536);
        ring.clear();
        assert_eq!(ring.capacity(), 0);
    }
}
