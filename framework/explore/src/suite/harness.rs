//! The arguments of the harness of `cargo test`, as its users write them behind `--`. Pure.
//!
//! The harness takes no option twice, and chooses and prints by the same command line. What chooses cases is needed when they
//! are listed and run together, and is in the way when one of them is run alone; how many run at a time, and what is printed,
//! we decide.

/// The arguments of a user, by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// Texts in names, `--skip` and `--exact`.
    choice: Vec<String>,
    /// `--ignored` or `--include-ignored`: needed to run such a case, too.
    ignored: Vec<String>,
    /// Whatever else changes what a case does.
    others: Vec<String>,
}

/// Options about output and order, which are ours; the first ones have a value.
const OURS_WITH_VALUE: [&str; 4] = ["--test-threads", "--color", "--format", "--shuffle-seed"];
const OURS: [&str; 9] = [
    "--nocapture",
    "--no-capture",
    "--show-output",
    "--quiet",
    "-q",
    "--list",
    "--shuffle",
    "--report-time",
    "--ensure-time",
];

impl Given {
    /// Reads them.
    pub(crate) fn read(words: &[String]) -> Given {
        let mut given = Given::default();
        let mut words = words.iter();
        let mut only_names = false;
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with('-') => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            let mut its_value = || value.clone().or_else(|| words.next().cloned());
            match name {
                _ if only_names || !name.starts_with('-') => given.choice.push(word.clone()),
                "--" => only_names = true,
                "--skip" => given.choice.extend(its_value().map(|value| format!("--skip={value}"))),
                "--exact" => given.choice_once("--exact"),
                "--ignored" | "--include-ignored" => {
                    if !given.ignored.contains(word) {
                        given.ignored.push(word.clone());
                    }
                }
                "-Z" | "--logfile" => {
                    given.others.push(name.to_owned());
                    given.others.extend(its_value());
                }
                name if OURS_WITH_VALUE.contains(&name) => {
                    its_value();
                }
                name if OURS.contains(&name) => {}
                _ => given.others.push(word.clone()),
            }
        }
        given
    }

    fn choice_once(&mut self, option: &str) {
        if !self.choice.iter().any(|word| word == option) {
            self.choice.push(option.to_owned());
        }
    }

    /// Whether it runs other cases than all that are not ignored.
    pub(crate) fn chooses(&self) -> bool {
        !self.choice.is_empty() || !self.ignored.is_empty()
    }

    /// Whether cases are wanted that are ignored otherwise.
    pub(crate) fn wants_ignored(&self) -> bool {
        !self.ignored.is_empty()
    }

    /// Those with which the chosen cases are listed, or run one after the other.
    pub(crate) fn together(&self) -> Vec<String> {
        [self.others.as_slice(), &self.ignored, &self.choice].concat()
    }

    /// Those with which one case is run.
    pub(crate) fn alone(&self) -> Vec<String> {
        [self.others.as_slice(), &self.ignored].concat()
    }
}

/// Whether the user wants a list, in the words of the harness.
pub fn wants_list(words: &[String]) -> bool {
    words.iter().any(|word| word == "--list")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Given {
        Given::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_chooses_cases_is_told_from_what_prints() {
        let given = read(&[
            "queue",
            "--exact",
            "--skip",
            "slow",
            "--skip=late",
            "--nocapture",
            "--test-threads",
            "4",
            "--test-threads=2",
            "--exact",
            "-q",
            "-Z",
            "unstable-options",
            "--color",
            "never",
            "--ignored",
            "other",
        ]);
        assert_eq!(
            given.together(),
            [
                "-Z",
                "unstable-options",
                "--ignored",
                "queue",
                "--exact",
                "--skip=slow",
                "--skip=late",
                "other"
            ]
        );
        assert_eq!(given.alone(), ["-Z", "unstable-options", "--ignored"]);
        assert!(given.chooses() && given.wants_ignored());
        assert!(!read(&["--nocapture", "--test-threads=1"]).chooses());
    }
}
