//! What kernels for Salsa20 (D. J. Bernstein, 2005) with 20 rounds share.

use zeroize::Zeroizing;

/// "expand 32-byte k", the constant of a key of 32 bytes.
const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The input of the block function under this key: the nonce in words 6 and 7 and the number of the block in words 8 and 9
/// are zero.
pub(super) fn input(key: &[u8; 32]) -> Zeroizing<[u32; 16]> {
    let mut words = Zeroizing::new([0; 16]);
    for (i, constant) in SIGMA.into_iter().enumerate() {
        words[5 * i] = constant;
    }
    for (i, word) in key.as_chunks().0.iter().enumerate() {
        let place = if i < 4 { 1 + i } else { 7 + i };
        words[place] = u32::from_le_bytes(*word);
    }
    words
}

/// Two of the 20 rounds over sixteen vectors of words, with the `add`, `xor` and `rotate` of the caller's module.
macro_rules! two_rounds {
    ($x:ident) => {
        two_rounds!($x: [0, 4, 8, 12], [5, 9, 13, 1], [10, 14, 2, 6], [15, 3, 7, 11]);
        two_rounds!($x: [0, 1, 2, 3], [5, 6, 7, 4], [10, 11, 8, 9], [15, 12, 13, 14]);
    };
    // Four quarter-rounds side by side, so that none waits for its own last result.
    ($x:ident: $([$a:literal, $b:literal, $c:literal, $d:literal]),*) => {
        $($x[$b] = xor($x[$b], rotate::<7>(add($x[$a], $x[$d])));)*
        $($x[$c] = xor($x[$c], rotate::<9>(add($x[$b], $x[$a])));)*
        $($x[$d] = xor($x[$d], rotate::<13>(add($x[$c], $x[$b])));)*
        $($x[$a] = xor($x[$a], rotate::<18>(add($x[$d], $x[$c])));)*
    };
}
pub(super) use two_rounds;
