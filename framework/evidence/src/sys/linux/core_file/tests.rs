use super::choice::{Chosen, Page};
use super::*;
use crate::dump::DumpSize;
use crate::memory_map::parse_mappings;
use crate::registers::Registers;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

fn thread(id: u32) -> Thread {
    let mut registers = UserRegisters([0; 27]);
    registers.0[UserRegisters::RIP] = u64::from(id) + 100;
    Thread { id, signal: 0, registers, float: Some([0; 512]) }
}

/// The parser of another crate reads what is written here.
#[test]
fn a_core_reads_back() {
    let process = Process { id: 7, name: b"a name that is too long".to_vec(), ..Process::default() };
    let process = Process { signal: Some((11, 1, 8)), auxiliary: vec![1; 32], ..process };
    let file = MappedFile { start: 0x1000, end: 0x3000, offset: 0x2000, path: b"/lib/x.so".to_vec() };
    let notes = notes(&process, &[thread(9), thread(7)], &[file]);
    let segment = Segment { start: 0x5000, bytes: 2 * PAGE, writable: true, executable: false };
    let next = Segment { start: 0x9000, bytes: PAGE, writable: false, executable: true };
    let mut file = head(&[(segment, PAGE), (next, PAGE)], &notes);
    let memory = memory_offset(2, notes.len());
    file.resize(memory as usize, 0);
    file.extend([1; 4096].iter().chain(&[0; 4096]).chain(&[2; 4096]));

    let header = elf::FileHeader64::<Endianness>::parse(&*file).expect("a header");
    let endian = header.endian().expect("known");
    assert_eq!((header.e_type(endian), header.e_machine(endian)), (elf::ET_CORE, elf::EM_X86_64));
    let headers = header.program_headers(endian, &*file).expect("headers");
    let mut kinds = Vec::new();
    let mut read = headers[0].notes(endian, &*file).expect("readable").expect("notes");
    while let Some(note) = read.next().expect("whole") {
        kinds.push((note.n_type(endian).0, note.desc().len()));
    }
    let expected = [
        (NT_PRSTATUS, 336),
        (NT_PRPSINFO, 136),
        (NT_SIGINFO, 128),
        (NT_AUXV, 32),
        (NT_FILE, 16 + 24 + 10),
        (NT_FPREGSET, 512),
        (NT_PRSTATUS, 336),
        (NT_FPREGSET, 512),
    ];
    assert_eq!(kinds, expected);
    let data: Vec<_> =
        headers[1..].iter().map(|header| header.data(endian, &*file).expect("there")).collect();
    assert_eq!(data, [&[1; 4096][..], &[2; 4096][..]], "what was not read is not there");
    assert_eq!(headers[1].p_memsz(endian), 2 * PAGE);
    assert_eq!(headers[2].p_flags(endian), elf::PF_R | elf::PF_X);
}

#[test]
fn registers_of_a_signal_take_their_places() {
    let mut gregs = [0; crate::crash::GREGS_COUNT];
    gregs.iter_mut().enumerate().for_each(|(index, value)| *value = index as u64 + 1);
    let before = UserRegisters([99; 27]);
    let at_signal = before.at_signal(&gregs);
    assert_eq!((at_signal.0[16], at_signal.stack(), at_signal.thread_pointer()), (17, 16, 99));
    let same = before.with(&crate::crash::registers_from_gregs(&gregs));
    let known: Vec<usize> = (0..17).filter(|index| *index != 15).chain([19]).collect();
    assert!(known.iter().all(|index| same.0[*index] == at_signal.0[*index]), "{same:?} {at_signal:?}");
    assert_eq!(before.with(&Registers::position(5, 6)).0[16], 5);
}

const MAPS: &str = "\
1000-3000 r--p 00000000 fe:01 42 /a/program
3000-5000 rw-p 00002000 fe:01 42 /a/program
5000-6000 rw-p 00000000 00:00 0
20000-30000 rw-p 00000000 00:00 0 [heap]
40000-48000 rw-s 00000000 00:01 9 /memfd:page
50000-60000 ---p 00000000 00:00 0
60000-70000 rw-p 00000000 00:00 0
7000000-7001000 r--p 00000000 00:00 0 [vvar]
";

