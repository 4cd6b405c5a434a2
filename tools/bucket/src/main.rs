//! The command `waylay-bucket`: `waylay` starts it for addresses such as `s3://bucket/night`, and people may, too.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use object_store::ObjectStore;
use tokio::sync::oneshot;
use waylay_bucket::address::Address;
use waylay_bucket::fetch::{Fetched, Layout, Wanted, fetch};
use waylay_bucket::manifest::process_name;
use waylay_bucket::send::Sender;
use waylay_bucket::trouble::Trouble;

/// How long a request is tried again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the last results are tried to be sent, when nothing else is left to do.
const LAST_PATIENCE: Duration = Duration::from_secs(600);
/// How long one waits between two attempts of those.
const PAUSE: Duration = Duration::from_secs(1);

/// Results of Waylay in an S3-compatible bucket.
#[derive(Parser)]
#[command(name = "waylay-bucket", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Send a folder to a place of its own below an address, until standard input ends.
    Send {
        /// The folder.
        folder: PathBuf,
        /// The address, such as s3://bucket/night/shards/1.
        address: String,
        /// Seconds from one round to the next.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
        every: u64,
        /// Fetch first what earlier processes left below the address.
        #[arg(long)]
        resume: bool,
        /// Remove the folder when all of it was sent.
        #[arg(long, conflicts_with = "once")]
        remove: bool,
        /// Send what there is, and end.
        #[arg(long)]
        once: bool,
        /// Take away what others left below the address.
        #[arg(long, requires = "once")]
        replace: bool,
    },
    /// Fetch everything below an address, each process's files into a folder of their own.
    Get {
        /// The address.
        address: String,
        /// The folder.
        folder: PathBuf,
        /// Only the records of campaigns, which say how things stand.
        #[arg(long)]
        records: bool,
    },
    /// Say whether this machine may list, read, write and delete below an address.
    Check {
        /// The address.
        address: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("waylay-bucket: cannot begin: {error}");
            return ExitCode::from(3);
        }
    };
    match runtime.block_on(run(&arguments.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("waylay-bucket: {trouble}");
            ExitCode::from(trouble.exit_code())
        }
    }
}

async fn run(command: &Command) -> Result<(), Trouble> {
    match command {
        Command::Send { folder, address, every, resume, remove, once, replace } => {
            let address: Address = address.parse()?;
            let store = address.open(PATIENCE)?;
            match once {
                true => send_once(&store, &address, folder, *replace).await,
                false => {
                    send(&store, &address, folder, Duration::from_secs(*every), *resume).await?;
                    if *remove {
                        // What is in the way of nobody is not worth a word.
                        let _ = std::fs::remove_dir_all(folder);
                    }
                    Ok(())
                }
            }
        }
        Command::Get { address, folder, records } => {
            let address: Address = address.parse()?;
            let store = address.open(PATIENCE)?;
            let wanted = if *records { Wanted::Records } else { Wanted::All };
            let fetched = fetch(&store, &address, folder, wanted, Layout::ByProcess).await?;
            tell_damaged(&fetched);
            let _ = writeln!(
                std::io::stdout(),
                "{{\"processes\": {}, \"ended\": {}, \"files\": {}, \"damaged\": {}}}",
                fetched.processes,
                fetched.ended,
                fetched.files,
                fetched.damaged.len()
            );
            Ok(())
        }
        Command::Check { address } => {
            let address: Address = address.parse()?;
            address.check(&address.open(PATIENCE)?).await
        }
    }
}

fn tell_damaged(fetched: &Fetched) {
    fetched.damaged.iter().for_each(|sentence| eprintln!("waylay-bucket: {sentence}: left out"));
}

async fn send_once(
    store: &dyn ObjectStore,
    address: &Address,
    folder: &Path,
    replace: bool,
) -> Result<(), Trouble> {
    let mut sender = Sender::new(store, address, &process_name(), folder.to_owned(), BTreeSet::new());
    finish(&mut sender).await?;
    if replace { sender.replace_others(address).await } else { Ok(()) }
}

async fn send(
    store: &dyn ObjectStore,
    address: &Address,
    folder: &Path,
    every: Duration,
    resume: bool,
) -> Result<(), Trouble> {
    // Who started this decides when it ends, by closing its standard input, and dies or is asked to end before.
    let _ = ctrlc::set_handler(|| ());
    let earlier = match resume {
        true => fetch(store, address, folder, Wanted::All, Layout::Together).await?,
        false => Fetched::default(),
    };
    tell_damaged(&earlier);
    let mut sender = Sender::new(store, address, &process_name(), folder.to_owned(), earlier.all);
    // Whoever looks at the bucket sees that somebody began.
    sender.round(false).await?;
    // Who started this may be gone already; what it left is sent all the same.
    let _ = writeln!(std::io::stdout(), "ready");
    let mut ended = when_input_ends();
    let mut away = false;
    while tokio::time::timeout(every, &mut ended).await.is_err() {
        match sender.round(false).await {
            Ok(_) if away => {
                away = false;
                eprintln!("waylay-bucket: {address} answers again");
            }
            Ok(_) => {}
            // Results wait in the folder meanwhile.
            Err(trouble) if !away => {
                away = true;
                eprintln!("waylay-bucket: {trouble}; it is tried again");
            }
            Err(_) => {}
        }
    }
    finish(&mut sender).await
}

/// Sends what there is until all of it is there.
async fn finish(sender: &mut Sender<'_>) -> Result<(), Trouble> {
    let began = Instant::now();
    loop {
        match sender.round(true).await {
            Ok(round) if round.late == 0 => return Ok(()),
            Ok(_) => {}
            Err(trouble @ Trouble::Refused(_)) => return Err(trouble),
            Err(trouble) if began.elapsed() > LAST_PATIENCE => return Err(trouble),
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn when_input_ends() -> oneshot::Receiver<()> {
    let (over, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin();
        let mut buffer = [0; 64];
        while matches!(input.read(&mut buffer), Ok(1..)) {}
        let _ = over.send(());
    });
    ended
}
