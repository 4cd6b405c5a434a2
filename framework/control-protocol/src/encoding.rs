//! Statements as bytes: a length, a tag and fields. What is read was written by a stranger and is believed as far as it makes
//! sense. Nothing is allocated to write one: a statement may be made in a signal handler.

use std::borrow::Cow;

use crate::account::{
    Account, Actor, Beside, Departure, DescriptorKind, Misuse, Object, Operation, Place, Standing, Statement,
    Touch, Touched,
};

/// Bytes of a statement at most; longer words are cut.
const LONGEST: usize = 2048;
/// Bytes of the words of one field at most, so that a statement with two of them has room.
const LONGEST_WORDS: usize = 900;

/// One statement on its way to the region.
#[derive(Debug)]
pub(crate) struct Encoded {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Encoded {
    /// The bytes of a statement.
    pub(crate) fn of(statement: &Statement<'_>) -> Encoded {
        let mut encoded = Encoded { bytes: [0; LONGEST], len: size_of::<u32>() };
        encoded.write(statement);
        let len = (encoded.len as u32).to_le_bytes();
        encoded.bytes[..len.len()].copy_from_slice(&len);
        encoded
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn write(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::Deadlock(live) => self.tag(1).number(u64::from(*live)),
            Statement::Livelock(quiet) => self.tag(2).number(*quiet),
            Statement::Race(last, first) => {
                self.tag(3);
                for touched in [last, first] {
                    self.number(touched.how as u64).number(touched.bytes).number(u64::from(touched.thread));
                }
                self
            }
            Statement::Standing(Standing { thread, steps, waits_since, operation, holder }) => {
                self.tag(4).number(u64::from(*thread)).number(*steps);
                self.number(waits_since.map_or(0, |step| step.saturating_add(1)));
                self.number(holder.map_or(0, |holder| u64::from(holder) + 1)).words(&operation.kind);
                let (kind, value) = match operation.object {
                    Object::Nothing => (0, 0),
                    Object::Unknown => (1, 0),
                    Object::Thread(thread) => (2, u64::from(thread)),
                    Object::Number(number) => (3, number),
                    Object::Address(address) => (4, address),
                    Object::Descriptor(fd, kind) => (5, (kind as u64) << 32 | u64::from(fd)),
                };
                self.number(kind).number(value)
            }
            Statement::Place(Place::Address(address)) => self.tag(5).number(*address),
            Statement::Place(Place::InModule(module, offset, name)) => {
                self.tag(6).number(*offset).words(module).words(name.as_deref().unwrap_or_default())
            }
            Statement::Left(step, Departure::Otherwise(expected, seen)) => {
                self.tag(7).number(*step).words(expected).words(seen)
            }
            Statement::Left(step, Departure::Early(unfinished)) => {
                self.tag(8).number(*step).number(*unfinished)
            }
            Statement::Left(step, Departure::Before) => self.tag(9).number(*step),
            Statement::Beside(Beside::BeforeMain) => self.tag(10),
            Statement::Beside(Beside::Other(what)) => self.tag(11).words(what),
            Statement::Hurried => self.tag(12),
            Statement::Outsiders(count) => self.tag(13).number(u64::from(*count)),
            Statement::InKernel(thread) => self.tag(14).number(u64::from(*thread)),
            Statement::Refusal(why) => self.tag(15).words(why),
            Statement::Misuse(Misuse::FreedTwice(bytes, first, again)) => {
                self.tag(16).number(*bytes).actor(*first).actor(*again)
            }
            Statement::Misuse(Misuse::UsedAfter(byte, bytes, freed)) => {
                self.tag(17).number(*byte).number(*bytes).actor(*freed)
            }
            Statement::Allocated(bytes, by) => self.tag(18).number(*bytes).actor(*by),
        };
    }

    fn tag(&mut self, tag: u8) -> &mut Encoded {
        self.put(&[tag])
    }

    fn actor(&mut self, actor: Actor) -> &mut Encoded {
        let (thread, step) = actor.map_or((0, 0), |(thread, step)| (u64::from(thread) + 1, step));
        self.number(thread).number(step)
    }

    fn number(&mut self, number: u64) -> &mut Encoded {
        self.put(&number.to_le_bytes())
    }

    fn words(&mut self, words: &str) -> &mut Encoded {
        let words = &words.as_bytes()[..words.len().min(LONGEST_WORDS)];
        self.put(&(words.len() as u32).to_le_bytes()).put(words)
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Encoded {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self
    }
}

impl Account {
    /// Reads statements, up to the first that makes no sense.
    pub fn read(mut bytes: &[u8]) -> Account {
        let mut statements = Vec::new();
        while let Some((length, _)) = bytes.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some(record) = bytes.get(size_of::<u32>()..length) else { break };
            let Some(statement) = Fields(record).statement() else { break };
            statements.push(statement);
            bytes = &bytes[length..];
        }
        Account(statements)
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn statement(mut self) -> Option<Statement<'static>> {
        let statement = match self.tag()? {
            1 => Statement::Deadlock(self.small()?),
            2 => Statement::Livelock(self.number()?),
            3 => Statement::Race(self.touched()?, self.touched()?),
            4 => Statement::Standing(self.standing()?),
            5 => Statement::Place(Place::Address(self.number()?)),
            6 => {
                let (offset, module, name) = (self.number()?, self.words()?, self.words()?);
                Statement::Place(Place::InModule(module, offset, Some(name).filter(|name| !name.is_empty())))
            }
            7 => Statement::Left(self.number()?, Departure::Otherwise(self.words()?, self.words()?)),
            8 => Statement::Left(self.number()?, Departure::Early(self.number()?)),
            9 => Statement::Left(self.number()?, Departure::Before),
            10 => Statement::Beside(Beside::BeforeMain),
            11 => Statement::Beside(Beside::Other(self.words()?)),
            12 => Statement::Hurried,
            13 => Statement::Outsiders(self.small()?),
            14 => Statement::InKernel(self.small()?),
            15 => Statement::Refusal(self.words()?),
            16 => Statement::Misuse(Misuse::FreedTwice(self.number()?, self.actor()?, self.actor()?)),
            17 => Statement::Misuse(Misuse::UsedAfter(self.number()?, self.number()?, self.actor()?)),
            18 => Statement::Allocated(self.number()?, self.actor()?),
            _ => return None,
        };
        Some(statement)
    }

