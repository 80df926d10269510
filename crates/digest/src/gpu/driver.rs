//! A card through NVIDIA's driver, whose library is loaded at run time.
//!
//! The bindings panic where the library or a function of it is missing. So this first looks for the library, then
//! asks for its version, and calls nothing that a driver of that version lacks.
#![allow(unsafe_code)] // The driver is a C library.

use std::ffi::{CStr, CString, c_void};
use std::time::Duration;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};

use super::error::{GpuAbsent, GpuError};
use super::launch::{BLOCK_THREADS, Launch, Report, UNTOUCHED, WIDTHS, Words};
use super::ptx::{self, Sums};
use super::scan::{Card, SLOTS, Slot};

/// Candidates in a launch for each multiprocessor: 2 ms at 17 G/s on a card with 132 of them.
const BATCH: u32 = 1 << 18;

/// The version of CUDA that the driver must know: that of the kernel's text, PTX 7.0. It is also the first with all
/// functions that are called here.
const OLDEST_CUDA: i32 = 11_000;

/// The state of a slot on the card.
struct Lane {
    stream: sys::CUstream,
    /// Recorded after each launch.
    done: sys::CUevent,
    /// The address of the slot's [`Words`].
    words: sys::CUdeviceptr,
}

/// The word that launches poll, which the host changes while they run. It is in the card's memory: each warp reads
/// it once in 16 candidates, and an H100 gets about a million words a second from the memory of the host, which
/// limited the search to 0.46 G/s.
struct Flag {
    /// A separate stream, so that a change overtakes the launches under way.
    stream: sys::CUstream,
    at: sys::CUdeviceptr,
}

struct Kernel {
    function: sys::CUfunction,
    /// The number of its blocks that fill the card.
    blocks: u32,
}

/// The first card, ready to search.
pub(super) struct Driver {
    name: String,
    multiprocessors: u32,
    kernels: [Kernel; WIDTHS.len()],
    lanes: [Lane; SLOTS],
    flag: Flag,
    context: Context,
}

// SAFETY: The driver may be called from any thread; each method first makes the context that of its thread.
unsafe impl Send for Driver {}

/// The context of a card. Dropping it releases everything that was allocated on the card.
struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

impl Context {
    /// Makes this the context of the thread, to which the driver's functions refer.
    fn enter(&self) -> Result<(), GpuError> {
        // SAFETY: The context was retained and is released by `drop` alone.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed("take up its context"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: The context was retained once, by `Driver::find`. If no other part of the process uses it, its
        // release frees all that it holds. There is nothing to do after a failure.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // If the flag cannot be raised, the launches still end after some milliseconds.
        let _ = self.halt();
        if self.context.enter().is_ok() {
            // SAFETY: There is a context. The launches under way write to its memory and so must end before it.
            let _ = unsafe { sys::cuCtxSynchronize() };
        }
    }
}

