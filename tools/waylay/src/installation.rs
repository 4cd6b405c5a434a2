//! Where the parts of this copy of Waylay are: beside the command, under its prefix, or inside the command itself.
//!
//! A released command carries its libraries, because `cargo install` copies nothing else. They are used only where no
//! files are found, from a folder of the user's cache that is named after their content.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use waylay_driver::catalog::Installation;

use crate::output::Failed;

/// File name, digest, length and deflated content of a library.
type Carried = (&'static str, u64, usize, &'static [u8]);

/// The libraries of this build; none in builds that are not optimised.
static CARRIED: &[Carried] = waylay_embed::libraries!(
    "waylay_control",
    "waylay_melting_pot",
    "waylay_faults",
    "waylay_faults_c",
    "waylay_faults_cpp",
    "waylay_schedules",
    "waylay_schedules_c",
    "waylay_schedules_cpp",
    "waylay_zoo",
    "waylay_zoo_c",
    "waylay_zoo_cpp",
    "waylay_libraries",
    "waylay_libraries_cpp",
    "waylay_timed",
    "waylay_together"
);

/// This copy of Waylay. What it lacks is told where it is needed, not here.
pub(crate) fn installation() -> Result<Installation, Failed> {
    let mut installation = Installation::of_this_process()
        .map_err(|error| Failed::Own(format!("cannot find out where this command is installed: {error}")))?;
    if installation.control_library().is_none()
        && !CARRIED.is_empty()
        && let Some(cache) = waylay_control_protocol::cache_folder()
    {
        let folder = unpacked(&cache, CARRIED).map_err(|error| {
            Failed::Own(format!("cannot unpack this command's libraries into {}: {error}", cache.display()))
        })?;
        installation.add_folder(folder);
    }
    if let Some(library) = installation.misplaced_control_library()
        && let Some(cache) = waylay_control_protocol::cache_folder()
    {
        let folder = copied(&cache, &library).map_err(|error| {
            let (library, cache) = (library.display(), cache.display());
            Failed::Own(format!(
                "{library} has a blank or a colon in its path, which the system's loader divides there, and cannot be \
                 copied to {cache}: {error}"
            ))
        })?;
        installation.prefer_folder(folder);
    }
    Ok(installation)
}

/// A folder with a copy of that file, which is made again when the file is another one.
fn copied(cache: &Path, file: &Path) -> io::Result<PathBuf> {
    let name = file.file_name().unwrap_or_default();
    let found = fs::metadata(file)?;
    let changed = found.modified()?.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let folder = cache.join(format!("copy-{:x}-{changed:x}", found.len()));
    if fs::metadata(folder.join(name)).is_ok_and(|copy| copy.len() == found.len()) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    let half = folder.join(format!("{}.part", std::process::id()));
    fs::copy(file, &half)?;
    fs::rename(&half, folder.join(name))?;
    Ok(folder)
}

/// The folder with these files, made if it is not there yet. Two commands may do so at the same time: a folder appears under
/// its name with all it holds, and a whole one is never taken away.
fn unpacked(cache: &Path, files: &[Carried]) -> io::Result<PathBuf> {
    let together = files.iter().fold(0u64, |sum, (_, digest, ..)| sum.rotate_left(7) ^ digest);
    let folder = cache.join(format!("lib-{together:016x}"));
    if is_whole(&folder, files) {
        return Ok(folder);
    }
    let half = folder.with_extension(std::process::id().to_string());
    fs::create_dir_all(&half)?;
    let made = files
        .iter()
        .try_for_each(|(name, _, _, content)| fs::write(half.join(name), inflated(content)?))
        .and_then(|()| fs::rename(&half, &folder))
        .or_else(|error| if is_whole(&folder, files) { Ok(()) } else { Err(error) })
        .or_else(|_| replace_damaged(&half, &folder));
    let _ = fs::remove_dir_all(&half);
    made.map(|()| folder)
}

fn is_whole(folder: &Path, files: &[Carried]) -> bool {
    let is_there = |(name, _, length, _): &Carried| {
        fs::metadata(folder.join(name)).is_ok_and(|found| found.len() == *length as u64)
    };
    files.iter().all(is_there)
}

fn inflated(content: &[u8]) -> io::Result<Vec<u8>> {
    miniz_oxide::inflate::decompress_to_vec(content).map_err(|error| io::Error::other(error.to_string()))
}

fn replace_damaged(half: &Path, folder: &Path) -> io::Result<()> {
    let damaged = half.with_extension(format!("{}-damaged", std::process::id()));
    fs::rename(folder, &damaged)?;
    let made = fs::rename(half, folder);
    let _ = fs::remove_dir_all(&damaged);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(name: &'static str, digest: u64, content: &[u8]) -> Carried {
        let deflated = miniz_oxide::deflate::compress_to_vec(content, 6);
        (name, digest, content.len(), deflated.leak())
    }

    #[test]
    fn what_a_command_carries_is_unpacked_once_and_mended_when_damaged() {
        let cache = tempfile::tempdir().unwrap();
        let files = [carried("liba.so", 1, b"first"), carried("libb.so", 2, b"second")];
        let files = &files;
        let folder = unpacked(cache.path(), files).unwrap();
        assert_eq!(fs::read(folder.join("libb.so")).unwrap(), b"second");
        let first = fs::metadata(folder.join("liba.so")).unwrap().modified().unwrap();

        assert_eq!(unpacked(cache.path(), files).unwrap(), folder);
        assert_eq!(fs::metadata(folder.join("liba.so")).unwrap().modified().unwrap(), first);

        fs::write(folder.join("libb.so"), "cut").unwrap();
        assert_eq!(unpacked(cache.path(), files).unwrap(), folder);
        assert_eq!(fs::read(folder.join("libb.so")).unwrap(), b"second");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1, "nothing half-made is left");
    }

    #[test]
    fn a_copy_is_made_once_and_again_of_another_file() {
        let cache = tempfile::tempdir().unwrap();
        let file = cache.path().join("a b").with_extension("so");
        fs::write(&file, "first").unwrap();
        let one = copied(cache.path(), &file).unwrap();
        assert_eq!(copied(cache.path(), &file).unwrap(), one);
        assert_eq!(fs::read(one.join("a b.so")).unwrap(), b"first");
        fs::write(&file, "another").unwrap();
        assert_ne!(copied(cache.path(), &file).unwrap(), one);
        assert_eq!(fs::read_dir(&one).unwrap().count(), 1, "nothing half-made is left");
    }

    #[test]
    fn other_content_has_another_folder() {
        let cache = tempfile::tempdir().unwrap();
        let one = unpacked(cache.path(), &[carried("liba.so", 1, b"first")]).unwrap();
        let other = unpacked(cache.path(), &[carried("liba.so", 3, b"third")]).unwrap();
        assert_ne!(one, other);
        assert_eq!(fs::read(one.join("liba.so")).unwrap(), b"first");
    }
}
