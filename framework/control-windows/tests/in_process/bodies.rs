//! Small programs of Win32 threads. Each says whether it went well.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicPtr, AtomicU32};

use windows_sys::Win32::Foundation::{
    CloseHandle, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatus, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::Threading::*;

/// Memory that threads share without asking the compiler.
struct Shared<T>(UnsafeCell<T>);

// SAFETY: one thread runs at a time in every body.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    const fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }

    fn at(&self) -> *mut T {
        self.0.get()
    }
}

type Body = fn() -> bool;

/// Bodies that are right under every schedule.
pub(crate) const CORRECT: [&str; 8] =
    ["sections", "events", "semaphores", "conditions", "addresses", "several", "sleepers", "timers"];

pub(crate) fn find(name: &str) -> Body {
    match name {
        "lost-update-section" => || lost_update(Lock::Section),
        "lost-update-slim" => || lost_update(Lock::Slim),
        "lost-update-mutex" => || lost_update(Lock::Mutex),
        "two-sections" => two_sections,
        "null" => null_pointer,
        "sections" => sections,
        "events" => events,
        "semaphores" => semaphores,
        "conditions" => conditions,
        "addresses" => addresses,
        "several" => several,
        "sleepers" => sleepers,
        "timers" => timers,
        "ports" => ports,
        "random" => random,
        "patient" => || patient(0),
        "patient-for-long" => || patient(60_000),
        "ends-itself" => || end_beside_others(true),
        "returns" => || end_beside_others(false),
        "mixture" => || {
            let lost = !lost_update(Lock::Slim);
            events() && semaphores() && conditions() && !lost
        },
        "once" => once,
        "thread-pool" => thread_pool,
        "steps" => steps,
        "rust-lost-update" => rust_lost_update,
        "rust-added" => rust_added,
        "rust-null" => rust_null,
        other => panic!("no body {other}"),
    }
}

fn spawn(routine: unsafe extern "system" fn(*mut c_void) -> u32, argument: usize) -> HANDLE {
    // SAFETY: the routines take numbers.
    let thread = unsafe { CreateThread(null(), 0, Some(routine), argument as *const c_void, 0, null_mut()) };
    assert!(!thread.is_null());
    thread
}

