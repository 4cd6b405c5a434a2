//! libzmq (C++): threads push messages of several parts through one context to threads that pull; all arrive, whole, and
//! those of one sender to one receiver in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// One context for the whole test; sockets per iteration.
pub struct Messages {
    context: Option<zmq::Context>,
    endpoints: AtomicU64,
    senders: Distribution<usize>,
    receivers: Distribution<usize>,
    messages: Distribution<u64>,
    size: Distribution<usize>,
    water: Distribution<u32>,
}

/// Longest wait for one message in milliseconds: a message that is lost is a failure, not a hang.
const PATIENCE: i32 = 8_000;

impl Test for Messages {
    const NAME: &'static str = "messages";
    const ABOUT: &'static str = "a message that is lost, torn, overtaken, or split between two receivers";
    const PARAMS: &'static [Param] = &[
        Param::new("senders", "{ uniform = { min = 1, max = 3 } }").about("threads that push"),
        Param::new("receivers", "{ uniform = { min = 1, max = 2 } }").about("threads that pull"),
        Param::new("messages", "{ exponential = { min = 1, max = 150 } }").about("messages of each sender"),
        Param::new("size", "{ exponential = { min = 0, max = 3000 } }").about("bytes of the second part"),
        Param::new("water", "{ exponential = { min = 1, max = 64 } }")
            .about("messages that a socket holds back"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            context: None,
            endpoints: AtomicU64::new(0),
            senders: context.distribution("senders")?,
            receivers: context.distribution("receivers")?,
            messages: context.distribution("messages")?,
            size: context.distribution("size")?,
            water: context.distribution("water")?,
        })
    }

    fn on_start(&mut self, _: &Context<'_>) -> Outcome {
        self.context = Some(zmq::Context::new());
        Ok(())
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let Some(context) = &self.context else { return Err(Failed::new("no context")) };
        let (senders, receivers) = (worker.draw(self.senders).max(1), worker.draw(self.receivers).max(1));
        let (messages, size) = (worker.draw(self.messages), worker.draw(self.size) as u64);
        let water = worker.draw(self.water).clamp(1, 1 << 20) as i32;
        let number = self.endpoints.fetch_add(1, Ordering::Relaxed);
        // Every receiver binds before a sender connects: then no message goes where nobody listens.
        let mut pulls = Vec::new();
        for receiver in 0..receivers {
            let pull = context.socket(zmq::PULL)?;
            pull.set_rcvhwm(water)?;
            pull.set_linger(0)?;
            pull.bind(&format!("inproc://{number}-{receiver}"))?;
            pulls.push(pull);
        }
        let total = senders as u64 * messages;
        let received = Mutex::new(Vec::new());
        let seen = AtomicU64::new(0);
        worker.scope(|scope| {
            for sender in 0..senders as u64 {
                scope.spawn(move |thread| {
                    let push = context.socket(zmq::PUSH)?;
                    push.set_sndhwm(water)?;
                    push.set_sndtimeo(PATIENCE)?;
                    for receiver in 0..receivers {
                        push.connect(&format!("inproc://{number}-{receiver}"))?;
                    }
                    for message in 0..messages {
                        let fill = thread.generator().bits() as u8;
                        let body = vec![fill; thread.generator().below(size + 1) as usize];
                        let head = [sender, message, body.len() as u64, u64::from(fill)];
                        let head: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
                        push.send_multipart([head, body], 0)?;
                    }
                    Ok(())
                })?;
            }
            for pull in pulls {
                let (received, seen) = (&received, &seen);
                scope.spawn(move |_| {
                    let mut mine: Vec<(u64, u64)> = Vec::new();
                    let mut last = vec![None; senders];
                    let mut quiet = 0;
                    while seen.load(Ordering::Acquire) < total {
                        pull.set_rcvtimeo(5)?;
                        let parts = match pull.recv_multipart(0) {
                            Ok(parts) => parts,
                            Err(zmq::Error::EAGAIN) => {
                                quiet += 5;
                                ensure!(quiet < PATIENCE, "nothing came any more");
                                continue;
                            }
                            Err(error) => return Err(error.into()),
                        };
                        quiet = 0;
                        seen.fetch_add(1, Ordering::Release);
                        ensure_eq!(parts.len(), 2, "parts");
                        let word = |place: usize| -> u64 {
                            parts[0].get(8 * place..8 * place + 8).map_or(u64::MAX, |bytes| {
                                u64::from_le_bytes(bytes.try_into().unwrap_or_default())
                            })
                        };
                        let (sender, message) = (word(0), word(1));
                        ensure!(sender < senders as u64, "from sender {sender}");
                        ensure_eq!(parts[1].len() as u64, word(2), "bytes of the second part");
                        ensure!(parts[1].iter().all(|byte| u64::from(*byte) == word(3)), "a torn message");
                        let before = &mut last[sender as usize];
                        ensure!(*before < Some(message), "sender {sender}: {message} came after {before:?}");
                        *before = Some(message);
                        mine.push((sender, message));
                    }
                    received.lock()?.extend(mine);
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        let mut received = received.into_inner()?;
        received.sort_unstable();
        let sent = (0..senders as u64).flat_map(|sender| (0..messages).map(move |message| (sender, message)));
        ensure!(received.into_iter().eq(sent), "a message came twice or not at all");
        Ok(())
    }
}
