//! Places in the source that a search is aimed at, and the pairs of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use waylay_report::cause::EventPlace;

/// A line of the source, or a function where no line is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spot {
    /// A file, known by its last name, and a line.
    Line(String, u32),
    /// A function.
    Function(String),
}

/// Two places whose order is tried both ways.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Target {
    /// One.
    pub one: Spot,
    /// The other; it may be the same.
    pub other: Spot,
}

impl Spot {
    /// Whether an event is there: in its own line, or in a function that was called from there.
    pub(crate) fn is_at(&self, place: &EventPlace) -> bool {
        match self {
            Spot::Line(file, line) => {
                let own = last_name(&place.file) == file && place.line == *line;
                let frame = format!("({file}:{line})");
                own || place.stack.iter().any(|called| called.ends_with(&frame))
            }
            Spot::Function(function) => {
                let frame = format!("{function} (");
                place.function == *function || place.stack.iter().any(|called| called.starts_with(&frame))
            }
        }
    }
}

fn last_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

impl FromStr for Spot {
    type Err = String;

    /// `FILE:LINE`, or `FILE:LINE:COLUMN` as compilers write it.
    fn from_str(text: &str) -> Result<Spot, String> {
        let wrong = || format!("`{text}` is no place: write FILE:LINE, for example stock.c:27");
        let mut parts: Vec<&str> = text.split(':').collect();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() > 2 && parts[parts.len() - 2..].iter().all(is_number) {
            parts.pop();
        }
        let line = parts.pop().and_then(|line| line.parse().ok()).filter(|line| *line > 0);
        match (line, last_name(&parts.join(":"))) {
            (Some(line), file) if !file.is_empty() => Ok(Spot::Line(file.to_owned(), line)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spot::Line(file, line) => write!(out, "{file}:{line}"),
            Spot::Function(function) => out.write_str(function),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} and {}", self.one, self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_people_and_compilers_write_them() {
        let spot = |text: &str| text.parse::<Spot>();
        let here = Ok(Spot::Line("stock.c".to_owned(), 27));
        assert_eq!(spot("stock.c:27"), here);
        assert_eq!(spot("/src/a/stock.c:27:13"), here);
        assert_eq!(spot("C:\\src\\stock.c:27"), here);
        for wrong in ["stock.c", "stock.c:0", ":27", "27", "", "stock.c:x"] {
            assert!(spot(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_event_is_where_it_happens_and_where_that_was_called_from() {
        let place = EventPlace {
            function: "sell".to_owned(),
            file: "/src/stock.c".to_owned(),
            line: 27,
            stack: vec!["sell (stock.c:27)".to_owned(), "worker (main.c:9)".to_owned()],
            ..EventPlace::default()
        };
        for (text, there) in
            [("stock.c:27", true), ("main.c:9", true), ("stock.c:9", false), ("ock.c:27", false)]
        {
            assert_eq!(text.parse::<Spot>().unwrap().is_at(&place), there, "{text}");
        }
        assert!(Spot::Function("worker".to_owned()).is_at(&place));
        assert!(!Spot::Function("work".to_owned()).is_at(&place));
    }
}
