//! What heap accounting costs, and how soon it finds a leak.
//!
//!     cargo bench -p waylay-control --bench heap              the table of costs
//!     cargo bench -p waylay-control --bench heap -- detect    a 1 % leak until it is found
//!
//! This program runs itself as the measured process, plain and under the preload library. The variants
//! take turns, the figure is CPU time per operation, and the best of all turns counts: everything else a
//! machine does can only make a run slower. The exit code says whether the promise holds.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod cost;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod detect;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod load;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let holds = match words[..] {
        [load::WORKER, kind, threads, operations] => {
            load::work(kind, threads, operations);
            true
        }
        [] => cost::table(9),
        ["quick"] => cost::table(3),
        ["detect"] => detect::until_found(),
        _ => {
            eprintln!("usage: heap [quick | detect]");
            return std::process::ExitCode::from(2);
        }
    };
    if holds { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {
    println!("heap accounting exists on Linux with glibc only");
}