/// Which pages are whose: the second of the program's variables, three of the heap, one of the stack.
fn pages(start: u64, end: u64) -> Vec<Page> {
    const OWN: [u64; 6] = [0x4000, 0x5000, 0x20000, 0x21000, 0x2f000, 0x6f000];
    (start / PAGE..end / PAGE)
        .map(|page| if OWN.contains(&(page * PAGE)) { Page::Own } else { Page::Clean })
        .collect()
}

fn chosen(size: DumpSize, limit: u64) -> (Vec<(u64, u64)>, u64) {
    let mappings = parse_mappings(MAPS).expect("well formed");
    let mut chosen = Chosen::default();
    chosen.add(&mappings, 0x6ff00, 0x70000);
    chosen.add_modules(&mappings, &pages);
    chosen.add_pointed(&mappings, [0x2f123, 0x40000, 0x50010, 3].into_iter());
    let left_out = chosen.add_rest(&mappings, size, limit, &pages);
    let segments = chosen.segments(&mappings);
    (segments.iter().map(|segment| (segment.start, segment.start + segment.bytes)).collect(), left_out)
}

#[test]
fn a_small_core_has_stacks_variables_and_what_they_point_to() {
    let (segments, left_out) = chosen(DumpSize::Mini, 1 << 30);
    let expected =
        [(0x1000, 0x2000), (0x4000, 0x5000), (0x5000, 0x6000), (0x2f000, 0x30000), (0x6f000, 0x70000)];
    assert_eq!((segments, left_out), (expected.to_vec(), 0));
}

#[test]
fn a_core_of_the_heap_has_all_that_the_process_wrote() {
    let (segments, left_out) = chosen(DumpSize::Heap, 1 << 30);
    assert!(
        segments.contains(&(0x20000, 0x22000)) && segments.contains(&(0x2f000, 0x30000)),
        "{segments:x?}"
    );
    assert!(!segments.iter().any(|(start, _)| (0x40000..0x48000).contains(start)), "shared memory is not");
    assert_eq!(left_out, 0);
}

#[test]
fn a_full_core_has_files_and_shared_memory() {
    let (segments, _) = chosen(DumpSize::Full, 1 << 30);
    assert!(segments.contains(&(0x1000, 0x3000)) && segments.contains(&(0x40000, 0x48000)), "{segments:x?}");
    assert!(!segments.iter().any(|(start, _)| *start >= 0x700_0000), "the kernel's page cannot be read");
}

#[test]
fn a_limit_leaves_the_stacks_and_says_what_is_missing() {
    let (segments, left_out) = chosen(DumpSize::Heap, 5 * PAGE);
    assert_eq!(segments.iter().map(|(start, end)| end - start).sum::<u64>(), 5 * PAGE);
    assert!(segments.contains(&(0x6f000, 0x70000)));
    assert_eq!(left_out, 2 * PAGE);
}

#[test]
fn the_list_of_loaded_files_is_followed() {
    let mut memory = vec![0_u8; 0x1000];
    let mut write = |at: usize, words: &[u64]| {
        for (index, word) in words.iter().enumerate() {
            memory[at + index * 8..at + index * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
    };
    // Headers at 0x40: one for the headers themselves, which were meant for 0x40, one for the dynamic section.
    write(0x40, &[6, 0, 0x40]);
    write(0x40 + 56, &[2, 0, 0x200]);
    write(0x200, &[1, 0, 21, 0x300]);
    write(0x300, &[1, 0x400]);
    write(0x400, &[0, 0x480, 0, 0x500, 0]);
    write(0x480, &[u64::from_le_bytes(*b"/lib/x\0\0")]);
    write(0x500, &[0, 0x480, 0, 0, 0x400]);
    let auxiliary: Vec<u8> = [3, 0x40, 5, 2, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
    let read = |at: u64, bytes: usize| Some(memory.get(at as usize..)?.get(..bytes)?.to_vec());
    let ranges = linked::ranges(&auxiliary, &read);
    for wanted in [(0x300, 0x328), (0x400, 0x428), (0x480, 0x487), (0x500, 0x528)] {
        assert!(ranges.contains(&wanted), "{wanted:x?} is not in {ranges:x?}");
    }
    assert!(linked::ranges(&[], &read).is_empty());
}
