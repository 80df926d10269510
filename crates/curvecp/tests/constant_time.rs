//! Ciphers, tags, key agreement and comparisons execute the same instructions whatever the secrets are.
//!
//! The processor traps after each instruction (its flag TF), and a handler of that signal notes where it was. The addresses are compared
//! between keys, texts and wrong tags of one length: a branch on a secret makes them differ, in every kernel that this processor can
//! run. An access to memory at an address that depends on a secret would not show; XSalsa20 and Poly1305 have no tables.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "a handler of traps, and the flag that causes them")]

use curvecp::seal::{Batch, DirectionKey, Kernel};
use curvecp::{PublicKey, SecretKey, TAG};
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, PoisonError};

/// Bytes of a header, and of a packet with a text of two blocks of Salsa20, one of them not whole.
const HEADER: usize = 8;
const STRIDE: usize = HEADER + TAG + 64 + 16;
/// All lanes of a kernel.
const PACKETS: usize = 8;

type Packets = [u8; PACKETS * STRIDE];

/// The most instructions that are noted.
const MOST: usize = 1 << 20;

/// The addresses of the instructions for the first secret.
static ADDRESSES: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
/// How many instructions there were for this secret, and the first whose address differs.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static DIFFERS: AtomicUsize = AtomicUsize::new(0);
/// Whether this is the first secret.
static IS_FIRST: AtomicBool = AtomicBool::new(false);
/// One trace at a time.
static TRACING: Mutex<()> = Mutex::new(());

extern "C" fn note(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel calls a handler with SA_SIGINFO with the state in which it will go on.
    let address = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    let number = COUNT.fetch_add(1, Relaxed);
    let Some(first) = ADDRESSES.get(number) else { return };
    if IS_FIRST.load(Relaxed) {
        first.store(address as u64, Relaxed);
    } else if first.load(Relaxed) != address as u64 {
        DIFFERS.fetch_min(number, Relaxed);
    }
}

/// Executes `work` with traps after each instruction.
#[inline(never)]
fn trace(work: impl FnOnce()) {
    // SAFETY: only TF changes, which traps into `note` after each instruction; the kernel runs handlers without it.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    work();
    // SAFETY: as above.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
}

/// The number of the instruction at which one of the secrets leaves the way of the first, if one does.
///
/// Nothing is allocated between the secrets, and all are at one address: `malloc` and `memcpy` go by what they find.
fn difference<T: Clone>(secrets: &[T], work: impl Fn(&mut T)) -> Option<usize> {
    let tracing = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    let traps = SigAction::new(SigHandler::SigAction(note), SaFlags::SA_SIGINFO, SigSet::empty());
    // SAFETY: the handler works on atomic numbers only.
    unsafe { sigaction(Signal::SIGTRAP, &traps) }.unwrap();
    let mut least = usize::MAX;
    // The first execution of all finds out what the processor can do, and resolves functions.
    work(&mut secrets[0].clone());
    for (number, secret) in secrets.iter().enumerate() {
        let mut secret = secret.clone();
        IS_FIRST.store(number == 0, Relaxed);
        let before = COUNT.swap(0, Relaxed);
        DIFFERS.store(usize::MAX, Relaxed);
        trace(|| work(&mut secret));
        let count = COUNT.load(Relaxed);
        assert!((5..=MOST).contains(&count), "{count} instructions");
        if number > 0 {
            let shorter = if count == before { usize::MAX } else { count.min(before) };
            least = least.min(DIFFERS.load(Relaxed)).min(shorter);
        }
    }
    drop(tracing);
    (least < usize::MAX).then_some(least)
}

/// Secrets of extreme and of usual bits.
fn secrets() -> [SecretKey; 3] {
    let usual = std::array::from_fn(|i| (i * i + 3 * i + 5) as u8);
    [[0; 32], [0xff; 32], usual].map(SecretKey::from_bytes)
}

/// Keys with texts, none like another.
fn keys_and_texts() -> Vec<(DirectionKey, Packets)> {
    let peer = SecretKey::from_bytes([7; 32]).public_key();
    let with_text = |(secret, text): (SecretKey, fn(usize) -> u8)| {
        let mut packets: Packets = std::array::from_fn(text);
        for (i, packet) in packets.chunks_exact_mut(STRIDE).enumerate() {
            packet[..HEADER].copy_from_slice(&(i as u64 + 1).to_le_bytes());
        }
        (DirectionKey::new(secret.box_key(&peer).unwrap(), b"CurveCP-client-M"), packets)
    };
    let texts: [fn(usize) -> u8; 3] = [|_| 0, |_| 0xff, |i| (i * i / 8) as u8];
    secrets().into_iter().zip(texts).map(with_text).collect()
}

