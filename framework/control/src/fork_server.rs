//! The fork server: waits in front of `main` and starts a child per request.
//!
//! The child goes on into `main` with everything the loader and the constructors did already done. A page that a child
//! touches first costs it a fault, so what is the same in every child is done here, before the fork.
//!
//! A request for a batch makes the process itself one that goes on into `main` again and again: see
//! [`snapshot`](crate::snapshot).

use waylay_control_protocol::{RegionMap, Reply, Request, Statement};

use crate::interpose::{attributes, processors};
use crate::{binding, runtime, snapshot, sys};

/// Does what is better done before the first run. A process that makes one run alone does so, too: what libc allocates for it
/// is part of the program's heap, and a process that follows a schedule has to have the same addresses.
pub(crate) fn get_ready() {
    binding::bind_all();
    attributes::note_main_stack();
}

/// Serves requests until the driver closes the socket, then ends the process. Returns in children, with the region and
/// what was made ready for the run; and, without these, once per restored run, which finds everything prepared.
pub(crate) fn serve<T>(
    socket: i32,
    region: RegionMap,
    make_ready: impl Fn(&RegionMap) -> T,
) -> Option<(RegionMap, T)> {
    get_ready();
    send(socket, Reply::Ready);
    loop {
        match next_request(socket) {
            Some(Request::Run) => {}
            Some(Request::Batch) => match snapshot::why_not() {
                Some(why) => {
                    region.tell(&Statement::Refusal(why.into()));
                    send(socket, Reply::Unable);
                    continue;
                }
                None => {
                    // SAFETY: the main thread is the only one that runs program code, and no run has begun; then it is on
                    // the carrier, alone.
                    unsafe {
                        if runtime::prepare_to_restore(region).is_err() {
                            sys::exit_now(3);
                        }
                        snapshot::serve(socket);
                    }
                    return None;
                }
            },
            None => sys::exit_now(0),
        }
        let server = process_id();
        let ready = make_ready(&region);
        // A child would start on another processor, if one is idle: waking that costs more than the child's whole run.
        processors::bind();
        // SAFETY: the process has no thread that could hold a lock of libc's, unless a constructor made one; then
        // libc's own fork handles its locks.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the socket is the server's; the child has no use for it.
            unsafe { sys::call(libc::SYS_close, [socket as usize, 0, 0, 0, 0, 0]) };
            end_with(server);
            return Some((region, ready));
        }
        processors::release();
        drop(ready);
        if child < 0 {
            sys::exit_now(3);
        }
        send(socket, Reply::Started(child));
        send(socket, Reply::Ended(wait_for(child)));
    }
}

fn process_id() -> isize {
    // SAFETY: takes no pointer and cannot fail.
    unsafe { sys::call(libc::SYS_getpid, [0; 6]) }
}

/// Ends this process together with its parent: a run whose server was killed has nobody left to judge or end it.
fn end_with(server: isize) {
    let [request, signal] = [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize];
    // SAFETY: a plain request about this process; the second call takes no pointer.
    let parent = unsafe {
        sys::call(libc::SYS_prctl, [request, signal, 0, 0, 0, 0]);
        sys::call(libc::SYS_getppid, [0; 6])
    };
    if parent != server {
        sys::exit_now(3);
    }
}

fn wait_for(child: i32) -> i32 {
    let mut status = 0i32;
    loop {
        let args = [child as usize, &raw mut status as usize, 0, 0, 0, 0];
        // SAFETY: the kernel writes four bytes to the status.
        let result = unsafe { sys::call(libc::SYS_wait4, args) };
        if result != -(libc::EINTR as isize) {
            return status;
        }
    }
}

/// Waits for the next request; nothing when there is none any more.
pub(crate) fn next_request(socket: i32) -> Option<Request> {
    let mut code = [0u8; 4];
    receive(socket, &mut code).then(|| Request::from_code(u32::from_le_bytes(code)))?
}

pub(crate) fn send(socket: i32, reply: Reply) {
    sys::write(socket, &reply.to_bytes());
}

fn receive(socket: i32, bytes: &mut [u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        let (to, room) = (bytes[at..].as_mut_ptr() as usize, bytes.len() - at);
        // SAFETY: the kernel writes at most `room` bytes to the slice.
        let n = unsafe { sys::call(libc::SYS_read, [socket as usize, to, room, 0, 0, 0]) };
        match n {
            1.. => at += n as usize,
            n if n == -(libc::EINTR as isize) => {}
            _ => return false,
        }
    }
    true
}
