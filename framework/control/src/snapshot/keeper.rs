//! The keeper: takes the snapshot, makes the ordered runs one after the other, and restores after each.
//!
//! It runs on the carrier's kernel thread, on a stack in its own memory, with the carrier's own identity. After the
//! snapshot it writes nowhere but into that memory, the region, and what it restores.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use waylay_control_protocol::batch::{Fate, Record};
use waylay_control_protocol::{Reply, Request, Statement};

use super::image::{Image, moved};
use super::journal::Journal;
use super::signals::Signals;
use super::{End, KEEPER, filter, keeper, trap};
use crate::runtime::runtime;
use crate::switch::{Context, fs_base, switch};
use crate::{fork_server, sys};

/// Bytes that are kept of an output: the driver keeps no more.
const KEPT: usize = 1 << 20;
const STACK: usize = 256 * 1024;
const SIGNAL_STACK: usize = 128 * 1024;
const GUARD: usize = 4096;
/// Threads made in advance when nobody asked for more, and by how much that grows.
const FIRST_THREADS: u32 = 4;
const GROWTH: u32 = 4;
/// More than this is left to the fork server.
const MOST_THREADS: u32 = 512;
/// The program's stack below the place of the snapshot is emptied for so many bytes: what set-up left there is not what
/// it would find after a fork.
const EMPTIED: usize = 32 * 1024;

/// What outlives a run. Lies in memory that is not part of the snapshot.
pub(crate) struct Keeper {
    /// The program, in front of `main`.
    start: Context,
    /// The loop below, while the program runs.
    base: Context,
    end: End,
    running: bool,
    socket: i32,
    /// Standard output and error output, under numbers that the program does not use.
    outputs: [i32; 2],
    pub(super) image: Image,
    pub(super) journal: Journal,
    pub(super) signals: Signals,
    output_bytes: UnsafeCell<[[u8; KEPT]; 2]>,
}

/// Why this process can make no restored runs, as far as that can be told before anything is changed.
pub(crate) fn why_not() -> Option<&'static str> {
    if !crate::runtime::can_carry() {
        return Some("the processor or the kernel has no FSGSBASE, or shadow stacks are on");
    }
    if crate::runtime::kernel_threads() > 1 {
        return Some("the program has threads before main");
    }
    Image::is_possible().err()
}

/// Becomes a process that makes restored runs, and returns once per run, in front of `main`. Ends the process when the
/// driver closes the socket.
///
/// # Safety
/// The calling thread is the main thread, sits on the carrier, and is the only one that runs; the runtime is installed.
pub(crate) unsafe fn serve(socket: i32) {
    // SAFETY: by the caller's promise; a keeper of zeroes is valid but for the fields that are written here.
    unsafe {
        let length = size_of::<Keeper>().next_multiple_of(GUARD) + SIGNAL_STACK + STACK;
        let Some(at) = sys::map(length + 2 * GUARD) else { sys::exit_now(3) };
        sys::forbid(at, GUARD);
        sys::forbid(at.add(GUARD + length), GUARD);
        let keeper = at.add(GUARD).cast::<Keeper>();
        KEEPER.store(keeper, Ordering::Relaxed);
        (&raw mut (*keeper).start).write(Context::empty());
        (&raw mut (*keeper).base).write(Context::empty());
        (&raw mut (*keeper).end).write(End::Status(0));
        (*keeper).socket = socket;
        (*keeper).start.set_fs_base(fs_base());
        (*keeper).base.set_fs_base((*runtime()).system.carrier.identity());
        let top = at.add(GUARD + length);
        let entry = Context::starting(top, keep, (*runtime()).system.carrier.identity());
        switch(&raw mut (*keeper).start, &raw const entry);
    }
}

/// Set-up failed half-way: the process is of no use any more, and the driver starts another.
fn give_up(why: &'static str) -> ! {
    // SAFETY: set-up runs with the token.
    let region = unsafe { &(*runtime()).region };
    region.tell(&Statement::Refusal(why.into()));
    // SAFETY: the keeper was made before anything could fail.
    fork_server::send(unsafe { (*keeper()).socket }, Reply::Unable);
    sys::exit_now(3)
}

