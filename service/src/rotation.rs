//! Which mix runs next: the one that has had the least time for its share. Pure.
//!
//! This is stride scheduling: a mix with share 2 gets its turn twice as often, or twice as long, as one with share 1,
//! however long each turn was. What a mix had in earlier nights counts; one that is new begins level with the others
//! instead of making up for all nights before.

/// A mix, and what it had.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Its share; above zero.
    pub share: f64,
    /// Seconds that it ran; none when it never did.
    pub seconds: Option<f64>,
}

/// The place of the mix that runs next; none when there is none.
pub fn next(mixes: &[Standing]) -> Option<usize> {
    let level =
        mixes.iter().filter_map(|mix| Some(mix.seconds? / mix.share)).min_by(f64::total_cmp).unwrap_or(0.0);
    let had = |mix: &Standing| mix.seconds.map_or(level, |seconds| seconds / mix.share);
    // The first of equals: the order of the configuration.
    let least = mixes.iter().map(had).min_by(f64::total_cmp)?;
    // One that never ran goes before those that are level with it.
    let new = mixes.iter().position(|mix| mix.seconds.is_none());
    new.or_else(|| mixes.iter().position(|mix| had(mix) <= least))
}

/// What to write down for a mix after its first turn: as much as the others had for their share, and the turn.
pub fn first_turn(mixes: &[Standing], place: usize, seconds: f64) -> f64 {
    let others = mixes.iter().enumerate().filter(|(other, _)| *other != place);
    let level = others.filter_map(|(_, mix)| Some(mix.seconds? / mix.share)).min_by(f64::total_cmp);
    level.unwrap_or(0.0) * mixes[place].share + seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(shares: &[f64], turns: &[f64]) -> Vec<f64> {
        let mut mixes: Vec<Standing> =
            shares.iter().map(|share| Standing { share: *share, seconds: None }).collect();
        for turn in turns {
            let place = next(&mixes).unwrap();
            *mixes[place].seconds.get_or_insert(0.0) += turn;
        }
        mixes.iter().map(|mix| mix.seconds.unwrap_or(0.0)).collect()
    }

    #[test]
    fn equal_shares_take_turns_in_order() {
        assert_eq!(run(&[1.0, 1.0, 1.0], &[10.0; 4]), [20.0, 10.0, 10.0]);
        assert_eq!(next(&[]), None);
    }

    #[test]
    fn a_new_mix_comes_first_and_does_not_make_up_for_nights_before_it_was_there() {
        let old = |seconds| Standing { share: 1.0, seconds: Some(seconds) };
        let mut mixes = [old(1e6), old(1e6), Standing { share: 1.0, seconds: None }];
        assert_eq!(next(&mixes), Some(2));
        // Its first turn is written down level with the others: see `first_turn`.
        mixes[2].seconds = Some(first_turn(&mixes, 2, 60.0));
        assert_eq!(next(&mixes), Some(0));
    }

    proptest! {
        #[test]
        fn everybody_gets_his_share_up_to_one_turn(
            shares in prop::collection::vec(0.1f64..10.0, 1..6),
            turns in prop::collection::vec(1.0f64..100.0, 50..300),
        ) {
            let had = run(&shares, &turns);
            let (all, together): (f64, f64) = (had.iter().sum(), shares.iter().sum());
            // Stride scheduling is off by at most one longest turn per mix.
            let most = 100.0 * shares.len() as f64;
            for (had, share) in had.iter().zip(&shares) {
                prop_assert!((had - all * share / together).abs() <= most, "{had} of {all}, share {share}");
            }
        }
    }
}
