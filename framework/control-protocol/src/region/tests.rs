use super::*;
use crate::Switching;
use crate::in_process::Earlier;

#[test]
fn both_sides_see_one_region() {
    let mut driver = RegionMap::create().unwrap();
    let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
    driver.prepare(Settings::new(Switching::Baton, 7, 3), "{\"a\":1}").unwrap();
    assert_eq!(library.settings().run, 3);
    assert_eq!(library.parameters(), "{\"a\":1}");
    library.tell(&Statement::Deadlock(2));
    library.tell(&Statement::Refusal("two".into()));
    assert_eq!(driver.account().deadlock(), Some(2));
    assert_eq!(driver.text(), "deadlock: 2 threads, none can run\ntwo");
    library.hand_over("next");
    library.report().tally.aimed[2].store(5, Ordering::Relaxed);
    assert_eq!(driver.handed(), "next");
    library.hand_over(&"x".repeat(PARAMETERS + 1));
    assert_eq!(driver.handed(), "next");
    driver.prepare(Settings::new(Switching::Carrier, 7, 4), "").unwrap();
    assert_eq!(driver.text(), "");
    assert_eq!((driver.handed().as_str(), driver.report().tally.aimed[2].load(Ordering::Relaxed)), ("", 0));
    assert_eq!(library.parameters(), "");
}

#[test]
fn sites_go_both_ways() {
    let mut driver = RegionMap::create().unwrap();
    let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
    assert_eq!(library.instrumentation().level(), crate::Level::Atomics);
    driver.set_instrumentation(Instrumentation::new(crate::Level::Memory, true));
    assert_eq!(library.instrumentation().level(), crate::Level::Memory);
    let mut settings = Settings::new(Switching::Baton, 7, 3);
    driver.prepare(settings, "").unwrap();
    assert_eq!(library.chosen(), None);
    driver.choose(&mut settings, &[Site(3), Site(5)]);
    driver.prepare(settings, "").unwrap();
    assert_eq!(library.chosen(), Some(&[Site(3), Site(5)][..]));
    library.add_conflicting(Site(9));
    assert_eq!(driver.conflicting(), [Site(9)]);
    driver.prepare(settings, "").unwrap();
    assert!(driver.conflicting().is_empty());
    assert_eq!(library.learns_from(), None);
}

#[test]
fn a_process_that_repeats_runs_chooses_sites_itself() {
    let mut driver = RegionMap::create().unwrap();
    let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
    let mut settings = Settings::new(Switching::Carrier, 7, 0);
    driver.choose(&mut settings, &[Site(3), Site(5)]);
    driver.learn(&mut settings, 1);
    driver.prepare(settings, "").unwrap();
    assert_eq!(library.learns_from(), Some(1));
    library.choose_again(&[Site(3)], true);
    assert_eq!((driver.chosen(), driver.settings().profile), (Some(&[Site(3)][..]), 1));
    library.choose_also(Site(8));
    library.look_at(false);
    assert_eq!((driver.chosen(), driver.settings().profile), (Some(&[Site(3), Site(8)][..]), 0));
}

#[test]
fn what_is_known_of_races_goes_in_and_what_is_found_comes_out() {
    let mut driver = RegionMap::create().unwrap();
    let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
    let mut settings = Settings::new(Switching::Baton, 7, 3);
    let pair = Pair::new(Site(9), Site(4));
    driver.forgive(&mut settings, &[pair], &[Site(5)]);
    driver.prepare(settings, "").unwrap();
    assert_eq!(library.forgiven(), (&[Pair::new(Site(4), Site(9))][..], &[Site(5)][..]));
    library.report().race.address.store(64, Ordering::Relaxed);
    library.report().race.second.locks[1].store(8, Ordering::Relaxed);
    assert_eq!(driver.report().race.address.load(Ordering::Relaxed), 64);
    driver.prepare(Settings::new(Switching::Baton, 7, 4), "").unwrap();
    assert_eq!(driver.report().race.second.locks[1].load(Ordering::Relaxed), 0);
    assert_eq!(library.forgiven(), (&[][..], &[][..]));
}

#[test]
fn earlier_runs_are_recalled_with_a_schedule_to_follow() {
    let mut driver = RegionMap::create().unwrap();
    let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
    let mut settings = Settings::new(Switching::Baton, 7, 12);
    let earlier = Earlier { first: 4, repeats: 2, through: 5 };
    driver.recall(&mut settings, earlier, "{\"b\":2}");
    driver.prepare_replay(settings, &[Stretch { thread: 0, first: 1, steps: 9 }]).unwrap();
    assert_eq!(library.recalled(), Some((earlier, "{\"b\":2}")));
    assert_eq!((library.parameters(), library.replay().unwrap().len()), ("", 1));
    driver.prepare(Settings::new(Switching::Baton, 7, 13), "{}").unwrap();
    assert_eq!(library.recalled(), None);
}

#[test]
fn anything_else_is_refused() {
    let other = Memory::create(1 << 16).unwrap();
    assert!(matches!(RegionMap::open(other.descriptor().unwrap()), Err(RegionError::Foreign(_))));
    let mut driver = RegionMap::create().unwrap();
    let long = "x".repeat(PARAMETERS + 1);
    let refused = driver.prepare(Settings::new(Switching::Free, 0, 0), &long);
    assert!(matches!(refused, Err(RegionError::TooLong(_))));
}

#[test]
fn a_region_that_was_written_over_is_made_anew_with_what_was_said() {
    let mut driver = RegionMap::create().unwrap();
    driver.set_instrumentation(Instrumentation::new(crate::Level::Memory, true));
    let mut settings = Settings::new(Switching::Baton, 7, 3);
    driver.choose(&mut settings, &[Site(3), Site(5)]);
    driver.forgive(&mut settings, &[Pair::new(Site(9), Site(4))], &[Site(6)]);
    driver.prepare(settings, "{}").unwrap();
    let age = std::time::Duration::from_secs(1);
    assert!(driver.copied(age).is_ok());
    let places = [
        core::mem::offset_of!(Region, chosen),
        core::mem::offset_of!(Region, forgiven),
        core::mem::offset_of!(Region, deliberate),
        core::mem::offset_of!(Region, instrumentation),
    ];
    for place in places {
        // SAFETY: a byte of our own region, which nobody else has.
        unsafe { driver.at.cast::<u8>().add(place).write(77) };
        assert!(driver.copied(age).unwrap_err().contains("not as we wrote"));
        driver.renew().unwrap();
        driver.prepare(settings, "{}").unwrap();
        assert!(driver.copied(age).is_ok());
        let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
        assert_eq!(library.chosen(), Some(&[Site(3), Site(5)][..]));
        assert_eq!(library.forgiven(), (&[Pair::new(Site(4), Site(9))][..], &[Site(6)][..]));
        assert_eq!(library.instrumentation().level(), crate::Level::Memory);
    }
}
