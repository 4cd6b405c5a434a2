//! Regular expressions as CMake knows them, for the properties of CTest's tests. Pure.
//!
//! `^`, `$`, `.`, `[...]`, `[^...]`, `*`, `+`, `?`, `|`, `(...)` and a backslash in front of any of these; there are no counts
//! in braces and no classes with names, and `.` is a line's end, too. An expression becomes a machine whose states are all
//! followed at once (Thompson, "Regular Expression Search Algorithm", 1968), so that the time grows with the text alone: CMake's own
//! matcher goes back instead, with the same answer to whether there is a match.

/// An expression that can be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression {
    states: Vec<State>,
    first: usize,
}

/// What has to come next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A character of a set, then another state.
    Character(Set, usize),
    /// Nothing: either of two states.
    Either(usize, usize),
    /// Nothing, but only where the text begins.
    Begin(usize),
    /// Nothing, but only where the text ends.
    End(usize),
    /// It matched.
    Match,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Set {
    ranges: Vec<(char, char)>,
    negated: bool,
}

impl Set {
    fn any() -> Set {
        Set { ranges: Vec::new(), negated: true }
    }

    fn one(letter: char) -> Set {
        Set { ranges: vec![(letter, letter)], negated: false }
    }

    fn has(&self, letter: char) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter)) != self.negated
    }
}

/// An expression as it is read, before its states have numbers.
enum Node {
    Character(Set),
    Begin,
    End,
    Sequence(Vec<Node>),
    Either(Box<Node>, Box<Node>),
    Repeated { what: Box<Node>, may_be_absent: bool, again: bool },
}

struct Reader<'a> {
    letters: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Reader<'_> {
    fn alternatives(&mut self) -> Result<Node, String> {
        let first = self.sequence()?;
        match self.letters.next_if_eq(&'|') {
            Some(_) => Ok(Node::Either(Box::new(first), Box::new(self.alternatives()?))),
            None => Ok(first),
        }
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut parts = Vec::new();
        while let Some(&letter) = self.letters.peek() {
            if matches!(letter, '|' | ')') {
                break;
            }
            let mut part = self.atom()?;
            while let Some(sign) = self.letters.next_if(|sign| matches!(sign, '*' | '+' | '?')) {
                part =
                    Node::Repeated { what: Box::new(part), may_be_absent: sign != '+', again: sign != '?' };
            }
            parts.push(part);
        }
        Ok(Node::Sequence(parts))
    }

    fn atom(&mut self) -> Result<Node, String> {
        Ok(match self.letters.next() {
            Some('^') => Node::Begin,
            Some('$') => Node::End,
            Some('.') => Node::Character(Set::any()),
            Some('[') => Node::Character(self.set()?),
            Some('(') => {
                let inner = self.alternatives()?;
                self.letters.next_if_eq(&')').ok_or("a parenthesis is not closed")?;
                inner
            }
            Some(sign @ ('*' | '+' | '?')) => return Err(format!("`{sign}` follows nothing")),
            Some('\\') => Node::Character(Set::one(self.letters.next().ok_or("it ends with a backslash")?)),
            Some(letter) => Node::Character(Set::one(letter)),
            None => Node::Sequence(Vec::new()),
        })
    }

    /// What stands between brackets, where a backslash is nothing special and a bracket that closes may come first.
    fn set(&mut self) -> Result<Set, String> {
        let negated = self.letters.next_if_eq(&'^').is_some();
        let mut ranges: Vec<(char, char)> = Vec::new();
        loop {
            let low = self.letters.next().ok_or("a bracket is not closed")?;
            if low == ']' && !ranges.is_empty() {
                return Ok(Set { ranges, negated });
            }
            let mut ahead = self.letters.clone();
            match (ahead.next(), ahead.next()) {
                (Some('-'), Some(high)) if high != ']' => {
                    self.letters = ahead;
                    ranges.push((low, high));
                }
                _ => ranges.push((low, low)),
            }
        }
    }
}

