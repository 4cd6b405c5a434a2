//! The names of cases in what frameworks print: lists of them, and their beginning in the output of a whole suite. Pure.

/// `name: test`, a line each; benchmarks are no cases.
pub(crate) fn libtest(output: &str) -> Option<Vec<String>> {
    let cases: Vec<String> =
        output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
    // A harness without cases prints nothing at all; whatever prints other lines is no such harness.
    let others = output
        .lines()
        .any(|line| !line.is_empty() && !line.ends_with(": test") && !line.ends_with(": benchmark"));
    (!others || !cases.is_empty()).then_some(cases)
}

/// A suite in a line of its own that ends with a dot, its cases below, further in.
pub(crate) fn google_test(output: &str) -> Option<Vec<String>> {
    let mut suite = None;
    let mut cases = Vec::new();
    for line in output.lines() {
        let name = line.split("  # ").next().unwrap_or_default().trim_end();
        match name.strip_prefix("  ") {
            Some(case) => {
                let suite: &str = suite?;
                let disabled = |name: &str| name.split('/').any(|part| part.starts_with("DISABLED_"));
                if !disabled(suite) && !disabled(case) {
                    cases.push(format!("{suite}{case}"));
                }
            }
            // What main prints before is in no such form, or is followed by no case.
            None if name.ends_with('.') && !name.contains(' ') => suite = Some(name),
            None => {}
        }
    }
    (suite.is_some() || output.trim().is_empty()).then_some(cases)
}

/// A name a line; one that begins with `#` stands in quotes.
pub(crate) fn catch2(output: &str) -> Vec<String> {
    let unquoted = |line: &str| match line.strip_prefix('"').and_then(|line| line.strip_suffix('"')) {
        Some(name) if name.starts_with('#') => name.to_owned(),
        _ => line.to_owned(),
    };
    output.lines().map(str::trim).filter(|line| !line.is_empty()).map(unquoted).collect()
}

/// Names between two lines of `=`.
pub(crate) fn doctest(output: &str) -> Option<Vec<String>> {
    if !output.contains("listing all test case names") {
        return None;
    }
    let is_rule = |line: &&str| line.len() > 20 && line.bytes().all(|byte| byte == b'=');
    let behind = output.lines().skip_while(|line| !is_rule(line)).skip(1);
    Some(
        behind.take_while(|line| !is_rule(line)).filter(|line| !line.is_empty()).map(str::to_owned).collect(),
    )
}

/// A tree by indentation; a star behind a name means that it is run.
pub(crate) fn boost(output: &str) -> Vec<String> {
    let rows: Vec<(usize, &str)> = output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let depth = line.len() - line.trim_start().len();
            // A description stands behind a colon.
            let name = line.trim_start();
            (
                depth,
                name.split("*: ").next().map_or(name, |first| {
                    if first.len() < name.len() { &name[..=first.len()] } else { name }
                }),
            )
        })
        .collect();
    let mut cases = Vec::new();
    let mut path: Vec<(usize, String, bool)> = Vec::new();
    for (place, &(depth, name)) in rows.iter().enumerate() {
        path.retain(|(above, ..)| *above < depth);
        let enabled = name.ends_with('*') && path.iter().all(|(_, _, enabled)| *enabled);
        path.push((depth, name.trim_end_matches('*').trim().to_owned(), enabled));
        let is_leaf = rows.get(place + 1).is_none_or(|(next, _)| *next <= depth);
        if is_leaf && enabled {
            cases.push(path.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>().join("/"));
        }
    }
    cases
}

/// Where each line begins.
fn lines_at(output: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = output.as_ptr() as usize;
    output.lines().map(move |line| (line.as_ptr() as usize - start, line))
}

/// `test name ... `, before the case begins.
pub(crate) fn begun_libtest(output: &str) -> Vec<(usize, String)> {
    let begun = |(at, line): (usize, &str)| {
        let name = line.strip_prefix("test ")?.split(" ... ").next()?;
        let name = name.trim_end_matches(" ...").trim_end_matches(" - should panic");
        (!name.starts_with("result: ")).then(|| (at, name.to_owned()))
    };
    lines_at(output).filter_map(begun).collect()
}

