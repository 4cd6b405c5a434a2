//! What a run tells about itself, in words: for people, made here only, and read by nobody.

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::account::{
    Account, Beside, Departure, DescriptorKind, Misuse, Object, Operation, Place, Standing, Statement, Touch,
    Touched,
};

/// Says what the object of an operation, at this address, is called.
pub type Naming<'a> = &'a mut dyn FnMut(&Operation<'_>, u64) -> String;

static OTHERWISE: AtomicBool = AtomicBool::new(false);

/// From now on every word that is made here is another one, in the whole process. For tests that show that nothing depends on
/// them.
pub fn change_every_word() {
    OTHERWISE.store(true, Ordering::Relaxed);
}

/// Writes words; every sentence of this file comes by here.
fn say(out: &mut dyn fmt::Write, words: fmt::Arguments<'_>) -> fmt::Result {
    if !OTHERWISE.load(Ordering::Relaxed) {
        return out.write_fmt(words);
    }
    words.to_string().chars().try_for_each(|letter| match letter {
        'a'..='z' => out.write_char((b'a' + (letter as u8 - b'a' + 5) % 26) as char),
        // Neither where a line begins nor what stands between words says anything.
        ' ' | ':' | ',' => out.write_char('_'),
        other => out.write_char(other),
    })
}

fn sentence(words: fmt::Arguments<'_>) -> String {
    let mut text = String::new();
    // Nothing fails that is written into a string.
    let _ = say(&mut text, words);
    text
}

impl Account {
    /// All of it, as text.
    pub fn text(&self) -> String {
        self.text_with(&mut |_, address| format!("{address:#x}"))
    }

    /// All of it, as text, with these names in place of addresses.
    pub fn text_with(&self, naming: Naming<'_>) -> String {
        let mut text = String::new();
        for statement in &self.0 {
            match statement {
                Statement::Standing(standing) => text.push_str(&standing.line(naming)),
                other => text.push_str(&other.to_string()),
            }
            // The last words of a library that gives up are no line.
            if !matches!(statement, Statement::Refusal(_) | Statement::Left(..)) {
                text.push('\n');
            }
        }
        text
    }

    /// Why it did not come to its end, if it was stopped because nothing changed any more.
    pub fn why_livelock(&self) -> Option<String> {
        self.livelock().map(why_livelock)
    }

    /// How it ended, in one line, if the library ended it for a reason that it tells.
    pub fn headline(&self) -> Option<String> {
        let is_headline = |statement: &&Statement<'_>| {
            matches!(statement, Statement::Deadlock(_) | Statement::Livelock(_) | Statement::Race(..))
        };
        self.0.iter().find(is_headline).map(ToString::to_string)
    }
}

fn why_livelock(quiet: u64) -> String {
    sentence(format_args!("threads only wait for each other, nothing changed in {quiet} steps"))
}

impl Standing<'_> {
    /// The thread and what it does.
    pub fn line(&self, naming: Naming<'_>) -> String {
        let begin = sentence(format_args!("thread {} ({} steps) ", self.thread, self.steps));
        begin + &self.does(naming)
    }

    /// What the thread does.
    pub fn does(&self, naming: Naming<'_>) -> String {
        let what = self.operation.named(naming);
        let what = match self.waits_since {
            Some(step) => sentence(format_args!("waits in {what} since step {step}")),
            None => sentence(format_args!("is about to do {what}")),
        };
        match self.holder {
            Some(holder) => sentence(format_args!("{what}, held by thread {holder}")),
            None => what,
        }
    }
}

impl Operation<'_> {
    /// The operation, with a name in place of its object's address.
    pub fn named(&self, naming: Naming<'_>) -> String {
        let kind = &self.kind;
        match self.object {
            Object::Nothing => kind.to_string(),
            Object::Unknown => sentence(format_args!("{kind} of something unknown")),
            Object::Thread(thread) => sentence(format_args!("{kind} of thread {thread}")),
            Object::Descriptor(fd, of) => {
                let of = match of {
                    DescriptorKind::Pipe => ", a pipe that only this process has",
                    DescriptorKind::Socket => ", a socket whose peer only this process has",
                    DescriptorKind::Counter => ", an eventfd that only this process has",
                    DescriptorKind::Other => "",
                };
                sentence(format_args!("{kind} of descriptor {fd}{of}"))
            }
            Object::Number(number) => format!("{kind} {number}"),
            Object::Address(address) => format!("{kind} {}", naming(self, address)),
        }
    }
}

