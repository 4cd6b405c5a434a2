//! What a run tells about itself, as data: how it ended, who waits for what, and what took part beside the schedule.
//!
//! The control library writes [`Statement`]s, one behind the other; whoever judges a run reads an [`Account`] of them. Words for
//! people are made of them in one place, `words`, and nobody reads those.

use std::borrow::Cow;

/// What an operation is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Nothing that others can see.
    Nothing,
    /// Something that is not known.
    Unknown,
    /// A thread.
    Thread(u32),
    /// Something that the program gave a number.
    Number(u64),
    /// What lies at an address.
    Address(u64),
    /// A descriptor, and what it is of.
    Descriptor(u32, DescriptorKind),
}

/// What a descriptor is of, where nobody but the process can have the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorKind {
    /// A pipe.
    Pipe = 1,
    /// One of two sockets that were made connected.
    Socket = 2,
    /// A counter of events (`eventfd`).
    Counter = 3,
    /// Anything that others may have, too.
    Other = 0,
}

/// An operation: what kind of event, by the name that `waylay-schedule` gives it, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The kind.
    pub kind: Cow<'a, str>,
    /// On what.
    pub object: Object,
}

impl Operation<'_> {
    /// Whether a lock is taken or given back.
    pub fn is_on_lock(&self) -> bool {
        self.kind.ends_with("lock")
    }
}

/// Where a thread stands when a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing<'a> {
    /// The thread.
    pub thread: u32,
    /// How many steps it made.
    pub steps: u64,
    /// Since which step of the run it waits; none: it could have done the operation next.
    pub waits_since: Option<u64>,
    /// In what.
    pub operation: Operation<'a>,
    /// Who holds what it waits for, where that is known.
    pub holder: Option<u32>,
}

/// A place in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// In no module.
    Address(u64),
    /// In a module, behind its beginning, in the function of this name, if it has one.
    InModule(Cow<'a, str>, u64, Option<Cow<'a, str>>),
}

impl Place<'_> {
    /// What makes it the same as another, as long as no module changes.
    pub fn key(&self) -> String {
        match self {
            Place::Address(address) => format!("{address:#x}"),
            Place::InModule(module, offset, None) => format!("{module}+{offset:#x}"),
            Place::InModule(module, offset, Some(name)) => format!("{module}+{offset:#x} {name}"),
        }
    }
}

/// How memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It was read.
    Read,
    /// It was written.
    Write,
    /// It was given back.
    Free,
}

/// One access of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// How.
    pub how: Touch,
    /// How many bytes.
    pub bytes: u64,
    /// By whom.
    pub thread: u32,
}

/// Who did something, and at which step of the run; none: something outside the schedule.
pub type Actor = Option<(u32, u64)>;

/// What a program does to memory that it has freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// It frees so many bytes once more: who did it first, and who again.
    FreedTwice(u64, Actor, Actor),
    /// It wrote this byte of so many, after somebody freed them.
    UsedAfter(u64, u64, Actor),
}

impl Misuse {
    /// What makes it the same as another, but for its numbers. Stored failures have it: it never changes.
    pub fn key(&self) -> String {
        let by = |actor: Actor| match actor {
            Some((thread, step)) => format!("thread {thread} (at step {step})"),
            None => "something outside the schedule".to_owned(),
        };
        match *self {
            Misuse::FreedTwice(bytes, first, again) => {
                format!("double free of {bytes} bytes: {} freed them, {} again", by(first), by(again))
            }
            Misuse::UsedAfter(byte, bytes, freed) => {
                let by = by(freed);
                format!("use after free: byte {byte} of {bytes} bytes was written after {by} freed them")
            }
        }
    }
}

/// How a run left the schedule that it was to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure<'a> {
    /// Something else was possible than the schedule has there.
    Otherwise(Cow<'a, str>, Cow<'a, str>),
    /// It ended so many steps before the end of the schedule.
    Early(u64),
    /// A run that came before it ended the process.
    Before,
}

