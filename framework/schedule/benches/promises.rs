//! Whether strategies keep their promises on programs with bugs of known depth: `cargo bench -p waylay-schedule --bench
//! promises`. 20,000 runs each, made as a campaign makes them; the runs are a function of their numbers, so every machine
//! counts the same.

#[path = "../tests/kept/mod.rs"]
mod kept;
#[path = "../tests/model/mod.rs"]
mod model;

const RUNS: u64 = 20_000;

fn main() {
    println!("{:<34} {:<26} {:>7} {:>8} {:>11} {:>11}", "", "", "found", "counting", "promised", "doubt");
    let mut broken = 0;
    for case in kept::cases() {
        let depth = case.depth;
        let fixed = [format!("pct:depth={depth}"), format!("rpro:depth={depth},radius=500")];
        for strategy in ["pct", "portfolio"].map(str::to_owned).into_iter().chain(fixed) {
            let measured = kept::measure(&case, &strategy, 7, RUNS);
            broken += u32::from(!measured.is_kept());
            println!(
                "{:<34} {strategy:<26} {:>7} {:>8} {:>11.3e} {:>11.1e}{}",
                case.name,
                measured.found,
                measured.counting,
                measured.per_run,
                measured.doubt,
                if measured.is_kept() { "" } else { "   BROKEN" }
            );
        }
    }
    assert_eq!(broken, 0, "promises broken");
}