/// The packets that one test takes: the cipher for single packets does the same for each.
fn batch(kernel: Option<Kernel>, packets: &mut Packets) -> Batch<'_> {
    let count = if kernel.is_some() { PACKETS } else { 1 };
    Batch { packets: &mut packets[..count * STRIDE], stride: STRIDE, header: HEADER }
}

fn kernels() -> impl Iterator<Item = Option<Kernel>> {
    Kernel::all().map(Some).chain([None])
}

/// What the other tests rest on: a comparison that ends at the first wrong byte is noticed, one that does not is not.
#[test]
fn a_branch_on_a_secret_is_noticed() {
    let tags =
        [[0_u8; 64], std::array::from_fn(|i| u8::from(i == 0)), std::array::from_fn(|i| u8::from(i == 40))];
    let ends_early = |tag: &mut [u8; 64]| _ = black_box(tag.iter().all(|byte| black_box(*byte) == 0));
    assert!(difference(&tags, ends_early).is_some());
    let reads_all =
        |tag: &mut [u8; 64]| _ = black_box(tag.iter().fold(0, |all, byte| all | black_box(*byte)));
    assert_eq!(difference(&tags, reads_all), None);
}

#[test]
fn sealing_takes_the_same_way_for_all_keys_and_texts() {
    for kernel in kernels() {
        let differs = difference(&keys_and_texts(), |(key, packets)| {
            key.seal_batch_with(kernel, batch(kernel, packets))
        });
        assert_eq!(differs, None, "{kernel:?}");
    }
}

#[test]
fn opening_takes_the_same_way_for_all_keys_texts_and_wrong_tags() {
    for kernel in kernels() {
        let open = |(key, packets): &mut (DirectionKey, Packets)| {
            black_box(key.open_batch_with(kernel, batch(kernel, packets)));
        };
        let mut sealed = keys_and_texts();
        for (key, packets) in &mut sealed {
            key.seal_batch_with(kernel, batch(kernel, packets));
            let opened = key.open_batch_with(kernel, batch(kernel, &mut packets.clone()));
            assert_eq!(opened, if kernel.is_some() { 0xff } else { 1 });
        }
        assert_eq!(difference(&sealed, open), None, "{kernel:?}: authentic packets");

        // One bit of the tag's first byte, one of its last, all of it.
        let forge = |wrong: fn(&mut [u8])| {
            let (key, mut packets) = sealed[2].clone();
            packets.chunks_exact_mut(STRIDE).for_each(|packet| wrong(&mut packet[HEADER..HEADER + TAG]));
            assert_eq!(key.open_batch_with(kernel, batch(kernel, &mut packets.clone())), 0);
            (key, packets)
        };
        let forged = [
            forge(|tag| tag[0] ^= 1),
            forge(|tag| tag[TAG - 1] ^= 0x80),
            forge(|tag| tag.iter_mut().for_each(|byte| *byte = !*byte)),
        ];
        assert_eq!(difference(&forged, open), None, "{kernel:?}: forged packets");
    }
}

#[test]
fn agreeing_on_a_key_takes_the_same_way_for_all_secrets() {
    let peer = SecretKey::from_bytes([7; 32]).public_key();
    let shared = |secret: &mut SecretKey| _ = black_box(secret.box_key(&peer));
    assert_eq!(difference(&secrets()[1..], shared), None);
    let public = |secret: &mut SecretKey| _ = black_box(secret.public_key());
    assert_eq!(difference(&secrets()[1..], public), None);
}

#[test]
fn keys_are_compared_to_their_ends() {
    let differs_at = |byte: usize| std::array::from_fn(|i| u8::from(i == byte));
    let key = PublicKey([0; 32]);
    let others = [0, 15, 31].map(|byte| PublicKey(differs_at(byte)));
    assert_eq!(difference(&others, |other| _ = black_box(black_box(&key) == black_box(other))), None);
    let secret = SecretKey::from_bytes([0; 32]);
    let others = [0, 15, 31].map(|byte| SecretKey::from_bytes(differs_at(byte)));
    assert_eq!(difference(&others, |other| _ = black_box(black_box(&secret) == black_box(other))), None);
}
