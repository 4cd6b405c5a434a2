//! What `commit!` says is in the file, where it is looked for, although nothing in the program reads it.

// In two parts, so that this file's own texts are not what is found.
waylay_plugin::commit!(concat!("3f2a", "9c1"));

#[test]
fn the_commit_is_in_the_file() {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let said = ["waylay-commit=", "3f2a9c1\0"].concat();
    assert!(file.windows(said.len()).any(|part| part == said.as_bytes()));
}