    fn standing(&mut self) -> Option<Standing<'static>> {
        let (thread, steps, waits_since) = (self.small()?, self.number()?, self.number()?.checked_sub(1));
        let holder = self.small()?.checked_sub(1);
        let kind = self.words()?;
        let object = match (self.number()?, self.number()?) {
            (0, _) => Object::Nothing,
            (1, _) => Object::Unknown,
            (2, thread) => Object::Thread(thread.try_into().ok()?),
            (3, number) => Object::Number(number),
            (4, address) => Object::Address(address),
            (5, descriptor) => {
                let kind = match descriptor >> 32 {
                    1 => DescriptorKind::Pipe,
                    2 => DescriptorKind::Socket,
                    3 => DescriptorKind::Counter,
                    _ => DescriptorKind::Other,
                };
                Object::Descriptor(descriptor as u32, kind)
            }
            _ => return None,
        };
        Some(Standing { thread, steps, waits_since, operation: Operation { kind, object }, holder })
    }

    fn touched(&mut self) -> Option<Touched> {
        let how = match self.number()? {
            0 => Touch::Read,
            1 => Touch::Write,
            2 => Touch::Free,
            _ => return None,
        };
        Some(Touched { how, bytes: self.number()?, thread: self.small()? })
    }

    fn tag(&mut self) -> Option<u8> {
        let (&tag, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(tag)
    }

    fn actor(&mut self) -> Option<Actor> {
        let (thread, step) = (self.small()?, self.number()?);
        Some(thread.checked_sub(1).map(|thread| (thread, step)))
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn words(&mut self) -> Option<Cow<'static, str>> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (words, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        self.0 = rest;
        Some(Cow::Owned(String::from_utf8_lossy(words).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Statement<'static>> {
        let standing = |object, holder| {
            let operation = Operation { kind: "mutex-lock".into(), object };
            Statement::Standing(Standing { thread: 3, steps: 17, waits_since: Some(0), operation, holder })
        };
        let touched = |how, thread| Touched { how, bytes: 8, thread };
        vec![
            Statement::Deadlock(2),
            Statement::Livelock(u64::MAX),
            Statement::Race(touched(Touch::Free, 1), touched(Touch::Read, 2)),
            standing(Object::Nothing, None),
            standing(Object::Unknown, Some(0)),
            standing(Object::Thread(4), Some(7)),
            standing(Object::Number(5), None),
            standing(Object::Address(0x5080), None),
            standing(Object::Descriptor(5, DescriptorKind::Socket), None),
            Statement::Place(Place::Address(0x1234)),
            Statement::Place(Place::InModule("a b.so".into(), 16, None)),
            Statement::Place(Place::InModule("a".into(), 16, Some("main".into()))),
            Statement::Left(4, Departure::Otherwise("thread 1".into(), "no enabled thread".into())),
            Statement::Left(4, Departure::Early(9)),
            Statement::Left(0, Departure::Before),
            Statement::Beside(Beside::BeforeMain),
            Statement::Beside(Beside::Other("fork starts a process".into())),
            Statement::Hurried,
            Statement::Outsiders(3),
            Statement::InKernel(1),
            Statement::Refusal("two".into()),
            Statement::Misuse(Misuse::FreedTwice(8, Some((0, 4)), None)),
            Statement::Misuse(Misuse::UsedAfter(3, 8, Some((2, 9)))),
            Statement::Allocated(24, Some((0, 3))),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes: Vec<u8> =
            all().iter().flat_map(|statement| Encoded::of(statement).bytes().to_vec()).collect();
        assert_eq!(Account::read(&bytes).0, all());
    }

    #[test]
    fn whatever_is_read_ends_with_what_makes_no_sense() {
        let bytes: Vec<u8> =
            all().iter().flat_map(|statement| Encoded::of(statement).bytes().to_vec()).collect();
        for length in 0..bytes.len() {
            let read = Account::read(&bytes[..length]).0;
            assert_eq!(read, all()[..read.len()], "cut at {length}");
        }
        for place in 0..bytes.len() {
            for value in [0, 1, 16, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] = value;
                Account::read(&bytes);
            }
        }
    }

    #[test]
    fn words_that_are_too_long_are_cut() {
        let long = "x".repeat(10_000);
        let statement =
            Statement::Place(Place::InModule(long.as_str().into(), 1, Some(long.as_str().into())));
        let read = Account::read(Encoded::of(&statement).bytes()).0;
        let [Statement::Place(Place::InModule(module, 1, Some(name)))] = read.as_slice() else { panic!() };
        assert_eq!((module.len(), name.len()), (LONGEST_WORDS, LONGEST_WORDS));
    }
}
