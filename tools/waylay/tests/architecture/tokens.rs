//! Rust text as words and signs, each with its line. Comments are left out and literals kept whole, so that nothing inside of
//! them is mistaken for a path.

/// A word, a literal, `::` or one other sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The tokens of `source`.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let bytes = source.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let end = end_of_token(bytes, at);
        let text = &source[at..end];
        let is_comment = text.starts_with("//") || text.starts_with("/*");
        if !is_comment && !bytes[at].is_ascii_whitespace() {
            found.push(Token { text: text.to_string(), line });
        }
        line += text.matches('\n').count();
        at = end;
    }
    found
}

/// Where the token that begins at `at` ends; a comment and a blank are tokens here too.
fn end_of_token(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with(b"/*") => at + end_of_block_comment(rest),
        b'"' => at + end_of_string(rest, 0),
        b'\'' => at + end_of_quote(rest),
        b':' if rest.starts_with(b"::") => at + 2,
        first if is_word(first) => at + end_of_word(rest),
        first if first.is_ascii() => at + 1,
        // A character of several bytes, outside of literals and comments: nothing that Rust has, but no reason to panic.
        _ => at + 1 + rest[1..].iter().take_while(|b| **b & 0xc0 == 0x80).count(),
    }
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// A word; also a string with a prefix (`b"…"`, `c"…"`, `r#"…"#`), which is one literal.
fn end_of_word(rest: &[u8]) -> usize {
    let end = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
    let is_raw = matches!(&rest[..end], b"r" | b"br" | b"cr");
    let hashes = rest[end..].iter().take_while(|b| **b == b'#').count();
    match rest.get(end + hashes) {
        Some(b'"') if is_raw => end + hashes + end_of_raw_string(&rest[end + hashes..], hashes),
        _ => match rest.get(end) {
            Some(b'"') if matches!(&rest[..end], b"b" | b"c") => end + end_of_string(&rest[end..], 0),
            Some(b'\'') if &rest[..end] == b"b" => end + end_of_quote(&rest[end..]),
            _ => end,
        },
    }
}

fn end_of_string(rest: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn end_of_raw_string(rest: &[u8], hashes: usize) -> usize {
    let closes = |at: &usize| {
        rest[*at] == b'"' && rest[at + 1..].iter().take(hashes).filter(|b| **b == b'#').count() == hashes
    };
    (1..rest.len()).find(closes).map_or(rest.len(), |at| at + 1 + hashes)
}

/// A character, or the quote of a lifetime.
fn end_of_quote(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return (3..rest.len()).find(|at| rest[*at] == b'\'').map_or(rest.len(), |at| at + 1);
    }
    let character = 1 + rest[1..].iter().skip(1).take_while(|b| **b & 0xc0 == 0x80).count() + 1;
    if rest.get(character) == Some(&b'\'') { character + 1 } else { 1 }
}

fn end_of_block_comment(rest: &[u8]) -> usize {
    let (mut at, mut open) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (at, open) = (at + 2, open + 1),
            [b'*', b'/', ..] => (at, open) = (at + 2, open - 1),
            _ => at += 1,
        }
        if open == 0 {
            return at;
        }
    }
    rest.len()
}

#[test]
fn comments_and_literals_hide_what_is_in_them() {
    let texts = |source: &str| tokens(source).into_iter().map(|token| token.text).collect::<Vec<_>>();
    assert_eq!(texts("a::b // crate::c\n/* /* d */ crate::e */ f"), ["a", "::", "b", "f"]);
    assert_eq!(texts(r#"x("crate::\"y", 'a', '\'', &'b z)"#).len(), 13);
    assert_eq!(texts("r#\"crate::\"x\"# y"), ["r#\"crate::\"x\"#", "y"]);
    assert_eq!(texts("b'\\\\' b\"q\" c"), ["b'\\\\'", "b\"q\"", "c"]);
    assert_eq!(tokens("a\n/*\n*/ b\n")[1], Token { text: "b".into(), line: 3 });
}
