//! What programs call themselves when they are built for a race detector, and what compilers emit that says nothing
//! about memory.
//!
//! Everything a library might call is here, so that such a build links and runs; what says that something is ordered is
//! believed, most of the rest tells a detector what our interposed functions know already, or asks it to look away.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

use crate::instrument::edge;
use crate::me::{Unmanaged, me};
use crate::runtime::Token;
use crate::sched::Key;

/// Functions without effect.
macro_rules! ignored {
    ($($name:ident($($kind:ty),*);)+) => {$(
        /// # Safety
        /// None: does nothing.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "the names are given")]
        unsafe extern "C" fn $name($(_: $kind),*) {}
    )+};
}

type Text = *const c_char;
type Address = *const c_void;

ignored! {
    __tsan_init();
    __tsan_func_entry(Address);
    __tsan_func_exit();
    __tsan_ignore_thread_begin();
    __tsan_ignore_thread_end();
    __tsan_mutex_create(Address, c_uint);
    __tsan_mutex_destroy(Address, c_uint);
    __tsan_mutex_pre_lock(Address, c_uint);
    __tsan_mutex_post_lock(Address, c_uint, c_int);
    __tsan_mutex_post_unlock(Address, c_uint);
    __tsan_mutex_pre_signal(Address, c_uint);
    __tsan_mutex_post_signal(Address, c_uint);
    __tsan_mutex_pre_divert(Address, c_uint);
    __tsan_mutex_post_divert(Address, c_uint);
    __tsan_destroy_fiber(Address);
    __tsan_switch_to_fiber(Address, c_uint);
    __tsan_set_fiber_name(Address, Text);
    __tsan_external_register_header(Address, Text);
    __tsan_external_assign_tag(Address, Address);
    __tsan_external_read(Address, Address, Address);
    __tsan_external_write(Address, Address, Address);
    __tsan_flush_memory();
    __tsan_read1_pc(Address, Address);
    __tsan_read2_pc(Address, Address);
    __tsan_read4_pc(Address, Address);
    __tsan_read8_pc(Address, Address);
    __tsan_read16_pc(Address, Address);
    __tsan_write1_pc(Address, Address);
    __tsan_write2_pc(Address, Address);
    __tsan_write4_pc(Address, Address);
    __tsan_write8_pc(Address, Address);
    __tsan_write16_pc(Address, Address);
    AnnotateCondVarSignal(Text, c_int, Address);
    AnnotateCondVarSignalAll(Text, c_int, Address);
    AnnotateCondVarWait(Text, c_int, Address, Address);
    AnnotateMutexIsNotPHB(Text, c_int, Address);
    AnnotateMutexIsUsedAsCondVar(Text, c_int, Address);
    AnnotateRWLockCreate(Text, c_int, Address);
    AnnotateRWLockCreateStatic(Text, c_int, Address);
    AnnotateRWLockDestroy(Text, c_int, Address);
    AnnotateRWLockAcquired(Text, c_int, Address, c_long);
    AnnotateRWLockReleased(Text, c_int, Address, c_long);
    AnnotateTraceMemory(Text, c_int, Address);
    AnnotateFlushState(Text, c_int);
    AnnotateNewMemory(Text, c_int, Address, c_ulong);
    AnnotateNoOp(Text, c_int, Address);
    AnnotateFlushExpectedRaces(Text, c_int);
    AnnotateEnableRaceDetection(Text, c_int, c_int);
    AnnotatePCQCreate(Text, c_int, Address);
    AnnotatePCQDestroy(Text, c_int, Address);
    AnnotatePCQPut(Text, c_int, Address);
    AnnotatePCQGet(Text, c_int, Address);
    AnnotateExpectRace(Text, c_int, Address, Text);
    AnnotateBenignRace(Text, c_int, Address, Text);
    AnnotateBenignRaceSized(Text, c_int, Address, c_ulong, Text);
    AnnotateIgnoreReadsBegin(Text, c_int);
    AnnotateIgnoreReadsEnd(Text, c_int);
    AnnotateIgnoreWritesBegin(Text, c_int);
    AnnotateIgnoreWritesEnd(Text, c_int);
    AnnotateIgnoreSyncBegin(Text, c_int);
    AnnotateIgnoreSyncEnd(Text, c_int);
    AnnotatePublishMemoryRange(Text, c_int, Address, c_ulong);
    AnnotateUnpublishMemoryRange(Text, c_int, Address, c_ulong);
    AnnotateThreadName(Text, c_int, Text);
}

/// Functions by which a program says what it orders in a way of its own.
macro_rules! orders {
    ($($name:ident($($kind:ty),*), $edge:ident;)+) => {$(
        /// # Safety
        /// None: the address is only a name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "the names are given")]
        unsafe extern "C" fn $name($(_: $kind,)* object: Address) {
            let me = me();
            if !me.is_null() {
                let _inside = Unmanaged::enter();
                // SAFETY: a logical thread that runs program code has the token.
                unsafe { edge::$edge(Token::held_by(me), Key(object.addr())) };
            }
        }
    )+};
}

orders! {
    __tsan_release(), hands_over;
    __tsan_acquire(), takes_over;
    AnnotateHappensBefore(Text, c_int), hands_over;
    AnnotateHappensAfter(Text, c_int), takes_over;
}

/// Functions whose result says that there is nothing.
macro_rules! nothing {
    ($($name:ident($($kind:ty),*) -> $result:ty, $value:expr;)+) => {$(
        /// # Safety
        /// None: does nothing.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "the names are given")]
        unsafe extern "C" fn $name($(_: $kind),*) -> $result { $value }
    )+};
}

nothing! {
    __tsan_mutex_pre_unlock(Address, c_uint) -> c_int, 0;
    __tsan_get_current_fiber() -> Address, core::ptr::null();
    __tsan_create_fiber(c_uint) -> Address, core::ptr::null();
    __tsan_external_register_tag(Text) -> Address, core::ptr::null();
    __tsan_get_current_report() -> Address, core::ptr::null();
    __tsan_locate_address(Address, *mut c_char, c_ulong, *mut Address, *mut c_ulong) -> Text, core::ptr::null();
    __tsan_get_alloc_stack(Address, *mut Address, c_ulong, *mut c_int, *mut c_ulong) -> c_int, 0;
    RunningOnValgrind() -> c_int, 0;
    ValgrindSlowdown() -> f64, 1.0;
    WTFAnnotateHappensBefore(Text, c_int, Address) -> c_int, 0;
    WTFAnnotateHappensAfter(Text, c_int, Address) -> c_int, 0;
    WTFAnnotateBenignRaceSized(Text, c_int, Address, c_ulong, Text) -> c_int, 0;
}
