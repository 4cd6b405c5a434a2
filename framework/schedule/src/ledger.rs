//! What a promise leaves out: accesses that were no steps although a bug may need a switch there.
//!
//! Whoever makes runs fills it in, explored programs and hosts alike; it puts itself into words once, as the end of the
//! sentence that promises.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Places that are named of each reason.
const SHOWN: usize = 3;

/// Why accesses were no steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Plain accesses are none at the level of the runs.
    Level,
    /// Code that was not compiled for it was left as it is.
    NotPatched,
    /// Instructions that cannot be patched.
    Refused,
    /// Places that made more steps than one run gives to a place.
    PlaceLimit,
    /// Runs that make more accesses than are looked at for conflicts.
    RunLimit,
    /// Functions of the C library that read or write memory of the program.
    Copies,
    /// Libraries of the system, whose accesses are left alone.
    Libraries,
    /// Runs in which something outside the schedule took part.
    Outside,
    /// Calls that synchronise nothing, behind as many as are steps in one run.
    CallLimit,
    /// Runs that reached a limit of steps or of time, and so were not judged.
    Limit,
}

/// One of the reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Why.
    pub reason: Reason,
    /// How many: instructions, places, functions, libraries or runs; 0 where all are meant.
    pub count: u64,
    /// Some of them by name, the worst first.
    pub places: Vec<String>,
}

impl LeftOut {
    /// Without names.
    pub fn new(reason: Reason, count: u64) -> LeftOut {
        LeftOut { reason, count, places: Vec::new() }
    }

    /// As many as there are names.
    pub fn named(reason: Reason, places: &[String]) -> LeftOut {
        LeftOut { reason, count: places.len() as u64, places: places.to_vec() }
    }

    fn names(&self) -> String {
        let more = self.places.len().saturating_sub(SHOWN);
        let names = self.places[..self.places.len() - more].join(", ");
        if more > 0 { format!("{names} and {more} more") } else { names }
    }
}

/// Ends "bugs that need a switch …".
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { reason, count, places } = self;
        match reason {
            Reason::Level => f.write_str("between plain accesses to memory")?,
            Reason::NotPatched => {
                f.write_str("between plain accesses of code that was not compiled for it")?
            }
            Reason::Refused => write!(f, "at one of {count} instructions that could not be patched")?,
            Reason::PlaceLimit => write!(f, "at {count} places after their first steps of a run")?,
            Reason::RunLimit => f.write_str("behind the accesses of a run that were looked at")?,
            Reason::Copies => return write!(f, "inside the C library's {}", self.names()),
            Reason::Libraries => return write!(f, "inside {}", self.names()),
            Reason::Outside => write!(f, "in what took part from outside the schedule in {count} runs")?,
            Reason::CallLimit => write!(f, "at a call behind the first {count} of a run")?,
            Reason::Limit => write!(f, "behind the limit that {count} runs reached, which were not judged")?,
        }
        if places.is_empty() { Ok(()) } else { write!(f, " ({})", self.names()) }
    }
}

/// Adds what other runs left out.
pub fn add(all: &mut Vec<LeftOut>, other: &[LeftOut]) {
    for more in other {
        match all.iter_mut().find(|known| known.reason == more.reason) {
            Some(known) => {
                // These count runs, which are others; the rest counts places in the code, which may be the same.
                known.count = match more.reason {
                    Reason::Outside | Reason::Limit => known.count + more.count,
                    _ => known.count.max(more.count),
                };
                let new: Vec<String> =
                    more.places.iter().filter(|place| !known.places.contains(place)).cloned().collect();
                known.places.extend(new);
            }
            None => all.push(more.clone()),
        }
    }
}

/// All of them, as the end of a sentence that promises; nothing if nothing was left out.
pub fn leaving_out(all: &[LeftOut]) -> String {
    let Some((last, others)) = all.split_last() else { return String::new() };
    let others: Vec<String> = others.iter().map(LeftOut::to_string).collect();
    let and = if others.is_empty() { "" } else { ", or " };
    format!(", leaving out bugs that need a switch {}{and}{last}", others.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_and_places_do_not() {
        let mut all = vec![LeftOut::new(Reason::Refused, 4), LeftOut::new(Reason::Limit, 7)];
        add(&mut all, &[LeftOut::new(Reason::Limit, 5), LeftOut::new(Reason::Refused, 3)]);
        assert_eq!((all[0].count, all[1].count), (4, 12));
        assert_eq!(
            leaving_out(&all[1..]),
            ", leaving out bugs that need a switch behind the limit that 12 runs reached, which were not judged"
        );
    }

    #[test]
    fn what_is_left_out_ends_the_sentence() {
        assert_eq!(leaving_out(&[]), "");
        let level = LeftOut::new(Reason::Level, 0);
        let level = std::slice::from_ref(&level);
        assert_eq!(
            leaving_out(level),
            ", leaving out bugs that need a switch between plain accesses to memory"
        );
        let names = ["memcpy", "memset", "strlen", "strcpy"].map(str::to_owned);
        let several = [
            LeftOut { reason: Reason::Refused, count: 4, places: vec!["push (queue.c:7)".to_owned()] },
            LeftOut::named(Reason::Copies, &names),
        ];
        assert_eq!(
            leaving_out(&several),
            ", leaving out bugs that need a switch at one of 4 instructions that could not be patched \
             (push (queue.c:7)), or inside the C library's memcpy, memset, strlen and 1 more"
        );
        let text = serde_json::to_string(&several[0]).unwrap();
        assert_eq!(text, r#"{"reason":"refused","count":4,"places":["push (queue.c:7)"]}"#);
    }
}
