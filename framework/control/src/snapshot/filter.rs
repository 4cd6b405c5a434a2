//! The filter that stops system calls before they are made: a small program for the kernel.
//!
//! It looks at the number and, for some calls, at one argument. Calls from the library's own code pass: the library undoes
//! what it does itself. Everything else raises SIGSYS, and [`policy`](super::policy) decides.

use super::policy::{Descriptors, PASSES, Pass};

/// One instruction of the kernel's packet filter.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u16,
    yes: u8,
    no: u8,
    value: u32,
}

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const TRAP: u32 = 0x0003_0000;
/// x86-64, 64 bit, little endian.
const ARCHITECTURE: u32 = 0xc000_003e;
/// Offsets in what the kernel shows: number, architecture, instruction pointer, arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const POINTER: u32 = 8;
const ARGUMENTS: u32 = 16;

/// The most instructions that the kernel takes.
const MOST: usize = 4096;

/// Makes the filter: `text` is the library's code, `before` the descriptors that runs must leave alone, and those from
/// `reserved` on are the library's own.
pub(super) fn filter(text: (usize, usize), before: &Descriptors, reserved: u32) -> Option<Vec<Instruction>> {
    let mut made = Vec::new();
    let mut add = |code, value, yes, no| made.push(Instruction { code, yes, no, value });
    add(LOAD, ARCHITECTURE_AT, 0, 0);
    add(IF_EQUAL, ARCHITECTURE, 1, 0);
    add(RETURN, TRAP, 0, 0);
    add(LOAD, NUMBER, 0, 0);
    for &(number, pass) in PASSES {
        // Each entry goes on behind itself when it does not apply, with the number loaded again.
        match pass {
            Pass::Always => {
                add(IF_EQUAL, number as u32, 0, 1);
                add(RETURN, ALLOW, 0, 0);
            }
            Pass::IfZero(argument) => {
                let at = ARGUMENTS + 8 * u32::from(argument);
                add(IF_EQUAL, number as u32, 0, 6);
                add(LOAD, at, 0, 0);
                add(IF_EQUAL, 0, 0, 3);
                add(LOAD, at + 4, 0, 0);
                add(IF_EQUAL, 0, 0, 1);
                add(RETURN, ALLOW, 0, 0);
                add(LOAD, NUMBER, 0, 0);
            }
            Pass::IfEqual(argument, value) => {
                add(IF_EQUAL, number as u32, 0, 4);
                add(LOAD, ARGUMENTS + 8 * u32::from(argument), 0, 0);
                add(IF_EQUAL, value, 0, 1);
                add(RETURN, ALLOW, 0, 0);
                add(LOAD, NUMBER, 0, 0);
            }
            Pass::OnOwnDescriptor => {
                let kept: Vec<usize> = before.iter().filter(|&fd| fd < reserved as usize).collect();
                let rest = u8::try_from(kept.len() + 3).ok()?;
                add(IF_EQUAL, number as u32, 0, rest + 1);
                add(LOAD, ARGUMENTS, 0, 0);
                add(IF_AT_LEAST, reserved, rest - 2, 0);
                for (place, &fd) in kept.iter().enumerate() {
                    add(IF_EQUAL, fd as u32, (kept.len() - place) as u8, 0);
                }
                add(RETURN, ALLOW, 0, 0);
                add(LOAD, NUMBER, 0, 0);
            }
        }
    }
    // Addresses are compared in halves, and the library's code may lie on both sides of a multiple of four gigabytes.
    let (low, high) = (text.0 as u64, text.1 as u64);
    add(LOAD, POINTER + 4, 0, 0);
    if low >> 32 == (high - 1) >> 32 {
        add(IF_EQUAL, (low >> 32) as u32, 0, 4);
        add(LOAD, POINTER, 0, 0);
        add(IF_AT_LEAST, low as u32, 0, 2);
        add(IF_AT_LEAST, high as u32, 1, 0);
        add(RETURN, ALLOW, 0, 0);
    } else {
        add(IF_EQUAL, (low >> 32) as u32, 0, 3);
        add(LOAD, POINTER, 0, 0);
        add(IF_AT_LEAST, low as u32, 0, 5);
        add(RETURN, ALLOW, 0, 0);
        add(IF_EQUAL, (high >> 32) as u32, 0, 3);
        add(LOAD, POINTER, 0, 0);
        add(IF_AT_LEAST, high as u32, 1, 0);
        add(RETURN, ALLOW, 0, 0);
    }
    add(RETURN, TRAP, 0, 0);
    (made.len() <= MOST).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: (usize, usize) = (0x7fff_f700_0000, 0x7fff_f710_0000);

    /// Does what the kernel does with a filter.
    fn passes(filter: &[Instruction], number: i64, at: usize, args: [u64; 6]) -> bool {
        let mut shown = vec![number as u32, ARCHITECTURE, at as u32, (at as u64 >> 32) as u32];
        shown.extend(args.iter().flat_map(|&arg| [arg as u32, (arg >> 32) as u32]));
        let (mut next, mut loaded) = (0, 0);
        loop {
            let Instruction { code, yes, no, value } = filter[next];
            next += 1;
            let holds = match code {
                LOAD => {
                    loaded = shown[value as usize / 4];
                    continue;
                }
                RETURN => return value == ALLOW,
                IF_EQUAL => loaded == value,
                _ => loaded >= value,
            };
            next += usize::from(if holds { yes } else { no });
        }
    }

    #[test]
    fn the_filter_says_what_the_policy_says() {
        let mut before = Descriptors::default();
        for fd in [0, 1, 2, 4, 950] {
            before.add(fd);
        }
        let filter = filter(TEXT, &before, 900).unwrap();
        let elsewhere = 0x5555_5555_0000;
        let from =
            |number, args: [u64; 2]| passes(&filter, number, elsewhere, [args[0], args[1], 0, 0, 0, 0]);
        assert!(from(libc::SYS_getpid, [0, 0]));
        assert!(
            from(libc::SYS_write, [1, 0]) && from(libc::SYS_write, [2, 0]) && from(libc::SYS_write, [3, 0])
        );
        assert!(
            from(libc::SYS_read, [3, 0]) && from(libc::SYS_read, [5, 0]) && from(libc::SYS_read, [899, 0])
        );
        for fd in [0, 1, 2, 4, 900, 950, 1u64 << 31] {
            assert!(!from(libc::SYS_read, [fd, 0]), "{fd}");
        }
        assert!(from(libc::SYS_rt_sigprocmask, [0, 0]));
        assert!(!from(libc::SYS_rt_sigprocmask, [0, 1]) && !from(libc::SYS_rt_sigprocmask, [0, 1 << 32]));
        assert!(from(libc::SYS_fcntl, [4, libc::F_GETFL as u64]) && !from(libc::SYS_fcntl, [4, 0]));
        for number in [libc::SYS_fork, libc::SYS_mmap, libc::SYS_exit_group, libc::SYS_kill, 1 << 30] {
            assert!(!from(number, [0, 0]), "{number}");
        }
        for (at, inside) in [
            (TEXT.0 - 1, false),
            (TEXT.0, true),
            (TEXT.1 - 1, true),
            (TEXT.1, false),
            (TEXT.0 + (1 << 32), false),
        ] {
            assert_eq!(passes(&filter, libc::SYS_fork, at, [0; 6]), inside, "{at:x}");
        }
    }

    #[test]
    fn the_library_may_lie_across_a_multiple_of_four_gigabytes() {
        let text = (0x7fff_ffff_0000, 0x8000_0001_0000);
        let filter = filter(text, &Descriptors::default(), 900).unwrap();
        for (at, inside) in [
            (text.0 - 1, false),
            (text.0, true),
            (0x7fff_ffff_ffff, true),
            (0x8000_0000_0000, true),
            (text.1 - 1, true),
            (text.1, false),
            (text.0 + (1 << 33), false),
        ] {
            assert_eq!(passes(&filter, libc::SYS_fork, at, [0; 6]), inside, "{at:x}");
        }
    }

    #[test]
    fn calls_of_another_architecture_are_stopped() {
        let filter = filter(TEXT, &Descriptors::default(), 900).unwrap();
        assert_eq!((filter[1].value, filter[1].yes, filter[2].value), (ARCHITECTURE, 1, TRAP));
    }
}
