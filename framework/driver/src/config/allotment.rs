//! How a campaign's time is divided among its scenarios.

use std::time::Duration;

/// How long a scenario lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// This long.
    Fixed(Duration),
    /// This part of what the fixed ones leave of the campaign, relative to the other shares.
    Share(f64),
}

/// The time of each scenario; `None` is until stopped.
///
/// Fixed lengths are kept, and what they leave is divided by share. When they exceed the total (the command
/// line asked for a shorter campaign than the file describes) all are shortened alike, and a share of one
/// counts as the average of the fixed ones, so that no scenario is left out.
pub(super) fn allot(total: Option<Duration>, lengths: &[Length]) -> Vec<Option<Duration>> {
    let fixed = |length: &Length| match length {
        Length::Fixed(time) => Some(time.as_secs_f64()),
        Length::Share(_) => None,
    };
    let share = |length: &Length| match length {
        Length::Fixed(_) => 0.0,
        Length::Share(share) => *share,
    };
    let fixed_sum: f64 = lengths.iter().filter_map(fixed).sum();
    let share_sum: f64 = lengths.iter().map(share).sum();
    let Some(total) = total.map(|total| total.as_secs_f64()) else {
        return lengths.iter().map(|length| fixed(length).map(Duration::from_secs_f64)).collect();
    };
    let seconds: Vec<f64> = if fixed_sum <= total {
        let per_share = if share_sum > 0.0 { (total - fixed_sum) / share_sum } else { 0.0 };
        lengths.iter().map(|length| fixed(length).unwrap_or(share(length) * per_share)).collect()
    } else {
        let average = fixed_sum / lengths.iter().filter_map(fixed).count() as f64;
        let shorten = total / (fixed_sum + share_sum * average);
        lengths.iter().map(|length| fixed(length).unwrap_or(share(length) * average) * shorten).collect()
    };
    seconds.into_iter().map(|seconds| Some(Duration::from_secs_f64(seconds))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn shares_divide_what_fixed_lengths_leave() {
        let lengths = [Length::Fixed(seconds(20)), Length::Share(1.0), Length::Share(3.0)];
        assert_eq!(allot(Some(seconds(100)), &lengths), [20, 20, 60].map(|s| Some(seconds(s))));
    }

    #[test]
    fn without_a_total_shares_have_no_end() {
        let lengths = [Length::Fixed(seconds(20)), Length::Share(1.0)];
        assert_eq!(allot(None, &lengths), [Some(seconds(20)), None]);
    }

    #[test]
    fn a_shorter_total_shortens_all_alike() {
        let lengths = [Length::Fixed(seconds(20)), Length::Fixed(seconds(40)), Length::Share(1.0)];
        assert_eq!(allot(Some(seconds(9)), &lengths), [2, 4, 3].map(|s| Some(seconds(s))));
    }

    #[test]
    fn a_longer_total_lengthens_nothing_fixed() {
        assert_eq!(allot(Some(seconds(9)), &[Length::Fixed(seconds(2))]), [Some(seconds(2))]);
    }
}
