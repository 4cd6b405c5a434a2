//! Calls of the kernel that the program makes itself: those that the scheduler has to do with are served, the rest goes to
//! the kernel.
//!
//! Rust's standard library, parking_lot, crossbeam and C++20's waits all reach the futex through `syscall`; others have the
//! instruction in their own code, which is replaced (`instrument::patch::kernel`), some of them for all calls that wait. Such
//! a call is what libc's function of that name would be. Clocks are the kernel's: whoever goes past libc for the time goes
//! past the kernel as well, to the page that it shares.

use libc::{c_int, c_long, sigset_t};

use super::futex::{futex, note_outsider};
use super::futex_several::{LATER, wait_for_several};
use super::{fail, processors, random, sleep};
use crate::instrument::{copies, delay};
use crate::me::{Unmanaged, as_program, me};
use crate::runtime::Token;
use crate::sys;

/// Six arguments whatever the caller passed: the ABI puts them in the same registers, and the kernel ignores those
/// that a call does not have.
///
/// # Safety
/// As for libc's `syscall`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let me = me();
    // SAFETY: by the caller's promise; a logical thread that runs program code has the token.
    unsafe {
        if !me.is_null() {
            let arguments = [a, b, c, d, e, f];
            let inside = Unmanaged::enter();
            let served = serve(Token::held_by(me), number, arguments);
            drop(inside);
            let result = served.unwrap_or_else(|| kernel(number, arguments));
            let _inside = Unmanaged::enter();
            copies::tell_of_kernel_call(me, number, &arguments, result);
            return result;
        }
        if me.is_null() && number == libc::SYS_futex {
            note_outsider(a, b as i32, c as u32);
        }
        kernel(number, [a, b, c, d, e, f])
    }
}

/// Does what the scheduler has to do with; the result is as that of `syscall`. Nothing when it is the kernel's business.
///
/// # Safety
/// As for libc's `syscall`; the caller is the running thread.
pub(crate) unsafe fn serve(me: &mut Token, number: c_long, arguments: [usize; 6]) -> Option<c_long> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: by the caller's promise.
    unsafe {
        delay::before_call(me);
        match number {
            libc::SYS_futex => Some(futex(me, a, b as i32, c as u32, d, e, f as u32)),
            libc::SYS_futex_waitv => Some(wait_for_several(me, arguments)),
            number if LATER.contains(&number) => Some(fail(libc::ENOSYS).into()),
            libc::SYS_sched_yield => {
                sleep::give_way(me);
                Some(0)
            }
            libc::SYS_gettid => Some(c_long::from((*me.thread()).kernel_id)),
            libc::SYS_getrandom => Some(random::fill(me, a as *mut u8, b) as c_long),
            libc::SYS_sched_getaffinity => {
                processors::get_by_number(me, a, b, c as *mut u8).map(returned)
            }
            libc::SYS_sched_setaffinity => {
                processors::set_by_number(me, a, b, c as *const u8).map(returned)
            }
            libc::SYS_getcpu => {
                processors::where_it_is(me, a as *mut u32, b as *mut u32);
                Some(0)
            }
            _ => by_function(me, number, arguments),
        }
    }
}

