//! Which logical thread is executing: one thread-local word.
//!
//! The word follows the FS base, so it names the logical thread whether it runs on the carrier or on its own kernel
//! thread. It is null in threads that the scheduler does not manage, and while a managed thread is inside
//! the library: an interposed function that finds null behaves as if the library were not there.
//!
//! The word lives in the initial TLS block and is read with one load through the GOT; `thread_local!` in a shared
//! library would call `__tls_get_addr`, which allocates on first use and costs more than a whole step.

use core::arch::{asm, global_asm};

pub(crate) use waylay_runtime::program::as_program;

use crate::runtime::Logical;

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".hidden waylay_control_me",
    ".globl waylay_control_me",
    ".type waylay_control_me,@object",
    ".size waylay_control_me, 8",
    "waylay_control_me:",
    ".zero 8",
    ".text",
);

/// The logical thread that executes this call, or null.
#[inline(always)]
pub(crate) fn me() -> *mut Logical {
    let value: *mut Logical;
    // SAFETY: reads an aligned word of the initial TLS block, which every thread of the process has.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + waylay_control_me@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) value,
            options(nostack, preserves_flags, readonly),
        );
    }
    value
}

/// Makes `value` the logical thread of the calling thread.
#[inline(always)]
pub(crate) fn set_me(value: *mut Logical) {
    // SAFETY: writes an aligned word of the initial TLS block that only this module uses.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + waylay_control_me@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}

/// While it lives, the calling thread counts as unmanaged: what the library calls on its own account, and whatever
/// that calls in turn, goes straight to libc. So does a signal handler of the program that interrupts the library:
/// it must not find the scheduler in the middle of something.
pub(crate) struct Unmanaged(*mut Logical);

impl Unmanaged {
    pub(crate) fn enter() -> Self {
        Self::enter_from(me())
    }

    /// The same where [`me`] is known already.
    #[inline(always)]
    pub(crate) fn enter_from(me: *mut Logical) -> Self {
        set_me(core::ptr::null_mut());
        Self(me)
    }
}

impl Drop for Unmanaged {
    fn drop(&mut self) {
        set_me(self.0);
    }
}
