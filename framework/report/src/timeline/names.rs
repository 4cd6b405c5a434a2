//! What the objects of a run are called, wherever they are spoken of: a variable by its own name, another lock by a
//! letter, anything else by a number.

use std::collections::{HashMap, HashSet};

/// Says which variable lies at an address, if one does.
pub type Variables<'a> = &'a mut dyn FnMut(u64) -> Option<String>;

/// The names that were given so far.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By address, and whether it is spoken of as a lock: memory is written before it becomes a lock.
    known: HashMap<(bool, u64), String>,
    taken: HashSet<String>,
    letters: usize,
    numbers: usize,
}

impl Names {
    /// The name of the lock at an address.
    pub fn lock(&mut self, address: u64, variables: Variables<'_>) -> String {
        self.name(true, address, variables)
    }

    /// The name of something else at an address.
    pub fn other(&mut self, address: u64, variables: Variables<'_>) -> String {
        self.name(false, address, variables)
    }

    fn name(&mut self, lock: bool, address: u64, variables: Variables<'_>) -> String {
        if let Some(name) = self.known.get(&(lock, address)) {
            return name.clone();
        }
        let name = self.known.get(&(!lock, address)).filter(|name| is_own(name)).cloned();
        let name = name.or_else(|| self.of_variable(variables(address)?)).unwrap_or_else(|| match lock {
            true => {
                self.letters += 1;
                letters(self.letters - 1)
            }
            false => {
                self.numbers += 1;
                format!("#{}", self.numbers)
            }
        });
        self.known.insert((lock, address), name.clone());
        name
    }

    /// The last part of a variable's name, or all of it where another has the same last part.
    fn of_variable(&mut self, whole: String) -> Option<String> {
        let short = last_part(&whole).to_owned();
        // What looks like a letter that we give would be taken for one.
        let name = [short, whole].into_iter().find(|name| is_own(name) && !self.taken.contains(name))?;
        self.taken.insert(name.clone());
        Some(name)
    }
}

/// Whether it is a variable's name and none that is given here.
fn is_own(name: &str) -> bool {
    let letters = name.len() <= 2 && name.chars().all(|c| c.is_ascii_uppercase());
    !letters && !name.starts_with('#')
}

/// `ACCOUNTS+16` of `bank::ACCOUNTS+16`; what stands in angle brackets is not looked at.
fn last_part(name: &str) -> &str {
    let mut depth = 0_i32;
    let mut start = 0;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth -= 1,
            ':' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    &name[start..]
}

/// A, B, … Z, AA, AB, …
fn letters(number: usize) -> String {
    let last = (b'A' + (number % 26) as u8) as char;
    if number < 26 { last.to_string() } else { format!("{}{last}", letters(number / 26 - 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(address: u64) -> Option<String> {
        match address {
            0x10 => Some("bank::accounts".into()),
            0x20 => Some("shop<a::b>::accounts+8".into()),
            0x30 => Some("shop::accounts".into()),
            0x40 => Some("X".into()),
            0x50 => Some("shop::TILL".into()),
            _ => None,
        }
    }

    #[test]
    fn a_variable_is_called_by_its_name_and_the_rest_in_order() {
        let mut names = Names::default();
        let mut lock = |address| names.lock(address, &mut variable);
        assert_eq!(
            [0x99, 0x10, 0x20, 0x30, 0x98, 0x99].map(&mut lock),
            ["A", "accounts", "accounts+8", "shop::accounts", "B", "A"]
        );
        assert_eq!(lock(0x50), "TILL");
        assert_eq!(lock(0x40), "C", "a variable that is called like a letter is not");
        assert_eq!([0x10, 0x99].map(|address| names.other(address, &mut variable)), ["accounts", "#1"]);
    }

    #[test]
    fn locks_have_names_however_many() {
        assert_eq!([0, 25, 26, 27, 702].map(letters), ["A", "Z", "AA", "AB", "AAA"]);
    }
}
