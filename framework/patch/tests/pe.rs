//! Plans for PE files: functions come from `.pdata`, what exceptions and relocations lead to is not covered, and what takes an
//! instruction's place is one byte longer than in ELF files.

use waylay_patch::image::{Image, ImageError};
use waylay_patch::{How, Kind, Plan, Wanted, Window};

const BASE: u64 = 0x1_4000_0000;
const TEXT: u32 = 0x1000;
const DATA: u32 = 0x2000;
const UNWIND: u32 = 0x3000;
const TABLE: u32 = 0x4000;
const RELOCATIONS: u32 = 0x5000;

/// A module: code, data, functions (begin, end and the codes that unwind them), and where in the data addresses are.
#[derive(Default)]
struct Module {
    code: Vec<u8>,
    data: Vec<u8>,
    functions: Vec<(u32, u32, Vec<u8>)>,
    addresses: Vec<u32>,
}

impl Module {
    /// As a linker writes it.
    fn file(&self) -> Vec<u8> {
        let (mut unwind, mut table) = (Vec::new(), Vec::new());
        for (start, end, codes) in &self.functions {
            let at = UNWIND + unwind.len() as u32;
            [*start, *end, at].iter().for_each(|word| table.extend(word.to_le_bytes()));
            unwind.extend(codes);
            unwind.resize(unwind.len().next_multiple_of(4), 0);
        }
        let mut relocations = Vec::new();
        if !self.addresses.is_empty() {
            let size = 8 + self.addresses.len() as u32 * 4;
            [DATA, size].iter().for_each(|word| relocations.extend(word.to_le_bytes()));
            // Each with one that means nothing: blocks are multiples of four bytes.
            self.addresses.iter().for_each(|&at| relocations.extend((0xa000 | at).to_le_bytes()));
        }
        const CODE: u32 = 0x6000_0020;
        const READ: u32 = 0x4000_0040;
        const DISCARDABLE: u32 = 0x4200_0040;
        let sections = [
            (TEXT, &self.code, CODE),
            (DATA, &self.data, READ),
            (UNWIND, &unwind, READ),
            (TABLE, &table, READ),
            (RELOCATIONS, &relocations, DISCARDABLE),
        ];
        let mut file = vec![0; 0x400];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x3c, &[0x40]);
        put(0x40, b"PE\0\0\x64\x86\x05\0");
        put(0x54, &[0xf0, 0, 0x22, 0]);
        let optional = 0x58;
        put(optional, &[0x0b, 0x02]);
        put(optional + 16, &TEXT.to_le_bytes());
        put(optional + 24, &BASE.to_le_bytes());
        put(optional + 32, &0x1000_u32.to_le_bytes());
        put(optional + 36, &0x200_u32.to_le_bytes());
        put(optional + 56, &0x6000_u32.to_le_bytes());
        put(optional + 60, &0x400_u32.to_le_bytes());
        put(optional + 108, &[16]);
        let mut directory = |index: usize, at: u32, size: usize| {
            put(optional + 112 + index * 8, &at.to_le_bytes());
            put(optional + 116 + index * 8, &(size as u32).to_le_bytes());
        };
        directory(3, TABLE, table.len());
        if !relocations.is_empty() {
            directory(5, RELOCATIONS, relocations.len());
        }
        let mut raw = 0x400_u32;
        for (index, (address, bytes, flags)) in sections.iter().enumerate() {
            let header = optional + 240 + index * 40;
            let length = bytes.len() as u32;
            for (at, word) in [(8, length), (12, *address), (16, length), (20, raw), (36, *flags)] {
                put(header + at, &word.to_le_bytes());
            }
            raw += length;
        }
        sections.iter().for_each(|(_, bytes, _)| file.extend(*bytes));
        file
    }

    fn plan(&self) -> Plan {
        Plan::of(&self.file(), Wanted::Atomics).unwrap()
    }
}

/// Unwind information with nothing in it.
const PLAIN: [u8; 4] = [1, 0, 0, 0];

