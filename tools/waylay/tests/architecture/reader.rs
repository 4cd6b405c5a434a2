//! Reads what this needs of Rust from tokens: attributes, paths, and the trees of `use`; skips whole items.

use super::tokens::Token;
use std::path::Path;

/// What an attribute says about where an item is.
pub(crate) struct Attribute {
    /// It belongs to tests.
    pub(crate) is_test: bool,
    /// The file of a module.
    pub(crate) path: Option<String>,
}

/// The tokens of one file, and how far they are read.
pub(crate) struct Reader<'a> {
    pub(crate) tokens: &'a [Token],
    pub(crate) at: usize,
    pub(crate) file: &'a Path,
}

impl<'a> Reader<'a> {
    pub(crate) fn word(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.at + ahead).map(|token| token.text.as_str())
    }

    pub(crate) fn before(&self) -> Option<&'a str> {
        self.at.checked_sub(1).map(|at| self.tokens[at].text.as_str())
    }

    pub(crate) fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    /// `#[…]`, and whether it belongs to tests.
    pub(crate) fn attribute(&mut self) -> Attribute {
        let begin = self.at;
        self.at += 1 + usize::from(self.word(1) == Some("!"));
        self.skip_group();
        let words: Vec<&str> = self.tokens[begin..self.at].iter().map(|token| token.text.as_str()).collect();
        let tests = words.contains(&"test") && !words.contains(&"not") && !words.contains(&"cfg_attr");
        let path = words.iter().position(|word| *word == "path").filter(|at| words.get(at + 1) == Some(&"="));
        Attribute { is_test: tests, path: path.map(|at| words[at + 2].trim_matches('"').to_string()) }
    }

    /// Skips what stands between the bracket here and the one that closes it.
    fn skip_group(&mut self) {
        let mut open = 0;
        while let Some(word) = self.word(0) {
            open += i32::from(matches!(word, "(" | "[" | "{")) - i32::from(matches!(word, ")" | "]" | "}"));
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    /// Skips an item, or a field or an arm: to the sign that ends it.
    pub(crate) fn skip_item(&mut self) {
        const ITEMS: [&str; 12] = [
            "fn", "mod", "impl", "use", "const", "static", "struct", "enum", "trait", "type", "unsafe",
            "extern",
        ];
        let mut is_item = false;
        while let Some(word) = self.word(0) {
            is_item |= ITEMS.contains(&word);
            match word {
                "{" => return self.skip_group(),
                "(" | "[" => self.skip_group(),
                ";" => {
                    self.at += 1;
                    return;
                }
                "," if !is_item => {
                    self.at += 1;
                    return;
                }
                "}" => return,
                _ => self.at += 1,
            }
        }
    }

    pub(crate) fn skip_path(&mut self) {
        while self.word(1).is_some_and(|word| word != ")") {
            self.at += 1;
        }
    }

    /// Names that are joined by `::`.
    pub(crate) fn path(&mut self) -> Vec<String> {
        let mut path = vec![self.word(0).unwrap_or_default().to_string()];
        self.at += 1;
        let is_name = |word: &str| word.starts_with(|first: char| first == '_' || first.is_alphabetic());
        while self.word(0) == Some("::") && self.word(1).is_some_and(is_name) {
            path.push(self.word(1).unwrap_or_default().to_string());
            self.at += 2;
        }
        path
    }

    /// Each path of a `use`, with the name that it gets here (`*` for everything) and its line.
    pub(crate) fn use_tree(&mut self, before: Vec<String>) -> Vec<(Vec<String>, String, usize)> {
        let line = self.line();
        if self.word(0) == Some("::") {
            self.at += 1;
        }
        let mut path = before;
        while self.word(0).is_some_and(|word| !matches!(word, "{" | "*" | "," | "}" | ";" | "as")) {
            path.push(self.word(0).unwrap_or_default().to_string());
            self.at += 1 + usize::from(self.word(1) == Some("::"));
        }
        match self.word(0) {
            Some("{") => {
                let mut found = Vec::new();
                while !matches!(self.word(0), Some("}") | None) {
                    self.at += 1;
                    if self.word(0) != Some("}") {
                        found.extend(self.use_tree(path.clone()));
                    }
                }
                self.at += 1;
                found
            }
            Some("*") => {
                self.at += 1;
                vec![(path, "*".to_string(), line)]
            }
            word => {
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let mut alias = path.last().cloned().unwrap_or_default();
                if word == Some("as") {
                    alias = self.word(1).unwrap_or_default().to_string();
                    self.at += 2;
                }
                vec![(path, alias, line)]
            }
        }
    }
}