/// `[ RUN      ] Suite.Case`.
pub(crate) fn begun_google_test(output: &str) -> Vec<(usize, String)> {
    lines_at(output)
        .filter_map(|(at, line)| Some((at, line.split_once("[ RUN      ] ")?.1.trim().to_owned())))
        .collect()
}

/// `<TestCase name="...">`, of Catch2 and doctest.
pub(crate) fn begun_xml(output: &str) -> Vec<(usize, String)> {
    let begun = |(at, line): (usize, &str)| {
        let name = line.split_once("<TestCase name=\"")?.1;
        Some((at, unescaped(name.split_once('"')?.0)))
    };
    lines_at(output).filter_map(begun).collect()
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

/// `Entering test case "name"`, within suites that are entered and left.
pub(crate) fn begun_boost(output: &str) -> Vec<(usize, String)> {
    let quoted = |line: &str, before: &str| Some(line.split_once(before)?.1.split_once('"')?.0.to_owned());
    let mut suites: Vec<String> = Vec::new();
    let mut begun = Vec::new();
    for (at, line) in lines_at(output) {
        if let Some(suite) = quoted(line, "Entering test suite \"") {
            suites.push(suite);
        } else if line.contains("Leaving test suite \"") {
            suites.pop();
        } else if let Some(case) = quoted(line, "Entering test case \"") {
            let path = suites.iter().map(String::as_str).chain([case.as_str()]).collect::<Vec<_>>().join("/");
            begun.push((at, path));
        }
    }
    begun
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(libtest("a::b: test\nc: benchmark\nd: test\n").unwrap(), ["a::b", "d"]);
        assert_eq!(libtest("usage: program FILE\n"), None);
        let google = "Running main() from gtest_main.cc\nCounter.\n  Adds\n  DISABLED_Never\nSmall/Odd.\n  IsOdd/0  # GetParam() \
                      = 1\nList/0.  # TypeParam = int\n  Push\nDISABLED_All.\n  Never\n";
        assert_eq!(google_test(google).unwrap(), ["Counter.Adds", "Small/Odd.IsOdd/0", "List/0.Push"]);
        assert_eq!(google_test("usage: program FILE\n"), None);
        assert_eq!(catch2("one, two\n\"#3\"\n"), ["one, two", "#3"]);
        let rule = "=".repeat(79);
        let listed =
            format!("[doctest] listing all test case names\n{rule}\none\ntwo: three\n{rule}\n[doctest] 2\n");
        assert_eq!(doctest(&listed).unwrap(), ["one", "two: three"]);
        let tree = "adds*\nshared*: of several\n    counter*\n    disabled \n    data*\n        _0*\n        _1*\noff \n    in*\n";
        assert_eq!(boost(tree), ["adds", "shared/counter", "shared/data/_0", "shared/data/_1"]);
    }

    #[test]
    fn cases_are_seen_to_begin() {
        let names = |begun: Vec<(usize, String)>| begun.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        let output = "\nrunning 2 tests\ntest a::b ... ok\ntest c - should panic ... ok\n\ntest result: ok. 2 passed\n";
        assert_eq!(names(begun_libtest(output)), ["a::b", "c"]);
        assert_eq!(begun_libtest("test a ... ")[0], (0, "a".to_owned()));
        let output =
            "[----------] 1 test\nnoise[ RUN      ] A.B\n[       OK ] A.B (0 ms)\n[ RUN      ] A.C\n";
        assert_eq!(names(begun_google_test(output)), ["A.B", "A.C"]);
        let output = "<Catch2>\n  <TestCase name=\"a &lt;b&gt;\" filename=\"x\" line=\"1\">\n";
        assert_eq!(names(begun_xml(output)), ["a <b>"]);
        let output = "Entering test module \"m\"\na.cpp(6): Entering test case \"adds\"\na.cpp(6): Leaving test case \"adds\"; \
                      testing time: 9us\na.cpp(7): Entering test suite \"shared\"\na.cpp(8): Entering test case \"one\"\n";
        assert_eq!(names(begun_boost(output)), ["adds", "shared/one"]);
    }
}