fn one_function(code: &[u8]) -> Module {
    let end = TEXT + code.len() as u32;
    Module { code: code.to_vec(), functions: vec![(TEXT, end, PLAIN.to_vec())], ..Module::default() }
}

fn windows(module: &Module) -> Vec<(u32, u8, How)> {
    module
        .plan()
        .windows
        .iter()
        .map(|&Window { start, length, how, .. }| (start - TEXT, length, how))
        .collect()
}

#[test]
fn six_bytes_are_needed() {
    // lock inc dword [rip]; lock cmpxchg [rbx], rdi; mov eax, 1; ret
    let code = [0xf0, 0xff, 0x05, 0, 0, 0, 0, 0xf0, 0x48, 0x0f, 0xb1, 0x3b, 0xb8, 1, 0, 0, 0, 0xc3];
    assert_eq!(windows(&one_function(&code)), [(0, 7, How::Alone), (7, 10, How::Forward)]);
}

#[test]
fn what_belongs_to_no_function_is_left_alone() {
    // mfence; mov eax, 1, twice
    let code = [0x0f, 0xae, 0xf0, 0xb8, 1, 0, 0, 0, 0x0f, 0xae, 0xf0, 0xb8, 1, 0, 0, 0];
    let mut module = one_function(&code);
    module.functions[0].0 = TEXT + 8;
    let plan = module.plan();
    assert_eq!(windows(&module), [(8, 8, How::Forward)]);
    assert_eq!(plan.code, (16, 8));
    assert_eq!(plan.counts.iter().map(|count| count.found).sum::<u32>(), 1);
}

#[test]
fn functions_without_an_entry_are_known_by_who_leads_to_them() {
    // 0: call 32; ret. 16: jmp 48, which the entry point leads to. 32, 48, 64, 80: a fence each.
    let mut code = vec![0xcc; 96];
    code[..6].copy_from_slice(&[0xe8, 27, 0, 0, 0, 0xc3]);
    code[16..18].copy_from_slice(&[0xeb, 30]);
    for at in [32, 48, 64, 80] {
        code[at..at + 9].copy_from_slice(&FENCE);
    }
    let mut module = one_function(&code);
    module.functions[0].1 = TEXT + 6;
    module.data = (BASE + u64::from(TEXT) + 16).to_le_bytes().to_vec();
    assert_eq!(windows(&module), [(32, 8, How::Forward), (48, 8, How::Forward)]);
    assert_eq!(module.plan().code, (96, 6 + 41), "what lies between a jump and its target is taken along");

    // Pointed to, but not where functions begin; and what leads behind the fence.
    module.data = (BASE + u64::from(TEXT) + 64 - 1).to_le_bytes().to_vec();
    module.data.extend((BASE + u64::from(TEXT) + 32 + 3).to_le_bytes());
    assert_eq!(windows(&module), [(32, 3, How::Trap)]);

    // What calls, or moves the stack, or is none, has to be in the table.
    let begin: [&[u8]; 4] = [&[0x50], &[0x48, 0x83, 0xec, 0x28], &[0xff, 0x15, 0, 0, 0, 0], &[0x06]];
    for begin in begin {
        let mut module = one_function(&code);
        module.functions[0].1 = TEXT + 6;
        module.code[32..32 + begin.len()].copy_from_slice(begin);
        module.code[32 + begin.len()..41 + begin.len()].copy_from_slice(&FENCE);
        assert_eq!(windows(&module), [], "{begin:x?}");
    }
}

#[test]
fn padding_is_replaced_and_other_functions_are_not() {
    // lock inc dword [rcx + 8]; ret; then five bytes that belong to nobody
    let with = |behind: [u8; 5]| {
        let mut module = one_function(&[0xf0, 0xff, 0x41, 0x08, 0xc3]);
        module.code.extend(behind);
        windows(&module)
    };
    assert_eq!(with([0xcc; 5]), [(0, 5, How::Forward)]);
    // movzx eax, byte [rcx]; ret; ...
    assert_eq!(with([0x0f, 0xb6, 0x01, 0xc3, 0xcc]), [(0, 4, How::Trap)]);
}

