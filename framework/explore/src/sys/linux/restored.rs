//! One process that makes runs from a snapshot, many at a time.
//!
//! It is the program, started like a fork server, that stands in front of `main` again and again. When it has too few
//! threads for a run it is started anew with more; when a run kills it or does not end, that run is given back and it is
//! started anew as well.

use std::path::Path;
use std::time::{Duration, Instant};

use waylay_control_protocol::{Fate, Reply, Settings, most_in};
use waylay_driver::interrupt;

use super::server::{GLANCE, wait_for_death};
use crate::observed::contradiction;
use crate::program::Program;
use crate::recording::Conditions;
use crate::restored::{Answer, NoSnapshot, Order};
use crate::server::{RunError, Server};

/// Deaths of the process, one behind the other without a run in between, after which no more is expected of it.
const MOST_DEATHS: u32 = 3;
/// A batch takes some tens of milliseconds: one that takes so many times what is a hang of one run does not end.
const MOST_PATIENCE: u32 = 4;

/// The process.
#[derive(Debug)]
pub struct Restored {
    server: Server,
    deaths: u32,
    /// The code sites that are steps: part of the snapshot.
    sites: Option<Vec<u64>>,
    /// The snapshot was taken.
    begun: bool,
    /// A snapshot was taken since somebody asked.
    fresh: bool,
}

impl Restored {
    /// Starts the program and waits until it is at `main`.
    pub fn start(program: &Program, library: &Path, conditions: &Conditions) -> Result<Restored, RunError> {
        let server = Server::start(program, library, conditions)?;
        Ok(Restored { server, deaths: 0, sites: None, begun: false, fresh: false })
    }

    /// The settings of a run under the given conditions.
    pub fn settings(&mut self, conditions: &Conditions, seed: u64, run: u64) -> Settings {
        self.server.settings(conditions, seed, run)
    }

    /// Gets ready for runs under these conditions. To be called by the thread that started the process: it ends with that.
    pub fn ready_for(&mut self, conditions: &Conditions) -> Result<(), RunError> {
        if self.sites != conditions.steps.sites {
            self.sites.clone_from(&conditions.steps.sites);
            if std::mem::take(&mut self.begun) {
                self.renew()?;
            }
        }
        Ok(())
    }

    /// Whether the process was started or took its snapshot since the last time this was asked: then the time that runs took
    /// says little about the next ones.
    pub fn was_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// Processor time that the process has used.
    pub(crate) fn spent(&self) -> Option<Duration> {
        self.server.spent()
    }

    /// Makes the ordered runs and tells what came of each, in order.
    pub fn run(
        &mut self,
        orders: &[Order],
        mut tell: impl FnMut(usize, Answer<'_>),
    ) -> Result<(), NoSnapshot> {
        self.fresh |= !std::mem::replace(&mut self.begun, true);
        let mut next = 0;
        while next < orders.len() {
            let begun = Instant::now();
            let (ordered, ended) = self.batch(&orders[next..])?;
            let most = most_in(begun.elapsed());
            let mut grow = false;
            let mut made = 0;
            let mut wrong = None;
            for record in self.server.region.batch().records(ordered, most) {
                let record = match record {
                    Ok(record) => record,
                    Err(why) => {
                        wrong = Some(why);
                        break;
                    }
                };
                match record.fate {
                    Fate::Made => match contradiction(&record.told.told(), true) {
                        Some(why) => {
                            wrong = Some(why);
                            break;
                        }
                        None => tell(next + made, Answer::Made(&record)),
                    },
                    Fate::Abandoned => {
                        tell(next + made, Answer::GivenBack(&record.told.account().text()));
                    }
                    Fate::MoreThreads => {
                        grow = true;
                        break;
                    }
                }
                made += 1;
            }
            next += made;
            if let Some(why) = wrong.or_else(|| self.server.region.contradiction_of_batch()) {
                // The last that was made may have written over it as well as the one behind it.
                tell(next.min(orders.len() - 1), Answer::Overwrote(&why));
                self.server.start_over()?;
                return Err(NoSnapshot("the program writes over memory that belongs to Waylay".to_owned()));
            }
            self.deaths = if made > 0 { 0 } else { self.deaths };
            match ended {
                _ if grow => self.renew()?,
                Ended::Orderly if made > 0 => {}
                Ended::Orderly => {
                    tell(next, Answer::GivenBack("has a record that is too long"));
                    next += 1;
                }
                Ended::Died(why) => {
                    tell(next, Answer::GivenBack(&why));
                    next += 1;
                    self.deaths += 1;
                    if self.deaths >= MOST_DEATHS {
                        return Err(NoSnapshot(format!("the program {why}")));
                    }
                    self.renew()?;
                }
                // Another one would cost as much time, here and in the fork server.
                Ended::Late => return Err(NoSnapshot("the program has a run that does not end".to_owned())),
            }
        }
        Ok(())
    }

    /// Makes a run as the first of a new process.
    pub fn run_afresh(&mut self, order: &Order, mut tell: impl FnMut(Answer<'_>)) -> Result<(), NoSnapshot> {
        self.renew()?;
        self.run(std::slice::from_ref(order), |_, answer| tell(answer))
    }

    /// Has as many of the runs made as fit into one batch, and waits for their end; says how many those were.
    fn batch(&mut self, orders: &[Order]) -> Result<(usize, Ended), NoSnapshot> {
        let Server { region, alive, patience, .. } = &mut self.server;
        let batch = region.batch();
        batch.clear();
        let fitted =
            orders.iter().take_while(|(settings, parameters)| batch.order(*settings, parameters)).count();
        if fitted == 0 {
            return Ok((0, Ended::Orderly));
        }
        region.prepare(orders[0].0, "").map_err(RunError::from)?;
        let Some((child, link)) = alive else {
            return Ok((fitted, Ended::Died("its process is gone".to_owned())));
        };
        if link.start_batch().is_err() {
            return Ok((fitted, Ended::Died("its process is gone".to_owned())));
        }
        let begun = Instant::now();
        let (mut seen, mut since) = (0, begun);
        loop {
            match link.wait_batch((*patience).min(GLANCE)) {
                Ok(Some(Reply::Unable)) => return Err(NoSnapshot(region.text())),
                Ok(Some(_)) => return Ok((fitted, Ended::Orderly)),
                Ok(None) => {
                    let (_, done) = region.batch().progress();
                    // The program can write there, too: what it says must not hold us up for ever.
                    if done > seen && done as usize <= fitted {
                        (seen, since) = (done, Instant::now());
                    }
                    let late = since.elapsed() >= *patience || begun.elapsed() >= *patience * MOST_PATIENCE;
                    if late || interrupt::requested() {
                        return Ok((fitted, Ended::Late));
                    }
                }
                Err(_) => {
                    let status = wait_for_death(child);
                    let status = status.map_or_else(|| "it hangs".to_owned(), |status| status.to_string());
                    return Ok((fitted, Ended::Died(format!("kills its process ({status})"))));
                }
            }
        }
    }

    /// Starts the process again.
    fn renew(&mut self) -> Result<(), RunError> {
        self.fresh = true;
        self.server.end();
        // What a run wrote that did not come to its end.
        let _ = self.server.streams.take();
        self.server.begin()
    }
}

/// How a batch ended.
enum Ended {
    /// All that it made was told.
    Orderly,
    /// The process died in the run behind the last one that has a record.
    Died(String),
    /// That run does not end in time.
    Late,
}
