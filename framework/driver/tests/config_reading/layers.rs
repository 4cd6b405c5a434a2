//! Configs made of several: included files, profiles, `--set`, variables, and where each value came from.

use std::fs;
use std::path::Path;
use std::time::Duration;

use waylay_dist::Seed;
use waylay_driver::config::{LoadError, Loaded, Overrides, PluginRef, Source, explain, load, source_of};

const SCENARIO: &str = "[[scenario]]\nname = 'a'\nduration = '1s'\n[[scenario.test]]\nplugin = 'p'\n";

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    folder
}

fn overrides(profile: Option<&str>, set: &[&str]) -> Overrides {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    Overrides { profile: profile.map(str::to_owned), set, ..Overrides::default() }
}

fn loaded(path: &Path, profile: Option<&str>, set: &[&str]) -> Loaded {
    load(path, &overrides(profile, set)).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The text that people are shown.
fn refused(path: &Path, profile: Option<&str>, set: &[&str]) -> String {
    match load(path, &overrides(profile, set)) {
        Err(LoadError::Invalid(diagnostics)) => diagnostics.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_laid_over_those_that_it_includes() {
    let folder = folder(&[
        ("night.toml", "include = ['team/base.toml', 'more.toml']\n[defaults]\nworkers = 3\n"),
        (
            "team/base.toml",
            "include = ['deep.toml']\nduration = '1h'\n[defaults]\nworkers = 2\nmax-failures = 7\n",
        ),
        ("team/deep.toml", &format!("seed = 5\nduration = '2h'\nplugin-path = ['here']\n{SCENARIO}")),
        ("more.toml", "[[scenario]]\nname = 'b'\n[[scenario.test]]\nplugin = 'q'\n"),
    ]);
    let config = loaded(&folder.path().join("night.toml"), None, &[]);
    let names: Vec<_> = config.config.scenarios.iter().map(|scenario| &*scenario.name.value).collect();
    assert_eq!(names, ["a", "b"]);
    let test = &config.config.scenarios[0].tests[0];
    assert_eq!((test.workers, test.max_failures.map(u64::from)), (3, Some(7)));
    assert_eq!(config.config.duration, Some(Duration::from_secs(3600)));
    assert_eq!(config.config.seed, Some(Seed::new(5)));
    // Paths are relative to the file in which they stand.
    assert!(config.plugin_folders().contains(&folder.path().join("team/here")));
}

#[test]
fn plugins_lie_beside_the_file_that_names_them() {
    let folder = folder(&[
        ("night.toml", "include = ['team/base.toml']\n"),
        ("team/base.toml", "[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = './libx.so'\n"),
        ("team/libx.so", ""),
    ]);
    let loaded = loaded(&folder.path().join("night.toml"), None, &[]);
    let PluginRef::Path(path) = &loaded.config.scenarios[0].tests[0].plugin.value else { panic!("a path") };
    assert_eq!(fs::canonicalize(path).ok(), fs::canonicalize(folder.path().join("team/libx.so")).ok());
    assert!(loaded.plugin_folders().contains(&folder.path().join("team")));
}

#[test]
fn a_profile_is_laid_over_the_file_and_what_is_set_over_both() {
    let text = format!(
        "[defaults]\nworkers = 2\n{SCENARIO}[profile.night]\nduration = '8h'\n[profile.night.defaults]\nworkers = 16\n\
         [profile.night.scenario.a]\nduration = '1h'\n",
    );
    let folder = folder(&[("c.toml", &text)]);
    let path = folder.path().join("c.toml");
    let workers = |profile, set: &[&str]| loaded(&path, profile, set).config.scenarios[0].tests[0].workers;
    assert_eq!(workers(None, &[]), 2);
    assert_eq!(workers(Some("night"), &[]), 16);
    assert_eq!(workers(Some("night"), &["defaults.workers=4"]), 4);
    assert_eq!(workers(None, &["defaults.workers=4", "scenario.a.test.'*'.workers=5"]), 5);
    assert_eq!(loaded(&path, Some("night"), &[]).config.allotments(), [Some(Duration::from_secs(3600))]);
    // A text needs no quotes.
    assert_eq!(loaded(&path, None, &["out=some where"]).config.out, Path::new("some where"));
    assert_eq!(loaded(&path, None, &["duration=5m"]).config.duration, Some(Duration::from_secs(300)));
}

#[test]
fn problems_are_shown_in_the_file_in_which_they_stand() {
    let folder = folder(&[
        ("night.toml", "include = ['base.toml']\nsed = 1\n[profile.n]\nduraton = '1h'\n"),
        ("base.toml", &format!("# a line\n[defaults]\nworkrs = 2\n{SCENARIO}")),
    ]);
    let path = folder.path().join("night.toml");
    let text = refused(&path, None, &["leaks.enabld=true"]);
    let expect = |wanted: &str| assert!(text.contains(wanted), "no {wanted:?} in:\n{text}");
    expect(&format!("{}:2:1", path.display()));
    expect(&format!("{}:4:1", path.display()));
    expect(&format!("{}:3:1", folder.path().join("base.toml").display()));
    expect("did you mean `workers`?");
    expect("--set leaks.enabld=true:1:7");
    assert_eq!(text.matches("unknown key `workrs`").count(), 1, "once, not once for each profile:\n{text}");
}

#[test]
fn what_is_not_there_is_told() {
    let folder = folder(&[
        ("missing.toml", &format!("include = ['nowhere.toml']\n{SCENARIO}")),
        ("loop.toml", &format!("include = ['again.toml']\n{SCENARIO}")),
        ("again.toml", "include = ['loop.toml']\n"),
        ("kind.toml", &format!("include = 'base.toml'\n{SCENARIO}")),
        ("fine.toml", &format!("{SCENARIO}[profile.night]\nseed = 1\n")),
    ]);
    let said = |file: &str, profile, set: &[&str]| refused(&folder.path().join(file), profile, set);
    assert!(said("missing.toml", None, &[]).contains("cannot read `nowhere.toml`"));
    assert!(said("loop.toml", None, &[]).contains("`loop.toml` includes itself"));
    assert!(said("kind.toml", None, &[]).contains("`include` must be a list of files, not a text"));
    let wrong = said("fine.toml", Some("nigt"), &[]);
    assert!(
        wrong.contains("there is no profile `nigt`") && wrong.contains("did you mean `night`?"),
        "{wrong}"
    );
    assert!(said("fine.toml", None, &["scenario.b.share=2"]).contains("there is no scenario `b` to change"));
    assert!(said("fine.toml", None, &["defaults.workers"]).contains("--set defaults.workers:1:"));
}

#[test]
fn variables_come_from_the_environment_or_are_missed() {
    let text = format!("out = '${{CARGO_MANIFEST_DIR}}/out'\nseed = '${{WAYLAY_NO_SUCH:-0x7}}'\n{SCENARIO}");
    let folder =
        folder(&[("c.toml", &text), ("d.toml", &format!("out = '${{WAYLAY_NO_SUCH}}'\n{SCENARIO}"))]);
    let config = loaded(&folder.path().join("c.toml"), None, &[]).config;
    assert_eq!(config.out, Path::new(env!("CARGO_MANIFEST_DIR")).join("out"));
    assert_eq!(config.seed, Some(Seed::new(7)));
    let text = refused(&folder.path().join("d.toml"), None, &[]);
    assert!(text.contains("the environment variable `WAYLAY_NO_SUCH` is not set"), "{text}");
    assert!(text.contains("d.toml:1:7"), "{text}");
}

#[test]
fn each_value_says_where_it_comes_from() {
    let folder = folder(&[
        ("night.toml", "include = ['base.toml']\n[profile.n.scenario.a]\nduration = '2s'\n"),
        ("base.toml", &format!("[defaults]\nworkers = 2\n{SCENARIO}")),
    ]);
    let source = source_of(&folder.path().join("night.toml")).expect("there");
    let text =
        explain(source, &overrides(Some("n"), &["defaults.leaks=false"])).unwrap_or_else(|e| panic!("{e}"));
    let origin = |start: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(start)).unwrap_or_default();
        let origin = line.split_once("  # ").map_or("", |(_, origin)| origin);
        // The folder's own name is of no interest, and systems write it differently.
        origin.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
    };
    assert_eq!(origin("workers = 2"), "base.toml:2");
    assert_eq!(origin("duration = \"2s\""), "night.toml:3");
    assert_eq!(origin("name = \"a\""), "base.toml:4");
    assert_eq!(origin("leaks = false"), "--set defaults.leaks=false");
    assert_eq!(origin("hang-timeout"), "default");
    // It reads back, comments and all.
    assert_eq!(
        waylay_driver::config::parse(Source::new("x", text.clone()), &Overrides::default())
            .expect("fine")
            .config
            .seed,
        None
    );
}
