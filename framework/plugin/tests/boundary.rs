//! What the host sees of a test that goes well, fails, panics or misbehaves in each call of its life.

mod fake_host;

use fake_host::{Host, SERVICES};
use std::panic;
use std::sync::atomic::Ordering;
use std::time::Duration;
use waylay_abi as abi;
use waylay_plugin::{Context, Distribution, Failed, Level, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// Makes a test out of its name and the calls in which it differs from one that does nothing.
macro_rules! test {
    ($type:ident, $name:literal, { $($item:item)* }) => {
        struct $type;
        impl Test for $type {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = "nothing";
            $($item)*
        }
    };
}

macro_rules! plain {
    (create) => {
        fn create(_: &Context<'_>) -> Result<Self, Failed> {
            Ok(Self)
        }
    };
    (main) => {
        fn main(&self, _: &Worker<'_>) -> Outcome {
            Ok(())
        }
    };
}

test!(Well, "well", {
    plain!(create);
    plain!(main);
});
test!(Done, "done", {
    plain!(create);
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        worker.done();
        Ok(())
    }
});
test!(Errs, "errs", {
    plain!(create);
    fn main(&self, _: &Worker<'_>) -> Outcome {
        errs_here()
    }
});
#[inline(never)]
fn errs_here() -> Outcome {
    ensure!(std::hint::black_box(1) > 2, "one is not more than {}", 2);
    Ok(())
}
test!(Asks, "asks", {
    plain!(create);
    fn main(&self, _: &Worker<'_>) -> Outcome {
        asks_here()
    }
});
#[inline(never)]
fn asks_here() -> Outcome {
    std::hint::black_box("x").parse::<u32>()?;
    Ok(())
}
test!(GoesOn, "goes-on", {
    plain!(create);
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        worker.fail(Failed::new("first"));
        worker.fail(Failed::new("second"));
        Ok(())
    }
});
test!(Panics, "panics", {
    plain!(create);
    fn main(&self, _: &Worker<'_>) -> Outcome {
        panics_here();
        Ok(())
    }
});
test!(Catches, "catches", {
    plain!(create);
    fn main(&self, _: &Worker<'_>) -> Outcome {
        ensure!(panic::catch_unwind(panics_here).is_err());
        Ok(())
    }
});
test!(CreatePanics, "create-panics", {
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        panic!("in create")
    }
    plain!(main);
});
test!(CreateErrs, "create-errs", {
    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        context.distribution::<f64>("nowhere")?;
        Ok(Self)
    }
    plain!(main);
});
test!(StartErrs, "start-errs", {
    plain!(create);
    fn on_start(&mut self, _: &Context<'_>) -> Outcome {
        Err(Failed::new("not today"))
    }
    plain!(main);
});
test!(CancelPanics, "cancel-panics", {
    plain!(create);
    plain!(main);
    fn on_cancelled(&self, _: &Context<'_>) {
        panic!("in cancel")
    }
});
test!(EndPanics, "end-panics", {
    plain!(create);
    plain!(main);
    fn on_end(&mut self, _: &Context<'_>) -> Outcome {
        panic!("in end")
    }
});
test!(DropPanics, "drop-panics", {
    plain!(create);
    plain!(main);
});
impl Drop for DropPanics {
    fn drop(&mut self) {
        panic!("in drop");
    }
}
test!(ThreadPanics, "thread-panics", {
    plain!(create);
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        worker.threads(3, |thread| {
            if thread.index() == 1 {
                panics_here();
            }
            Ok(())
        })
    }
});

#[inline(never)]
fn panics_here() {
    panic!("boom {}", 1);
}

