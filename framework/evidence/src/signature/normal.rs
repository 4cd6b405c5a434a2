//! Names and messages without what differs from run to run and build to build.

use std::borrow::Cow;

use crate::symbol::strip_clone;

/// A function name without hash, clone marks, ABI tags and the arguments of its generics.
///
/// `<T as Trait>::method` keeps its two types, because they are the name; what they are generic over goes.
#[must_use]
pub fn normal_name(function: &str) -> String {
    let name = strip_clone(strip_hash(function));
    let name = strip_bracketed(&name);
    let name = strip_generics(name.trim());
    let name = name.replace("{{closure}}", "{closure}").replace("{shim:vtable#0}", "{shim}");
    strip_counters(&name)
}

/// Takes off `::h0123456789abcdef`.
fn strip_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => path,
        _ => name,
    }
}

/// Takes off ` [clone .part.0]`, `[abi:cxx11]` and `[crate hash]`.
fn strip_bracketed(name: &str) -> Cow<'_, str> {
    if !name.contains('[') {
        return Cow::Borrowed(name);
    }
    let mut result = String::with_capacity(name.len());
    let mut depth = 0_usize;
    for letter in name.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => result.push(letter),
            _ => {}
        }
    }
    // A slice type, `[T]`, leaves nothing behind that could be confused with another name.
    Cow::Owned(result)
}

/// Takes off generic and template arguments, `foo<int>` and `foo::<u8>`, and C++ parameter lists.
fn strip_generics(name: &str) -> String {
    let mut result = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        if let Some(tail) = operator_prefix(rest) {
            result.push_str(&rest[..rest.len() - tail.len()]);
            let arguments = tail.trim_start();
            rest = if arguments.starts_with('<') { split_group(arguments, '<', '>').1 } else { tail };
            continue;
        }
        match letter {
            '<' if opens_qualified_path(&result) => {
                let (inside, tail) = split_group(rest, '<', '>');
                let (first, second) = split_as(inside);
                match second {
                    Some(second) => {
                        let (kind, interface) = (strip_generics(first), strip_generics(second));
                        result.push_str(&format!("<{kind} as {interface}>"));
                    }
                    // The newer mangling writes `<Type>::method` where the older writes `Type::method`.
                    None => result.push_str(&strip_generics(first)),
                }
                rest = tail;
            }
            '<' => {
                if result.ends_with("::") {
                    result.truncate(result.len() - 2);
                }
                rest = split_group(rest, '<', '>').1;
            }
            '(' if !rest.starts_with("(anonymous namespace)")
                && !result.is_empty()
                && !result.ends_with('<') =>
            {
                rest = split_group(rest, '(', ')').1;
            }
            letter => {
                result.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    result
}

/// The rest after a C++ operator whose name has brackets in it.
fn operator_prefix(text: &str) -> Option<&str> {
    const OPERATORS: [&str; 9] = ["<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "->", "()"];
    let rest = text.strip_prefix("operator")?;
    OPERATORS
        .iter()
        .find_map(|operator| rest.strip_prefix(operator))
        .or_else(|| rest.strip_prefix('<'))
        .or_else(|| rest.strip_prefix('>'))
}

/// Whether `<` here begins `<Type as Trait>` and not the arguments of the name before it.
fn opens_qualified_path(before: &str) -> bool {
    before.is_empty() || before.ends_with([' ', '<', '&', '*'])
}

/// Splits after a balanced group: what is inside, what follows. An arrow is no closing bracket.
fn split_group(text: &str, open: char, close: char) -> (&str, &str) {
    let mut depth = 0_usize;
    let mut previous = ' ';
    for (at, letter) in text.char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close && previous != '-' {
            depth -= 1;
            if depth == 0 {
                return (&text[open.len_utf8()..at], &text[at + close.len_utf8()..]);
            }
        }
        previous = letter;
    }
    (&text[open.len_utf8()..], "")
}

/// Splits `Type as Trait` at the top level.
fn split_as(text: &str) -> (&str, Option<&str>) {
    let mut depth = 0_i32;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ' ' if depth == 0 && text[at..].starts_with(" as ") => {
                return (&text[..at], Some(&text[at + 4..]));
            }
            _ => {}
        }
    }
    (text, None)
}

/// `{closure#3}` and `{lambda()#2}`: the counter changes when another closure is added before it.
fn strip_counters(name: &str) -> String {
    let mut result = String::with_capacity(name.len());
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '#' && letters.peek().is_some_and(char::is_ascii_digit) {
            while letters.next_if(char::is_ascii_digit).is_some() {}
        } else {
            result.push(letter);
        }
    }
    result
}

/// Longest message kept; the rest rarely tells failures apart.
const LONGEST_MESSAGE: usize = 200;

/// A message with placeholders for what changes from run to run: numbers `#`, hexadecimal `0x#`, UUIDs
/// `<uuid>`, quoted text `"…"`, and absolute paths reduced to their last part.
#[must_use]
pub fn normal_message(message: &str) -> String {
    let mut result = String::new();
    let mut rest = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut in_word = false;
    while let Some(letter) = rest.chars().next() {
        let taken = match letter {
            '"' | '`' | '\'' if !in_word => quoted(rest).map(|length| (length, "\"…\"")),
            _ if !in_word && uuid(rest) => Some((36, "<uuid>")),
            '0' if !in_word => hexadecimal(rest).map(|length| (length, "0x#")).or(number(rest)),
            '0'..='9' => number(rest),
            'a'..='f' if !in_word && !has_drive(rest) => bare_hexadecimal(rest).map(|length| (length, "0x#")),
            '/' | '\\' if !in_word => directories(rest).map(|length| (length, "")),
            'A'..='Z' | 'a'..='z' if !in_word && has_drive(rest) => {
                directories(&rest[2..]).map(|length| (length + 2, ""))
            }
            _ => None,
        };
        let length = match taken {
            Some((length, placeholder)) => {
                result.push_str(placeholder);
                length
            }
            None => {
                result.push(letter);
                letter.len_utf8()
            }
        };
        in_word = taken.is_none() && (letter.is_alphanumeric() || letter == '_');
        rest = &rest[length..];
    }
    match result.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => result[..end].to_owned(),
        None => result,
    }
}