fn join(threads: impl IntoIterator<Item = HANDLE>) {
    for thread in threads {
        // SAFETY: an open handle, closed once.
        unsafe {
            assert_eq!(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
            CloseHandle(thread);
        }
    }
}

#[derive(Clone, Copy)]
enum Lock {
    Section,
    Slim,
    Mutex,
}

static SECTIONS: Shared<[CRITICAL_SECTION; 2]> = {
    // SAFETY: all zero is what `InitializeCriticalSection` is given.
    Shared::new(unsafe { std::mem::zeroed() })
};
static SLIM: Shared<SRWLOCK> = Shared::new(SRWLOCK { Ptr: null_mut() });
static CONDITION: Shared<CONDITION_VARIABLE> = Shared::new(CONDITION_VARIABLE { Ptr: null_mut() });
static HANDLES: Shared<[HANDLE; 3]> = Shared::new([null_mut(); 3]);
static COUNT: Shared<u32> = Shared::new(0);
static WORD: Shared<u32> = Shared::new(0);
static LOCK: Shared<Lock> = Shared::new(Lock::Section);

fn section(index: usize) -> *mut CRITICAL_SECTION {
    // SAFETY: inside the array.
    unsafe { SECTIONS.at().cast::<CRITICAL_SECTION>().add(index) }
}

unsafe fn with_lock(work: impl FnOnce()) {
    // SAFETY: the objects live for ever.
    unsafe {
        match *LOCK.at() {
            Lock::Section => EnterCriticalSection(section(0)),
            Lock::Slim => AcquireSRWLockExclusive(SLIM.at()),
            Lock::Mutex => assert_eq!(WaitForSingleObject((*HANDLES.at())[0], INFINITE), WAIT_OBJECT_0),
        }
        work();
        match *LOCK.at() {
            Lock::Section => LeaveCriticalSection(section(0)),
            Lock::Slim => ReleaseSRWLockExclusive(SLIM.at()),
            Lock::Mutex => assert_ne!(ReleaseMutex((*HANDLES.at())[0]), 0),
        }
    }
}

unsafe extern "system" fn add_carelessly(_: *mut c_void) -> u32 {
    let mut seen = 0;
    // SAFETY: one thread runs at a time.
    unsafe {
        with_lock(|| seen = *COUNT.at());
        with_lock(|| *COUNT.at() = seen + 1);
    }
    0
}

fn lost_update(lock: Lock) -> bool {
    // SAFETY: no thread of the body runs yet, or any more.
    unsafe {
        *COUNT.at() = 0;
        *LOCK.at() = lock;
        InitializeCriticalSection(section(0));
        (*HANDLES.at())[0] = CreateMutexW(null(), 0, null());
        join([spawn(add_carelessly, 0), spawn(add_carelessly, 0)]);
        DeleteCriticalSection(section(0));
        CloseHandle((*HANDLES.at())[0]);
        *COUNT.at() == 2
    }
}

unsafe extern "system" fn take_both(first: *mut c_void) -> u32 {
    let first = first as usize;
    // SAFETY: the sections live for ever.
    unsafe {
        EnterCriticalSection(section(first));
        EnterCriticalSection(section(1 - first));
        LeaveCriticalSection(section(1 - first));
        LeaveCriticalSection(section(first));
    }
    0
}

fn two_sections() -> bool {
    // SAFETY: no thread of the body runs yet.
    unsafe {
        InitializeCriticalSection(section(0));
        InitializeCriticalSection(section(1));
    }
    join([spawn(take_both, 0), spawn(take_both, 1)]);
    true
}

static ONCE: Shared<INIT_ONCE> = Shared::new(INIT_ONCE { Ptr: null_mut() });

/// Initialises something for the life of the process, with steps on the way, then locks.
unsafe extern "system" fn initialise_once(_: *mut c_void) -> u32 {
    let mut pending = 0;
    // SAFETY: the objects live for ever.
    unsafe {
        InitOnceBeginInitialize(ONCE.at(), 0, &mut pending, null_mut());
        if pending != 0 {
            with_lock(|| ());
            InitOnceComplete(ONCE.at(), 0, null());
        }
        with_lock(|| ());
    }
    0
}

fn once() -> bool {
    // SAFETY: no thread of the body runs yet.
    unsafe { *LOCK.at() = Lock::Slim };
    join([spawn(initialise_once, 0), spawn(initialise_once, 0)]);
    true
}

static POINTER: Shared<*mut u32> = Shared::new(null_mut());

unsafe extern "system" fn write_through(_: *mut c_void) -> u32 {
    // SAFETY: none: under some schedules nothing is there yet, which is the bug.
    unsafe { with_lock(|| POINTER.at().read_volatile().write_volatile(1)) };
    0
}

/// A thread that uses what the main thread may not have made yet.
fn null_pointer() -> bool {
    // SAFETY: the lock is made before the thread is.
    unsafe {
        *LOCK.at() = Lock::Slim;
        *POINTER.at() = null_mut();
        let thread = spawn(write_through, 0);
        with_lock(|| POINTER.at().write_volatile(COUNT.at()));
        join([thread]);
    }
    true
}

unsafe extern "system" fn add_carefully(_: *mut c_void) -> u32 {
    // SAFETY: one thread runs at a time; recursion is allowed.
    unsafe {
        for _ in 0..3 {
            EnterCriticalSection(section(0));
            EnterCriticalSection(section(0));
            *COUNT.at() += 1;
            LeaveCriticalSection(section(0));
            LeaveCriticalSection(section(0));
        }
    }
    0
}

fn sections() -> bool {
    // SAFETY: no thread of the body runs yet, or any more.
    unsafe {
        *COUNT.at() = 0;
        InitializeCriticalSection(section(0));
        join((0..3).map(|_| spawn(add_carefully, 0)).collect::<Vec<_>>());
        DeleteCriticalSection(section(0));
        *COUNT.at() == 9
    }
}

unsafe extern "system" fn answer(_: *mut c_void) -> u32 {
    // SAFETY: the events live as long as the thread.
    unsafe {
        for _ in 0..3 {
            assert_eq!(WaitForSingleObject((*HANDLES.at())[0], INFINITE), WAIT_OBJECT_0);
            *COUNT.at() += 1;
            SetEvent((*HANDLES.at())[1]);
        }
    }
    0
}

/// Question and answer, with events that reset themselves.
fn events() -> bool {
    // SAFETY: the events live as long as the thread.
    unsafe {
        *COUNT.at() = 0;
        let events = [CreateEventW(null(), 0, 0, null()), CreateEventW(null(), 0, 0, null())];
        *HANDLES.at() = [events[0], events[1], null_mut()];
        let thread = spawn(answer, 0);
        let mut good = true;
        for round in 1..=3 {
            SetEvent(events[0]);
            good &= WaitForSingleObject(events[1], 10_000) != WAIT_OBJECT_0 || *COUNT.at() == round;
            if *COUNT.at() != round {
                // The wait may time out whenever the strategy likes; the answer comes all the same.
                WaitForSingleObject(events[1], INFINITE);
            }
        }
        join([thread]);
        for event in events {
            CloseHandle(event);
        }
        good && *COUNT.at() == 3
    }
}

unsafe extern "system" fn consume(_: *mut c_void) -> u32 {
    // SAFETY: the semaphore lives as long as the thread.
    unsafe {
        for _ in 0..2 {
            WaitForSingleObject((*HANDLES.at())[0], INFINITE);
            *COUNT.at() += 1;
        }
    }
    0
}

fn semaphores() -> bool {
    // SAFETY: the semaphore lives as long as the threads.
    unsafe {
        *COUNT.at() = 0;
        let semaphore = CreateSemaphoreW(null(), 0, 10, null());
        (*HANDLES.at())[0] = semaphore;
        let threads = [spawn(consume, 0), spawn(consume, 0)];
        ReleaseSemaphore(semaphore, 1, null_mut());
        ReleaseSemaphore(semaphore, 3, null_mut());
        join(threads);
        let empty = WaitForSingleObject(semaphore, 0) == WAIT_TIMEOUT;
        CloseHandle(semaphore);
        empty && *COUNT.at() == 4
    }
}

unsafe extern "system" fn wait_for_two(_: *mut c_void) -> u32 {
    // SAFETY: the lock lives for ever.
    unsafe {
        AcquireSRWLockExclusive(SLIM.at());
        while *COUNT.at() < 2 {
            SleepConditionVariableSRW(CONDITION.at(), SLIM.at(), INFINITE, 0);
        }
        ReleaseSRWLockExclusive(SLIM.at());
    }
    0
}

fn conditions() -> bool {
    // SAFETY: the lock lives for ever.
    unsafe {
        *COUNT.at() = 0;
        let thread = spawn(wait_for_two, 0);
        for _ in 0..2 {
            AcquireSRWLockExclusive(SLIM.at());
            *COUNT.at() += 1;
            ReleaseSRWLockExclusive(SLIM.at());
            WakeAllConditionVariable(CONDITION.at());
        }
        join([thread]);
        true
    }
}

unsafe extern "system" fn wait_for_word(_: *mut c_void) -> u32 {
    // SAFETY: the word lives for ever.
    unsafe {
        while *WORD.at() == 0 {
            WaitOnAddress(WORD.at().cast(), (&raw const ZERO).cast(), 4, INFINITE);
        }
    }
    0
}

static ZERO: u32 = 0;

fn addresses() -> bool {
    // SAFETY: the word lives for ever.
    unsafe {
        *WORD.at() = 0;
        let threads = [spawn(wait_for_word, 0), spawn(wait_for_word, 0)];
        *WORD.at() = 1;
        WakeByAddressAll(WORD.at().cast());
        join(threads);
        true
    }
}

unsafe extern "system" fn set_one(index: *mut c_void) -> u32 {
    // SAFETY: the events live as long as the thread.
    unsafe { SetEvent((*HANDLES.at())[index as usize]) };
    0
}

fn several() -> bool {
    // SAFETY: the events live as long as the threads.
    unsafe {
        let events: [HANDLE; 3] = std::array::from_fn(|_| CreateEventW(null(), 0, 0, null()));
        *HANDLES.at() = events;
        let threads: Vec<HANDLE> = (0..3).map(|index| spawn(set_one, index)).collect();
        let mut seen = [false; 3];
        let first = WaitForMultipleObjects(3, events.as_ptr(), 0, INFINITE);
        let first = first.wrapping_sub(WAIT_OBJECT_0) as usize;
        let mut good = first < 3;
        seen[first % 3] = true;
        let others: Vec<HANDLE> = (0..3).filter(|&index| !seen[index]).map(|index| events[index]).collect();
        good &= WaitForMultipleObjects(2, others.as_ptr(), 1, INFINITE) == WAIT_OBJECT_0;
        good &= WaitForMultipleObjects(3, threads.as_ptr(), 1, INFINITE) == WAIT_OBJECT_0;
        join(threads);
        for event in events {
            CloseHandle(event);
        }
        good
    }
}

unsafe extern "system" fn sleep_an_hour(_: *mut c_void) -> u32 {
    // SAFETY: plain call.
    unsafe { Sleep(3_600_000) };
    0
}

/// Hours that take no time, and clocks that know about them.
fn sleepers() -> bool {
    // SAFETY: plain calls.
    unsafe {
        let begin = GetTickCount64();
        join([spawn(sleep_an_hour, 0), spawn(sleep_an_hour, 0)]);
        GetTickCount64() - begin >= 3_600_000
    }
}

unsafe extern "system" fn set_in_half_an_hour(_: *mut c_void) -> u32 {
    // SAFETY: the timer lives as long as the threads.
    unsafe {
        Sleep(1_800_000);
        let due = -18_000_000_000;
        assert_ne!(SetWaitableTimer((*HANDLES.at())[1], &due, 0, None, null(), 0), 0);
    }
    0
}

/// Timers go off in virtual time: alone and among others, once or as long as nobody sets them anew, in the order of their
/// moments. Rust's standard library sleeps with one.
fn timers() -> bool {
    const HOUR: u64 = 3_600_000;
    // SAFETY: the timers live as long as the threads.
    unsafe {
        let begin = GetTickCount64();
        let sleeper = std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(3600)));
        let (once, late) = (
            CreateWaitableTimerW(null(), 0, null()),
            CreateWaitableTimerExW(null(), null(), 1, TIMER_ALL_ACCESS),
        );
        let event = CreateEventW(null(), 0, 0, null());
        *HANDLES.at() = [once, late, event];
        let due = -36_000_000_000;
        let mut good = SetWaitableTimer(once, &due, 0, None, null(), 0) != 0;
        // Time may pass the end of a wait by more than that: then the timer has gone off before anybody looks.
        let mut first = WaitForSingleObject(once, 1000);
        if first == WAIT_TIMEOUT {
            first = WaitForSingleObject(once, INFINITE);
        }
        good &= first == WAIT_OBJECT_0;
        good &= GetTickCount64() - begin >= HOUR;
        good &= WaitForSingleObject(once, 0) == WAIT_TIMEOUT;
        let setter = spawn(set_in_half_an_hour, 0);
        let list = [event, late];
        let mut first = WaitForMultipleObjects(2, list.as_ptr(), 0, 1000);
        if first == WAIT_TIMEOUT {
            first = WaitForMultipleObjects(2, list.as_ptr(), 0, INFINITE);
        }
        good &= first == WAIT_OBJECT_0 + 1;
        good &= GetTickCount64() - begin >= 2 * HOUR;
        // It is of the kind that stays so.
        good &= WaitForSingleObject(late, 0) == WAIT_OBJECT_0;
        join([setter]);
        sleeper.join().expect("it only sleeps");
        for handle in [once, late, event] {
            CloseHandle(handle);
        }
        good
    }
}

