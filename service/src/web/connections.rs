//! Who is connected: so many at once, none for ever without a word, and nobody at the cost of others.
//!
//! A client that opens connections and says nothing, or asks and does not read the answer, must not keep others out. So
//! when all places are taken, the connection that has said nothing for longest makes room, then the oldest stream of events,
//! which a browser asks for again by itself; one address never has all places; and an answer that is not taken for a while is
//! given up.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Sleep;

/// Connections at once. A browser keeps a few open; five people are thirty.
const MOST: usize = 128;
/// Of these, for one address: behind a tunnel everybody has the same.
const OF_ONE: usize = 96;

/// The connections that are open, oldest first.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<(u64, BTreeMap<u64, Arc<Place>>)>,
}

/// One of them.
#[derive(Debug)]
struct Place {
    who: IpAddr,
    /// Whether it has asked for something.
    heard: AtomicBool,
    /// Whether it listens to events, which has no end.
    listens: AtomicBool,
    leave: Notify,
}

/// A place that is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    number: u64,
    place: Arc<Place>,
    all: Arc<Connections>,
}

impl Connections {
    /// A place for a connection from there; none when there is none to be had.
    pub(super) fn seat(self: &Arc<Connections>, who: IpAddr) -> Option<Seat> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, open) = &mut *open;
        let of_this = open.values().filter(|place| place.who == who).count();
        if open.len() >= MOST || of_this >= OF_ONE {
            // Whoever has too many makes room among their own.
            let own = |place: &Arc<Place>| of_this < OF_ONE || place.who == who;
            let first = |leaves: fn(&Place) -> bool| {
                open.iter().find(|(_, place)| own(place) && leaves(place)).map(|(number, _)| *number)
            };
            let silent = first(|place| !place.heard.load(Ordering::Relaxed));
            let number = silent.or_else(|| first(|place| place.listens.load(Ordering::Relaxed)))?;
            if let Some(place) = open.remove(&number) {
                place.leave.notify_one();
            }
        }
        *last += 1;
        let place = Arc::new(Place {
            who,
            heard: AtomicBool::new(false),
            listens: AtomicBool::new(false),
            leave: Notify::new(),
        });
        open.insert(*last, Arc::clone(&place));
        Some(Seat { number: *last, place, all: Arc::clone(self) })
    }
}

impl Seat {
    /// What is to be called when it has asked for something; true when that is a stream of events.
    pub(super) fn heard(&self) -> impl Fn(bool) + Clone + Send + 'static {
        let place = Arc::clone(&self.place);
        move |listens| {
            place.heard.store(true, Ordering::Relaxed);
            place.listens.store(listens, Ordering::Relaxed);
        }
    }

    /// Waits until somebody else needs the place.
    pub(super) async fn wanted(&self) {
        self.place.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.all.open.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&self.number);
    }
}

/// A stream that gives up when what is written is not taken for a while.
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Patient<S> {
        Patient { stream, patience, waiting: None }
    }

    /// The answer of the stream, or the end of our patience.
    fn judged<T>(&mut self, context: &mut Context<'_>, answer: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if answer.is_ready() {
            self.waiting = None;
            return answer;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judged(context, answer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judged(context, answer)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_flush(context);
        self.judged(context, answer)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn the_silent_make_room_and_those_that_asked_stay() {
        let all = Arc::new(Connections::default());
        let asked: Vec<Seat> = (0..60).map(|_| all.seat(address(1)).unwrap()).collect();
        asked.iter().for_each(|seat| seat.heard()(false));
        let silent: Vec<Seat> = (0..68).map(|_| all.seat(address(2)).unwrap()).collect();
        let third = all.seat(address(3)).expect("the oldest silent one goes");
        third.heard()(false);
        let open = || all.open.lock().unwrap().1.values().map(|place| place.who).collect::<Vec<_>>();
        assert_eq!(open().len(), MOST);
        assert_eq!(open().iter().filter(|who| **who == address(2)).count(), 67);
        drop(silent);
        assert_eq!(open().len(), 61);
        drop((asked, third));
        assert!(open().is_empty());
    }

    #[test]
    fn one_address_never_has_all_places() {
        let all = Arc::new(Connections::default());
        let seats: Vec<Seat> = (0..OF_ONE).map(|_| all.seat(address(1)).unwrap()).collect();
        seats.iter().for_each(|seat| seat.heard()(false));
        assert!(all.seat(address(1)).is_none());
        assert!(all.seat(address(2)).is_some());
    }

    #[test]
    fn listeners_make_room_for_those_that_ask() {
        let all = Arc::new(Connections::default());
        let listeners: Vec<Seat> = (0..OF_ONE).map(|_| all.seat(address(1)).unwrap()).collect();
        listeners.iter().for_each(|seat| seat.heard()(true));
        let ask = || {
            let seat = all.seat(address(1)).expect("a listener goes");
            seat.heard()(false);
            seat
        };
        let _asks: Vec<Seat> = (0..10).map(|_| ask()).collect();
        let open = all.open.lock().unwrap();
        let listen = open.1.values().filter(|place| place.listens.load(Ordering::Relaxed)).count();
        assert_eq!((open.1.len(), listen), (OF_ONE, OF_ONE - 10));
    }

    /// Takes nothing.
    struct Deaf;

    impl AsyncWrite for Deaf {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn an_answer_that_nobody_takes_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut patient = Patient::new(Deaf, Duration::from_millis(30));
        let written = runtime
            .block_on(std::future::poll_fn(|context| Pin::new(&mut patient).poll_write(context, b"answer")));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(patient.waiting.is_some());
        // What is taken in time starts the clock anew.
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(patient.judged(&mut context, Poll::Ready(Ok(1))).is_ready());
        assert!(patient.waiting.is_none());
    }
}