/// `mfence; mov eax, 1; ret`, with something that leads behind the fence.
const FENCE: [u8; 9] = [0x0f, 0xae, 0xf0, 0xb8, 1, 0, 0, 0, 0xc3];

#[test]
fn nothing_leads_into_the_middle() {
    assert_eq!(windows(&one_function(&FENCE)), [(0, 8, How::Forward)]);

    let mut pointed = one_function(&FENCE);
    pointed.data = (BASE + u64::from(TEXT) + 3).to_le_bytes().to_vec();
    assert_eq!(windows(&pointed), [(0, 3, How::Trap)], "a word of data");

    let mut unaligned = one_function(&FENCE);
    unaligned.data = [&[0; 4][..], &(BASE + u64::from(TEXT) + 3).to_le_bytes()].concat();
    assert_eq!(windows(&unaligned), [(0, 8, How::Forward)], "no word");
    unaligned.addresses = vec![4];
    assert_eq!(windows(&unaligned), [(0, 3, How::Trap)], "an address that is corrected");
}

#[test]
fn exceptions_continue_functions() {
    // Flags: a handler for both. No codes; the handler's place; a table with one pad, three bytes behind the begin.
    let gnu = [&[0x19, 0, 0, 0, 0, 0x10, 0, 0][..], &[0xff, 0xff, 0x01, 4, 0, 3, 3, 0]].concat();
    let mut module = one_function(&FENCE);
    module.functions[0].2 = gnu;
    assert_eq!(windows(&module), [(0, 3, How::Trap)], "GNU");

    let scope = [1, TEXT, TEXT + 3, 1, TEXT + 3].iter().flat_map(|word| word.to_le_bytes());
    module.functions[0].2 = [0x19, 0, 0, 0, 0, 0x10, 0, 0].into_iter().chain(scope).collect();
    assert_eq!(windows(&module), [(0, 3, How::Trap)], "Microsoft");
}

#[test]
fn tables_in_the_own_numbering_are_read() {
    let table = TEXT + 32;
    // mov ecx, [rdx + rax * 4 + table]; add rcx, rdx; jmp rcx; mfence; mov eax, 1; ret
    let mut code = vec![0x8b, 0x8c, 0x82];
    code.extend(table.to_le_bytes());
    code.extend([0x48, 0x01, 0xd1, 0xff, 0xe1]);
    let fence = code.len() as u32;
    code.extend(FENCE);
    let end = code.len();
    code.resize(32, 0x90);
    let with_table = |entry: u32| {
        let mut module = one_function(&code[..end]);
        module.code = code.clone();
        module.code.extend(entry.to_le_bytes());
        windows(&module)
    };
    assert_eq!(with_table(TEXT + fence), [(fence, 8, How::Forward)], "to the fence");
    assert_eq!(with_table(TEXT + fence + 3), [(fence, 3, How::Trap)], "behind it");
    assert_eq!(with_table(0x7fff_ffff), [(fence, 3, How::Trap)], "to a place that is not known");
}

/// A function that jumps through the table behind it, which is part of it: `mov ecx, [rdx + rax * 4 + table]; add rcx, rdx; jmp
/// rcx`, then what is given, then padding up to the table.
fn with_table_inside(code: &[u8], entries: &[u32]) -> (Module, u32) {
    let table = (12 + code.len()).next_multiple_of(4) as u32;
    let mut all = vec![0x8b, 0x8c, 0x82];
    all.extend((TEXT + table).to_le_bytes());
    all.extend([0x48, 0x01, 0xd1, 0xff, 0xe1]);
    all.extend(code);
    all.resize(table as usize, 0x90);
    entries.iter().for_each(|entry| all.extend(entry.to_le_bytes()));
    (one_function(&all), table)
}

