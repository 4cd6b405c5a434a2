//! A folder into a bucket, round after round: first what is new, then the list that names it, then away with what no list names any
//! more. Whenever it is cut off, the list in the bucket names objects that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, PutPayload, WriteMultipart};
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::manifest::{FORMAT, File, Manifest, NAME, hex};
use crate::snapshot::{self, SMALL, Seen};
use crate::trouble::{Trouble, at};

/// Objects, and parts of one, that are on their way at the same time.
const AT_ONCE: usize = 8;

/// One process's place in a bucket, and what it has there.
pub struct Sender<'s> {
    store: &'s dyn ObjectStore,
    address: String,
    place: Path,
    folder: PathBuf,
    /// What each file was when it was sent.
    known: BTreeMap<String, (Seen, File)>,
    /// Digests of the objects that are there.
    there: BTreeSet<String>,
    /// The list that is there.
    listed: Option<Manifest>,
    /// Files that somebody else's list names: they were fetched, and are not sent again while they are the same.
    foreign: BTreeSet<File>,
}

/// A file that has to be sent; long ones are read again for that.
struct Fresh {
    seen: Seen,
    file: File,
    content: Option<Vec<u8>>,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Files that are in the list.
    pub files: usize,
    /// Objects that were sent.
    pub sent: usize,
    /// Files that changed while they were read; the next round has them.
    pub late: usize,
}

impl<'s> Sender<'s> {
    /// A place below an address for what stands in `folder`, without what is `foreign`.
    pub fn new(
        store: &'s dyn ObjectStore,
        address: &Address,
        process: &str,
        folder: PathBuf,
        foreign: BTreeSet<File>,
    ) -> Sender<'s> {
        Sender {
            store,
            address: address.to_string(),
            place: address.prefix.child(process),
            folder,
            known: BTreeMap::new(),
            there: BTreeSet::new(),
            listed: None,
            foreign,
        }
    }

    /// Sends what changed. `ended` when nothing will change any more.
    ///
    /// # Errors
    /// When the bucket refuses, or is away for longer than one is patient.
    pub async fn round(&mut self, ended: bool) -> Result<Round, Trouble> {
        let mut round = Round::default();
        let mut files = Vec::new();
        let mut fresh = Vec::new();
        for (path, seen) in snapshot::files(&self.folder) {
            let file = match self.known.get(&path).filter(|(known, _)| *known == seen) {
                Some((_, file)) => file.clone(),
                None => {
                    let (file, content) = match snapshot::read(&self.folder, &path, seen.bytes) {
                        Ok(read) => read,
                        // What is gone is gone on purpose: evidence that nobody keeps.
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                        Err(error) => return Err(at(&self.folder.join(&path))(error)),
                    };
                    if self.foreign.contains(&file) || self.there.contains(&file.sha256) {
                        self.known.insert(path, (seen, file.clone()));
                    } else {
                        fresh.push(Fresh { seen, file: file.clone(), content });
                    }
                    file
                }
            };
            if !self.foreign.contains(&file) {
                files.push(file);
            }
            // What was read is sent before more is read: a folder may be larger than the memory.
            if fresh.len() >= AT_ONCE * 4 {
                self.objects(std::mem::take(&mut fresh), &mut files, &mut round).await?;
            }
        }
        self.objects(fresh, &mut files, &mut round).await?;
        files.sort();
        round.files = files.len();
        let manifest = Manifest { format: FORMAT, ended: ended && round.late == 0, files };
        if self.listed.as_ref() != Some(&manifest) {
            let text = serde_json::to_vec(&manifest).expect("plain data");
            let said = |error| Trouble::of(&self.address, error);
            self.store.put(&self.place.child(NAME), PutPayload::from(text)).await.map_err(said)?;
            self.sweep(&manifest).await;
            self.listed = Some(manifest);
        }
        Ok(round)
    }

    async fn objects(
        &mut self,
        fresh: Vec<Fresh>,
        files: &mut Vec<File>,
        round: &mut Round,
    ) -> Result<(), Trouble> {
        let this: &Sender<'_> = self;
        let sent: Vec<(Seen, File, bool)> = stream::iter(fresh)
            .map(|Fresh { seen, file, content }| async move {
                let whole = match content {
                    Some(content) => this.small(&file, content).await.map(|()| true),
                    None => this.large(&file).await,
                };
                whole.map(|whole| (seen, file, whole))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        for (seen, file, whole) in sent {
            if whole {
                round.sent += 1;
                self.there.insert(file.sha256.clone());
                self.known.insert(file.path.clone(), (seen, file));
            } else {
                round.late += 1;
                files.retain(|other| *other != file);
            }
        }
        Ok(())
    }

    async fn small(&self, file: &File, content: Vec<u8>) -> Result<(), Trouble> {
        let said = |error| Trouble::of(&self.address, error);
        self.store
            .put(&self.place.child(&*file.sha256), PutPayload::from(content))
            .await
            .map(|_| ())
            .map_err(said)
    }

    /// Sends a long file in parts; false when it changed meanwhile, and then nothing of it is kept.
    async fn large(&self, file: &File) -> Result<bool, Trouble> {
        let said = |error| Trouble::of(&self.address, error);
        let path = self.folder.join(&file.path);
        let Ok(opened) = fs::File::open(&path) else { return Ok(false) };
        let mut content = opened.take(file.bytes);
        let object = self.place.child(&*file.sha256);
        let upload = self.store.put_multipart(&object).await.map_err(said)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, SMALL as usize);
        let (mut digest, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    digest.update(&buffer[..read]);
                    if let Err(error) = upload.wait_for_capacity(AT_ONCE).await {
                        let _ = upload.abort().await;
                        return Err(said(error));
                    }
                    upload.write(&buffer[..read]);
                }
                Err(error) => {
                    let _ = upload.abort().await;
                    return Err(at(&path)(error));
                }
            }
        }
        if hex(digest) != file.sha256 {
            upload.abort().await.map_err(said)?;
            return Ok(false);
        }
        upload.finish().await.map(|_| true).map_err(said)
    }

    /// Takes away what the list does not name any more. Nothing is lost when that fails: it is in the way of nobody.
    async fn sweep(&mut self, manifest: &Manifest) {
        let named: BTreeSet<&str> = manifest.files.iter().map(|file| &*file.sha256).collect();
        let gone: Vec<String> =
            self.there.iter().filter(|digest| !named.contains(&***digest)).cloned().collect();
        for digest in gone {
            if self.store.delete(&self.place.child(&*digest)).await.is_ok() {
                self.there.remove(&digest);
            }
        }
    }

    /// Takes away what other processes left beside this one: it was made from theirs.
    ///
    /// # Errors
    /// When the bucket refuses, or is away.
    pub async fn replace_others(&self, below: &Address) -> Result<(), Trouble> {
        let said = |error| Trouble::of(&self.address, error);
        let mut all: Vec<Path> = self
            .store
            .list(Some(&below.prefix))
            .map_ok(|object| object.location)
            .try_collect()
            .await
            .map_err(said)?;
        all.retain(|object| !object.prefix_matches(&self.place));
        // Lists first, so that none names what is gone.
        all.sort_by_key(|object| object.filename() != Some(NAME));
        for object in all {
            self.store.delete(&object).await.map_err(said)?;
        }
        Ok(())
    }
}