/// Uses every service once.
struct Draws {
    number: Distribution<i64>,
    small: Distribution<u32>,
    real: Distribution<f64>,
    pause: Distribution<Duration>,
    index: Distribution<usize>,
}
impl Test for Draws {
    const NAME: &'static str = "draws";
    const ABOUT: &'static str = "what the services give";
    const PARAMS: &'static [Param] = &[
        Param::new("number", "{ uniform = { min = -5, max = 5 } }").about("a number"),
        Param::required("real"),
        Param::required("pause"),
        Param::required("index"),
    ];
    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            number: context.distribution("number")?,
            small: context.distribution("number")?,
            real: context.distribution("real")?,
            pause: context.distribution("pause")?,
            index: context.distribution("index")?,
        })
    }
    fn on_start(&mut self, context: &Context<'_>) -> Outcome {
        ensure_eq!(context.draw(self.number), 1 << 40);
        ensure_eq!(context.seed(), 99);
        Ok(())
    }
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        ensure_eq!(worker.draw(self.small), 0, "-3 is moved to the nearest");
        ensure_eq!(worker.draw(self.small), u32::MAX, "2^40 is moved to the nearest");
        ensure_eq!(worker.draw(self.number), -3);
        ensure_eq!(worker.draw(self.real), 3.5);
        ensure_eq!(worker.draw(self.pause), Duration::from_nanos(1500));
        ensure_eq!(worker.choose(self.index, 3), 2, "9 is moved to the nearest");
        ensure_eq!(worker.pick(self.index, &["a", "b"]), Some(&"a"), "-1 is moved to the nearest");
        ensure_eq!(worker.pick::<u8>(self.index, &[]), None);
        ensure_eq!(worker.generator(4).bits(), waylay_plugin::Generator::new(99, 4).bits());
        ensure!(worker.cancelled());
        worker.progress();
        worker.log(Level::Warn, "all drawn");
        Ok(())
    }
}

waylay_plugin::export! {
    name: "boundary",
    tests: [Asks, Well, Done, Errs, GoesOn, Panics, Catches, CreatePanics, CreateErrs, StartErrs, CancelPanics, EndPanics,
        DropPanics, ThreadPanics, Draws],
}

#[test]
fn a_life_without_failures() {
    let host = Host::default();
    let live = host.create("well").unwrap();
    assert_eq!(live.start(), abi::STATUS_OK);
    assert_eq!(live.main(), abi::STATUS_OK);
    live.cancel();
    live.end();
    drop(live);
    assert!(host.failures().is_empty());
}

#[test]
fn done_is_no_failure() {
    let host = Host::default();
    assert_eq!(host.create("done").unwrap().main(), abi::STATUS_DONE);
    assert!(host.failures().is_empty());
}

#[test]
fn an_error_is_a_failure_of_its_place() {
    let host = Host::default();
    assert_eq!(host.create("errs").unwrap().main(), abi::STATUS_FAILED);
    let [failure] = &host.failures()[..] else { panic!("one failure") };
    assert_eq!(failure.kind, abi::FAILURE_ASSERT);
    assert!(failure.message.starts_with("one is not more than 2 ("), "{}", failure.message);
    assert_eq!(
        enclosing(failure.frames[0]),
        errs_here as fn() -> Outcome as usize,
        "nothing of the SDK is inside"
    );
    assert_eq!(host.create("asks").unwrap().main(), abi::STATUS_FAILED);
    let [failure] = &host.failures()[..] else { panic!("one failure") };
    assert!(failure.message.starts_with("invalid digit found in string (framework"), "{}", failure.message);
    assert!(
        failure.frames[..3].iter().any(|frame| enclosing(*frame) == asks_here as fn() -> Outcome as usize)
    );
}

#[test]
fn reporting_does_not_end_the_iteration() {
    let host = Host::default();
    assert_eq!(host.create("goes-on").unwrap().main(), abi::STATUS_FAILED);
    assert_eq!(host.failures().len(), 2);
}

unsafe extern "C" {
    /// The start of the function that an address is in; part of the unwinder that the SDK takes frames with.
    safe fn _Unwind_FindEnclosingFunction(address: usize) -> usize;
}

fn enclosing(return_address: usize) -> usize {
    _Unwind_FindEnclosingFunction(return_address - 1)
}

fn runs_through(frames: &[usize], function: fn()) -> bool {
    frames.iter().any(|address| enclosing(*address) == function as usize)
}

#[test]
fn a_panic_is_a_failure_with_the_stack_of_the_panic() {
    let host = Host::default();
    assert_eq!(host.create("panics").unwrap().main(), abi::STATUS_FAILED);
    let [failure] = &host.failures()[..] else { panic!("one failure") };
    assert_eq!(failure.kind, abi::FAILURE_PANIC);
    assert!(failure.message.contains("tests/boundary.rs"), "{}", failure.message);
    assert!(failure.message.ends_with("boom 1"), "{}", failure.message);
    assert!(runs_through(&failure.frames, panics_here));
}