// Bound to our own interposed functions, since the library comes first in lookup order. Numbers and pointers are passed
// alike, and what is too wide is cut off.
unsafe extern "C-unwind" {
    fn read(a: usize, b: usize, c: usize) -> isize;
    fn readv(a: usize, b: usize, c: usize) -> isize;
    fn write(a: usize, b: usize, c: usize) -> isize;
    fn writev(a: usize, b: usize, c: usize) -> isize;
    fn recvfrom(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize;
    fn recvmsg(a: usize, b: usize, c: usize) -> isize;
    fn sendto(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize;
    fn sendmsg(a: usize, b: usize, c: usize) -> isize;
    fn recvmmsg(a: usize, b: usize, c: usize, d: usize, e: usize) -> c_int;
    fn sendmmsg(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn pipe(a: usize) -> c_int;
    fn pipe2(a: usize, b: usize) -> c_int;
    fn socketpair(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn eventfd(a: usize, b: usize) -> c_int;
    fn accept(a: usize, b: usize, c: usize) -> c_int;
    fn accept4(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn connect(a: usize, b: usize, c: usize) -> c_int;
    fn close(a: usize) -> c_int;
    fn shutdown(a: usize, b: usize) -> c_int;
    fn poll(a: usize, b: usize, c: usize) -> c_int;
    fn ppoll(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn select(a: usize, b: usize, c: usize, d: usize, e: usize) -> c_int;
    fn pselect(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_int;
    fn epoll_wait(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn epoll_pwait(a: usize, b: usize, c: usize, d: usize, e: usize) -> c_int;
    fn epoll_pwait2(a: usize, b: usize, c: usize, d: usize, e: usize) -> c_int;
    fn timerfd_create(a: usize, b: usize) -> c_int;
    fn timerfd_settime(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn timerfd_gettime(a: usize, b: usize) -> c_int;
    fn nanosleep(a: usize, b: usize) -> c_int;
    fn clock_nanosleep(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn wait4(a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn flock(a: usize, b: usize) -> c_int;
    fn kill(a: usize, b: usize) -> c_int;
    fn tgkill(a: usize, b: usize, c: usize) -> c_int;
    fn signalfd(a: usize, b: usize, c: usize) -> c_int;
    fn pause() -> c_int;
    fn sigsuspend(mask: *const sigset_t) -> c_int;
    fn _exit(a: usize);
}

/// What `syscall` returns where the kernel returns this.
fn returned(result: isize) -> c_long {
    if result < 0 { fail(-result as c_int).into() } else { result as c_long }
}

/// Serves a call by the function that stands in for libc's.
unsafe fn by_function(me: &mut Token, number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<c_long> {
    // SAFETY: by the caller's promise; each gets what the kernel would.
    unsafe {
        as_program(me, || {
            Some(match number {
                libc::SYS_read => read(a, b, c) as c_long,
                libc::SYS_readv => readv(a, b, c) as c_long,
                libc::SYS_write => write(a, b, c) as c_long,
                libc::SYS_writev => writev(a, b, c) as c_long,
                libc::SYS_recvfrom => recvfrom(a, b, c, d, e, f) as c_long,
                libc::SYS_recvmsg => recvmsg(a, b, c) as c_long,
                libc::SYS_sendto => sendto(a, b, c, d, e, f) as c_long,
                libc::SYS_sendmsg => sendmsg(a, b, c) as c_long,
                libc::SYS_recvmmsg => recvmmsg(a, b, c, d, e).into(),
                libc::SYS_sendmmsg => sendmmsg(a, b, c, d).into(),
                libc::SYS_pipe => pipe(a).into(),
                libc::SYS_pipe2 => pipe2(a, b).into(),
                libc::SYS_socketpair => socketpair(a, b, c, d).into(),
                libc::SYS_eventfd => eventfd(a, 0).into(),
                libc::SYS_eventfd2 => eventfd(a, b).into(),
                libc::SYS_accept => accept(a, b, c).into(),
                libc::SYS_accept4 => accept4(a, b, c, d).into(),
                libc::SYS_connect => connect(a, b, c).into(),
                libc::SYS_close => close(a).into(),
                libc::SYS_shutdown => shutdown(a, b).into(),
                libc::SYS_poll => poll(a, b, c).into(),
                libc::SYS_ppoll => ppoll(a, b, c, d).into(),
                libc::SYS_select => select(a, b, c, d, e).into(),
                libc::SYS_pselect6 => {
                    // A pointer to where the mask is, and its size.
                    let mask = if f == 0 { 0 } else { *(f as *const usize) };
                    pselect(a, b, c, d, e, mask).into()
                }
                libc::SYS_epoll_wait => epoll_wait(a, b, c, d).into(),
                libc::SYS_epoll_pwait => epoll_pwait(a, b, c, d, e).into(),
                libc::SYS_epoll_pwait2 => epoll_pwait2(a, b, c, d, e).into(),
                libc::SYS_timerfd_create => timerfd_create(a, b).into(),
                libc::SYS_timerfd_settime => timerfd_settime(a, b, c, d).into(),
                libc::SYS_timerfd_gettime => timerfd_gettime(a, b).into(),
                libc::SYS_nanosleep => nanosleep(a, b).into(),
                libc::SYS_clock_nanosleep => match clock_nanosleep(a, b, c, d) {
                    0 => 0,
                    error => fail(error).into(),
                },
                libc::SYS_wait4 => wait4(a, b, c, d).into(),
                libc::SYS_flock => flock(a, b).into(),
                libc::SYS_pause => pause().into(),
                libc::SYS_rt_sigsuspend if a != 0 => {
                    // The kernel's sets are shorter than libc's.
                    let mut mask: sigset_t = core::mem::zeroed();
                    (&raw mut mask).cast::<u64>().write((a as *const u64).read_unaligned());
                    sigsuspend(&raw const mask).into()
                }
                libc::SYS_kill => kill(a, b).into(),
                libc::SYS_tgkill => tgkill(a, b, c).into(),
                libc::SYS_signalfd4 => signalfd(a, b, d).into(),
                libc::SYS_signalfd => signalfd(a, b, 0).into(),
                libc::SYS_tkill => tgkill(sys::process_id() as usize, a, b).into(),
                libc::SYS_exit_group => {
                    _exit(a);
                    0
                }
                _ => return None,
            })
        })
    }
}

pub(super) unsafe fn kernel(number: c_long, args: [usize; 6]) -> c_long {
    // SAFETY: by the caller's promise.
    unsafe {
        let result = sys::call(number, args);
        if (-4095..0).contains(&result) { c_long::from(fail(-result as i32)) } else { result as c_long }
    }
}