/// Makes as many steps as random bytes say, which a thread that is new asks for.
fn random() -> bool {
    let thread = std::thread::spawn(|| {
        let number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        for _ in 0..number % 8 {
            std::thread::yield_now();
        }
    });
    thread.join().is_ok()
}

unsafe extern "system" fn wait_at_port(_: *mut c_void) -> u32 {
    let (mut bytes, mut key, mut overlapped) = (0, 0, null_mut());
    // SAFETY: the port lives as long as the thread; the answers are written into the locals.
    unsafe {
        GetQueuedCompletionStatus((*HANDLES.at())[0], &mut bytes, &mut key, &mut overlapped, INFINITE);
        COUNT.at().write(bytes);
    }
    0
}

/// A thread waits at a completion port for what another posts.
fn ports() -> bool {
    // SAFETY: the port lives as long as the thread.
    unsafe {
        let port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 1);
        (*HANDLES.at())[0] = port;
        COUNT.at().write(0);
        let thread = spawn(wait_at_port, 0);
        Sleep(1);
        assert_ne!(PostQueuedCompletionStatus(port, 5, 0, null()), 0);
        join([thread]);
        CloseHandle(port);
        COUNT.at().read() == 5
    }
}

unsafe extern "system" fn yield_for_ever(_: *mut c_void) -> u32 {
    loop {
        // SAFETY: plain call.
        unsafe { SwitchToThread() };
    }
}

