//! `--out s3://…`: a campaign that is sent to a bucket while it is written into a local folder.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command as Process, Stdio};

use crate::args::Command;
use crate::bucket::{HELPER, Scratch, ask, check, helper, is_address};
use crate::output::Failed;

/// A campaign's folder that is sent to a bucket while it grows.
pub(crate) struct Sending {
    address: String,
    scratch: Scratch,
    child: Child,
    input: Option<ChildStdin>,
}

impl Sending {
    /// Begins to send what the command will write, if that is to go to a bucket; the command writes into a local folder then.
    pub(crate) fn begin(command: &mut Command) -> Result<Option<Sending>, Failed> {
        let (out, resume) = match command {
            Command::Run(options) => match &mut options.out {
                Some(out) => (out, options.shard.resume),
                None => return Ok(None),
            },
            Command::Explore(options) => (&mut options.settings.out, options.shard.resume),
            Command::Suite(options) => (&mut options.settings.out, false),
            Command::Cargo(options) => (&mut options.settings.out, false),
            // Trials that are there already are not run again.
            Command::Compare(options) => (&mut options.out, true),
            _ => return Ok(None),
        };
        if !is_address(out) {
            return Ok(None);
        }
        let address = out.to_string_lossy().into_owned();
        check(&address)?;
        let scratch = Scratch::new()?;
        let cannot = |error| Failed::Own(format!("cannot start {HELPER}: {error}"));
        let mut process = Process::new(helper()?);
        // Also when this process is killed and cannot.
        process.arg("send").arg(scratch.path()).arg(&address).arg("--remove");
        if resume {
            process.arg("--resume");
        }
        let mut child = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
        let input = child.stdin.take();
        let mut line = String::new();
        let ready = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        if !matches!(ready, Some(Ok(1..))) {
            let _ = child.wait();
            return Err(Failed::Own(format!("{HELPER} cannot begin to send to {address}")));
        }
        *out = scratch.path().to_owned();
        Ok(Some(Sending { address, scratch, child, input }))
    }

    /// Waits until everything is there.
    pub(crate) fn end(mut self) -> Result<(), Failed> {
        drop(self.input.take());
        let sent = self.child.wait().is_ok_and(|status| status.success());
        let folder = self.scratch.path().to_string_lossy().into_owned();
        // Somebody may have killed it.
        let again = || ask(&["send", &folder, &self.address, "--once"]).map(drop);
        match if sent { Ok(()) } else { again() } {
            Ok(()) => {
                eprintln!("waylay: the results are in {}", self.address);
                Ok(())
            }
            Err(Failed::Usage(why) | Failed::Own(why) | Failed::Config(why)) => {
                self.scratch.keep();
                Err(Failed::Own(format!(
                    "not all results are in {} ({why}): they are in {folder}",
                    self.address
                )))
            }
        }
    }
}
