//! `waylay check` and `waylay config`: is this configuration right, and what does it say in full?

use serde_json::json;
use waylay_driver::campaign::{self, Selection};
use waylay_driver::config::{self, Overrides};

use waylay_driver::report::plural;

use crate::args::{CheckOptions, LayerOptions, WhoseConfig};
use crate::installation::installation;
use crate::output::{BAD_USAGE, CLEAN, Failed, print_json};
use crate::pack::unpacked;
use crate::run::{DEFAULT_CONFIG, colour, load, source};

pub(crate) fn check(arguments: &CheckOptions, json: bool) -> Result<u8, Failed> {
    let pack = unpacked(arguments.config.as_deref())?;
    let (config, installation) = match &pack {
        Some(pack) => (Some(pack.config()), pack.installation()),
        None => (arguments.config.clone(), installation()?),
    };
    let loaded = load(config.as_deref(), &overrides(arguments))?;
    if let Some(pack) = pack.as_ref().filter(|_| !json) {
        let manifest = &pack.pack.manifest;
        println!(
            "a pack of Waylay {} for {}, SHA-256 {}",
            manifest.waylay, manifest.system, pack.pack.digest
        );
        manifest.files.iter().for_each(|file| println!("   {:>12} bytes  {}", file.bytes, file.path));
    }
    let mix = campaign::mix(&loaded, &installation, &Selection::default())
        .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?;
    for problem in &mix.problems {
        eprintln!("waylay: cannot use {problem}");
    }
    let tests: usize = mix.scenarios.iter().map(|scenario| scenario.tests.len()).sum();
    let code = if mix.problems.is_empty() && tests > 0 { CLEAN } else { BAD_USAGE };
    if json {
        print_json(&json!({
            "ok": code == CLEAN,
            "scenarios": mix.scenarios.iter().map(|scenario| json!({
                "name": scenario.name,
                "tests": scenario.tests.iter().map(|test| &test.name).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "problems": mix.problems,
            "pack": pack.as_ref().map(|pack| json!({ "sha256": pack.pack.digest, "manifest": pack.pack.manifest })),
        }))?;
    } else if code == CLEAN {
        let scenarios = plural(mix.scenarios.len() as u64, "scenario");
        println!("{scenarios}, {}, nothing wrong", plural(tests as u64, "test"));
    }
    Ok(code)
}

pub(crate) fn print_default(whose: &WhoseConfig, json: bool) -> Result<u8, Failed> {
    print_config(if whose.service { waylay_service::config::DEFAULT } else { DEFAULT_CONFIG }, json)
}

pub(crate) fn show(arguments: &CheckOptions, json: bool) -> Result<u8, Failed> {
    let explained = config::explain(source(arguments.config.as_deref())?, &overrides(arguments));
    print_config(&explained.map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?, json)
}

fn overrides(arguments: &CheckOptions) -> Overrides {
    let LayerOptions { profile, set } = arguments.layers.clone();
    Overrides { profile, set, ..Overrides::default() }
}

/// The JSON schema of configurations.
pub(crate) fn schema(whose: &WhoseConfig) -> Result<u8, Failed> {
    print_json(&match whose.service {
        true => waylay_service::config::schema(),
        false => waylay_driver::config::schema(),
    })?;
    Ok(CLEAN)
}

fn print_config(text: &str, json: bool) -> Result<u8, Failed> {
    if json {
        print_json(&json!({ "config": text }))?;
    } else {
        print!("{text}");
    }
    Ok(CLEAN)
}