/// Where the keeper begins, on its own stack.
extern "C" fn keep() -> ! {
    // SAFETY: only this function and what the program's end leads to use the keeper, one at a time.
    unsafe {
        let keeper = keeper();
        if let Err(why) = (*keeper).prepare() {
            give_up(why);
        }
        loop {
            (*keeper).make_batch();
            let (_, done) = region().batch().progress();
            fork_server::send((*keeper).socket, Reply::Made(done as i32));
            if fork_server::next_request((*keeper).socket) != Some(Request::Batch) {
                sys::exit_now(0);
            }
        }
    }
}

/// The region, through the runtime, which does not move.
fn region<'a>() -> &'a waylay_control_protocol::RegionMap {
    // SAFETY: between runs nobody else is there; the region stays mapped.
    unsafe { &(*runtime()).region }
}

impl Keeper {
    /// Whether a run goes on. Then the caller executes it: all other kernel threads wait until it is over.
    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// Ends the run that goes on.
    ///
    /// # Safety
    /// The caller executes it.
    pub(super) unsafe fn finish(&mut self, end: End) -> ! {
        self.end = end;
        self.running = false;
        let mut gone = Context::empty();
        // SAFETY: the loop was suspended by the switch that started the run.
        unsafe { switch(&raw mut gone, &raw const self.base) };
        unreachable!("a run that ended is not resumed")
    }

    /// Takes the snapshot.
    ///
    /// # Safety
    /// Runs on the keeper's stack, with the program suspended.
    unsafe fn prepare(&mut self) -> Result<(), &'static str> {
        sys::swap_signal_mask(u64::MAX);
        let reserved = first_reserved();
        self.socket = moved(self.socket, reserved);
        for fd in [1, 2] {
            let args = [fd, libc::F_DUPFD_CLOEXEC as usize, reserved as usize, 0, 0, 0];
            // SAFETY: a plain call.
            self.outputs[fd - 1] = unsafe { sys::call(libc::SYS_fcntl, args) as i32 };
        }
        self.journal.begin();
        // Made now, because it allocates.
        let text = own_code().ok_or("the library's code cannot be found")?;
        let filter = filter::filter(text, &self.journal.before, reserved as u32);
        let filter = filter.ok_or("too many descriptors are open")?;
        let low = (&raw const *self) as usize;
        let high = low + size_of::<Keeper>().next_multiple_of(GUARD) + SIGNAL_STACK + STACK;
        // SAFETY: the program is suspended; its stack below the place where it is holds nothing that is needed.
        unsafe {
            let stack = self.start.stack_pointer();
            ((stack - EMPTIED) as *mut u8).write_bytes(0, EMPTIED);
            let stack = libc::stack_t {
                ss_sp: (high - STACK - SIGNAL_STACK) as *mut core::ffi::c_void,
                ss_flags: 0,
                ss_size: SIGNAL_STACK,
            };
            sys::call(libc::SYS_sigaltstack, [&raw const stack as usize, 0, 0, 0, 0, 0]);
            self.image.take(&[(low, high)], reserved)?;
        }
        self.signals.take_over(trap::on_system_call as *const () as usize);
        install(&filter)?;
        // Freed now, that would be part of the first run and of no other.
        core::mem::forget(filter);
        Ok(())
    }

    /// Makes the runs that are ordered.
    unsafe fn make_batch(&mut self) {
        let mut place = 0;
        loop {
            if region().batch().stop.load(Ordering::Relaxed) != 0 {
                return;
            }
            let Some((settings, parameters, next)) = region().batch().ordered_at(place) else { return };
            // SAFETY: between runs nobody else touches the region.
            unsafe {
                let region = &mut (*runtime()).region;
                if region.prepare(settings, parameters).is_err() {
                    return;
                }
                self.run();
                let written = self.record();
                self.restore();
                if !written || matches!(self.end, End::MoreThreads(_)) {
                    return;
                }
            }
            place = next;
        }
    }

    /// Runs the program to its end.
    unsafe fn run(&mut self) {
        // What was kept back is handled here, by nobody.
        sys::swap_signal_mask(0);
        self.running = true;
        // SAFETY: the program is as the snapshot left it.
        unsafe { switch(&raw mut self.base, &raw const self.start) };
        sys::swap_signal_mask(u64::MAX);
    }

    /// Writes the record of the run; false when there is no room left for it.
    unsafe fn record(&mut self) -> bool {
        let region = region();
        let batch = region.batch();
        // What the run has said so far is not why it is given back.
        let give_back = |why: &str| {
            region.take_back();
            region.tell(&Statement::Refusal(why.into()));
            (Fate::Abandoned, 0)
        };
        let (fate, status) = match self.end {
            End::Status(status) => (Fate::Made, status),
            End::Refused(why) => give_back(why),
            End::MoreThreads(size) => {
                let had = batch.wished().find(|&(stack, _)| stack == size).map_or(0, |(_, threads)| threads);
                if had >= MOST_THREADS {
                    give_back("has more threads than are made in advance")
                } else {
                    batch.wish(size, (had * GROWTH).clamp(FIRST_THREADS, MOST_THREADS));
                    (Fate::MoreThreads, 0)
                }
            }
        };
        // SAFETY: the buffers belong to the keeper, and nobody else borrows them.
        let buffers = unsafe { &mut *self.output_bytes.get() };
        let [stdout, stderr] = [0, 1].map(|which| take_output(self.outputs[which], &mut buffers[which]));
        let told = region.told();
        let record =
            Record { fate, status, told, stdout: &buffers[0][..stdout], stderr: &buffers[1][..stderr] };
        // SAFETY: this process is the only one that uses the region.
        unsafe { batch.record(&record) }
    }

    /// Puts everything back.
    unsafe fn restore(&mut self) {
        // SAFETY: the run is over, and nothing but the carrier ran.
        unsafe {
            self.journal.undo(&mut self.image);
            self.signals.restore();
            self.image.restore(true);
        }
    }
}

