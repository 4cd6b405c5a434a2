//! Names for places in the code of a program or a plugin, and of what it needs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use waylay_control_protocol::Site;
use waylay_evidence::{installed_libraries, modules_of, places_in};

/// Names that were looked up so far.
#[derive(Clone, Debug, Default)]
pub struct PlaceNames {
    files: Vec<PathBuf>,
    known: RefCell<BTreeMap<u64, String>>,
}

impl PlaceNames {
    /// Of the code in this file, and in the libraries that it needs.
    pub fn of(file: &Path) -> PlaceNames {
        PlaceNames::of_all([file])
    }

    /// Of the code in these files, and in the libraries that they need; a program comes first.
    pub fn of_all<'a>(files: impl IntoIterator<Item = &'a Path>) -> PlaceNames {
        PlaceNames { files: files.into_iter().map(Path::to_owned).collect(), known: RefCell::default() }
    }

    /// The function and the line of each site, as far as they are known.
    pub fn names(&self, sites: &[u64]) -> Vec<String> {
        let mut known = self.known.borrow_mut();
        let new: Vec<Site> =
            sites.iter().filter(|&site| !known.contains_key(site)).map(|&site| Site(site)).collect();
        if !new.is_empty() {
            let modules = self.files.iter().flat_map(|file| modules_of(file));
            for (number, file) in modules.enumerate() {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let address = |site: &Site| u64::from(site.plain().0 as u32);
                // The program itself has no name in the loader's list.
                let here = |site: &&Site| {
                    let offset = address(site) as u32;
                    let names: &[&str] = if number == 0 { &["", &name] } else { &[&name] };
                    names.iter().any(|name| Site::new(name, offset) == site.plain())
                };
                let inside: Vec<Site> = new.iter().filter(here).copied().collect();
                let addresses: Vec<u64> = inside.iter().map(address).collect();
                if !inside.is_empty() {
                    known.extend(inside.iter().map(|site| site.0).zip(places_in(&file, &addresses)));
                }
            }
        }
        let unnamed = |site: u64| format!("code at {:#x}", Site(site).plain().0 as u32);
        sites.iter().map(|site| known.entry(*site).or_insert_with(|| unnamed(*site)).clone()).collect()
    }
}

/// The names of libraries of the system, by the sites of their first bytes.
pub fn libraries_at(sites: &[u64]) -> Vec<String> {
    if sites.is_empty() {
        return Vec::new();
    }
    let names: BTreeMap<u64, String> =
        installed_libraries().map(|name| (Site::new(&name, 0).0, name)).collect();
    let unnamed = || "a library that is loaded by name".to_owned();
    sites.iter().map(|site| names.get(site).cloned().unwrap_or_else(unnamed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_program_has_a_name() {
        let own = std::env::current_exe().unwrap();
        let names = PlaceNames::of(&own);
        // Where a function of this test is in its file is not known here; that the place is in the file, is.
        let named = names.names(&[Site::new("", 0x7f_ffff).0, Site::new("libelsewhere.so", 5).as_copy().0]);
        assert_eq!(named[1], "code at 0x5");
        assert!(!named[0].starts_with("code at"), "{named:?}");
        assert_eq!(names.names(&[Site::new("", 0x7f_ffff).0]), named[..1]);
    }
}