impl Display for Beside<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Beside::BeforeMain => say(out, format_args!("threads that were started before main")),
            Beside::Other(what) => say(out, format_args!("{what}")),
        }
    }
}

impl Display for Departure<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Departure::Otherwise(expected, seen) => say(out, format_args!("expected {expected}, saw {seen}")),
            Departure::Early(unfinished) => {
                say(out, format_args!("the run ended {unfinished} steps before the end of the schedule"))
            }
            Departure::Before => say(
                out,
                format_args!(
                    "a run that passed in another process ended this one, before the schedule began"
                ),
            ),
        }
    }
}

impl Display for Touched {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            Touch::Read => "read",
            Touch::Write => "write",
            Touch::Free => "free",
        };
        say(out, format_args!("{how} of {} bytes by thread {}", self.bytes, self.thread))
    }
}

impl Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        say(out, format_args!("{}", self.key()))
    }
}

impl Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.key())
    }
}

impl Display for Statement<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Deadlock(live) => say(out, format_args!("deadlock: {live} threads, none can run")),
            Statement::Livelock(quiet) => say(out, format_args!("livelock: {}", why_livelock(*quiet))),
            Statement::Race(last, first) => say(out, format_args!("race: {last}, not ordered with {first}")),
            Statement::Standing(standing) => {
                out.write_str(&standing.line(&mut |_, address| format!("{address:#x}")))
            }
            Statement::Place(place) => say(out, format_args!("    {place}")),
            Statement::Left(step, departure @ Departure::Otherwise(..)) => {
                say(out, format_args!("the run left the schedule at step {step}: {departure}"))
            }
            Statement::Left(_, departure) => say(out, format_args!("{departure}")),
            Statement::Beside(beside) => say(out, format_args!("beside the schedule: {beside}")),
            Statement::Hurried => {
                say(out, format_args!("a sleep or a timeout ended although other threads could run"))
            }
            Statement::Outsiders(count) => {
                say(out, format_args!("{count} threads of the process are not under control"))
            }
            Statement::InKernel(thread) => {
                say(out, format_args!("thread {thread} waits in a system call that is not under control"))
            }
            Statement::Misuse(misuse) => write!(out, "{misuse}"),
            Statement::Allocated(bytes, Some((thread, step))) => {
                say(out, format_args!("thread {thread} allocated the {bytes} bytes at step {step}"))
            }
            Statement::Allocated(bytes, None) => {
                say(out, format_args!("something outside the schedule allocated the {bytes} bytes"))
            }
            Statement::Refusal(words) => say(out, format_args!("{words}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(thread: u32, kind: &'static str, object: Object, holder: Option<u32>) -> Statement<'static> {
        let operation = Operation { kind: kind.into(), object };
        Statement::Standing(Standing { thread, steps: 3, waits_since: Some(7), operation, holder })
    }

    #[test]
    fn a_deadlock_is_told_with_who_waits_for_whom_and_where() {
        let account = Account(vec![
            Statement::Deadlock(2),
            waits(1, "mutex-lock", Object::Address(0x5080), Some(2)),
            Statement::Place(Place::InModule("program".into(), 0x10f5, Some("main".into()))),
            waits(0, "thread-join", Object::Thread(1), None),
        ]);
        assert_eq!(
            account.text(),
            "deadlock: 2 threads, none can run\n\
             thread 1 (3 steps) waits in mutex-lock 0x5080 since step 7, held by thread 2\n    program+0x10f5 main\n\
             thread 0 (3 steps) waits in thread-join of thread 1 since step 7\n"
        );
        let named =
            account.text_with(&mut |operation, _| if operation.is_on_lock() { "A" } else { "#1" }.into());
        assert!(named.contains("waits in mutex-lock A since step 7, held by thread 2\n"), "{named}");
        assert_eq!(account.headline().as_deref(), Some("deadlock: 2 threads, none can run"));
    }

    #[test]
    fn a_refusal_is_no_line() {
        assert_eq!(Account(vec![Statement::Refusal("why".into())]).text(), "why");
        assert_eq!(
            Account(vec![Statement::InKernel(1)]).text(),
            "thread 1 waits in a system call that is not under control\n"
        );
    }
}
