//! Whose words are behind `waylay cargo test`: Cargo's, the test binaries', or ours.
//!
//! People write options where they think of them, so those of ours that stand among Cargo's are put in front of `test`, where the
//! rest of the command line is read. What both have means there what it means to `cargo test`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::Arguments;

/// Options that Cargo has, too, and that it gets.
const CARGOS: [&str; 2] = ["--jobs", "--timings"];
/// Options that Cargo has, too, and that mean the same to both.
const BOTH: [&str; 2] = ["--quiet", "-q"];

/// The words of `waylay cargo`, ours in front of Cargo's; of any other command, as they are.
pub(super) fn ours_first(words: Vec<OsString>) -> Vec<OsString> {
    let command = words.iter().skip(1).position(|word| word != "--json").map(|place| place + 1);
    let Some(command) = command.filter(|&place| words[place] == "cargo") else { return words };
    let options = options();
    let (mut ours, mut theirs): (Vec<OsString>, Vec<OsString>) = (Vec::new(), Vec::new());
    let mut rest = words[command + 1..].iter().peekable();
    while let Some(word) = rest.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            theirs.push(word.clone());
            theirs.extend(rest.by_ref().cloned());
            break;
        }
        let (name, has_value) = text.split_once('=').map_or((text, false), |(name, _)| (name, true));
        let behind_test = !theirs.is_empty();
        let known = options.get(name).filter(|_| !(behind_test && CARGOS.contains(&name)));
        let Some(&takes_value) = known else {
            theirs.push(word.clone());
            continue;
        };
        ours.push(word.clone());
        if takes_value && !has_value {
            ours.extend(rest.next().cloned());
        }
        if behind_test && BOTH.contains(&name) {
            theirs.push(word.clone());
        }
    }
    let mut ordered = words;
    ordered.truncate(command + 1);
    ordered.extend(ours);
    ordered.extend(theirs);
    ordered
}

/// The options of `waylay cargo`, and whether the next word is their value.
fn options() -> BTreeMap<String, bool> {
    let mut all = Arguments::command_for_help();
    all.build();
    let mut options = BTreeMap::new();
    for option in all.find_subcommand("cargo").into_iter().flat_map(clap::Command::get_arguments) {
        let takes_value = option.get_action().takes_values() && !option.is_require_equals_set();
        let longs = option.get_long().into_iter().chain(option.get_all_aliases().into_iter().flatten());
        options.extend(longs.map(|long| (format!("--{long}"), takes_value)));
        options.extend(option.get_short().map(|short| (format!("-{short}"), takes_value)));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let words = ours_first(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_are_understood_wherever_they_stand() {
        assert_eq!(
            ordered("waylay cargo test -p queue --runs 500 push --json --for=10s -- --exact --runs 3"),
            "waylay cargo --runs 500 --json --for=10s test -p queue push -- --exact --runs 3"
        );
        // In front of `test` an option is ours; behind it, it is what it is to `cargo test`.
        assert_eq!(
            ordered("waylay --json cargo --jobs 2 test --jobs 4 --timings -q"),
            "waylay --json cargo --jobs 2 -q test --jobs 4 --timings -q"
        );
        assert_eq!(ordered("waylay suite --runs 3 -- cargo test"), "waylay suite --runs 3 -- cargo test");
    }
}
