use super::*;
use crate::region::Sample;
use crate::region::layout::REGION_BYTES;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Overwrites every `stride`-th word of the region with random bytes, half of them small enough to pass for
/// an index.
fn scribble(region: &mut Region, seed: u64, stride: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // SAFETY: `Region` is plain integers, every bit pattern is valid, and we hold the only reference.
    let words =
        unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(region).cast::<u64>(), REGION_BYTES / 8) };
    for word in words.iter_mut().step_by(stride) {
        *word = rng.next_u64();
        if *word % 2 == 0 {
            *word &= 0x3fff_0000_3fff;
        }
    }
}

fn exercise(region: &Region) {
    let snapshot = region.snapshot(Duration::from_secs(1));
    assert!(!snapshot.sites.is_empty(), "the bytes look like nothing at all");
    let _ = snapshot.live_bytes();
    for (tag, site) in snapshot.sites.keys() {
        let _ = snapshot.live_bytes_of(*tag);
        if let Some(stack) = region.stack(*site) {
            assert!(stack.frames.len() <= FRAMES);
        }
    }
    assert!(region.stack(SiteId::UNKNOWN).is_none());
}

#[test]
fn random_bytes_never_break_the_reader() {
    for seed in 0..3 {
        let mut region = Region::boxed();
        scribble(&mut region, seed, 1 + seed as usize % 3);
        exercise(&region);
        assert!(!region.is_formatted());
    }
}

#[test]
fn random_bytes_never_break_the_writer() {
    let mut region = Region::boxed();
    scribble(&mut region, 99, 2);
    for number in 0..5_000u64 {
        let address = number << 4;
        let site = region.intern(Tag(1), &[number, number + 1]);
        let sample = Sample { birth: number, born: number, size: 8, weight: 8, site, tag: Tag(1) };
        region.enter(address, &sample);
        if let Some(taken) = region.take(address) {
            region.bury(&taken, u64::MAX);
        }
    }
    exercise(&region);
}

#[test]
fn slots_in_flux_are_skipped() {
    let region = Region::boxed();
    let site = region.intern(Tag(1), &[1]);
    let sample = Sample { birth: 1, born: 5, size: 8, weight: 8, site, tag: Tag(1) };
    assert!(region.enter(0x1000, &sample));
    let index = region.addresses.iter().position(|slot| slot.load(Relaxed) == 0x1000).expect("entered");
    region.addresses[index].store(RESERVED, Relaxed);
    assert_eq!(region.snapshot(Duration::ZERO).sites.len(), 0);
}

#[test]
fn bounds_and_classes_agree() {
    use crate::region::ledger::age_class;
    for class in 1..AGE_CLASSES {
        let bound = SiteSnapshot::age_bound(class).as_nanos() as u64;
        assert_eq!(age_class(bound), class);
        assert_eq!(age_class(bound - 1), class - 1);
    }
    assert_eq!(SiteSnapshot::age_bound(0), Duration::ZERO);
}