/// Takes and gives back a lock so often, and then waits in a loop for what the other thread says when it is through its own.
unsafe extern "system" fn wait_for_the_other(times: *mut c_void) -> u32 {
    // SAFETY: the lock lives for ever.
    unsafe {
        for _ in 0..times as usize {
            AcquireSRWLockExclusive(SLIM.at());
            ReleaseSRWLockExclusive(SLIM.at());
        }
        while times.is_null() && SUM.load(SeqCst) == 0 {
            SwitchToThread();
        }
    }
    SUM.fetch_add(1, SeqCst);
    0
}

/// Two threads that wait for each other, politely; with some work to do, they do not.
fn patient(times: usize) -> bool {
    SUM.store(0, SeqCst);
    join([spawn(wait_for_the_other, times), spawn(wait_for_the_other, times)]);
    true
}

/// Called when the thread ends that wrote the slot, or the process with it.
unsafe extern "system" fn at_the_end(_: *const c_void) {
    for _ in 0..40 {
        // SAFETY: plain call; the lock lives for ever.
        unsafe {
            SwitchToThread();
            AcquireSRWLockExclusive(SLIM.at());
            ReleaseSRWLockExclusive(SLIM.at());
        }
    }
}

/// The process ends while others run, and code of the program's runs after they have been ended.
fn end_beside_others(by_itself: bool) -> bool {
    // SAFETY: the threads use nothing; the slot is never given back.
    unsafe {
        let slot = FlsAlloc(Some(at_the_end));
        assert_ne!(FlsSetValue(slot, std::ptr::without_provenance(1)), 0);
        for _ in 0..2 {
            spawn(yield_for_ever, 0);
        }
        if by_itself {
            ExitProcess(0);
        }
    }
    true
}

