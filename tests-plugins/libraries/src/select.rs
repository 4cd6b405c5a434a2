//! flume: two channels at once, with deadlines, drains and senders that go away; every message arrives once.

use flume::{RecvTimeoutError, bounded, unbounded};
use std::sync::Mutex;
use std::time::Duration;
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// Two channels per iteration: one with a bound and one without.
pub struct TwoChannels {
    senders: Distribution<usize>,
    receivers: Distribution<usize>,
    messages: Distribution<u64>,
    capacity: Distribution<usize>,
    deadline: Distribution<Duration>,
}

impl Test for TwoChannels {
    const NAME: &'static str = "two-channels";
    const ABOUT: &'static str =
        "a message that a deadline or a drain loses, or a receiver that never hears of the end";
    const PARAMS: &'static [Param] = &[
        Param::new("senders", "{ uniform = { min = 1, max = 3 } }").about("threads that send to both"),
        Param::new("receivers", "{ uniform = { min = 1, max = 3 } }").about("threads that receive from both"),
        Param::new("messages", "{ exponential = { min = 1, max = 300 } }").about("messages of each sender"),
        Param::new("capacity", "{ exponential = { min = 1, max = 16 } }")
            .about("of the channel with a bound"),
        Param::new("deadline", "{ exponential = { min = \"1us\", max = \"500us\" } }")
            .about("longest single wait"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            senders: context.distribution("senders")?,
            receivers: context.distribution("receivers")?,
            messages: context.distribution("messages")?,
            capacity: context.distribution("capacity")?,
            deadline: context.distribution("deadline")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let (senders, receivers) = (worker.draw(self.senders).max(1), worker.draw(self.receivers).max(1));
        let (messages, deadline) = (worker.draw(self.messages), worker.draw(self.deadline));
        let (tight, from_tight) = bounded::<u64>(worker.draw(self.capacity).max(1));
        let (wide, from_wide) = unbounded::<u64>();
        let received = Mutex::new(Vec::new());
        worker.scope(|scope| {
            for sender in 0..senders as u64 {
                let (tight, wide) = (tight.clone(), wide.clone());
                scope.spawn(move |thread| {
                    for number in sender * messages..(sender + 1) * messages {
                        if thread.generator().chance(0.5) {
                            wide.send(number)?;
                        } else {
                            tight.send(number)?;
                        }
                    }
                    Ok(())
                })?;
            }
            drop((tight, wide));
            for _ in 0..receivers {
                let (from_tight, from_wide, received) = (from_tight.clone(), from_wide.clone(), &received);
                scope.spawn(move |thread| {
                    let mut mine: Vec<u64> = Vec::new();
                    let mut open = [true, true];
                    while open[0] || open[1] {
                        for (place, channel) in [&from_tight, &from_wide].into_iter().enumerate() {
                            if thread.generator().chance(0.1) {
                                mine.extend(channel.drain());
                            }
                            match channel.recv_timeout(deadline) {
                                Ok(message) => mine.push(message),
                                Err(RecvTimeoutError::Timeout) => {}
                                Err(RecvTimeoutError::Disconnected) => {
                                    ensure!(channel.is_empty(), "disconnected with messages inside");
                                    open[place] = false;
                                }
                            }
                        }
                    }
                    received.lock()?.extend(mine);
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        let mut received = received.into_inner()?;
        received.sort_unstable();
        let sent = senders as u64 * messages;
        ensure_eq!(received.len() as u64, sent, "received");
        ensure!(received.into_iter().eq(0..sent), "a message came twice and another not at all");
        Ok(())
    }
}
