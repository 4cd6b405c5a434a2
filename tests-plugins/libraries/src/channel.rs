//! crossbeam-channel: producers and consumers meet in one channel, and every message arrives once and in order.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, TrySendError, bounded, unbounded};
use std::sync::Mutex;
use std::time::Duration;
use waylay_plugin::{
    Context, Distribution, Failed, Generator, Outcome, Param, Test, Worker, ensure, ensure_eq,
};

/// One channel per iteration, with its own producers and consumers.
pub struct Channel {
    producers: Distribution<usize>,
    consumers: Distribution<usize>,
    messages: Distribution<u64>,
    capacity: Distribution<usize>,
}

/// Which producer, and its how-manieth message.
type Message = (u64, u64);

/// A capacity from here on is a channel without bounds.
const UNBOUNDED: usize = 32;

impl Test for Channel {
    const NAME: &'static str = "channel";
    const ABOUT: &'static str =
        "a message that is lost, delivered twice, or overtakes one of the same sender";
    const PARAMS: &'static [Param] = &[
        Param::new("producers", "{ uniform = { min = 1, max = 4 } }").about("threads that send"),
        Param::new("consumers", "{ uniform = { min = 1, max = 4 } }").about("threads that receive"),
        Param::new("messages", "{ exponential = { min = 1, max = 400 } }").about("messages of each producer"),
        Param::new("capacity", "{ uniform = { min = 0, max = 40 } }")
            .about("0: rendezvous; 32 or more: unbounded"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            producers: context.distribution("producers")?,
            consumers: context.distribution("consumers")?,
            messages: context.distribution("messages")?,
            capacity: context.distribution("capacity")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let producers = worker.draw(self.producers).max(1);
        let consumers = worker.draw(self.consumers).max(1);
        let messages = worker.draw(self.messages);
        let capacity = worker.draw(self.capacity);
        let (sender, receiver) = if capacity >= UNBOUNDED { unbounded() } else { bounded(capacity) };
        let received = Mutex::new(Vec::new());
        worker.scope(|scope| {
            for producer in 0..producers as u64 {
                let sender = sender.clone();
                scope.spawn(move |thread| send(&sender, producer, messages, thread.generator()))?;
            }
            for _ in 0..consumers {
                let (receiver, received) = (receiver.clone(), &received);
                scope.spawn(move |thread| {
                    let mine = receive(&receiver, thread.generator())?;
                    received.lock()?.extend(mine);
                    Ok(())
                })?;
            }
            // The last sender that goes closes the channel; without that the consumers would wait for ever.
            drop(sender);
            Ok(())
        })?;
        let mut received = received.into_inner()?;
        received.sort_unstable();
        let sent =
            (0..producers as u64).flat_map(|producer| (0..messages).map(move |number| (producer, number)));
        ensure_eq!(received.len(), producers * messages as usize, "received with capacity {capacity}");
        ensure!(received.into_iter().eq(sent), "a message came twice and another not at all");
        Ok(())
    }
}

/// Sends in one of the ways that a sender has, drawn anew for each message.
fn send(sender: &Sender<Message>, producer: u64, messages: u64, generator: &mut Generator) -> Outcome {
    for number in 0..messages {
        let mut message = (producer, number);
        if generator.chance(0.5) {
            sender.send(message)?;
            continue;
        }
        loop {
            match sender.try_send(message) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) => {
                    ensure_eq!(back, message, "a refused message came back");
                    message = back;
                    std::thread::yield_now();
                }
                Err(TrySendError::Disconnected(_)) => {
                    return Err(Failed::new("disconnected with receivers alive"));
                }
            }
        }
    }
    Ok(())
}

/// Receives in one of the ways that a receiver has until the channel is closed, and checks the order of each sender.
fn receive(receiver: &Receiver<Message>, generator: &mut Generator) -> Result<Vec<Message>, Failed> {
    let mut received: Vec<Message> = Vec::new();
    let mut last: Vec<Option<u64>> = Vec::new();
    loop {
        let next = match generator.below(3) {
            0 => receiver.recv().ok(),
            1 => match receiver.try_recv() {
                Ok(message) => Some(message),
                Err(TryRecvError::Disconnected) => None,
                Err(TryRecvError::Empty) => {
                    std::thread::yield_now();
                    continue;
                }
            },
            _ => match receiver.recv_timeout(Duration::from_micros(generator.below(200))) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Disconnected) => None,
                Err(RecvTimeoutError::Timeout) => continue,
            },
        };
        let Some((producer, number)) = next else { return Ok(received) };
        let at = producer as usize;
        last.resize(last.len().max(at + 1), None);
        ensure!(last[at] < Some(number), "producer {producer}: {number} came after {:?}", last[at]);
        last[at] = Some(number);
        received.push((producer, number));
    }
}
