//! A failure as one zip that can be sent to somebody: unpacked anywhere, `waylay replay` understands it.
//!
//! Paths inside are made here, from one folder's name and the names of plain files: nothing that was written into a
//! failure's folder can name a place outside of it, and what a link points to is not packed.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::FailureFolder;

/// Larger files are left out, and the note says so: a dump of a whole heap is not what one sends around.
const LARGEST: u64 = 1 << 30;
const NOTE: &str = "README.txt";
/// Of the campaign: what ran, and with which configuration.
const OF_CAMPAIGN: [&str; 2] = ["campaign.json", "config.toml"];

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The disk.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format.
    #[error(transparent)]
    Zip(#[from] zip::result::ZipError),
}

/// Packs a failure; returns the number of files. `extra` is added beside the evidence: names and contents.
pub fn bundle(
    found: &FailureFolder,
    extra: &[(&str, &[u8])],
    to: impl Write + Seek,
) -> Result<usize, BundleError> {
    // The same bytes for the same evidence: no times of this machine.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut zip = ZipWriter::new(to);
    let top = safe_name(&found.campaign.file_name().unwrap_or_default().to_string_lossy());
    let inside = format!("{top}/failures/{}", safe_name(&found.id));
    let mut packed = 0;
    let mut left_out = Vec::new();
    for name in OF_CAMPAIGN {
        let path = found.campaign.join(name);
        if is_plain(&path) {
            pack(&mut zip, &path, &format!("{top}/{name}"), options)?;
            packed += 1;
        }
    }
    for (path, name) in plain_files(&found.folder)? {
        if fs::symlink_metadata(&path)?.len() > LARGEST {
            left_out.push(name);
            continue;
        }
        let options = if name == "replay.sh" { options.unix_permissions(0o755) } else { options };
        pack(&mut zip, &path, &format!("{inside}/{name}"), options)?;
        packed += 1;
    }
    for (name, content) in extra {
        zip.start_file(format!("{inside}/{}", safe_name(name)), options)?;
        zip.write_all(content)?;
        packed += 1;
    }
    zip.start_file(format!("{top}/{NOTE}"), options)?;
    writeln!(
        zip,
        "A failure that Waylay found, with its evidence.\n\nRun it again, in this folder:\n\n    waylay replay failures/{}\n\n\
         What it runs, a plugin or a program, is not part of this file and has to be where config.toml or strict.json\n\
         says, built from the same source.",
        safe_name(&found.id)
    )?;
    for name in left_out {
        writeln!(zip, "\nLeft out because it is larger than {LARGEST} bytes: {name}")?;
    }
    zip.finish()?;
    Ok(packed)
}

fn pack(
    zip: &mut ZipWriter<impl Write + Seek>,
    path: &Path,
    name: &str,
    options: SimpleFileOptions,
) -> Result<(), BundleError> {
    zip.start_file(name, options)?;
    io::copy(&mut File::open(path)?, zip)?;
    Ok(())
}

fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// The plain files of a folder and of the folders in it, by name: links are neither followed nor packed.
fn plain_files(folder: &Path) -> io::Result<Vec<(std::path::PathBuf, String)>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = format!("{prefix}{}", safe_name(&entry.file_name().to_string_lossy()));
            if kind.is_dir() && prefix.is_empty() {
                folders.push((entry.path(), format!("{name}/")));
            } else if kind.is_file() && !name.ends_with(".part") {
                files.push((entry.path(), name));
            }
        }
    }
    files.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(files)
}

/// A name that every system takes for one part of a path, and for nothing else.
fn safe_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+@".contains(c);
    let name: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    if name.trim_matches('.').is_empty() { "_".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        let cases =
            [("..", "_"), ("", "_"), ("a/../b", "a_.._b"), ("C:\\x", "C__x"), ("dump.dmp", "dump.dmp")];
        for (name, safe) in cases {
            assert_eq!(safe_name(name), safe);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_bundle_has_the_evidence_and_nothing_that_a_link_points_to() {
        let out = tempfile::tempdir().unwrap();
        let campaign = out.path().join("20261116-052119");
        let folder = campaign.join("failures/assert-1");
        fs::create_dir_all(folder.join("again-2/deeper")).unwrap();
        fs::write(campaign.join("config.toml"), "seed = 1").unwrap();
        fs::write(folder.join("failure.json"), "{}").unwrap();
        fs::write(folder.join("replay.sh"), "#!/bin/sh").unwrap();
        fs::write(folder.join("again-2/stacks.txt"), "stacks").unwrap();
        fs::write(folder.join("again-2/deeper/x"), "no").unwrap();
        fs::write(folder.join("..\\..\\evil.exe"), "name").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("secret")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.join("secrets")).unwrap();
        let found = FailureFolder { campaign, folder, id: "assert-1".into() };
        let mut bytes = io::Cursor::new(Vec::new());
        bundle(&found, &[("report.html", b"<html>")], &mut bytes).unwrap();
        let mut zip = zip::ZipArchive::new(bytes).unwrap();
        let names: Vec<String> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
        let expected = [
            "20261116-052119/config.toml",
            "20261116-052119/failures/assert-1/.._.._evil.exe",
            "20261116-052119/failures/assert-1/again-2/stacks.txt",
            "20261116-052119/failures/assert-1/failure.json",
            "20261116-052119/failures/assert-1/replay.sh",
            "20261116-052119/failures/assert-1/report.html",
            "20261116-052119/README.txt",
        ];
        assert_eq!(names, expected);
        let script = zip.by_name("20261116-052119/failures/assert-1/replay.sh").unwrap();
        assert_eq!(script.unix_mode().map(|mode| mode & 0o777), Some(0o755));
        drop(script);
        for index in 0..zip.len() {
            assert!(zip.by_index(index).unwrap().enclosed_name().is_some());
        }
    }
}
