//! mimalloc (C): blocks are made by one thread, filled, handed over, grown and freed by others, also after their maker
//! is gone; no two live blocks overlap.

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc};
use std::sync::mpsc;
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// Threads that pass blocks around, anew in each iteration.
pub struct Allocator {
    threads: Distribution<usize>,
    blocks: Distribution<usize>,
    size: Distribution<usize>,
    grown: Distribution<f64>,
    handed: Distribution<f64>,
}

/// A live block, filled with its mark.
struct Block {
    at: *mut u8,
    size: usize,
    mark: u8,
}

// SAFETY: a block has one owner at a time, and mimalloc frees blocks on any thread.
unsafe impl Send for Block {}

impl Block {
    fn new(size: usize, mark: u8) -> Result<Block, Failed> {
        // SAFETY: any size is fine.
        let at = unsafe { mi_malloc(size) }.cast::<u8>();
        ensure!(!at.is_null(), "no memory for {size} bytes");
        // SAFETY: the block has `size` bytes.
        unsafe { at.write_bytes(mark, size) };
        Ok(Block { at, size, mark })
    }

    fn verify(&self) -> Outcome {
        // SAFETY: the block is alive and was filled.
        let bytes = unsafe { std::slice::from_raw_parts(self.at, self.size) };
        let differs = bytes.iter().position(|byte| *byte != self.mark);
        ensure!(differs.is_none(), "byte {differs:?} of {} was overwritten", self.size);
        Ok(())
    }

    fn grow(mut self, size: usize) -> Result<Block, Failed> {
        self.verify()?;
        // SAFETY: the block is alive and given up for the new one.
        let at = unsafe { mi_realloc(self.at.cast(), size) }.cast::<u8>();
        ensure!(!at.is_null(), "no memory for {size} bytes");
        self.at = at;
        self.size = self.size.min(size);
        self.verify()?;
        // SAFETY: the new block has `size` bytes.
        unsafe { at.write_bytes(self.mark, size) };
        self.size = size;
        Ok(self)
    }

    fn free(self) -> Outcome {
        self.verify()?;
        // SAFETY: the block is alive and given up.
        unsafe { mi_free(self.at.cast()) };
        Ok(())
    }
}

impl Test for Allocator {
    const NAME: &'static str = "allocator";
    const ABOUT: &'static str =
        "two live blocks that overlap, or a block that changes on its way to the thread that frees it";
    const PARAMS: &'static [Param] = &[
        Param::new("threads", "{ uniform = { min = 2, max = 4 } }")
            .about("threads that pass blocks on in a ring"),
        Param::new("blocks", "{ exponential = { min = 1, max = 300 } }").about("blocks of each thread"),
        Param::new("size", "{ exponential = { min = 1, max = 20000 } }").about("bytes of a block"),
        Param::new("grown", "{ uniform = { min = 0.0, max = 0.4 } }").about("part that is grown or shrunk"),
        Param::new("handed", "{ uniform = { min = 0.2, max = 1.0 } }")
            .about("part that another thread frees"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            threads: context.distribution("threads")?,
            blocks: context.distribution("blocks")?,
            size: context.distribution("size")?,
            grown: context.distribution("grown")?,
            handed: context.distribution("handed")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let threads = worker.draw(self.threads).max(1);
        let (blocks, size) = (worker.draw(self.blocks), worker.draw(self.size).max(1) as u64);
        let (grown, handed) = (worker.draw(self.grown), worker.draw(self.handed));
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::channel::<Block>()).unzip();
        let counts = std::sync::Mutex::new((0usize, 0usize));
        worker.scope(|scope| {
            for (place, receiver) in receivers.into_iter().enumerate() {
                let (next, counts) = (senders[(place + 1) % threads].clone(), &counts);
                scope.spawn(move |thread| {
                    let (mut made, mut freed) = (0, 0);
                    for _ in 0..blocks {
                        let bytes = 1 + thread.generator().below(size) as usize;
                        let mut block = Block::new(bytes, thread.generator().bits() as u8)?;
                        made += 1;
                        if thread.generator().chance(grown) {
                            block = block.grow(1 + thread.generator().below(2 * size) as usize)?;
                        }
                        if thread.generator().chance(handed) {
                            next.send(block).map_err(|_| Failed::new("the next thread is gone"))?;
                        } else {
                            block.free()?;
                            freed += 1;
                        }
                        while let Ok(block) = receiver.try_recv() {
                            block.free()?;
                            freed += 1;
                        }
                    }
                    drop(next);
                    // Until the thread before is done.
                    for block in receiver {
                        block.free()?;
                        freed += 1;
                    }
                    let mut counts = counts.lock()?;
                    *counts = (counts.0 + made, counts.1 + freed);
                    Ok(())
                })?;
            }
            drop(senders);
            Ok(())
        })?;
        let (made, freed) = counts.into_inner()?;
        ensure_eq!(made, freed, "blocks made and freed");
        Ok(())
    }
}