unsafe extern "system" fn in_pool(_: *mut c_void) -> u32 {
    // SAFETY: the event lives until it is set.
    unsafe { SetEvent((*HANDLES.at())[0]) };
    0
}

/// A thread of Windows itself sets an event that a thread of the run waits for.
fn thread_pool() -> bool {
    // SAFETY: the event lives until it is set.
    unsafe {
        let event = CreateEventW(null(), 0, 0, null());
        (*HANDLES.at())[0] = event;
        assert_ne!(QueueUserWorkItem(Some(in_pool), null(), WT_EXECUTEDEFAULT), 0);
        WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0
    }
}

unsafe extern "system" fn lock_twelve_times(_: *mut c_void) -> u32 {
    // SAFETY: the lock lives for ever.
    unsafe {
        for _ in 0..12 {
            AcquireSRWLockExclusive(SLIM.at());
            ReleaseSRWLockExclusive(SLIM.at());
        }
    }
    0
}

/// Two threads of 25 steps each, for measuring.
fn steps() -> bool {
    join([spawn(lock_twelve_times, 0), spawn(lock_twelve_times, 0)]);
    true
}

static SUM: AtomicU32 = AtomicU32::new(0);

/// Takes the sum out and puts it back: what another thread takes out meanwhile is lost.
fn add_in_two() {
    for _ in 0..4 {
        let seen = SUM.swap(0, SeqCst);
        SUM.swap(seen + 1, SeqCst);
    }
}

fn add_in_one() {
    for _ in 0..4 {
        SUM.fetch_add(1, SeqCst);
    }
}

fn both(work: fn()) -> u32 {
    SUM.store(0, SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    SUM.load(SeqCst)
}

fn rust_lost_update() -> bool {
    both(add_in_two) == 8
}

fn rust_added() -> bool {
    both(add_in_one) == 8
}

/// In the first page, where nothing is; a debug build looks for null itself.
static PLACE: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::without_provenance_mut(64));

#[inline(never)]
fn add_through() {
    // SAFETY: none: under some schedules nothing is there yet, which is the bug.
    unsafe { (*PLACE.load(SeqCst)).fetch_add(1, SeqCst) };
}

/// An atomic operation on what the main thread may not have made yet.
fn rust_null() -> bool {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            SUM.fetch_add(1, SeqCst);
            add_through();
        });
        SUM.fetch_add(1, SeqCst);
        PLACE.swap((&raw const SUM).cast_mut(), SeqCst);
    });
    true
}