/// What takes part in a run beside the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beside<'a> {
    /// Threads that constructors or libraries started before `main`.
    BeforeMain,
    /// Something else.
    Other(Cow<'a, str>),
}

/// One thing that a run tells about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// No thread can ever run again; so many have not ended.
    Deadlock(u32),
    /// So many steps in a row changed nothing.
    Livelock(u64),
    /// Two accesses that nothing orders: the one at which the run ended, and the one that came before.
    Race(Touched, Touched),
    /// Where a thread stands.
    Standing(Standing<'a>),
    /// A place in the code of what was told before it: a frame of a thread, or an access.
    Place(Place<'a>),
    /// The run left its schedule at this step.
    Left(u64, Departure<'a>),
    /// Something took part that is not under control.
    Beside(Beside<'a>),
    /// A wait with a deadline, or a sleep, was ended by the strategy although other threads could run.
    Hurried,
    /// So many threads of the process are not under control.
    Outsiders(u32),
    /// The program misuses its heap, and ends with that.
    Misuse(Misuse),
    /// A thread waits in a system call that is not under control.
    InKernel(u32),
    /// The block that was [asked for](crate::Settings::asked) is allocated, with so many bytes.
    Allocated(u64, Actor),
    /// Why what was asked for cannot be done.
    Refusal(Cow<'a, str>),
}

/// All that a run told about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account(pub Vec<Statement<'static>>);

impl Account {
    /// How many threads had not ended when none could run, if that is how the run ended.
    pub fn deadlock(&self) -> Option<u32> {
        self.find(|statement| match statement {
            Statement::Deadlock(live) => Some(*live),
            _ => None,
        })
    }

    /// How many steps in a row changed nothing, if that is how the run ended.
    pub fn livelock(&self) -> Option<u64> {
        self.find(|statement| match statement {
            Statement::Livelock(quiet) => Some(*quiet),
            _ => None,
        })
    }

    /// Who allocated the block that was asked for, when that happened last.
    pub fn allocated(&self) -> Actor {
        let told = self.0.iter().rev().find_map(|statement| match statement {
            Statement::Allocated(_, by) => Some(*by),
            _ => None,
        });
        told.flatten()
    }

    /// The two accesses of a race, the later one first.
    pub fn race(&self) -> Option<[Touched; 2]> {
        self.find(|statement| match statement {
            Statement::Race(last, first) => Some([*last, *first]),
            _ => None,
        })
    }

    /// How the program misused its heap, if that ended it.
    pub fn misuse(&self) -> Option<Misuse> {
        self.find(|statement| match statement {
            Statement::Misuse(misuse) => Some(*misuse),
            _ => None,
        })
    }

    /// How the run left its schedule, if it did.
    pub fn departure(&self) -> Option<&Departure<'static>> {
        self.find(|statement| match statement {
            Statement::Left(_, departure) => Some(departure),
            _ => None,
        })
    }

    /// Where the threads stand.
    pub fn standings(&self) -> impl Iterator<Item = &Standing<'static>> {
        self.0.iter().filter_map(|statement| match statement {
            Statement::Standing(standing) => Some(standing),
            _ => None,
        })
    }

    /// The places in the code of all stacks.
    pub fn places(&self) -> impl Iterator<Item = &Place<'static>> {
        self.0.iter().filter_map(|statement| match statement {
            Statement::Place(place) => Some(place),
            _ => None,
        })
    }

    /// What took part beside the schedule.
    pub fn beside(&self) -> impl Iterator<Item = &Beside<'static>> {
        self.0.iter().filter_map(|statement| match statement {
            Statement::Beside(beside) => Some(beside),
            _ => None,
        })
    }

    /// Whether a sleep or a timeout was ended early.
    pub fn was_hurried(&self) -> bool {
        self.0.contains(&Statement::Hurried)
    }

    fn find<'s, R>(&'s self, which: impl FnMut(&'s Statement<'static>) -> Option<R>) -> Option<R> {
        self.0.iter().find_map(which)
    }
}