impl Driver {
    /// The first card of the machine, with its kernels loaded.
    pub(super) fn find(sums: Sums) -> Result<Self, GpuAbsent> {
        // SAFETY: Loading the driver's library runs its initialisers, as every program that uses it does.
        if !unsafe { sys::is_culib_present() } {
            return Err(GpuAbsent::NoDriver);
        }
        let context = open()?;
        let name = result::device::get_name(context.device).map_err(failed("return its name"))?;
        let attribute = |attribute| {
            // SAFETY: The device is one that the driver gave.
            unsafe { result::device::get_attribute(context.device, attribute) }
                .map_err(failed("describe itself"))
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        if major < 7 {
            return Err(GpuAbsent::TooOld { name });
        }
        let count = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let multiprocessors = u32::try_from(count).unwrap_or(0).max(1);

        let module = load(&ptx::module(sums))?;
        let kernels = try_array(|index| kernel(module, WIDTHS[index], multiprocessors))?;
        let lanes = try_array(|_| lane())?;
        let flag = flag()?;
        Ok(Self { name, multiprocessors, kernels, lanes, flag, context })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sets the flag, also while launches run.
    fn set_flag(&self, value: u32) -> Result<(), GpuError> {
        self.context.enter()?;
        // SAFETY: Stream and memory are the context's, and it is the thread's. The value lives until it was copied.
        let set = unsafe {
            result::memcpy_htod_async(self.flag.at, &[value], self.flag.stream)
                .and_then(|()| result::stream::synchronize(self.flag.stream))
        };
        set.map_err(failed("set the flag that stops a search"))
    }
}

impl Card for Driver {
    fn batch(&self) -> u32 {
        self.multiprocessors.saturating_mul(BATCH)
    }

    fn launch(&mut self, slot: Slot, launch: &Launch<'_>) -> Result<(), GpuError> {
        self.context.enter()?;
        let Lane { stream, done, words } = self.lanes[slot.0];
        let Kernel { function, blocks } = self.kernels[launch.width()];
        let blocks = launch.blocks(blocks);
        let mut call = launch.call(words, self.flag.at);
        let mut begin = || {
            // SAFETY: Stream, event, function and memory are the context's, and it is the thread's. The words
            // have the size of `UNTOUCHED`, a constant; the kernel's parameter has that of `call`, which is
            // copied before the function returns. What the kernel writes lies within the words.
            unsafe {
                result::memcpy_htod_async(words, &UNTOUCHED, stream)?;
                let parameter = call.as_mut_ptr().cast::<c_void>();
                let threads = (BLOCK_THREADS, 1, 1);
                result::launch_kernel(function, (blocks, 1, 1), threads, 0, stream, &mut [parameter])?;
                result::event::record(done, stream)
            }
        };
        begin().map_err(failed("begin a search"))
    }

    fn report(&mut self, slot: Slot) -> Result<Option<Report>, GpuError> {
        self.context.enter()?;
        let Lane { done, words, .. } = self.lanes[slot.0];
        let mut end: Words = UNTOUCHED;
        // SAFETY: Event and memory are the context's, which is the thread's. An event that was never recorded
        // counts as done.
        let read =
            unsafe { result::event::query(done).and_then(|()| result::memcpy_dtoh_sync(&mut end, words)) };
        match read {
            Ok(()) => Ok(Some(end.into())),
            Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(None),
            Err(error) => Err(failed("search")(error)),
        }
    }

    fn halt(&mut self) -> Result<(), GpuError> {
        self.set_flag(1)
    }

    fn resume(&mut self) -> Result<(), GpuError> {
        self.set_flag(0)
    }

    fn pause(&mut self) {
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// The context of the first card.
fn open() -> Result<Context, GpuAbsent> {
    let none = |DriverError(code): DriverError| match code {
        CUresult::CUDA_ERROR_NO_DEVICE => GpuAbsent::NoCard,
        _ => failed("start")(DriverError(code)).into(),
    };
    let mut version = 0;
    // SAFETY: This one may be called before the start, and is in every driver.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(none)?;
    if version < OLDEST_CUDA {
        return Err(GpuAbsent::OldDriver);
    }
    result::init().map_err(none)?;
    let device = match result::device::get_count().map_err(none)? {
        0 => return Err(GpuAbsent::NoCard),
        _ => result::device::get(0).map_err(none)?,
    };
    // SAFETY: The device is one that the driver gave.
    let context = unsafe { result::primary_ctx::retain(device) }.map_err(none)?;
    let context = Context { device, context };
    context.enter()?;
    Ok(context)
}

/// Has the driver translate a module.
fn load(text: &str) -> Result<sys::CUmodule, GpuAbsent> {
    let text = CString::new(text).expect("the kernel is text");
    let mut log = [0u8; 4096];
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // The size is passed instead of a pointer.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
    let mut module = std::ptr::null_mut();
    // SAFETY: The text ends with a zero, there are as many options as values, and the log is as long as said.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    code.result().map_err(|error| {
        let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy();
        GpuAbsent::Refused(format!("{} {}", describe(error), log.trim()).trim().into())
    })?;
    Ok(module)
}

fn kernel(module: sys::CUmodule, width: usize, multiprocessors: u32) -> Result<Kernel, GpuError> {
    let name = CString::new(ptx::name(width)).expect("a name is text");
    // SAFETY: The module is loaded, and the function is one of it.
    let kernel = unsafe {
        result::module::get_function(module, name).and_then(|function| {
            let threads = BLOCK_THREADS as i32;
            let blocks = result::occupancy::max_active_block_per_multiprocessor(function, threads, 0)?;
            Ok(Kernel { function, blocks: u32::try_from(blocks).unwrap_or(0).max(1) * multiprocessors })
        })
    };
    kernel.map_err(failed("find the kernel"))
}

fn lane() -> Result<Lane, GpuError> {
    let make = || {
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let done = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        // SAFETY: The memory is written before it is read.
        let words = unsafe {
            let words = result::malloc_sync(size_of::<Words>())?;
            result::memcpy_htod_sync(words, &UNTOUCHED)?;
            words
        };
        Ok(Lane { stream, done, words })
    };
    make().map_err(failed("give memory"))
}

fn flag() -> Result<Flag, GpuError> {
    let make = || {
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        // SAFETY: `resume` writes the memory before a launch reads it.
        Ok(Flag { stream, at: unsafe { result::malloc_sync(size_of::<u32>())? } })
    };
    make().map_err(failed("give memory"))
}

/// An array of what can be made, or the first error.
fn try_array<T, E, const N: usize>(make: impl FnMut(usize) -> Result<T, E>) -> Result<[T; N], E> {
    let made = (0..N).map(make).collect::<Result<Vec<T>, E>>()?;
    Ok(made.try_into().unwrap_or_else(|_| unreachable!("there are N of them")))
}

/// Says what the card was to do when it failed.
fn failed(to: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |error| GpuError { to, why: describe(error) }
}

/// The driver's words for an error.
fn describe(error: DriverError) -> String {
    match error.error_string() {
        Ok(words) => words.to_string_lossy().into_owned(),
        Err(_) => format!("{:?}", error.0),
    }
}
