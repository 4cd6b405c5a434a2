use proptest::prelude::*;

use super::*;

fn segment() -> impl Strategy<Value = Segment> {
    let steps = prop_oneof![0u64..5, any::<u64>().prop_map(|steps| steps >> 8)];
    (0u32..5, prop::sample::select(EventKind::ALL), steps).prop_map(|(thread, first, steps)| Segment {
        thread: ThreadId(thread),
        first,
        steps,
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    prop::collection::vec(segment(), 0..40).prop_map(Schedule::new)
}

/// A schedule whose steps can be gone through one by one.
fn short() -> impl Strategy<Value = Schedule> {
    prop::collection::vec((0u32..4, 0u64..6), 0..20).prop_map(|parts| {
        let first = EventKind::AtomicLoad;
        Schedule::new(parts.into_iter().map(|(thread, steps)| Segment {
            thread: ThreadId(thread),
            first,
            steps,
        }))
    })
}

proptest! {
    #[test]
    fn decoding_is_the_inverse_of_encoding(schedule in schedule()) {
        let bytes = schedule.encode();
        prop_assert_eq!(Schedule::decode(&bytes), Ok(schedule));
    }

    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Schedule::decode(&bytes);
    }

    /// Bytes that get past the header, with a right checksum: whatever is accepted is what would be written.
    #[test]
    fn what_is_accepted_is_canonical(body in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..40)) {
        let mut bytes = [MAGIC.as_slice(), &[VERSION], &body].concat();
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        if let Ok(schedule) = Schedule::decode(&bytes) {
            prop_assert_eq!(schedule.encode(), bytes);
        }
    }

    #[test]
    fn a_damaged_schedule_is_refused(schedule in schedule(), place in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = schedule.encode();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        prop_assert!(Schedule::decode(&bytes).is_err());
        bytes[place] ^= 1 << bit;
        prop_assert!(Schedule::decode(&bytes[..place]).is_err());
        bytes.push(0);
        prop_assert_eq!(Schedule::decode(&bytes), Err(DecodeError::Trailing(1)));
    }

    #[test]
    fn prefix_and_rest_make_the_whole(schedule in short(), cut in 0u64..100) {
        let threads: Vec<ThreadId> = schedule.iter().collect();
        let cut = cut.min(schedule.steps());
        let prefix = schedule.prefix(cut);
        prop_assert_eq!(prefix.steps(), cut);
        prop_assert_eq!(prefix.iter().collect::<Vec<_>>(), &threads[..cut as usize]);
        let rest = Schedule::new(threads[cut as usize..].iter().map(|&thread| Segment {
            thread,
            first: EventKind::AtomicLoad,
            steps: 1,
        }));
        prop_assert_eq!(prefix.then(&rest), schedule);
    }

    #[test]
    fn switches_say_where_threads_change(schedule in short()) {
        let threads: Vec<ThreadId> = schedule.iter().collect();
        for switch in schedule.switches() {
            let step = switch.step as usize;
            prop_assert_eq!(threads[step], switch.thread);
            prop_assert!(step == 0 || threads[step - 1] != switch.thread);
        }
        prop_assert_eq!(schedule.switches().len(), schedule.segments().len());
    }
}

#[test]
fn a_million_steps_with_rare_switches_are_small() {
    let mut schedule = Schedule::default();
    for step in 0..1_000_000_u32 {
        schedule.push(ThreadId(step / 1000 % 8), EventKind::AtomicRmw);
    }
    assert_eq!(schedule.steps(), 1_000_000);
    // 1,000 segments of one byte for the thread, one for the kind, two for 1,000 steps.
    assert_eq!(schedule.encode().len(), 4 + 1 + 2 + 1000 * 4 + 4);
}

#[test]
fn other_files_and_versions_are_named() {
    assert_eq!(Schedule::decode(b"ELF"), Err(DecodeError::Magic));
    assert_eq!(Schedule::decode(b"WLSC"), Err(DecodeError::CutOff));
    assert_eq!(Schedule::decode(b"WLSC\x02"), Err(DecodeError::Version(2)));
    assert_eq!(Schedule::decode(b"WLSC\x01\x80\x00\0\0\0\0"), Err(DecodeError::Number(5)));
    assert_eq!(Schedule::decode(b"WLSC\x01\xff\xff\xff\xff\x0f"), Err(DecodeError::CutOff));
}
