//! `waylay list`: which tests there are and what they draw from, without running any.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use waylay_driver::campaign::{self, Selection};
use waylay_driver::catalog::{PluginDescription, TestDescription};
use waylay_driver::config::Overrides;
use waylay_report::escape::Name;

use crate::args::ListOptions;
use crate::installation::installation;
use crate::output::{BAD_USAGE, CLEAN, Failed, print_json};
use crate::run::{colour, load};

pub(crate) fn list(arguments: &ListOptions, json: bool) -> Result<u8, Failed> {
    let installation = installation()?;
    let mut problems = Vec::new();
    let plugins: BTreeMap<PathBuf, PluginDescription> = match &arguments.source {
        Some(path) if path.extension().is_some_and(|extension| extension == "toml") => {
            let loaded = load(Some(path), &Overrides::default())?;
            let mix = campaign::mix(&loaded, &installation, &Selection::default())
                .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?;
            problems = mix.problems;
            mix.plugins
        }
        source => {
            let files = match source {
                Some(plugin) => {
                    let found = installation.find_plugin(&plugin.display().to_string(), Path::new("."), &[]);
                    vec![found.map_err(|error| Failed::Usage(error.to_string()))?]
                }
                None => installation.own_plugins(),
            };
            let mut described = BTreeMap::new();
            for (path, result) in installation.describe_all(&files) {
                match result {
                    Ok(description) => drop(described.insert(path, description)),
                    Err(problem) => problems.push(problem),
                }
            }
            described
        }
    };
    for problem in &problems {
        eprintln!("waylay: cannot use {problem}");
    }
    if json {
        print_json(&serde_json::json!({ "plugins": plugins, "problems": problems }))?;
    } else {
        for (path, plugin) in &plugins {
            print_plugin(path, plugin);
        }
    }
    Ok(if problems.is_empty() && !plugins.is_empty() { CLEAN } else { BAD_USAGE })
}

fn print_plugin(path: &Path, plugin: &PluginDescription) {
    println!("{} ({})", Name(&plugin.name), path.display());
    for test in &plugin.tests {
        print_test(test);
    }
    for kind in &plugin.kinds {
        println!("  shared kind {}: {}", Name(&kind.name), Name(&kind.about));
    }
    for hooks in &plugin.hooks {
        println!("  hooks {}: {}", Name(&hooks.name), Name(&hooks.about));
    }
}

fn print_test(test: &TestDescription) {
    println!("  {:<28} {}", Name(&test.name), Name(&test.about));
    for param in &test.params {
        let default = param.default.as_deref().unwrap_or("(must be configured)");
        let about =
            if param.about.is_empty() { String::new() } else { format!("  # {}", Name(&param.about)) };
        println!("      {} = {}{about}", Name(&param.name), Name(default));
    }
    if !test.takes.is_empty() {
        println!("      takes {}", Name(&test.takes.join(", ")));
    }
}
