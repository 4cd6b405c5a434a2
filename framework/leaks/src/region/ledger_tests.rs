use super::*;
use crate::region::weight;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn sample(region: &Region, site: SiteId, size: u64) -> Sample {
    Sample { birth: region.next_birth(), born: 0, size, weight: weight(size, 1024), site, tag: Tag(1) }
}

#[test]
fn what_goes_in_comes_out_once() {
    let region = Region::boxed();
    let site = region.intern(Tag(1), &[1, 2, 3]);
    let entered = sample(&region, site, 64);
    assert!(region.enter(0x1000, &entered));
    assert_eq!(region.take(0x1000), Some(entered));
    assert_eq!(region.take(0x1000), None);
    assert_eq!(region.take(0), None);
    assert_eq!(region.take(RESERVED), None);
}

#[test]
fn a_site_is_a_tag_and_a_stack() {
    let region = Region::boxed();
    let site = region.intern(Tag(1), &[1, 2, 3]);
    assert_eq!(region.intern(Tag(1), &[1, 2, 3]), site);
    assert_ne!(region.intern(Tag(2), &[1, 2, 3]), site);
    assert_ne!(region.intern(Tag(1), &[1, 2]), site);
    let deep: Vec<u64> = (1..=40).collect();
    let stack = region.stack(region.intern(Tag(1), &deep)).expect("published");
    assert!(stack.truncated);
    assert_eq!(stack.frames, deep[..FRAMES]);
}

#[test]
fn a_site_left_half_written_is_completed_by_the_next() {
    let region = Region::boxed();
    let site = region.intern(Tag(1), &[7, 8]);
    region.sites[site.0 as usize].depth.store(0, Relaxed);
    assert_eq!(region.stack(site), None);
    assert_eq!(region.intern(Tag(1), &[7, 8]), site);
    assert_eq!(region.stack(site).expect("written again").frames, [7, 8]);
}

#[test]
fn full_tables_drop_and_count() {
    let region = Region::boxed();
    let mut kept = 0u64;
    let total = SAMPLES as u64 + 100;
    for number in 0..total {
        if region.enter(0x10_0000 + number * 16, &sample(&region, SiteId::UNKNOWN, 16)) {
            kept += 1;
        }
    }
    assert!(kept <= SAMPLES as u64);
    assert_eq!(region.header.dropped_samples.load(Relaxed), total - kept);
    assert_eq!(region.header.dropped_bytes.load(Relaxed), (total - kept) * weight(16, 1024));

    for number in 0..2 * SITES as u64 {
        region.intern(Tag(1), &[number]);
    }
    assert!(region.header.dropped_sites.load(Relaxed) >= SITES as u64);
}

/// The claim of the module header. The number of drops is a fixed function of these addresses.
#[test]
fn at_eighty_percent_full_drops_are_rare() {
    let region = Region::boxed();
    let total = SAMPLES as u64 * 8 / 10;
    for number in 0..total {
        region.enter(0x7f00_0000_0000 + number * 48, &sample(&region, SiteId::UNKNOWN, 16));
    }
    let dropped = region.header.dropped_samples.load(Relaxed);
    assert!(dropped * 1000 < total, "{dropped} of {total}");
}

#[test]
fn deaths_are_counted_by_age() {
    let region = Region::boxed();
    let site = region.intern(Tag(1), &[1]);
    let mut dead = sample(&region, site, 64);
    dead.born = 1_000;
    for age in [0, (1 << 20) - 1, 1 << 20, 1 << 21, u64::MAX - 1_000] {
        region.bury(&dead, 1_000 + age);
    }
    let deaths = &region.sites[site.0 as usize].deaths;
    assert_eq!(deaths[0].load(Relaxed), 2);
    assert_eq!(deaths[1].load(Relaxed), 1);
    assert_eq!(deaths[2].load(Relaxed), 1);
    assert_eq!(deaths[AGE_CLASSES - 1].load(Relaxed), 1);
}

/// Writers on several threads, a reader beside them: nothing is lost, and no reader ever sees fields of
/// two different samples. Size and weight are functions of the birth time, so a mix is visible.
#[test]
fn readers_never_see_a_mixture() {
    const WRITERS: u64 = 3;
    const ROUNDS: u64 = 20_000;
    let region = Region::boxed();
    let done = AtomicBool::new(false);
    let (seen, mixed) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut seen, mut mixed) = (0u64, 0u64);
            let mut last = false;
            while !last {
                last = done.load(Relaxed);
                for site in region.snapshot(Duration::ZERO).sites.values() {
                    for sample in &site.live {
                        seen += 1;
                        let born = sample.born.as_nanos() as u64;
                        mixed += u64::from(sample.size != born * 3 || sample.weight != born * 7);
                    }
                }
            }
            (seen, mixed)
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let region = &region;
                scope.spawn(move || {
                    let site = region.intern(Tag(writer as u32), &[writer]);
                    for round in 1..=ROUNDS {
                        let address = (1 + round % 64 + writer * 64) << 4;
                        let born = round * WRITERS + writer;
                        let birth = region.next_birth();
                        let entered =
                            Sample { birth, born, size: born * 3, weight: born * 7, site, tag: Tag(0) };
                        assert!(region.enter(address, &entered));
                        // The last 32 of each writer stay alive for the reader to look at.
                        if round > 32 {
                            let oldest = (1 + (round - 32) % 64 + writer * 64) << 4;
                            assert!(region.take(oldest).is_some());
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("writer");
        }
        done.store(true, Relaxed);
        reader.join().expect("reader")
    });
    assert!(seen >= WRITERS * 32, "the last pass sees what is left");
    assert_eq!(mixed, 0, "of {seen}");
    let left = region.snapshot(Duration::ZERO);
    assert_eq!(left.samples, WRITERS * ROUNDS);
    assert_eq!(left.sites.values().map(|site| site.live.len()).sum::<usize>(), WRITERS as usize * 32);
}
