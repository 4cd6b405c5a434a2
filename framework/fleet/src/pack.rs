//! A pack: one file with everything that a night needs: the command, the control library, plugins with the libraries that they
//! bring, the configuration, and a manifest with a digest of each.
//!
//! It is a zip whose entries stand in the order of their names and have no times, so equal inputs give equal bytes. It is
//! unpacked into a folder that is named after its digest, laid out as an installation is: `bin/waylay`, `lib/waylay/…`.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::identity::{digest, digest_of};

/// The version of the format that is written.
pub const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
/// Where the command, the libraries and the configuration are inside.
pub const COMMAND: &str = "bin/waylay";
/// The folder of libraries.
pub const LIBRARIES: &str = "lib/waylay";
/// The configuration.
pub const CONFIG: &str = "config/mix.toml";
/// How file names of packs end.
pub const EXTENSION: &str = "waylay";

/// Why a pack cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The pack is not what it should be.
    #[error("{0}")]
    Refused(String),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> PackError {
    move |source| PackError::File { path: path.to_owned(), source }
}

/// One file of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name inside.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of what is in it.
    pub sha256: String,
}

/// What a pack says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Waylay.
    pub waylay: String,
    /// Operating system and processor that it runs on.
    pub system: String,
    /// Every file but this, by name.
    pub files: Vec<Entry>,
}

/// The operating system and processor of this command.
pub fn this_system() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

/// What goes into a pack: names inside, and where each comes from.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Files.
    pub files: Vec<(String, PathBuf)>,
    /// Texts.
    pub texts: Vec<(String, String)>,
}

/// Writes a pack; returns its manifest and its own digest.
///
/// # Errors
/// When a file cannot be read or written.
pub fn pack(contents: &Contents, waylay: &str, to: &Path) -> Result<(Manifest, String), PackError> {
    let half = to.with_extension(format!("{EXTENSION}.part"));
    let file = File::create(&half).map_err(at(&half))?;
    let made = write(contents, waylay, file);
    let placed = made.and_then(|manifest| {
        fs::rename(&half, to).map_err(at(to))?;
        Ok((manifest, digest_of(to).map_err(at(to))?))
    });
    let _ = fs::remove_file(&half);
    placed
}

fn write(contents: &Contents, waylay: &str, to: impl Write + Seek) -> Result<Manifest, PackError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(1))
        .last_modified_time(DateTime::default())
        .large_file(true);
    let zip_failed =
        |error: zip::result::ZipError| PackError::Refused(format!("cannot write the pack: {error}"));
    let own = |error: io::Error| PackError::Refused(format!("cannot write the pack: {error}"));
    let mut zip = ZipWriter::new(to);
    let mut files = Vec::new();
    let mut all: Vec<(&str, Option<&Path>, &str)> =
        contents.files.iter().map(|(name, path)| (&**name, Some(&**path), "")).collect();
    all.extend(contents.texts.iter().map(|(name, text)| (&**name, None, &**text)));
    all.sort_by_key(|(name, ..)| *name);
    for (name, path, text) in all {
        let bytes = match path {
            Some(path) => fs::read(path).map_err(at(path))?,
            None => text.as_bytes().to_vec(),
        };
        let executable = name.starts_with("bin/") || name.starts_with("lib/");
        let mode = if executable { 0o755 } else { 0o644 };
        zip.start_file(name, options.unix_permissions(mode)).map_err(zip_failed)?;
        zip.write_all(&bytes).map_err(own)?;
        files.push(Entry { path: name.to_owned(), bytes: bytes.len() as u64, sha256: digest(&bytes) });
    }
    let manifest = Manifest { format: FORMAT, waylay: waylay.to_owned(), system: this_system(), files };
    zip.start_file(MANIFEST, options.unix_permissions(0o644)).map_err(zip_failed)?;
    let text = serde_json::to_string_pretty(&manifest).expect("plain data") + "\n";
    zip.write_all(text.as_bytes()).map_err(own)?;
    zip.finish().map_err(zip_failed)?;
    Ok(manifest)
}

/// Whether a file is meant to be a pack.
pub fn is_pack(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION) && path.is_file()
}

/// A pack that is open.
pub struct Pack {
    archive: ZipArchive<File>,
    path: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its own digest.
    pub digest: String,
}

