//! Lays one table of a config over another: what the upper one says wins, key by key. Pure.
//!
//! Only sections are merged; any other value replaces the one below as a whole, so that a distribution never becomes a mixture
//! of two. Scenarios have names: in a list, one with the name of a scenario below is laid over it, and any other is added. Under
//! `scenario.NAME` and `test.NAME`, as a profile or `--set` writes them, only what is there already can be changed.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::diagnostic::Diagnostic;
use super::suggestion;

/// Tables that are merged key by key. The last two are lists in a file and tables where something in them is changed.
const SECTIONS: [&str; 9] =
    ["defaults", "leaks", "evidence", "randomizer", "params", "pot", "profile", "scenario", "test"];

/// Lays `over` over `base`.
pub(super) fn lay_over<'i>(base: &mut DeTable<'i>, over: DeTable<'i>, problems: &mut Vec<Diagnostic>) {
    for (key, above) in over {
        let name = key.get_ref().clone();
        let in_list = matches!(&*name, "scenario" | "test");
        let span = above.span();
        match (base.get_mut(&*name).map(Spanned::get_mut), above.into_inner()) {
            (Some(DeValue::Array(below)), DeValue::Table(above)) if in_list => {
                change_named(&name, below, above, problems);
            }
            (None, DeValue::Table(_)) if in_list => {
                problems.push(Diagnostic::error(key.span().into(), format!("there is no {name} to change")));
            }
            (Some(DeValue::Array(below)), DeValue::Array(above)) if &*name == "scenario" => {
                above.into_iter().for_each(|scenario| add_scenario(below, scenario, problems));
            }
            (Some(DeValue::Table(below)), DeValue::Table(above)) if SECTIONS.contains(&&*name) => {
                lay_over(below, above, problems);
            }
            (_, above) => {
                // With its key, so that messages about either point to the upper one.
                base.remove(&*name);
                base.insert(key, Spanned::new(span, above));
            }
        }
    }
}

fn name_of<'t>(table: &'t Spanned<DeValue<'_>>) -> Option<&'t str> {
    table.get_ref().as_table()?.get("name")?.get_ref().as_str()
}

/// A scenario of a list: over the one of its name, or behind the others.
fn add_scenario<'i>(below: &mut DeArray<'i>, scenario: Spanned<DeValue<'i>>, problems: &mut Vec<Diagnostic>) {
    let name = name_of(&scenario).map(str::to_owned);
    let same = name.and_then(|name| below.iter_mut().find(|one| name_of(one) == Some(&name)));
    match same.map(Spanned::get_mut) {
        Some(DeValue::Table(same)) => {
            if let DeValue::Table(above) = scenario.into_inner() {
                lay_over(same, above, problems);
            }
        }
        _ => below.push(scenario),
    }
}

/// Changes in members of a list, by their names. A test without a name is called `*`, as everywhere.
fn change_named<'i>(
    what: &str,
    below: &mut DeArray<'i>,
    changes: DeTable<'i>,
    problems: &mut Vec<Diagnostic>,
) {
    let called = |one: &Spanned<DeValue<'_>>| match what {
        "test" => name_of(one).unwrap_or("*").to_owned(),
        _ => name_of(one).unwrap_or_default().to_owned(),
    };
    for (key, change) in changes {
        let name = key.get_ref().as_ref();
        let DeValue::Table(change) = change.into_inner() else {
            let message = format!("`{what}.{name}` must be a table: `{what}.NAME.KEY`");
            problems.push(Diagnostic::error(key.span().into(), message));
            continue;
        };
        let mut fitting = below.iter_mut().filter(|one| called(one) == name).peekable();
        if fitting.peek().is_none() {
            drop(fitting);
            let known: Vec<String> = below.iter().map(called).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            problems.push(
                Diagnostic::error(key.span().into(), format!("there is no {what} `{name}` to change"))
                    .help(suggestion::help(name, &known)),
            );
            continue;
        }
        for one in fitting {
            if let DeValue::Table(one) = one.get_mut() {
                lay_over(one, change.clone(), problems);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of two documents, as TOML text, and the problems.
    fn merged(base: &str, over: &str) -> (String, Vec<String>) {
        let table = |text| DeTable::parse(text).expect("fine").into_inner();
        let mut below = table(base);
        let mut problems = Vec::new();
        lay_over(&mut below, table(over), &mut problems);
        (format!("{below:?}"), problems.into_iter().map(|problem| problem.message).collect())
    }

    /// Two documents laid over each other are the same as the third.
    fn gives(base: &str, over: &str, expected: &str) {
        let (text, problems) = merged(base, over);
        assert_eq!(problems, Vec::<String>::new());
        // Places differ; everything else does not.
        let places = |text: &str| {
            let mut plain = String::new();
            let mut rest = text;
            while let Some((before, after)) = rest.split_once("span: ") {
                plain += before;
                rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            }
            plain + rest
        };
        assert_eq!(places(&text), places(&merged(expected, "").0));
    }

    #[test]
    fn sections_are_merged_and_values_replaced() {
        gives(
            "[defaults]\nworkers = 1\nleaks = true",
            "[defaults]\nworkers = 2",
            "[defaults]\nleaks = true\nworkers = 2",
        );
        gives("duration = '1h'\nseed = 1", "duration = '2h'", "duration = '2h'\nseed = 1");
        gives("plugin-path = ['a']", "plugin-path = ['b']", "plugin-path = ['b']");
        gives(
            "[randomizer]\nperiod = { uniform = { min = 1, max = 2 } }\ncount = 3",
            "[randomizer]\nperiod = { gaussian = { mean = 1, sigma = 2 } }",
            "[randomizer]\nperiod = { gaussian = { mean = 1, sigma = 2 } }\ncount = 3",
        );
    }

    #[test]
    fn scenarios_are_known_by_name() {
        let base = "[[scenario]]\nname = 'a'\nshare = 1\n[[scenario]]\nname = 'b'";
        gives(
            base,
            "[[scenario]]\nname = 'b'\nshare = 2\n[[scenario]]\nname = 'c'",
            &format!("{base}\nshare = 2\n[[scenario]]\nname = 'c'"),
        );
        gives(base, "scenario.b.share = 2", &format!("{base}\nshare = 2"));
        let (_, problems) = merged(base, "scenario.d.share = 2");
        assert_eq!(problems, ["there is no scenario `d` to change"]);
        let (_, problems) = merged("", "scenario.d.share = 2");
        assert_eq!(problems, ["there is no scenario to change"]);
        let (_, problems) = merged(base, "scenario.b = 2");
        assert_eq!(problems, ["`scenario.b` must be a table: `scenario.NAME.KEY`"]);
    }

    #[test]
    fn tests_are_changed_by_name_and_replaced_as_a_list() {
        let base = "[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'p'\n[[scenario.test]]\nplugin = 'q'\nname = 't'";
        gives(base, "scenario.a.test.t.workers = 8", &format!("{base}\nworkers = 8"));
        gives(
            base,
            "scenario.a.test.'*'.workers = 8",
            "[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'p'\nworkers = 8\n[[scenario.test]]\nplugin = 'q'\nname = 't'",
        );
        gives(
            base,
            "[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'r'",
            "[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'r'",
        );
    }
}
