//! What the host does for one iteration, on the worker's own thread.

use crate::calls::Calls;
use crate::combine::Container;
use crate::context::{Level, Line, Reporter};
use crate::distribution::{Distribution, Value};
use crate::failed::Failed;
use crate::generator::Generator;
use crate::shared::{Kept, Lent, Shared};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use waylay_abi as abi;

/// Room for the name of a shared kind with its NUL.
const LONGEST_KIND: usize = 128;

/// One worker during one iteration. It stays on its thread and ends with the iteration.
///
/// What it draws depends on the seed, the test's name, the worker's number and the iteration's number, and on nothing
/// else. For threads that the iteration starts, see [`scope`](Worker::scope).
pub struct Worker<'w> {
    line: Line<'w>,
    /// The instance's own context: what is kept past the iteration is given back with it.
    home: *mut abi::Context,
    instance: u64,
    failed: AtomicBool,
    done: Cell<bool>,
    /// Drawing and lending are for this thread only.
    _stays: PhantomData<*mut ()>,
}

impl<'w> Worker<'w> {
    /// # Safety
    ///
    /// `raw` is the worker context that the host handed to this thread's running `TestMain`, `'w` ends with that call,
    /// `home` is the instance's context and `instance` the number of the instance.
    pub(crate) unsafe fn new(
        calls: &'w Calls,
        raw: *mut abi::Context,
        home: *mut abi::Context,
        instance: u64,
    ) -> Self {
        Self {
            line: Line { calls, raw },
            home,
            instance,
            failed: AtomicBool::new(false),
            done: Cell::new(false),
            _stays: PhantomData,
        }
    }

    /// Draws from a distribution of this test. Takes no lock.
    #[inline]
    pub fn draw<T: Value>(&self, distribution: Distribution<T>) -> T {
        let raw = distribution.of(self.instance);
        // SAFETY: this thread owns the worker context, and `of` checked whose distribution it is.
        unsafe { T::draw(self.line.calls, self.line.raw, raw) }
    }

    /// Draws an index below `count`; what the distribution gives outside of it is moved to the nearest index.
    #[inline]
    pub fn choose(&self, distribution: Distribution<usize>, count: usize) -> usize {
        self.draw(distribution).min(count.saturating_sub(1))
    }

    /// Draws an item like [`choose`](Worker::choose); `None` if there are no items.
    #[inline]
    pub fn pick<'a, T>(&self, distribution: Distribution<usize>, items: &'a [T]) -> Option<&'a T> {
        items.get(self.choose(distribution, items.len()))
    }

    /// The seed of this iteration.
    pub fn seed(&self) -> u64 {
        // SAFETY: this thread owns the worker context.
        unsafe { (self.line.calls.seed)(self.line.raw) }
    }

    /// A generator that depends only on the iteration's seed and `index`.
    pub fn generator(&self, index: u64) -> Generator {
        Generator::new(self.seed(), index)
    }

    /// Reports a failure, returns after the evidence was taken, and lets the iteration go on. To end it, return the
    /// `Err` instead.
    pub fn fail(&self, failed: Failed) {
        self.reporter().fail(failed);
    }

    /// Writes a line to the host's log.
    pub fn log(&self, level: Level, text: &str) {
        self.line.log(level, text);
    }

    /// True once the test is to stop. A long iteration asks now and then, and returns early.
    #[inline]
    pub fn cancelled(&self) -> bool {
        self.line.cancelled()
    }

    /// Says that the iteration is getting somewhere: if it comes late it is slow, not stuck.
    #[inline]
    pub fn progress(&self) {
        self.line.progress();
    }

    /// This worker has nothing more to do: it is not called again. Not a failure.
    pub fn done(&self) {
        self.done.set(true);
    }

    /// The part of the worker that other threads may use during the iteration.
    pub fn reporter(&self) -> Reporter<'_> {
        Reporter { line: self.line, failed: &self.failed }
    }

    /// Borrows a shared object until the guard is dropped, at the latest until the iteration ends. `None` when nobody
    /// provides the kind. The kind should be listed in [`Test::TAKES`](crate::Test::TAKES).
    ///
    /// ```compile_fail
    /// # use waylay_plugin::{Shared, Lent, Worker};
    /// # struct Queue;
    /// # unsafe impl Shared for Queue { const KIND: &'static str = "queue"; }
    /// fn keeps<'a>(worker: &Worker<'a>) -> Option<Lent<'a, Queue>> {
    ///     worker.acquire::<Queue>() // the guard cannot outlive the iteration's borrow of the worker
    /// }
    /// ```
    pub fn acquire<T: Shared>(&self) -> Option<Lent<'_, T>> {
        const {
            assert!(T::KIND.len() < LONGEST_KIND, "the name of a shared kind has at most 127 bytes");
            crate::describe::check_names(&[T::KIND]);
        }
        // On the stack: an iteration should not have to allocate for a name. Ends with a NUL by the check above.
        let mut kind = [0_u8; LONGEST_KIND];
        kind[..T::KIND.len()].copy_from_slice(T::KIND.as_bytes());
        // SAFETY: this thread owns the worker context; `kind` is NUL-terminated and outlives the call.
        let object = unsafe { (self.line.calls.acquire)(self.line.raw, kind.as_ptr().cast()) };
        // SAFETY: the host lends it to this iteration, and `Shared` promises its type.
        Some(unsafe { Lent::new(self, std::ptr::NonNull::new(object.cast())?) })
    }

    /// Gives a lent object back.
    ///
    /// # Safety
    ///
    /// `object` came from [`acquire`](Worker::acquire) of this iteration and is not used any more.
    pub(crate) unsafe fn release(&self, object: *mut std::ffi::c_void) {
        // SAFETY: this thread owns the worker context; the caller guarantees the object.
        unsafe { (self.line.calls.release)(self.line.raw, object) }
    }

    /// Moves a lent object from the iteration to the instance.
    ///
    /// # Safety
    ///
    /// `object` came from [`acquire`](Worker::acquire) of this iteration.
    pub(crate) unsafe fn keep(&self, object: *mut std::ffi::c_void) -> bool {
        // SAFETY: this thread owns the worker context; the caller guarantees the object.
        unsafe { (self.line.calls.keep)(self.line.raw, object) != 0 }
    }

    /// The object that an earlier iteration of this test kept.
    pub fn kept<'k, T: Shared>(&'k self, kept: &'k Kept<T>) -> &'k T {
        kept.object(self.instance)
    }

    /// Gives a kept object back to the pool.
    pub fn give_back<T: Shared>(&self, kept: Kept<T>) {
        // SAFETY: the instance context lives as long as the instance, whose `TestMain` is running.
        unsafe { kept.release(self.line.calls, self.home, self.instance) }
    }

    /// The tests that this one combines; only for a test with [`COMBINES`](crate::Test::COMBINES).
    pub fn container(&self) -> Option<Container<'_>> {
        // SAFETY: this thread owns the worker context.
        unsafe { Container::new(self.line) }
    }

    /// Whether a failure was reported. A plain load: it is asked once in every iteration.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether a failure was reported; false from now on.
    pub(crate) fn take_failed(&self) -> bool {
        self.failed.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn set_failed(&self, failed: bool) {
        self.failed.store(failed, Ordering::Relaxed);
    }

    pub(crate) fn instance(&self) -> u64 {
        self.instance
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.get()
    }
}
