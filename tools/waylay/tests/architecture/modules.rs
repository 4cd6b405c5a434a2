//! The modules of one crate as its sources declare them: what each defines, what it takes from elsewhere under a name, and
//! which paths into the crate stand in it. Tests are left out.
//!
//! This is not a compiler: it follows `mod`, `use`, and paths that begin with `crate`, `super` or `self`. Names that come
//! out of a macro are not seen.

use super::reader::Reader;
use super::tokens::tokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The names from the root of the crate down to a module; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// A path to something in the crate, where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Mention {
    pub(crate) target: Vec<String>,
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Functions, types, constants and macros that are defined here.
    items: BTreeSet<String>,
    /// What `use` makes known here, by its name here.
    imports: BTreeMap<String, Vec<String>>,
    /// Modules of which everything is known here.
    globs: Vec<Vec<String>>,
    /// Its child modules in the order of their declarations.
    pub(crate) children: Vec<String>,
    pub(crate) mentions: Vec<Mention>,
}

/// All modules of one crate.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    /// Reads the crate whose root is the file `root` (`lib.rs`, `main.rs`).
    pub(crate) fn read(root: &Path) -> Self {
        let mut read = Self::default();
        let folder = root.parent().expect("a folder").to_path_buf();
        read.add_file(root, &folder, Vec::new());
        read
    }

    /// A file whose child modules lie in `folder`.
    fn add_file(&mut self, file: &Path, folder: &Path, module: ModulePath) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens = tokens(&text);
        self.add(&mut Reader { tokens: &tokens, at: 0, file }, folder, &module);
    }

    fn add(&mut self, reader: &mut Reader<'_>, folder: &Path, module: &ModulePath) {
        self.modules.entry(module.clone()).or_default();
        let mut depth = 0;
        let mut path_attributes = Vec::new();
        while let Some(word) = reader.word(0) {
            match word {
                "#" if matches!(reader.word(1), Some("[" | "!")) => {
                    let inner = reader.word(1) == Some("!");
                    let attribute = reader.attribute();
                    path_attributes.extend(attribute.path);
                    if attribute.is_test && !inner {
                        reader.skip_item();
                        path_attributes.clear();
                    }
                    continue;
                }
                "{" => depth += 1,
                "}" if depth == 0 => {
                    reader.at += 1;
                    return;
                }
                "}" => depth -= 1,
                // Also within the braces of a macro that only says under which condition the modules exist.
                "mod" if depth == 0 || reader.word(2) == Some(";") => {
                    self.add_child(reader, folder, module, std::mem::take(&mut path_attributes));
                    continue;
                }
                "use" if reader.word(1) != Some("<") => {
                    reader.at += 1;
                    self.add_use(reader, module, depth == 0);
                    continue;
                }
                // `pub(in crate::x)` says who may see a thing, not what it needs.
                "in" if reader.before() == Some("(") => reader.skip_path(),
                "crate" | "super" | "self"
                    if reader.word(1) == Some("::") && reader.before() != Some("::") =>
                {
                    let (line, path) = (reader.line(), reader.path());
                    self.mention(module, path, reader.file, line);
                    continue;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" if depth == 0 => {
                    let skipped = usize::from(matches!(reader.word(1), Some("mut")));
                    let name = reader.word(1 + skipped).unwrap_or_default().to_string();
                    self.modules.get_mut(module).expect("added").items.insert(name);
                    path_attributes.clear();
                }
                "macro_rules" => {
                    // An exported macro is known at the root of the crate; others by a `use` that says where they are.
                    let name = reader.word(2).unwrap_or_default().to_string();
                    let target = [module.as_slice(), std::slice::from_ref(&name)].concat();
                    self.modules.get_mut(module).expect("added").items.insert(name.clone());
                    if !module.is_empty() {
                        self.modules
                            .get_mut(&Vec::new())
                            .expect("the root")
                            .imports
                            .entry(name)
                            .or_insert(target);
                    }
                }
                _ => {}
            }
            reader.at += 1;
        }
    }

    /// `mod name;` or `mod name { … }`.
    fn add_child(&mut self, reader: &mut Reader<'_>, folder: &Path, module: &ModulePath, paths: Vec<String>) {
        let name = reader.word(1).expect("a name").to_string();
        let child = [module.as_slice(), std::slice::from_ref(&name)].concat();
        let opens = reader.word(2) == Some("{");
        self.modules.get_mut(module).expect("added").children.push(name.clone());
        reader.at += 3;
        if opens {
            return self.add(reader, &folder.join(&name), &child);
        }
        let beside = reader.file.parent().expect("a folder");
        for file in paths.iter().map(|path| beside.join(path)) {
            self.add_file(&file, file.parent().expect("a folder"), child.clone());
        }
        let (flat, nested) = (folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs"));
        if paths.is_empty() {
            let file = if flat.exists() { flat } else { nested };
            self.add_file(&file, &folder.join(&name), child);
        }
    }

    /// A `use`, after the word itself.
    fn add_use(&mut self, reader: &mut Reader<'_>, module: &ModulePath, is_of_module: bool) {
        for (path, alias, line) in reader.use_tree(Vec::new()) {
            // What begins with another name is another crate, or something that `mod` or `use` made known here.
            let begins = path.first().map(String::as_str);
            let is_own = matches!(begins, Some("crate" | "super" | "self"));
            if is_own {
                self.mention(module, path.clone(), reader.file, line);
            }
            let Some(target) = absolute(module, &path) else { continue };
            let here = self.modules.get_mut(module).expect("added");
            match alias.as_str() {
                // What a function imports is known nowhere else.
                _ if !is_of_module => {}
                "*" => here.globs.push(target),
                _ => drop(here.imports.insert(alias, target)),
            }
        }
        reader.at += 1;
    }

    fn mention(&mut self, module: &ModulePath, path: Vec<String>, file: &Path, line: usize) {
        if let Some(target) = absolute(module, &path) {
            let mention = Mention { target, file: file.to_path_buf(), line };
            self.modules.get_mut(module).expect("added").mentions.push(mention);
        }
    }

    /// The module that defines what `target` leads to, through whatever names it anew on the way.
    pub(crate) fn home(&self, target: &[String]) -> ModulePath {
        self.walk(target, 0).0
    }

    /// The module that `target` leads to, and whether it has all that was named.
    fn walk(&self, target: &[String], hops: usize) -> (ModulePath, bool) {
        let mut here = ModulePath::new();
        for (at, name) in target.iter().enumerate() {
            let below = [here.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&below) {
                here = below;
                continue;
            }
            let module = &self.modules[&here];
            if module.items.contains(name) || hops > 8 {
                return (here, true);
            }
            let onward = |to: &Vec<String>| self.walk(&[to.as_slice(), &target[at + 1..]].concat(), hops + 1);
            if let Some(import) = module.imports.get(name).filter(|import| *import != &below) {
                return onward(import);
            }
            let through = |glob: &Vec<String>| {
                let (found, is_whole) = self.walk(&[glob.as_slice(), &target[at..]].concat(), hops + 1);
                is_whole.then_some(found)
            };
            return match module.globs.iter().find_map(through) {
                Some(found) => (found, true),
                None => (here, false),
            };
        }
        (here, true)
    }
}

/// A path as it stands in `module`, from the root of the crate; of a path that begins with another name, what it would be if
/// that name is a child of the module.
fn absolute(module: &ModulePath, path: &[String]) -> Option<Vec<String>> {
    let mut from = module.clone();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => from.clear(),
            "super" => drop(from.pop()?),
            "self" => {}
            _ => break,
        }
        rest = after;
    }
    Some([from.as_slice(), rest].concat())
}