#[test]
fn tables_inside_functions_are_no_code() {
    // `xchg [rdi], eax` and `lock inc dword [rax]` could be read where the numbers of places and of cases stand.
    let (module, table) = with_table_inside(&FENCE, &[TEXT + 12, 0x0787_0787, 0x0000_fff0]);
    assert_eq!(windows(&module), [(12, 8, How::Forward)]);
    assert_eq!(module.plan().code.1, u64::from(table) + 12);

    // A table that a part of the function elsewhere uses, which comes later.
    let mut first = FENCE.to_vec();
    first.resize(12, 0x90);
    let table = TEXT + first.len() as u32;
    first.extend(TEXT.to_le_bytes());
    first.extend([0x87, 0x07, 0x87, 0x07]);
    let middle = TEXT + first.len() as u32;
    let mut code = first.clone();
    code.extend([0x8b, 0x8c, 0x82]);
    code.extend(table.to_le_bytes());
    code.extend([0x48, 0x01, 0xd1, 0xff, 0xe1]);
    let end = TEXT + code.len() as u32;
    let part =
        [0x21, 0, 0, 0].into_iter().chain([TEXT, middle, UNWIND].into_iter().flat_map(u32::to_le_bytes));
    let functions = vec![(TEXT, middle, PLAIN.to_vec()), (middle, end, part.collect())];
    let module = Module { code, functions, ..Module::default() };
    assert_eq!(windows(&module), [(0, 8, How::Forward)]);
}

#[test]
fn tables_lead_to_all_parts_of_a_function() {
    // The first entry leads to the begin; the second behind the fence of the other part.
    let (mut module, table) = with_table_inside(&[0xc3], &[TEXT, 0]);
    let other = table + 8;
    module.code[table as usize + 4..].copy_from_slice(&(TEXT + other + 3).to_le_bytes());
    module.code.extend(FENCE);
    module.functions[0].1 = TEXT + other;
    let end = TEXT + module.code.len() as u32;
    let whole = [TEXT, TEXT + other, UNWIND].into_iter().flat_map(u32::to_le_bytes);
    let part = [0x21, 0, 0, 0].into_iter().chain(whole).collect();
    module.functions.push((TEXT + other, end, part));
    assert_eq!(windows(&module), [(other, 3, How::Trap)]);
    module.functions[1].2 = PLAIN.to_vec();
    assert_eq!(windows(&module), [(other, 8, How::Forward)], "another function");
}

#[test]
fn what_is_not_understood_ends_a_function() {
    // mfence; mov eax, 1; (no instruction of 64 bits); xchg [rdi], eax; ret
    let code = [&FENCE[..8], &[0x06, 0x87, 0x07, 0xc3]].concat();
    let module = one_function(&code);
    assert_eq!(windows(&module), [(0, 3, How::Trap)], "what follows may jump anywhere");
    assert_eq!(module.plan().code, (12, 8));
}

#[test]
fn a_call_at_the_end_through_a_pointer_is_understood() {
    // mov rax, [rcx]; test rax, rax; je to the fence; jmp rax
    let code = [&[0x48, 0x8b, 0x01, 0x48, 0x85, 0xc0, 0x74, 0x03, 0x48, 0xff, 0xe0][..], &FENCE].concat();
    assert_eq!(windows(&one_function(&code)), [(11, 8, How::Forward)]);
}

