//! "Did you mean …?": the known name nearest to one that was mistyped.

/// The candidate that differs least from `written`, if any is near enough to have been meant.
///
/// The distance counts letters inserted, left out, replaced or swapped with their neighbour (optimal string
/// alignment); `_` and `-` count as the same. Near enough is a third of the longer name, and at least one.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |text: &str| text.to_lowercase().replace('_', "-").chars().collect::<Vec<_>>();
    let written = letters(written);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let known = letters(candidate);
            let allowed = (written.len().max(known.len()) / 3).max(1);
            let distance = distance(&written, &known);
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The words for a help line: the nearest candidate, or all of them when none is near and they are few.
pub fn help(written: &str, candidates: &[&str]) -> String {
    match nearest(written, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("known here: {}", candidates.join(", ")),
    }
}

fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut current = vec![i];
        for j in 1..=b.len() {
            let replaced = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(previous[j] + 1).min(current[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut previous, current);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("workers", "workers", 0),
            ("wokrers", "workers", 1),
            ("worker", "workers", 1),
            ("kitten", "sitting", 3),
        ] {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(distance(&chars(a), &chars(b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["workers", "hang-timeout", "start-timeout", "p"];
        assert_eq!(nearest("hang_timout", names), Some("hang-timeout"));
        assert_eq!(nearest("Workers", names), Some("workers"));
        assert_eq!(nearest("q", names), Some("p"));
        assert_eq!(nearest("colour", names), None);
    }
}
