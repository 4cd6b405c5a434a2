//! Where C++ exceptions were thrown: each is seen here before anything of the stack is unwound.

use std::cell::RefCell;

use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, EXCEPTION_POINTERS, RtlLookupFunctionEntry, RtlVirtualUnwind, UNW_FLAG_NHANDLER,
};

/// What gcc's library raises for an exception, with the exception as the first argument.
const GCC_THROW: u32 = 0x2047_4343;
/// What Microsoft's raises, with the exception and its type as the second and the third; without both it is thrown again.
const MICROSOFT_THROW: u32 = 0xe06d_7363;

const DEEPEST: usize = 64;

struct Throw {
    exception: usize,
    count: usize,
    frames: [usize; DEEPEST],
}

const NONE: Throw = Throw { exception: 0, count: 0, frames: [0; DEEPEST] };

thread_local! {
    /// The last two of this thread, the last one second: whoever asks for the words of an exception throws it again.
    static THROWS: RefCell<[Throw; 2]> = const { RefCell::new([NONE; 2]) };
}

/// Notes where an exception comes from, if it is one of C++.
pub(super) fn note(pointers: &EXCEPTION_POINTERS) {
    // SAFETY: the system hands us a valid record and context.
    let (record, context) = unsafe { (&*pointers.ExceptionRecord, &*pointers.ContextRecord) };
    let arguments = &record.ExceptionInformation;
    let exception = match record.ExceptionCode as u32 {
        GCC_THROW => arguments[0],
        MICROSOFT_THROW if arguments[2] != 0 => arguments[1],
        _ => return,
    };
    // An exception while a thread ends, or while this runs, is nobody's failure.
    let _ = THROWS.try_with(|throws| {
        if let Ok(mut throws) = throws.try_borrow_mut() {
            throws.swap(0, 1);
            throws[1].exception = exception;
            throws[1].count = walk(context, &mut throws[1].frames);
        }
    });
}

/// The return addresses from where the last exception of this thread was thrown, innermost first.
pub(crate) fn thrown(buffer: &mut [usize]) -> Option<&[usize]> {
    let count = THROWS.with_borrow(|[before, last]| {
        let throw = if before.exception == last.exception { before } else { last };
        let count = throw.count.min(buffer.len());
        buffer[..count].copy_from_slice(&throw.frames[..count]);
        count
    });
    (count > 0).then_some(&buffer[..count])
}

/// Return addresses from a state of the machine outwards.
fn walk(context: &CONTEXT, frames: &mut [usize; DEEPEST]) -> usize {
    let mut context = *context;
    let mut count = 0;
    while count < DEEPEST && context.Rip != 0 {
        frames[count] = context.Rip as usize;
        count += 1;
        let mut base = 0;
        // SAFETY: the address is looked up, not read; the history may be null.
        let entry = unsafe { RtlLookupFunctionEntry(context.Rip, &mut base, std::ptr::null_mut()) };
        // Every function between a throw and its catch has an entry, or nothing could be unwound.
        if entry.is_null() {
            break;
        }
        let (mut data, mut establisher) = (std::ptr::null_mut(), 0);
        // SAFETY: the entry is of a module that is loaded; the context is a copy; the places for answers live across the
        // call.
        unsafe {
            RtlVirtualUnwind(
                UNW_FLAG_NHANDLER,
                base,
                context.Rip,
                entry,
                &mut context,
                &mut data,
                &mut establisher,
                std::ptr::null_mut(),
            )
        };
    }
    count
}
