//! `waylay pack`, and what other commands make of a pack.

use std::path::{Path, PathBuf};

use serde_json::json;
use waylay_driver::campaign::{self, Selection};
use waylay_driver::catalog::Installation;
use waylay_driver::config::{Overrides, PluginRef};
use waylay_driver::failure::brought;
use waylay_driver::report::plural;
use waylay_fleet::pack::{self as file, COMMAND, CONFIG, Contents, EXTENSION, LIBRARIES, Pack, PackError};

use crate::args::PackOptions;
use crate::installation::installation;
use crate::output::{CLEAN, Failed, print_json};
use crate::run::{colour, load};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn failed(error: PackError) -> Failed {
    match error {
        PackError::Refused(text) => Failed::Usage(text),
        PackError::File { .. } => Failed::Usage(format!("cannot use the pack: {error}")),
    }
}

pub(crate) fn pack(options: &PackOptions, json: bool) -> Result<u8, Failed> {
    let layers = options.layers.clone();
    let overrides = Overrides { profile: layers.profile, set: layers.set, ..Overrides::default() };
    let loaded = load(options.config.as_deref(), &overrides)?;
    let installation = installation()?;
    let mix = campaign::mix(&loaded, &installation, &Selection::default())
        .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?;
    if let Some(problem) = mix.problems.first() {
        return Err(Failed::Usage(format!("cannot pack {problem}")));
    }
    let library = installation.control_library().ok_or_else(|| {
        let missing = installation.missing_control_library().unwrap_or_default();
        Failed::Own(format!("this copy of waylay is not whole: {missing}"))
    })?;
    let executable =
        std::env::current_exe().map_err(|error| Failed::Own(format!("cannot find this command: {error}")))?;
    let plugins: Vec<PathBuf> = mix.plugins.keys().cloned().collect();
    let mut contents = Contents::default();
    contents.files.push((COMMAND.to_owned(), executable));
    let mut libraries = brought(&plugins, &[]);
    libraries.insert(library);
    for path in &libraries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let inside = format!("{LIBRARIES}/{name}");
        if contents.files.iter().any(|(known, _)| *known == inside) {
            return Err(Failed::Usage(format!(
                "two of the libraries to be packed are called {name}: rename one"
            )));
        }
        contents.files.push((inside, path.clone()));
    }
    // Where they were does not matter any more: all are where an installation has its own.
    let mut config = loaded.config.clone();
    config.plugin_path.clear();
    config.out = "waylay-out".into();
    let inside = |plugin: &mut waylay_driver::config::At<PluginRef>| {
        if let PluginRef::Path(path) = &mut plugin.value {
            let name = path.file_name().unwrap_or_default().to_owned();
            *path = Path::new("..").join(LIBRARIES).join(name);
        }
    };
    for test in config.scenarios.iter_mut().flat_map(|scenario| &mut scenario.tests) {
        test.each_plugin_mut(&inside);
    }
    contents.texts.push((CONFIG.to_owned(), config.to_string()));
    let out = options.out.clone().unwrap_or_else(|| {
        let stem = options.config.as_deref().and_then(Path::file_stem).unwrap_or("mix".as_ref());
        Path::new(stem).with_extension(EXTENSION)
    });
    let (manifest, digest) = file::pack(&contents, VERSION, &out).map_err(failed)?;
    if json {
        print_json(&json!({ "pack": out, "sha256": digest, "manifest": manifest }))?;
    } else {
        println!("{}: {}, SHA-256 {digest}", out.display(), plural(manifest.files.len() as u64, "file"));
    }
    Ok(CLEAN)
}

/// A pack that lies unpacked.
pub(crate) struct Unpacked {
    pub(crate) pack: Pack,
    folder: PathBuf,
}

impl Unpacked {
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join(CONFIG)
    }

    /// The command and libraries of the pack.
    pub(crate) fn installation(&self) -> Installation {
        Installation::at(&self.folder.join(COMMAND))
    }
}

/// Unpacks what is named, if it is a pack.
pub(crate) fn unpacked(path: Option<&Path>) -> Result<Option<Unpacked>, Failed> {
    let Some(path) = path.filter(|path| file::is_pack(path)) else { return Ok(None) };
    let mut pack = Pack::open(path).map_err(failed)?;
    if let Some(why) = pack.unfit(VERSION) {
        return Err(Failed::Usage(why));
    }
    let cache = waylay_control_protocol::cache_folder()
        .ok_or_else(|| Failed::Own("there is no folder for caches to unpack into".to_owned()))?;
    std::fs::create_dir_all(&cache)
        .map_err(|error| Failed::Own(format!("cannot make {}: {error}", cache.display())))?;
    let folder = pack.unpack(&cache).map_err(failed)?;
    Ok(Some(Unpacked { pack, folder }))
}