#[test]
fn a_panic_that_the_test_catches_is_no_failure() {
    let host = Host::default();
    assert_eq!(host.create("catches").unwrap().main(), abi::STATUS_OK);
    assert!(host.failures().is_empty());
}

#[test]
fn a_panic_on_a_thread_of_the_iteration_is_reported_once_with_its_stack() {
    let host = Host::default();
    assert_eq!(host.create("thread-panics").unwrap().main(), abi::STATUS_FAILED);
    let [failure] = &host.failures()[..] else { panic!("one failure") };
    assert_eq!(failure.kind, abi::FAILURE_PANIC);
    assert!(runs_through(&failure.frames, panics_here));
}

#[test]
fn create_that_panics_or_errs_gives_null_and_says_why() {
    let host = Host::default();
    assert!(host.create("create-panics").is_none());
    assert!(host.create("create-errs").is_none());
    assert!(host.create("unheard-of").is_none());
    let messages: Vec<_> = host.failures().into_iter().map(|failure| failure.message).collect();
    assert!(messages[0].ends_with("in create"), "{messages:?}");
    assert!(messages[1].starts_with("the test has no parameter \"nowhere\""), "{messages:?}");
    assert!(messages[2].starts_with("this plugin has no test \"unheard-of\""), "{messages:?}");
}

#[test]
fn start_that_errs_is_a_failed_status() {
    let host = Host::default();
    assert_eq!(host.create("start-errs").unwrap().start(), abi::STATUS_FAILED);
    assert!(host.failures()[0].message.starts_with("not today"));
}

#[test]
fn cancel_end_and_drop_that_panic_are_failures() {
    for (test, text) in [("cancel-panics", "in cancel"), ("end-panics", "in end"), ("drop-panics", "in drop")]
    {
        let host = Host::default();
        let live = host.create(test).unwrap();
        live.cancel();
        live.end();
        drop(live);
        let [failure] = &host.failures()[..] else { panic!("one failure of {test}") };
        assert_eq!(failure.kind, abi::FAILURE_PANIC);
        assert!(failure.message.ends_with(text), "{}", failure.message);
    }
}

#[test]
fn services_arrive() {
    let host = Host::with(&[
        ("number", &[1 << 40, -3, 1 << 41, -3]),
        ("real", &[7]),
        ("pause", &[1500]),
        ("index", &[9, -1]),
    ]);
    host.seed.store(99, Ordering::Relaxed);
    host.cancelled.store(true, Ordering::Relaxed);
    let live = host.create("draws").unwrap();
    assert_eq!(live.start(), abi::STATUS_OK, "{:?}", host.failures());
    assert_eq!(live.main(), abi::STATUS_OK, "{:?}", host.failures());
    assert_eq!(*host.log.lock().unwrap(), [(abi::LOG_WARN, "all drawn".to_owned())]);
    assert_eq!(host.progressed.load(Ordering::Relaxed), 1);
}

#[test]
fn the_description_is_complete() {
    // SAFETY: the plugin's own description is as the contract says, and lives for ever.
    unsafe {
        let info = &*fake_host::WaylayPlugin();
        assert_eq!((info.size as usize, info.abi_version), (size_of::<abi::PluginInfo>(), abi::ABI_VERSION));
        let name = |text: *const std::ffi::c_char| std::ffi::CStr::from_ptr(text).to_str().unwrap();
        assert_eq!(name(info.name), "boundary");
        assert_eq!((info.test_count, info.kind_count), (15, 0));
        let draws = &**info.tests.add(14);
        assert_eq!((name(draws.name), name(draws.about)), ("draws", "what the services give"));
        assert_eq!(draws.param_count, 4);
        let number = &**draws.params;
        assert_eq!(name(number.default_value), "{ uniform = { min = -5, max = 5 } }");
        assert_eq!(name(number.about), "a number");
        assert!((**draws.params.add(1)).default_value.is_null());
    }
}

#[test]
fn a_host_that_lacks_services_gets_no_instance() {
    // SAFETY: plain copies of a plain struct.
    let mut services = unsafe { std::ptr::read(&raw const SERVICES) };
    services.progress = None;
    let host = Host::default();
    assert!(host.create_with("well", &services).is_none());
    // SAFETY: as above.
    let mut services = unsafe { std::ptr::read(&raw const SERVICES) };
    services.size -= 8;
    assert!(host.create_with("well", &services).is_none());
}
