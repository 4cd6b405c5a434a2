//! Programs whose allocator is not libc's.

use crate::program::{EVERYTHING, Program, library, text};
use waylay_leaks::region::SharedRegion;

/// Linked statically, the program's own functions come first and we are never asked.
#[test]
fn an_allocator_inside_the_program_stays_its_own() {
    let program = Program::build("cc", "arena_user.c", &["-O2", "-c"]);
    program.compile("cc", "arena_user.c", &["-O2", "-c", "-fno-builtin"], "user.o");
    program.compile(
        "cc",
        "arena.c",
        &["-O2", "-g", "-fno-builtin", "-no-pie", "user.o", "-pthread"],
        "program",
    );
    let ended = program.run(&[], EVERYTHING);
    assert!(ended.printed("calls") > 4000);
    assert_eq!(ended.snapshot.samples, 0);
}

/// As a library it comes after us: calls pass through us to it, and never past it. It would end the
/// program at the first pointer that is not its own.
#[test]
fn an_allocator_in_a_library_is_the_next_one() {
    let program = Program::build("cc", "arena.c", &["-O2", "-fno-builtin", "-fPIC", "-shared"]);
    program.compile("cc", "arena.c", &["-O2", "-fno-builtin", "-fPIC", "-shared"], "libarena.so");
    let flags = ["-O2", "-g", "-fno-builtin", "-no-pie", "-L.", "-larena", "-pthread"];
    program.compile("cc", "arena_user.c", &flags, "program");
    let ended = program.run(&[], EVERYTHING);
    assert!(ended.printed("calls") > 4000);
    let leaked = ended.live_sizes_of("leak_from_arena");
    assert_eq!((leaked.len(), leaked.iter().sum::<u64>()), (1000, 1_000_000));
}

#[test]
fn a_sanitizer_behind_us_still_works() {
    let program = Program::build("cc", "sanitized.c", &["-O1", "-g", "-fsanitize=address", "-pthread"]);
    for (arguments, healthy) in [(&[][..], true), (&["crash"][..], false)] {
        let region = SharedRegion::create().expect("region");
        let mut command = program.command(arguments);
        // The sanitizer insists on being first, unless told that somebody else is.
        command.env("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
        region.attach(&mut command, &library(), EVERYTHING);
        let output = command.output().expect("run");
        let errors = text(&output.stderr);
        assert_eq!(output.status.success(), healthy, "{errors}");
        assert_eq!(errors.contains("heap-use-after-free"), !healthy, "{errors}");
        assert!(region.snapshot().deaths > 4000, "{:?}", region.snapshot().deaths);
    }
}
