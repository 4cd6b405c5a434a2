//! Whether promises are kept by the product as a whole: `cargo bench -p waylay --bench promises`.
//!
//! 20,000 schedules of every test of the zoo and of each program of `tests/kept`, under every strategy that promises something
//! about its bug. Prints a table and fails when a promise is broken. Words behind `--` choose rows in which all of them
//! occur (`hosted`, `explored`, programs, strategies), `--runs N` makes another number of schedules.

#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
#[path = "../tests/kept/mod.rs"]
mod kept;
#[cfg(target_os = "linux")]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
fn main() {
    use kept::{explored, hosted, strategies};

    let (mut runs, mut wanted) = (20_000, Vec::new());
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => runs = arguments.next().and_then(|runs| runs.parse().ok()).expect("--runs N"),
            _ => wanted.push(argument),
        }
    }
    let chosen = |how: &str, name: &str, strategy: &str| {
        let row = format!("{how} {name} {strategy}");
        wanted.iter().all(|part| row.contains(part.as_str()))
    };
    println!(
        "| program | d | strategy | schedules | found | of which count | promised for each | expected at least | doubt |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut broken = Vec::new();
    let mut tell = |row: kept::Kept| {
        println!("{row}");
        if !row.is_kept() {
            broken.push(row);
        }
    };
    let hosts = hosted::Hosts::new();
    for test in &hosted::all() {
        for strategy in
            strategies(test.depth).iter().filter(|strategy| chosen("hosted", &test.name, strategy))
        {
            tell(hosts.keep(test, strategy, runs));
        }
    }
    let place = support::Workplace::new();
    for (file, depth) in explored::ALL {
        for strategy in strategies(depth).iter().filter(|strategy| chosen("explored", file, strategy)) {
            tell(explored::keep(&place, (file, depth), strategy, runs));
        }
    }
    assert!(broken.is_empty(), "{} promises are broken", broken.len());
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("programs are explored on Linux");
}
