//! What is in a bucket into a folder. Everything that comes is compared with the digest that it was sent under; of a process of which
//! something does not come, nothing is left, so that merging names it as missing instead of taking it for whole.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path as FilePath, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error, ObjectStore};
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::manifest::{File, Manifest, NAME, hex};
use crate::trouble::{Trouble, at};

/// Objects that are on their way at the same time.
const AT_ONCE: usize = 8;
/// How often the list of a process is read again, when it replaced what the list named meanwhile.
const TRIES: usize = 5;
/// In a process's folder: the list that it was fetched from.
const FETCHED: &str = ".fetched.json";

/// Which files are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All.
    All,
    /// The records of campaigns, which say how things stand.
    Records,
}

impl Wanted {
    fn has(self, path: &str) -> bool {
        self == Wanted::All || path == "campaign.json" || path.ends_with("/campaign.json")
    }
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Processes that left something.
    pub processes: usize,
    /// Of which so many ended in order.
    pub ended: usize,
    /// Files of theirs that are now here and were not before.
    pub files: usize,
    /// What could not be had, in sentences.
    pub damaged: Vec<String>,
    /// All files that are here now.
    pub all: BTreeSet<File>,
}

/// Where files of a process go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each into a folder named as it is in the bucket: for merging.
    ByProcess,
    /// All into one: for a process that goes on where they ended.
    Together,
}

/// Fetches everything below an address.
///
/// # Errors
/// When the bucket refuses or is away, or files cannot be written.
pub async fn fetch(
    store: &dyn ObjectStore,
    address: &Address,
    folder: &FilePath,
    wanted: Wanted,
    layout: Layout,
) -> Result<Fetched, Trouble> {
    let said = |error| Trouble::of(&address.to_string(), error);
    let mut lists: Vec<Path> = store
        .list(Some(&address.prefix))
        .map_ok(|object| object.location)
        .try_filter(|object| std::future::ready(object.filename() == Some(NAME)))
        .try_collect()
        .await
        .map_err(said)?;
    lists.sort();
    let mut fetched = Fetched { processes: lists.len(), ..Fetched::default() };
    for list in lists {
        let inside: Vec<_> = list.prefix_match(&address.prefix).into_iter().flatten().collect();
        let depth = inside.len().saturating_sub(1);
        let own: PathBuf = inside.iter().take(depth).map(|part| part.as_ref().to_owned()).collect();
        let goal = match layout {
            Layout::ByProcess => folder.join(own),
            Layout::Together => folder.to_owned(),
        };
        process(store, address, &list, &goal, (wanted, layout), &mut fetched).await?;
    }
    Ok(fetched)
}

/// Why a file did not come.
enum Missed {
    /// It is not there: its process may have replaced it.
    Gone,
    /// It is not what it was.
    Damaged(String),
    /// Nothing will come.
    Trouble(Trouble),
}