impl Pack {
    /// Opens a pack and reads what it says of itself.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or was made by a newer version.
    pub fn open(path: &Path) -> Result<Pack, PackError> {
        let damaged = |why: &dyn std::fmt::Display| {
            PackError::Refused(format!("{} is no pack, or is damaged ({why}): pack it again", path.display()))
        };
        let file = File::open(path).map_err(at(path))?;
        let mut archive = ZipArchive::new(file).map_err(|error| damaged(&error))?;
        let mut text = String::new();
        archive
            .by_name(MANIFEST)
            .map_err(|error| damaged(&error))?
            .read_to_string(&mut text)
            .map_err(|error| damaged(&error))?;
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            waylay: String,
        }
        let version: Version = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
        if version.format > FORMAT {
            return Err(PackError::Refused(format!(
                "{} was made by a newer version of Waylay ({}): run it with that",
                path.display(),
                version.waylay
            )));
        }
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
        let digest = digest_of(path).map_err(at(path))?;
        Ok(Pack { archive, path: path.to_owned(), manifest, digest })
    }

    /// Why this command cannot run it, if it cannot.
    pub fn unfit(&self, waylay: &str) -> Option<String> {
        let (path, made) = (self.path.display(), &self.manifest);
        if made.system != this_system() {
            return Some(format!("{path} is for {}, and this is {}", made.system, this_system()));
        }
        (made.waylay != waylay).then(|| {
            format!(
                "{path} was made by Waylay {}, and this is {waylay}: unpack it and use its own {COMMAND}",
                made.waylay
            )
        })
    }

    /// Unpacks it below a folder, once; every file is compared with the manifest. Returns where it is.
    ///
    /// # Errors
    /// When it is damaged, or files cannot be written.
    pub fn unpack(&mut self, below: &Path) -> Result<PathBuf, PackError> {
        let place = below.join(format!("pack-{}", &self.digest[..16]));
        if place.join(MANIFEST).is_file() {
            return Ok(place);
        }
        let half = below.join(format!("pack-{}.{}", &self.digest[..16], std::process::id()));
        let _ = fs::remove_dir_all(&half);
        let made = self.extract(&half).and_then(|()| match fs::rename(&half, &place) {
            // Another process was faster.
            Err(_) if place.join(MANIFEST).is_file() => Ok(()),
            placed => placed.map_err(at(&place)),
        });
        let _ = fs::remove_dir_all(&half);
        made.map(|()| place)
    }

    fn extract(&mut self, into: &Path) -> Result<(), PackError> {
        let path = self.path.clone();
        let damaged = move |why: &dyn std::fmt::Display| {
            PackError::Refused(format!("{} is damaged ({why}): pack it again", path.display()))
        };
        for entry in &self.manifest.files {
            let inside = Path::new(&entry.path);
            if !inside.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(damaged(&format!("{} leads out of it", entry.path)));
            }
            let mut file = self.archive.by_name(&entry.path).map_err(|error| damaged(&error))?;
            let mode = file.unix_mode();
            let mut bytes = Vec::new();
            // No more than it says: a few bytes may be said to be a great many.
            Read::take(&mut file, entry.bytes.saturating_add(1))
                .read_to_end(&mut bytes)
                .map_err(|error| damaged(&error))?;
            if digest(&bytes) != entry.sha256 {
                return Err(damaged(&format!("{} is not what it was", entry.path)));
            }
            let target = into.join(inside);
            let folder = target.parent().unwrap_or(into);
            fs::create_dir_all(folder).map_err(at(folder))?;
            fs::write(&target, &bytes).map_err(at(&target))?;
            if mode.is_some_and(|mode| mode & 0o111 != 0) {
                crate::sys::make_executable(&target).map_err(at(&target))?;
            }
        }
        let file = into.join(MANIFEST);
        let text = serde_json::to_string_pretty(&self.manifest).expect("plain data");
        fs::write(&file, text).map_err(at(&file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(folder: &Path) -> Contents {
        fs::write(folder.join("b.so"), vec![7; 100_000]).unwrap();
        Contents {
            files: vec![("lib/waylay/b.so".into(), folder.join("b.so"))],
            texts: vec![(CONFIG.into(), "seed = 1\n".into())],
        }
    }

    #[test]
    fn equal_inputs_give_equal_bytes_and_come_out_as_they_went_in() {
        let folder = tempfile::tempdir().unwrap();
        let contents = contents(folder.path());
        let (one, two) = (folder.path().join("one.waylay"), folder.path().join("two.waylay"));
        let (_, digest) = pack(&contents, "0.1.0", &one).unwrap();
        let mut turned = contents.clone();
        turned.files.reverse();
        assert_eq!(pack(&turned, "0.1.0", &two).unwrap().1, digest);
        assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
        let mut pack = Pack::open(&one).unwrap();
        assert_eq!(pack.unfit("0.1.0"), None);
        assert!(pack.unfit("0.2.0").unwrap().contains("0.1.0"));
        let place = pack.unpack(folder.path()).unwrap();
        assert_eq!(fs::read(place.join("lib/waylay/b.so")).unwrap(), vec![7; 100_000]);
        assert_eq!(pack.unpack(folder.path()).unwrap(), place);
    }

    #[test]
    fn what_is_damaged_or_newer_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one.waylay");
        pack(&contents(folder.path()), "0.1.0", &file).unwrap();
        let whole = fs::read(&file).unwrap();
        // Cut anywhere, or with any byte of the content changed, it is refused before anything is used.
        for cut in [0, 10, whole.len() / 2, whole.len() - 1] {
            fs::write(&file, &whole[..cut]).unwrap();
            assert!(matches!(Pack::open(&file), Err(PackError::Refused(_))), "cut at {cut}");
        }
        let mut refused = 0;
        for place in (0..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[place] ^= 0x55;
            fs::write(&file, &changed).unwrap();
            match Pack::open(&file).and_then(|mut pack| pack.unpack(&folder.path().join(place.to_string()))) {
                Err(_) => refused += 1,
                // Times and the like mean nothing.
                Ok(place) => assert_eq!(fs::read(place.join("lib/waylay/b.so")).unwrap(), vec![7; 100_000]),
            }
        }
        assert!(refused > whole.len() / 7 / 2, "{refused} of {}", whole.len() / 7);

        let newer =
            Manifest { format: FORMAT + 1, waylay: "9.0.0".into(), system: this_system(), files: Vec::new() };
        let mut zip = ZipWriter::new(File::create(&file).unwrap());
        zip.start_file(MANIFEST, SimpleFileOptions::default()).unwrap();
        zip.write_all(serde_json::to_string(&newer).unwrap().as_bytes()).unwrap();
        zip.finish().unwrap();
        let Err(PackError::Refused(text)) = Pack::open(&file) else { panic!("opened") };
        assert!(text.contains("newer version of Waylay (9.0.0)"), "{text}");
    }
}
