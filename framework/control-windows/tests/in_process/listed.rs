//! Runs a list of checks as Cargo's own tests run: for programs that are also what their tests start, and so have a `main`
//! of their own.

/// The name of a check, and what it does.
pub(crate) type Case = (&'static str, fn());

/// Runs those whose names hold the first argument, one after the other, and ends the process.
pub(crate) fn run(all: &[Case]) -> ! {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let cases: Vec<_> = all.iter().filter(|(name, _)| name.contains(&filter)).collect();
    println!("\nrunning {} tests", cases.len());
    let mut failed = 0;
    for (name, check) in &cases {
        let good = std::panic::catch_unwind(check).is_ok();
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        failed += usize::from(!good);
    }
    let passed = cases.len() - failed;
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {result}. {passed} passed; {failed} failed; 0 ignored;\n");
    std::process::exit(i32::from(failed > 0));
}
