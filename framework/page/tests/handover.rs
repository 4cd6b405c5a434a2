//! A failure goes from one mapping of the page to another and its thread waits meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waylay_page::record::{MAX_FRAMES, MESSAGE_BYTES, NO_WORKER, Report, Sort};
use waylay_page::{Clock, Page};

fn report<'a>(message: &'a [u8], frames: &'a [usize]) -> Report<'a> {
    Report {
        sort: Sort::Panic,
        test: 3,
        worker: NO_WORKER,
        tid: 77,
        iteration: 12,
        seed: 0xfeed,
        signal: 0,
        address: 0,
        message,
        frames,
        siginfo: b"si",
        machine: b"regs",
    }
}

fn pair() -> (Page, Page) {
    let driver = Page::create(&Clock::calibrate()).expect("page");
    let handle = driver.handle().try_clone().expect("another handle");
    (driver, Page::attach(handle).expect("attach"))
}

#[test]
fn the_failing_thread_waits_until_the_driver_has_looked() {
    let (driver, host) = pair();
    let went_on = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            host.layout().report(&report(b"lost an item", &[1, 2, 3]));
            went_on.store(true, Ordering::SeqCst);
        });
        let deadline = Instant::now() + Duration::from_secs(30);
        let pending = loop {
            if let Some(pending) = driver.layout().pending().next() {
                break pending;
            }
            assert!(Instant::now() < deadline, "the record never arrived");
            std::thread::yield_now();
        };
        assert!(!went_on.load(Ordering::SeqCst));
        assert_eq!(pending.failure.message, "lost an item");
        assert_eq!(pending.failure.frames, [1, 2, 3]);
        assert_eq!((pending.failure.test, pending.failure.worker), (Some(3), None));
        assert_eq!((&pending.failure.siginfo[..], &pending.failure.machine[..]), (&b"si"[..], &b"regs"[..]));
        pending.release();
    });
    assert!(went_on.load(Ordering::SeqCst));
    assert!(driver.layout().pending().next().is_none());
}

#[test]
fn more_threads_than_records_all_get_through() {
    let (driver, host) = pair();
    let threads = waylay_page::layout::RECORDS + 20;
    let mut seen = 0;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| host.layout().report(&report(b"x", &[])));
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while seen < threads {
            assert!(Instant::now() < deadline, "only {seen} of {threads} arrived");
            for pending in driver.layout().pending() {
                seen += 1;
                pending.release();
            }
            std::thread::yield_now();
        }
    });
    assert_eq!(seen, threads);
}

#[test]
fn what_is_too_long_is_cut_not_refused() {
    let (driver, host) = pair();
    let long = vec![b'a'; MESSAGE_BYTES + 100];
    let frames = vec![5; MAX_FRAMES + 9];
    std::thread::scope(|scope| {
        scope.spawn(|| host.layout().report(&report(&long, &frames)));
        loop {
            if let Some(pending) = driver.layout().pending().next() {
                assert_eq!(pending.failure.message.len(), MESSAGE_BYTES);
                assert_eq!(pending.failure.frames.len(), MAX_FRAMES);
                pending.release();
                break;
            }
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_page_of_another_version_is_refused() {
    let driver = Page::create(&Clock::calibrate()).expect("page");
    driver.layout().header.version.store(99, Ordering::SeqCst);
    let handle = driver.handle().try_clone().expect("another handle");
    let error = Page::attach(handle).err().expect("refused");
    assert!(error.to_string().contains("version 99"), "{error}");
}
