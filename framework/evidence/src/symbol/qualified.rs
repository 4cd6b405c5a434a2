//! Whether code may access something atomic or volatile without a word of it at the access: C writes both like any other
//! variable, and only the declaration tells.

use std::collections::HashMap;

use gimli::{AttributeValue, DW_AT_type, DwTag, Reader, UnitOffset, UnitRef, constants};

/// A type, and the one that it is made from; nothing: none, or one that is described elsewhere.
type Types<O> = HashMap<UnitOffset<O>, (DwTag, Option<UnitOffset<O>>)>;

/// Whether a unit of a program has a variable, a member or a pointer to something that is declared that way. Headers declare
/// types that nobody uses. What cannot be read may be anything.
pub(super) fn in_unit<R: Reader>(unit: UnitRef<'_, R>) -> bool {
    let mut types: Types<R::Offset> = HashMap::new();
    let mut used = Vec::new();
    let mut entries = unit.entries();
    loop {
        let entry = match entries.next_dfs() {
            Err(_) => return true,
            Ok(None) => break,
            Ok(Some(entry)) => entry,
        };
        let target = match entry.attr_value(DW_AT_type) {
            Some(AttributeValue::UnitRef(offset)) => Some(offset),
            None => None,
            // In another unit.
            Some(_) => return true,
        };
        match entry.tag() {
            constants::DW_TAG_variable
            | constants::DW_TAG_member
            | constants::DW_TAG_formal_parameter
            | constants::DW_TAG_pointer_type
            | constants::DW_TAG_reference_type
            | constants::DW_TAG_array_type => used.extend(target),
            tag => {
                types.insert(entry.offset(), (tag, target));
            }
        }
    }
    used.into_iter().any(|offset| is_qualified(&types, offset))
}

fn is_qualified<O: std::hash::Hash + Eq + Copy>(types: &Types<O>, mut at: UnitOffset<O>) -> bool {
    while let Some(&(tag, target)) = types.get(&at) {
        let next = match (tag, target) {
            (constants::DW_TAG_atomic_type, _) => return true,
            // C++ has functions of classes for objects that are volatile, `std::atomic` among them.
            (constants::DW_TAG_volatile_type, Some(next)) if is_class(types, next) => return false,
            (constants::DW_TAG_volatile_type, _) => return true,
            (constants::DW_TAG_typedef | constants::DW_TAG_const_type, next) => next,
            _ => return false,
        };
        let Some(next) = next else { return false };
        at = next;
    }
    false
}

fn is_class<O: std::hash::Hash + Eq + Copy>(types: &Types<O>, mut at: UnitOffset<O>) -> bool {
    loop {
        match types.get(&at) {
            Some((
                constants::DW_TAG_structure_type
                | constants::DW_TAG_class_type
                | constants::DW_TAG_union_type,
                _,
            )) => return true,
            Some((constants::DW_TAG_typedef | constants::DW_TAG_const_type, Some(next))) => at = *next,
            _ => return false,
        }
    }
}

/// The files that a unit was compiled from, but for headers of the system.
pub(super) fn files<R: Reader>(unit: UnitRef<'_, R>) -> Vec<String> {
    let text = |value: AttributeValue<R>| {
        let raw = unit.attr_string(value).ok()?;
        raw.to_string_lossy().ok().map(|text| text.into_owned())
    };
    let Some(program) = &unit.line_program else { return Vec::new() };
    let header = program.header();
    let home = unit.comp_dir.as_ref().and_then(|folder| folder.to_string_lossy().ok()).unwrap_or_default();
    let mut files = Vec::new();
    for entry in header.file_names() {
        let Some(name) = text(entry.path_name()) else { continue };
        let folder = entry.directory(header).and_then(text).unwrap_or_default();
        let path = std::path::Path::new(&*home).join(folder).join(name).to_string_lossy().into_owned();
        if !["/usr/", "/lib/", "/rustc/"].iter().any(|system| path.starts_with(system))
            && !files.contains(&path)
        {
            files.push(path);
        }
    }
    files
}