/// The description that Microsoft's C++ gives its handler since 2019, with one block that goes on three bytes behind the begin.
#[test]
fn exceptions_of_microsofts_newer_handler_continue_functions() {
    let mut module = one_function(&FENCE);
    let handled = [0x19, 0, 0, 0, 0, 0x10, 0, 0].into_iter().chain(DATA.to_le_bytes());
    module.functions[0].2 = handled.collect();
    let described = |place: u8, header: u8| {
        // Has tries; where these are and where the states. One try: states 0 to 0, caught in 1; where its blocks are.
        let mut data = vec![0x10];
        [DATA + 16, DATA + 8].iter().for_each(|word| data.extend(word.to_le_bytes()));
        data.resize(16, 0);
        data.extend([2, 0, 0, 2]);
        data.extend((DATA + 24).to_le_bytes());
        // One block: where it is, and where it goes on.
        data.extend([2, header]);
        data.extend(TEXT.to_le_bytes());
        data.push(place);
        data.resize(48, 0);
        data
    };
    module.data = described(3 << 1, 0x10);
    assert_eq!(windows(&module), [(0, 3, How::Trap)]);
    module.data = described(3 << 1, 0x00);
    assert_eq!(windows(&module), [(0, 8, How::Forward)], "it goes on nowhere");
    module.data = described(0, 0x18);
    module.data[30..34].copy_from_slice(&(TEXT + 3).to_le_bytes());
    assert_eq!(windows(&module), [(0, 3, How::Trap)], "an address");
    module.data[..4].copy_from_slice(&0x1993_0522_u32.to_le_bytes());
    assert_eq!(windows(&module), [(0, 8, How::Forward)], "the older description says it in code");
}

#[test]
fn constants_of_code_that_is_not_moved_may_be_addresses() {
    // movabs rcx, behind the fence; mfence; mov eax, 1; ret
    let mut code = vec![0x48, 0xb9];
    code.extend((BASE + u64::from(TEXT) + 13).to_le_bytes());
    code.extend(FENCE);
    let mut module = one_function(&code);
    assert_eq!(windows(&module), [(0, 13, How::Backward)]);
    module.data = vec![0; 8];
    module.addresses = vec![0];
    assert_eq!(windows(&module), [(10, 8, How::Forward)], "it would be corrected");
}

#[test]
fn other_processors_are_refused() {
    let file = one_function(&FENCE).file();
    let with = |at: usize, bytes: [u8; 2]| {
        let mut file = file.clone();
        file[at..at + 2].copy_from_slice(&bytes);
        Image::parse(&file).err()
    };
    assert!(matches!(with(0x44, [0x64, 0xaa]), Some(ImageError::OtherProcessor)));
    assert!(matches!(with(0x58, [0x0b, 0x01]), Some(ImageError::OtherProcessor)));
    assert!(matches!(Image::parse(b"MZ").err(), Some(ImageError::Format(_))));
    assert!(Image::parse(&file).is_ok_and(|image| image.functions.len() == 1));
    let locks = one_function(&[0xf0, 0xff, 0x05, 0, 0, 0, 0, 0xc3]).plan();
    let counts = waylay_patch::plan::KINDS.iter().zip(&locks.counts);
    assert!(counts.into_iter().any(|((kind, _), count)| *kind == Kind::Lock && count.jumps == 1));
}

#[test]
fn what_sets_up_a_frame_stays_where_it_is() {
    // push rbx; sub rsp, 32; mov [rsp + 48], rcx; call; lea rdx, [rsp + 8]; mov [rcx], eax; call; ret
    let code = [
        0x53, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0x4c, 0x24, 0x30, 0xe8, 0, 0, 0, 0, 0x48, 0x8d, 0x54, 0x24,
        0x08, 0x89, 0x01, 0xe8, 0, 0, 0, 0, 0xc3,
    ];
    let accesses = |prologue: u8| {
        let mut module = one_function(&code);
        module.functions[0].2 = vec![1, prologue, 0, 0];
        let plan = Plan::of(&module.file(), Wanted::All).unwrap();
        plan.windows.iter().map(|window| (window.start - TEXT, window.length, window.how)).collect::<Vec<_>>()
    };
    assert_eq!(accesses(0), [(1, 9, How::Backward), (15, 7, How::Backward)]);
    assert_eq!(accesses(10), [(15, 7, How::Backward)], "the store is how registers are saved");
    assert_eq!(accesses(20), [(20, 2, How::Trap)], "what is in front of it cannot be moved");
}
