//! Which plugins there are: finding their files by name, and asking what is inside, each in a process of its own so
//! that a constructor that crashes or hangs harms nobody.

use std::collections::BTreeMap;
use std::env::consts::{DLL_EXTENSION, DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use waylay_host::description::{KindDescription, ParamDescription, PluginDescription, TestDescription};

use crate::config::suggestion;
use crate::host::HostCommand;
use crate::randomizer::RandomizerCommand;
use crate::sys;

/// How long a plugin may take to load before it counts as hung.
const LOAD_LIMIT: Duration = Duration::from_secs(20);

/// Where this installation keeps its parts.
#[derive(Clone, Debug)]
pub struct Installation {
    executable: PathBuf,
    folders: Vec<PathBuf>,
}

/// A plugin that could not be found: where was looked.
#[derive(Debug, thiserror::Error)]
#[error("no plugin `{name}`: looked for {} in {}{}", wanted(.name).join(" and "), folders_text(.looked), did_you_mean(.similar))]
pub struct NotFound {
    name: String,
    looked: Vec<PathBuf>,
    similar: Option<String>,
}

fn folders_text(folders: &[PathBuf]) -> String {
    let text = |folder: &PathBuf| match folder.as_os_str().is_empty() {
        true => "the working folder".to_owned(),
        false => folder.display().to_string(),
    };
    folders.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn did_you_mean(similar: &Option<String>) -> String {
    similar.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// The loader looks for a file without a folder everywhere but in the working folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// File names that a plugin called `name` may have.
fn wanted(name: &str) -> Vec<String> {
    let plain = name.replace('-', "_");
    vec![format!("{DLL_PREFIX}{plain}{DLL_SUFFIX}"), format!("{plain}{DLL_SUFFIX}")]
}

impl Installation {
    /// The installation that this process runs from.
    pub fn of_this_process() -> std::io::Result<Installation> {
        let executable = std::env::current_exe()?;
        Ok(Installation::at(&executable))
    }

    /// The installation of that executable: Cargo leaves libraries in `deps` beside it, packages in `../lib/waylay`.
    pub fn at(executable: &Path) -> Installation {
        let beside = executable.parent().unwrap_or(Path::new(".")).to_owned();
        let mut folders = vec![beside.join("deps"), beside.join("plugins"), beside.clone()];
        folders.extend(beside.parent().map(|prefix| prefix.join("lib").join("waylay")));
        Installation { executable: executable.to_owned(), folders }
    }

    /// Looks into one more folder, after all others.
    pub fn add_folder(&mut self, folder: PathBuf) {
        self.folders.push(folder);
    }

    /// Looks into one more folder, before all others.
    pub fn prefer_folder(&mut self, folder: PathBuf) {
        self.folders.insert(0, folder);
    }

    /// The library of strict mode, if it is there and its path cannot be handed to the system's loader.
    pub fn misplaced_control_library(&self) -> Option<PathBuf> {
        self.control_library().filter(|library| !sys::can_be_loaded_first(library))
    }

    /// The library of strict mode, if it is there.
    pub fn control_library(&self) -> Option<PathBuf> {
        self.find_file(sys::CONTROL_LIBRARY, &[]).ok()
    }

    /// Why the library of strict mode is not there: what was looked for, and where.
    pub fn missing_control_library(&self) -> Option<String> {
        let missing = self.find_file(sys::CONTROL_LIBRARY, &[]).err()?;
        let file = &wanted(&missing.name)[0];
        Some(format!("{file} is missing, looked for in {}", folders_text(&missing.looked)))
    }

    pub(crate) fn host_command(&self) -> HostCommand {
        HostCommand { executable: self.executable.clone(), control: self.control_library() }
    }

    /// How a randomizer is started that writes its log into this folder.
    pub(crate) fn randomizer_command(&self, folder: &Path) -> RandomizerCommand {
        RandomizerCommand { executable: self.executable.clone(), log: folder.join("randomizer.log") }
    }

    /// The file of a plugin that was named or given as a path. Paths are relative to `base`, then to the working
    /// folder; names are looked for in `extra`, then in `base`, then where this installation keeps its own.
    pub fn find_plugin(&self, plugin: &str, base: &Path, extra: &[PathBuf]) -> Result<PathBuf, NotFound> {
        let path = Path::new(plugin);
        let is_path = path.components().count() > 1 || path.extension().is_some_and(|e| e == DLL_EXTENSION);
        if is_path {
            let candidates = [base.join(path), path.to_owned()];
            // A path that exists nowhere is returned as written: loading it gives the exact reason.
            let found = candidates.iter().find(|candidate| candidate.exists()).unwrap_or(&candidates[0]);
            return Ok(absolute(found));
        }
        let mut folders = extra.to_vec();
        folders.push(base.to_owned());
        self.find_file(plugin, &folders)
    }

    fn find_file(&self, name: &str, first: &[PathBuf]) -> Result<PathBuf, NotFound> {
        let folders: Vec<&PathBuf> = first.iter().chain(&self.folders).collect();
        for folder in &folders {
            for file in wanted(name) {
                let candidate = folder.join(file);
                if candidate.is_file() {
                    return Ok(absolute(&candidate));
                }
            }
        }
        let known = available(&folders);
        let similar = suggestion::nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        Err(NotFound { name: name.to_owned(), looked: folders.into_iter().cloned().collect(), similar })
    }

    /// What is inside a plugin file.
    pub fn describe(&self, plugin: &Path) -> Result<PluginDescription, String> {
        self.describe_within(plugin, LOAD_LIMIT)
    }

    /// What is inside a plugin file, with a limit on the time that it may take to load.
    pub(crate) fn describe_within(
        &self,
        plugin: &Path,
        limit: Duration,
    ) -> Result<PluginDescription, String> {
        self.host_command().describe(plugin, limit)
    }

    /// Describes each file once; equal paths are asked once.
    pub fn describe_all<'a>(
        &self,
        plugins: impl IntoIterator<Item = &'a PathBuf>,
    ) -> BTreeMap<PathBuf, Result<PluginDescription, String>> {
        let mut described = BTreeMap::new();
        for plugin in plugins {
            described.entry(plugin.clone()).or_insert_with(|| self.describe(plugin));
        }
        described
    }

    /// Plugin files that this installation brings along.
    pub fn own_plugins(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = self
            .folders
            .iter()
            .flat_map(|folder| libraries_in(folder))
            .filter(|path| is_own_plugin(path))
            .collect();
        found.sort();
        found.dedup_by_key(|path| path.file_name().map(ToOwned::to_owned));
        found
    }
}

/// The control library and hashed build products are no plugins.
fn is_own_plugin(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = stem.strip_prefix(DLL_PREFIX).unwrap_or(stem);
    name.starts_with("waylay_") && !name.starts_with("waylay_control") && !name.contains('-')
}

fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == DLL_EXTENSION))
        .collect()
}

