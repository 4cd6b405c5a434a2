//! The boundary: a [`Test`] as the C instance that the host sees. Nothing unwinds out of here.

use crate::calls::Calls;
use crate::context::Context;
use crate::describe::Table;
use crate::failed::{Failed, Outcome};
use crate::panic_site;
use crate::test::Test;
use crate::worker::Worker;
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use waylay_abi as abi;

/// What every instance begins with, whatever its test.
#[repr(C)]
struct Head {
    instance: abi::Instance,
    destroy: unsafe fn(*mut Head),
    calls: Calls,
    context: *mut abi::Context,
    /// Never used twice in this plugin, so that handles of a gone instance are noticed.
    number: u64,
}

#[repr(C)]
struct Live<T> {
    head: Head,
    test: UnsafeCell<ManuallyDrop<T>>,
}

impl Head {
    fn context(&self) -> Context<'_> {
        // SAFETY: the host keeps the instance context until `DestroyInstance` returns, and `self` goes before.
        unsafe { Context::new(&self.calls, self.context, self.number) }
    }

    /// Runs the body; a panic or an error is reported to the host. True if all went well.
    fn run(&self, body: impl FnOnce(&Context<'_>) -> Outcome) -> bool {
        let context = self.context();
        panic_site::guard(|| body(&context)).flatten().map_err(|failed| context.fail(failed)).is_ok()
    }
}

/// Makes an instance of `T`; null if it cannot be made, which was reported then.
pub(crate) fn create<T: Test>(calls: Calls, context: *mut abi::Context) -> *mut abi::Instance {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let head = Head {
        instance: abi::Instance {
            size: size_of::<abi::Instance>() as u32,
            flags: 0,
            on_test_start: Some(on_test_start::<T>),
            test_main: Some(test_main::<T>),
            on_test_cancelled: Some(on_test_cancelled::<T>),
            on_test_end: Some(on_test_end::<T>),
            state: ptr::null_mut(),
        },
        destroy: destroy::<T>,
        calls,
        context,
        number: NUMBERS.fetch_add(1, Ordering::Relaxed),
    };
    let mut made = None;
    let well = head.run(|context| {
        made = Some(T::create(context)?);
        Ok(())
    });
    match made {
        Some(test) if well => {
            Box::into_raw(Box::new(Live { head, test: UnsafeCell::new(ManuallyDrop::new(test)) })).cast()
        }
        _ => ptr::null_mut(),
    }
}

/// # Safety
///
/// As all of the four calls: `this` came from [`create`] of the same `T` and is not destroyed; the host orders the
/// calls as [`abi`] says.
unsafe extern "C" fn on_test_start<T: Test>(this: *mut abi::Instance) -> i32 {
    // SAFETY: `this` is the first field of a `Live<T>`, by the caller's guarantee.
    let live = unsafe { &*this.cast::<Live<T>>() };
    let well = live.head.run(|context| {
        // SAFETY: no other call runs at the same time as `OnTestStart`.
        unsafe { &mut *live.test.get() }.on_start(context)
    });
    if well { abi::STATUS_OK } else { abi::STATUS_FAILED }
}

/// # Safety
///
/// As [`on_test_start`]; `worker` is the worker context of this call.
unsafe extern "C" fn test_main<T: Test>(this: *mut abi::Instance, worker: *mut abi::Context) -> i32 {
    // SAFETY: `this` is the first field of a `Live<T>`, by the caller's guarantee.
    let live = unsafe { &*this.cast::<Live<T>>() };
    // SAFETY: while `TestMain` runs only `&self` calls do.
    let test: &T = unsafe { &*live.test.get() };
    // SAFETY: the context is this call's, and `worker` ends with the call.
    let worker = unsafe { Worker::new(&live.head.calls, worker, live.head.context, live.head.number) };
    match panic_site::guard(|| test.main(&worker)).flatten() {
        Err(failed) => {
            worker.fail(failed);
            abi::STATUS_FAILED
        }
        Ok(()) if worker.has_failed() => abi::STATUS_FAILED,
        Ok(()) if worker.is_done() => abi::STATUS_DONE,
        Ok(()) => abi::STATUS_OK,
    }
}

/// # Safety
///
/// As [`on_test_start`].
unsafe extern "C" fn on_test_cancelled<T: Test>(this: *mut abi::Instance) {
    // SAFETY: `this` is the first field of a `Live<T>`, by the caller's guarantee.
    let live = unsafe { &*this.cast::<Live<T>>() };
    live.head.run(|context| {
        // SAFETY: at the same time as `OnTestCancelled` only `TestMain` runs, and both take `&self`.
        unsafe { &*live.test.get() }.on_cancelled(context);
        Ok(())
    });
}

/// # Safety
///
/// As [`on_test_start`].
unsafe extern "C" fn on_test_end<T: Test>(this: *mut abi::Instance) {
    // SAFETY: `this` is the first field of a `Live<T>`, by the caller's guarantee.
    let live = unsafe { &*this.cast::<Live<T>>() };
    live.head.run(|context| {
        // SAFETY: `OnTestEnd` comes when every other call has returned.
        unsafe { &mut *live.test.get() }.on_end(context)
    });
}

/// # Safety
///
/// `this` came from [`create`] of the same `T` and is used no more.
unsafe fn destroy<T: Test>(this: *mut Head) {
    // SAFETY: it was made by `Box::into_raw`, and the caller gives it up.
    let live = unsafe { Box::from_raw(this.cast::<Live<T>>()) };
    live.head.run(|_| {
        // SAFETY: dropped once, here; the box itself does not drop it, not even when this panics half way.
        unsafe { ManuallyDrop::drop(&mut *live.test.get()) };
        Ok(())
    });
}

/// `CreateInstance` of a plugin with that table.
///
/// # Safety
///
/// `args` is null or what the contract says of [`abi::CreateArgs`].
pub unsafe fn create_instance(table: &Table, args: *const abi::CreateArgs) -> *mut abi::Instance {
    panic_site::install();
    // SAFETY: the caller guarantees that `size`, the first field, is there if the pointer is not null.
    let Some(size) = (unsafe { args.cast::<u32>().as_ref() }) else { return ptr::null_mut() };
    if (*size as usize) < size_of::<abi::CreateArgs>() {
        return ptr::null_mut();
    }
    // SAFETY: the caller guarantees `size` bytes, and they cover the whole struct.
    let args = unsafe { &*args };
    if args.abi_version != abi::ABI_VERSION || args.test.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the contract promises services that begin with their size.
    let Some(calls) = (unsafe { Calls::read(args.services) }) else { return ptr::null_mut() };
    // SAFETY: the contract promises a NUL-terminated name.
    let name = unsafe { CStr::from_ptr(args.test) }.to_string_lossy();
    match table.find(&name) {
        Some(create) => create(calls, args.context),
        None => {
            // SAFETY: the instance context is valid until `DestroyInstance` returns; no instance, no handles: 0.
            let context = unsafe { Context::new(&calls, args.context, 0) };
            context.fail(Failed::new(format_args!("this plugin has no test {name:?}")));
            ptr::null_mut()
        }
    }
}

/// `DestroyInstance` of every plugin.
///
/// # Safety
///
/// `instance` is null or came from [`create_instance`] of this plugin, and is used no more.
pub unsafe fn destroy_instance(instance: *mut abi::Instance) {
    let head = instance.cast::<Head>();
    if !head.is_null() {
        // SAFETY: every instance of this plugin begins with a `Head`, whose `destroy` is that of its own type.
        unsafe { ((*head).destroy)(head) };
    }
}