/// The first of the descriptor numbers that programs do not get to: they are given the lowest that is free.
fn first_reserved() -> i32 {
    const ROOM: u64 = 64;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to the local.
    unsafe {
        sys::call(libc::SYS_getrlimit, [libc::RLIMIT_NOFILE as usize, &raw mut limit as usize, 0, 0, 0, 0]);
    }
    limit.rlim_cur.min(super::policy::DESCRIPTORS as u64).saturating_sub(ROOM) as i32
}

/// Takes what was written to an output and empties it; returns how much was kept.
fn take_output(fd: i32, to: &mut [u8; KEPT]) -> usize {
    // SAFETY: the kernel writes into the local and at most the length of the buffer; an all-zero stat is valid.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        let known = sys::call(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0]) == 0;
        if !known || stat.st_size == 0 || stat.st_mode & libc::S_IFMT != libc::S_IFREG {
            return 0;
        }
        let args = [fd as usize, to.as_mut_ptr() as usize, KEPT, 0, 0, 0];
        let read = sys::call(libc::SYS_pread64, args);
        sys::call(libc::SYS_ftruncate, [fd as usize, 0, 0, 0, 0, 0]);
        usize::try_from(read).unwrap_or(0)
    }
}

/// The range of addresses that holds the library's code.
fn own_code() -> Option<(usize, usize)> {
    let mut found = (0usize, 0usize);
    // SAFETY: the callback gets a pointer to the local.
    unsafe { libc::dl_iterate_phdr(Some(note_code), (&raw mut found).cast()) };
    (found.1 > 0).then_some(found)
}

unsafe extern "C" fn note_code(
    info: *mut libc::dl_phdr_info,
    _: usize,
    to: *mut core::ffi::c_void,
) -> core::ffi::c_int {
    let own = own_code as *const () as usize;
    // SAFETY: libc passes a valid record, and we passed the destination.
    unsafe {
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
            let low = ((*info).dlpi_addr + header.p_vaddr) as usize;
            let high = low + header.p_memsz as usize;
            if (low..high).contains(&own) {
                *to.cast::<(usize, usize)>() = (low, high);
                return 1;
            }
        }
    }
    0
}

/// Puts the filter before every thread of the process.
fn install(filter: &[filter::Instruction]) -> Result<(), &'static str> {
    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const filter::Instruction,
    }
    const SET_MODE_FILTER: usize = 1;
    const ALL_THREADS: usize = 1;
    let program = Program { length: filter.len() as u16, instructions: filter.as_ptr() };
    // SAFETY: the kernel copies the program; without new privileges, unprivileged processes may install one.
    unsafe {
        sys::call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0]);
        let args = [SET_MODE_FILTER, ALL_THREADS, &raw const program as usize, 0, 0, 0];
        if sys::call(libc::SYS_seccomp, args) == 0 { Ok(()) } else { Err("the kernel takes no filter of system calls") }
    }
}