fn available(folders: &[&PathBuf]) -> Vec<String> {
    let name = |path: PathBuf| {
        let stem = path.file_stem()?.to_str()?;
        Some(stem.strip_prefix(DLL_PREFIX).unwrap_or(stem).to_owned())
    };
    folders.iter().flat_map(|folder| libraries_in(folder)).filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_found_by_name_in_the_nearest_folder_first() {
        let folder = tempfile::tempdir().unwrap();
        let near = folder.path().join("near");
        let far = folder.path().join("far");
        for place in [&near, &far] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join(format!("{DLL_PREFIX}bank_test{DLL_SUFFIX}")), "").unwrap();
        }
        let installation = Installation { executable: "waylay".into(), folders: vec![far] };
        let found =
            installation.find_plugin("bank-test", folder.path(), std::slice::from_ref(&near)).unwrap();
        assert_eq!(found.parent().unwrap(), near);
    }

    #[test]
    fn an_installed_copy_finds_its_libraries_under_its_prefix_and_says_where_it_looked() {
        let prefix = tempfile::tempdir().unwrap();
        let library = prefix.path().join("lib").join("waylay");
        std::fs::create_dir_all(&library).unwrap();
        let installation = Installation::at(&prefix.path().join("bin").join("waylay"));

        let missing = installation.missing_control_library().unwrap();
        assert!(missing.contains(&library.display().to_string()), "{missing}");

        std::fs::write(library.join(&wanted(sys::CONTROL_LIBRARY)[0]), "").unwrap();
        std::fs::write(library.join(format!("{DLL_PREFIX}waylay_faults{DLL_SUFFIX}")), "").unwrap();
        assert_eq!(installation.control_library().unwrap().parent().unwrap(), library);
        assert_eq!(installation.missing_control_library(), None);
        assert_eq!(installation.own_plugins().len(), 1);
    }

    #[test]
    fn a_misspelt_plugin_is_answered_with_the_nearest_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(format!("{DLL_PREFIX}waylay_faults{DLL_SUFFIX}")), "").unwrap();
        let installation =
            Installation { executable: "waylay".into(), folders: vec![folder.path().to_owned()] };
        let error = installation.find_plugin("waylay_falts", Path::new("/nowhere"), &[]).unwrap_err();
        assert!(error.to_string().contains("did you mean `waylay_faults`?"), "{error}");
    }
}