fn number(text: &str) -> Option<(usize, &'static str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let fraction = text[digits..]
        .strip_prefix('.')
        .map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let length = if fraction > 0 { digits + 1 + fraction } else { digits };
    (digits > 0).then_some((length, "#"))
}

fn hexadecimal(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    (digits > 0).then_some(digits + 2)
}

/// A word of eight or more hexadecimal digits, at least one of them decimal, is a number, not English.
fn bare_hexadecimal(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    let ends = !text[digits..].starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    (digits >= 8 && ends && text[..digits].bytes().any(|byte| byte.is_ascii_digit())).then_some(digits)
}

fn uuid(text: &str) -> bool {
    let Some(candidate) = text.as_bytes().get(..36) else { return false };
    candidate.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Length of a quoted text; C's assert opens with a backtick and closes with an apostrophe.
fn quoted(text: &str) -> Option<usize> {
    let open = text.chars().next()?;
    let closes = |letter: char| letter == open || (open == '`' && letter == '\'');
    text.char_indices().skip(1).find(|(_, letter)| closes(*letter)).map(|(at, letter)| at + letter.len_utf8())
}

/// Length of the directories of an absolute path.
fn directories(text: &str) -> Option<usize> {
    let end = text
        .find(|letter: char| letter.is_whitespace() || matches!(letter, ':' | ',' | ')' | '"'))
        .unwrap_or(text.len());
    let last = text[..end].rfind(['/', '\\'])?;
    (last > 0).then_some(last + 1)
}

/// Whether an absolute path of Windows begins here: `C:\\` or `C:/`.
fn has_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_a_rebuild_changes() {
        let table = [
            ("orders::take::h0123456789abcdef", "orders::take"),
            ("orders::Book<alloc::string::String>::take", "orders::Book::take"),
            ("orders::parse::<u32>", "orders::parse"),
            (
                "<orders::Book<T> as core::iter::Iterator>::next",
                "<orders::Book as core::iter::Iterator>::next",
            ),
            ("orders::run::{{closure}}", "orders::run::{closure}"),
            ("orders::run::{closure#3}", "orders::run::{closure}"),
            ("orders::apply<fn(u8) -> u8>", "orders::apply"),
            ("std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back"),
            ("shop::(anonymous namespace)::take(int, char const*)", "shop::(anonymous namespace)::take"),
            ("shop::operator<< <char>", "shop::operator<<"),
            ("shop::operator()(int)", "shop::operator()"),
            ("shop::name[abi:cxx11]", "shop::name"),
            ("take [clone .part.0]", "take"),
            ("take.cold", "take"),
            ("shop::run()::{lambda()#2}::operator()", "shop::run::{lambda}::operator()"),
            ("", ""),
            ("<orders::Book<u8>>::take", "orders::Book::take"),
            ("<", ""),
        ];
        for (name, normal) in table {
            assert_eq!(normal_name(name), normal, "{name}");
        }
    }

    #[test]
    fn messages_lose_what_a_run_changes() {
        let table = [
            (
                "index out of bounds: the len is 3 but the index is 7",
                "index out of bounds: the len is # but the index is #",
            ),
            ("bad pointer 0x7ffe12 in slot 4", "bad pointer 0x# in slot #"),
            ("called `Option::unwrap()` on a `None` value", "called \"…\" on a \"…\" value"),
            ("no order \"A-17\" here", "no order \"…\" here"),
            ("id 123e4567-e89b-12d3-a456-426614174000 twice", "id <uuid> twice"),
            ("took 1.5 s", "took # s"),
            (
                "/home/a/build/orders.c:12: take: Assertion `n == 3' failed.",
                "orders.c:#: take: Assertion \"…\" failed.",
            ),
            (
                r"Assertion failed: n, file C:\Users\a b\build\orders.c, line 12",
                r"Assertion failed: n, file a b\build\orders.c, line #",
            ),
            (
                r"Assertion failed: n, file d:\build\orders.c, line 12",
                "Assertion failed: n, file orders.c, line #",
            ),
            ("worker7 and x86_64 don't matter", "worker# and x#_# don't matter"),
            ("deadbeef42 is hex, added is not", "0x# is hex, added is not"),
            ("first line\nsecond 2", "first line"),
            ("", ""),
        ];
        for (message, normal) in table {
            assert_eq!(normal_message(message), normal);
        }
    }

    #[test]
    fn long_messages_are_cut_between_letters() {
        let message = "ä".repeat(500);
        assert_eq!(normal_message(&message).chars().count(), LONGEST_MESSAGE);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,80}") {
            let _ = (normal_name(&text), normal_message(&text));
        }

        #[test]
        fn numbers_never_tell_messages_apart(
            words in proptest::collection::vec("[g-z]{1,8}", 1..6),
            one in proptest::collection::vec(proptest::num::u64::ANY, 6),
            other in proptest::collection::vec(proptest::num::u64::ANY, 6),
        ) {
            let message = |numbers: &[u64]| -> String {
                words.iter().zip(numbers).map(|(word, number)| format!("{word} {number} {number:#x} ")).collect()
            };
            proptest::prop_assert_eq!(normal_message(&message(&one)), normal_message(&message(&other)));
        }
    }
}