async fn process(
    store: &dyn ObjectStore,
    address: &Address,
    list: &Path,
    goal: &FilePath,
    (wanted, layout): (Wanted, Layout),
    fetched: &mut Fetched,
) -> Result<(), Trouble> {
    let said = |error| Trouble::of(&address.to_string(), error);
    let mut problem = String::new();
    for _ in 0..TRIES {
        let text = match store.get(list).await {
            Ok(answer) => answer.bytes().await.map_err(said)?,
            // It was replaced by one that is made of it.
            Err(Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(said(error)),
        };
        let manifest = match Manifest::read(&text, list) {
            Ok(manifest) => manifest,
            Err(error) => {
                problem = error.to_string();
                break;
            }
        };
        let before = before(goal, layout);
        let files: Vec<&File> = manifest.files.iter().filter(|file| wanted.has(&file.path)).collect();
        let missing = files.iter().filter(|file| !before.contains(file) || !goal.join(&file.path).is_file());
        let place = list.prefix_match(&Path::default()).map(|parts| {
            let parts: Vec<_> = parts.collect();
            Path::from_iter(parts[..parts.len().saturating_sub(1)].iter().cloned())
        });
        let place = place.unwrap_or_default();
        let results: Vec<Result<(), Missed>> =
            stream::iter(missing.map(|file| one(store, &place, file, goal)))
                .buffer_unordered(AT_ONCE)
                .collect()
                .await;
        let came = results.iter().filter(|result| result.is_ok()).count();
        let mut gone = false;
        let mut damaged = None;
        for result in results {
            match result {
                Ok(()) => {}
                Err(Missed::Gone) => gone = true,
                Err(Missed::Damaged(why)) => damaged = Some(why),
                Err(Missed::Trouble(trouble)) => return Err(trouble),
            }
        }
        if let Some(why) = damaged {
            problem = why;
            continue;
        }
        if gone {
            problem = format!("{list} names what is not in the bucket");
            continue;
        }
        fetched.files += came;
        fetched.ended += usize::from(manifest.ended);
        fetched.all.extend(files.into_iter().cloned());
        return settle(goal, layout, &manifest, wanted);
    }
    if layout == Layout::ByProcess {
        let _ = fs::remove_dir_all(goal);
    }
    fetched.damaged.push(problem);
    Ok(())
}

/// What an earlier fetch brought.
fn before(goal: &FilePath, layout: Layout) -> BTreeSet<File> {
    let text = match layout {
        Layout::ByProcess => fs::read(goal.join(FETCHED)).ok(),
        Layout::Together => None,
    };
    let manifest: Option<Manifest> = text.and_then(|text| serde_json::from_slice(&text).ok());
    manifest.into_iter().flat_map(|manifest| manifest.files).collect()
}

/// Notes what is here, and takes away what the list does not name any more.
fn settle(goal: &FilePath, layout: Layout, manifest: &Manifest, wanted: Wanted) -> Result<(), Trouble> {
    if layout == Layout::Together {
        return Ok(());
    }
    let named: BTreeSet<&str> = manifest.files.iter().map(|file| &*file.path).collect();
    for old in before(goal, layout).iter().filter(|file| !named.contains(&*file.path)) {
        let _ = fs::remove_file(goal.join(&old.path));
    }
    let here = Manifest {
        files: manifest.files.iter().filter(|file| wanted.has(&file.path)).cloned().collect(),
        ..manifest.clone()
    };
    fs::create_dir_all(goal).map_err(at(goal))?;
    let file = goal.join(FETCHED);
    fs::write(&file, serde_json::to_vec(&here).expect("plain data")).map_err(at(&file))
}

/// Fetches one object into its place, in one step.
async fn one(store: &dyn ObjectStore, place: &Path, file: &File, goal: &FilePath) -> Result<(), Missed> {
    let object = place.child(&*file.sha256);
    let answer = match store.get(&object).await {
        Ok(answer) => answer,
        Err(Error::NotFound { .. }) => return Err(Missed::Gone),
        Err(error) => return Err(Missed::Trouble(Trouble::of(object.as_ref(), error))),
    };
    let target = goal.join(&file.path);
    let own = |error: std::io::Error| Missed::Trouble(at(&target)(error));
    fs::create_dir_all(target.parent().unwrap_or(goal)).map_err(own)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let half = target.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let own = |error: std::io::Error| Missed::Trouble(at(&target)(error));
    let mut written = fs::File::create(&half).map_err(own)?;
    let (mut digest, mut content) = (Sha256::new(), answer.into_stream());
    let mut bytes = 0;
    while let Some(next) = content.next().await {
        let next = next.map_err(|error| {
            let _ = fs::remove_file(&half);
            Missed::Trouble(Trouble::of(object.as_ref(), error))
        })?;
        bytes += next.len() as u64;
        digest.update(&next);
        let own = |error: std::io::Error| Missed::Trouble(at(&target)(error));
        written.write_all(&next).map_err(own)?;
    }
    drop(written);
    if bytes != file.bytes || hex(digest) != file.sha256 {
        let _ = fs::remove_file(&half);
        return Err(Missed::Damaged(format!(
            "{} of {place} is damaged in the bucket: it is not what was sent",
            file.path
        )));
    }
    let own = |error: std::io::Error| Missed::Trouble(at(&target)(error));
    fs::rename(&half, &target).map_err(own)
}
