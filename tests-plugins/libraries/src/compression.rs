//! zstd: its own threads compress parts of one stream at the same time, and the stream still unpacks to what went in.

use std::io::{Read, Write};
use waylay_plugin::{
    Context, Failed, Generator, Group, Outcome, Param, Scenario, Test, Worker, ensure, ensure_eq,
};
use zstd::stream::{Decoder, Encoder};

/// What one iteration works on; each group leaves it to the next.
#[derive(Default)]
struct Stream {
    plain: Vec<u8>,
    packed: Vec<u8>,
    unpacked: Vec<u8>,
}

/// Scenario: fill, compress, decompress, compare.
pub struct Compression(Scenario<Stream>);

impl Test for Compression {
    const NAME: &'static str = "compression";
    const ABOUT: &'static str = "a block that is lost, swapped or torn between zstd's compressing threads";
    const PARAMS: &'static [Param] = &[
        Param::new("size", "{ exponential = { min = 1, max = 4000000 } }").about("bytes of a stream"),
        Param::new("variety", "{ uniform = { min = 1, max = 255 } }").about("different bytes in it"),
        Param::new("level", "{ uniform = { min = 1, max = 5 } }").about("zstd's compression level"),
        Param::new("threads", "{ uniform = { min = 1, max = 4 } }").about("zstd's own threads"),
        Param::new("chunk", "{ exponential = { min = 1, max = 200000 } }").about("bytes handed over at once"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let size = context.distribution::<usize>("size")?;
        let variety = context.distribution::<u64>("variety")?;
        let level = context.distribution::<u32>("level")?;
        let threads = context.distribution::<u32>("threads")?;
        let chunk = context.distribution::<usize>("chunk")?;
        let fill = Group::new("fill").action("bytes", move |stream: &mut Stream, worker| {
            stream.plain = bytes(worker.draw(size), worker.draw(variety), worker.generator(0));
            Ok(())
        });
        let compress = Group::new("compress").action("stream", move |stream: &mut Stream, worker| {
            let mut encoder = Encoder::new(Vec::new(), worker.draw(level) as i32)?;
            encoder.multithread(worker.draw(threads))?;
            encoder.include_checksum(true)?;
            write_in_chunks(&mut encoder, &stream.plain, worker.draw(chunk), worker)?;
            stream.packed = encoder.finish()?;
            Ok(())
        });
        let decompress = Group::new("decompress").action("stream", |stream: &mut Stream, _| {
            Decoder::new(&stream.packed[..])?.read_to_end(&mut stream.unpacked)?;
            Ok(())
        });
        let compare = Group::new("compare").action("bytes", |stream: &mut Stream, _| {
            ensure_eq!(stream.unpacked.len(), stream.plain.len());
            let differs = stream.unpacked.iter().zip(&stream.plain).position(|(left, right)| left != right);
            ensure!(differs.is_none(), "byte {differs:?} of {} differs", stream.plain.len());
            Ok(())
        });
        Ok(Self(Scenario::new().group(fill).group(compress).group(decompress).group(compare)))
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        self.0.run(&mut Stream::default(), worker)
    }
}

/// Runs of equal bytes: compressible, but not so much that there is nothing to do.
fn bytes(size: usize, variety: u64, mut generator: Generator) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        let byte = generator.below(variety.max(1)) as u8;
        let run = 1 + generator.below(24) as usize;
        bytes.resize((bytes.len() + run).min(size), byte);
    }
    bytes
}

fn write_in_chunks(to: &mut impl Write, all: &[u8], chunk: usize, worker: &Worker<'_>) -> Outcome {
    for part in all.chunks(chunk.max(1)) {
        to.write_all(part)?;
        worker.progress();
    }
    Ok(())
}