impl Expression {
    /// Reads an expression.
    pub(crate) fn new(text: &str) -> Result<Expression, String> {
        let mut reader = Reader { letters: text.chars().peekable() };
        let node = reader.alternatives()?;
        if reader.letters.next().is_some() {
            return Err("a parenthesis is not open".to_owned());
        }
        let mut expression = Expression { states: vec![State::Match], first: 0 };
        expression.first = expression.add(&node, 0);
        Ok(expression)
    }

    /// The state with which a node begins that is followed by the state `next`.
    fn add(&mut self, node: &Node, next: usize) -> usize {
        let state = match node {
            Node::Character(set) => State::Character(set.clone(), next),
            Node::Begin => State::Begin(next),
            Node::End => State::End(next),
            Node::Sequence(parts) => return parts.iter().rev().fold(next, |next, part| self.add(part, next)),
            Node::Either(one, other) => State::Either(self.add(one, next), self.add(other, next)),
            Node::Repeated { what, may_be_absent, again } => {
                // The choice comes behind what is repeated, so it is made first, and told where that begins.
                let choice = self.states.len();
                self.states.push(State::Either(next, next));
                let inner = self.add(what, if *again { choice } else { next });
                self.states[choice] = State::Either(inner, next);
                return if *may_be_absent { choice } else { inner };
            }
        };
        self.states.push(state);
        self.states.len() - 1
    }

    /// Whether it is somewhere in a text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let mut now = vec![false; self.states.len()];
        let mut letters = text.chars().peekable();
        let mut at_begin = true;
        loop {
            let at_end = letters.peek().is_none();
            // It may begin here, too.
            self.follow(&mut now, self.first, (at_begin, at_end));
            if now[0] {
                return true;
            }
            let Some(letter) = letters.next() else { return false };
            let at_end = letters.peek().is_none();
            let mut next = vec![false; self.states.len()];
            for (number, state) in self.states.iter().enumerate() {
                if let State::Character(set, then) = state
                    && now[number]
                    && set.has(letter)
                {
                    self.follow(&mut next, *then, (false, at_end));
                }
            }
            (now, at_begin) = (next, false);
        }
    }

    /// Marks a state, and those that nothing has to come before.
    fn follow(&self, marked: &mut [bool], state: usize, (at_begin, at_end): (bool, bool)) {
        let mut open = vec![state];
        while let Some(state) = open.pop() {
            if std::mem::replace(&mut marked[state], true) {
                continue;
            }
            match self.states[state] {
                State::Either(one, other) => open.extend([one, other]),
                State::Begin(next) if at_begin => open.push(next),
                State::End(next) if at_end => open.push(next),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(expression: &str, text: &str) -> bool {
        Expression::new(expression).unwrap().is_in(text)
    }

    #[test]
    fn expressions_mean_what_they_mean_to_cmake() {
        for (expression, text) in [
            ("passed", "all tests passed\n"),
            ("^all", "all"),
            ("ok$", "it is ok"),
            ("a.c", "a\nc"),
            ("[0-9]+ of [0-9]+", "it was 12 of 30"),
            ("[^a-z]x", "0x"),
            ("[]a]]", "]]"),
            ("[a-]", "-"),
            ("(no|0) (errors?|failures)", "0 error"),
            ("x{2}", "x{2}"),
            ("\\[  PASSED  \\]", "[  PASSED  ] 3 tests"),
            ("[\\]", "a\\b"),
            ("(a*)*b", "aaaab"),
            ("", "anything"),
            ("^$", ""),
        ] {
            assert!(is_in(expression, text), "{expression:?} is in {text:?}");
        }
        for (expression, text) in [
            ("^all", "not all\nall"),
            ("ok$", "ok\n"),
            ("a+b", "b"),
            ("x{2}", "xx"),
            ("(a|b)c", "ab"),
            ("(a*)*c", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
        ] {
            assert!(!is_in(expression, text), "{expression:?} is not in {text:?}");
        }
        for wrong in ["(a", "a)", "[a", "*", "a\\"] {
            assert!(Expression::new(wrong).is_err(), "{wrong:?}");
        }
    }
}
