//! Unwinds registers and a piece of a stack to frames.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use framehop::{CacheNative, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder, UnwinderNative};

use super::program::{Images, Sections};

/// The bytes of the stack that each sample copies.
pub(super) const STACK_BYTES: u32 = 16 * 1024;
/// The most frames; deeper stacks are cut at their outer end.
const MOST_FRAMES: usize = 192;
/// The number of times that the code of a process is read again because it did not contain an address.
const MOST_LOOKS: u32 = 16;

/// The registers for unwinding, as a mask (asm/perf_regs.h): BP, SP and IP.
#[cfg(target_arch = "x86_64")]
pub(super) const USER_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// The same on this architecture: X29, LR, SP and PC.
#[cfg(target_arch = "aarch64")]
pub(super) const USER_REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// A location in the code of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Frame {
    /// Within the kernel.
    Kernel,
    /// At this address.
    Address(u64),
}

/// A mapping of code.
#[derive(Clone, Debug)]
struct Code {
    start: u64,
    end: u64,
    bias: u64,
    path: Arc<PathBuf>,
}

/// The part of a process's address space that contains code.
pub(super) struct Space {
    pid: u32,
    code: Vec<Code>,
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    looks: u32,
}

impl Space {
    /// The address space of a process; it is read when the first sample arrives.
    pub(super) fn of(pid: u32) -> Self {
        Self {
            pid,
            code: Vec::new(),
            unwinder: UnwinderNative::new(),
            cache: CacheNative::default(),
            looks: 0,
        }
    }

    /// The frames of a sample, innermost first.
    pub(super) fn frames(
        &mut self,
        at: u64,
        registers: &[u64],
        stack: &[u8],
        images: &mut Images,
    ) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Some((pc, user, stack_at)) = user(registers) else {
            return vec![Frame::Kernel];
        };
        if at != pc {
            frames.push(Frame::Kernel);
        }
        if self.find(pc).is_none() && self.looks < MOST_LOOKS {
            self.read_mappings(images);
        }
        let mut read = |address: u64| {
            let from = address.checked_sub(stack_at).and_then(|from| usize::try_from(from).ok()).ok_or(())?;
            let bytes = stack.get(from..from.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut unwinding = self.unwinder.iter_frames(pc, user, &mut self.cache, &mut read);
        while let Ok(Some(frame)) = unwinding.next() {
            frames.push(Frame::Address(frame.address_for_lookup()));
            if frames.len() >= MOST_FRAMES {
                break;
            }
        }
        frames
    }

    /// The file that contains an address, and the address within that file.
    pub(super) fn place(&self, address: u64) -> Option<(&PathBuf, u64)> {
        let code = self.find(address)?;
        Some((&*code.path, address - code.bias))
    }

    fn find(&self, address: u64) -> Option<&Code> {
        self.code.iter().find(|code| (code.start..code.end).contains(&address))
    }

    /// Reads the current mappings of code of the process (proc_pid_maps(5)).
    fn read_mappings(&mut self, images: &mut Images) {
        self.looks += 1;
        let Ok(maps) = fs::read_to_string(format!("/proc/{}/maps", self.pid)) else { return };
        let mut paths: HashMap<&str, Arc<PathBuf>> = HashMap::new();
        for (start, end, offset, path) in maps.lines().filter_map(mapped_code) {
            if self.find(start).is_some() {
                continue;
            }
            let owned = paths.entry(path).or_insert_with(|| Arc::new(PathBuf::from(path))).clone();
            let Some(image) = images.of(&owned) else { continue };
            let Some(bias) = image.bias(offset, start) else { continue };
            self.unwinder.add_module(Module::new(path.to_owned(), start..end, bias, Sections(&image)));
            self.code.push(Code { start, end, bias, path: owned });
        }
    }
}

/// The program counter, the registers for unwinding, and the address of the piece of stack; `None` for a thread that runs only in
/// the kernel.
#[cfg(target_arch = "x86_64")]
fn user(registers: &[u64]) -> Option<(u64, UnwindRegsNative, u64)> {
    let &[bp, sp, ip] = registers else { return None };
    Some((ip, UnwindRegsNative::new(ip, sp, bp), sp))
}

#[cfg(target_arch = "aarch64")]
fn user(registers: &[u64]) -> Option<(u64, UnwindRegsNative, u64)> {
    let &[fp, lr, sp, pc] = registers else { return None };
    Some((pc, UnwindRegsNative::new(lr, sp, fp), sp))
}

/// Parses start, end, file offset and path from a line of `maps`, if it maps code from a file.
fn mapped_code(line: &str) -> Option<(u64, u64, u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = fields.next()?;
    let path_at = line.find('/')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    is_code.then_some((number(start)?, number(end)?, number(offset)?, &line[path_at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_taken_from_maps() {
        let line = "55d0a1f0-55d0b000 r-xp 00012000 fe:00 1234    /usr/bin/a b (deleted)";
        let code = (0x55d0_a1f0, 0x55d0_b000, 0x12000, "/usr/bin/a b (deleted)");
        assert_eq!(mapped_code(line), Some(code));
        assert_eq!(mapped_code("55d0a1f0-55d0b000 rw-p 00012000 fe:00 1234 /usr/bin/a"), None);
        assert_eq!(mapped_code("7ffd2000-7ffd4000 r-xp 00000000 00:00 0 [vdso]"), None);
        assert_eq!(mapped_code(""), None);
    }
}
