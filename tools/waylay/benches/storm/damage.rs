//! What happens to files of a campaign: cut off, overwritten in part, deleted.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::dice::Dice;
use super::scene::Scene;

/// Does something to one file.
pub(crate) type Harm = fn(&Path, &mut Dice) -> bool;

/// Cuts it off somewhere.
pub(crate) fn cut(path: &Path, dice: &mut Dice) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    file.set_len(dice.below(length as usize) as u64).is_ok()
}

/// Overwrites some bytes here and there.
pub(crate) fn flip(path: &Path, dice: &mut Dice) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    let length = file.metadata().map_or(0, |metadata| metadata.len()) as usize;
    (0..1 + dice.below(40)).all(|_| {
        let bytes = dice.below(usize::MAX).to_le_bytes();
        file.write_all_at(&bytes[..1 + dice.below(8)], dice.below(length) as u64).is_ok()
    })
}

pub(crate) fn remove(path: &Path, _: &mut Dice) -> bool {
    fs::remove_file(path).is_ok()
}

fn note(scene: &mut Scene, made: bool) -> bool {
    scene.done.lossy |= made;
    made
}

fn of_campaign(scene: &mut Scene, dice: &mut Dice, file: &str, harm: Harm) -> bool {
    let Some(folder) = scene.newest() else { return false };
    let made = harm(&folder.join(file), dice);
    note(scene, made)
}

pub(crate) fn truncate(scene: &mut Scene, dice: &mut Dice, file: &str) -> bool {
    of_campaign(scene, dice, file, cut)
}

pub(crate) fn corrupt(scene: &mut Scene, dice: &mut Dice, file: &str) -> bool {
    of_campaign(scene, dice, file, flip)
}

/// Deletes a file or folder of the newest campaign.
pub(crate) fn delete(scene: &mut Scene, name: &str) -> bool {
    let Some(folder) = scene.newest() else { return false };
    let path = if name.is_empty() { folder } else { folder.join(name) };
    let made = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.is_ok();
    note(scene, made)
}

/// Deletes the folder of all campaigns.
pub(crate) fn delete_out(scene: &mut Scene) -> bool {
    let made = fs::remove_dir_all(scene.folder.join("out")).is_ok();
    note(scene, made)
}

/// Does something to a file of one failure.
pub(crate) fn of_a_failure(scene: &mut Scene, dice: &mut Dice, file: &str, harm: Harm) -> bool {
    let folders = scene.failures();
    if folders.is_empty() {
        return false;
    }
    let path = dice.one(&folders).join(file);
    let made = harm(&path, dice);
    note(scene, made)
}

pub(crate) fn delete_a_failure(scene: &mut Scene, dice: &mut Dice) -> bool {
    let folders = scene.failures();
    let made = !folders.is_empty() && fs::remove_dir_all(dice.one(&folders)).is_ok();
    note(scene, made)
}

/// Does something to a file of the history.
pub(crate) fn history(scene: &mut Scene, dice: &mut Dice, file: &str, harm: Harm) -> bool {
    let path = scene.folder.join("out").join(file);
    let made = harm(&path, dice);
    note(scene, made)
}
