//! Puts the libraries that Waylay needs at run time into its executable, so that `cargo install`, which copies executables
//! only, installs a whole product.
//!
//! `include_bytes!` alone would not do: `cargo check` and rustdoc read the same source and build no libraries. Where they are
//! not there, or the build is not optimised, the list is empty, and the command looks for files as it always does first.

use std::path::PathBuf;

use proc_macro::TokenStream;

/// Higher levels take several times as long for a few percent.
const LEVEL: u8 = 6;

/// `libraries!("waylay_control", …)`: a `&[(&str, u64, usize, &[u8])]` of file name, digest, length and deflated content of
/// each library in the folder of dependencies of the crate that is being compiled. Cargo has made all of them before it
/// compiles an executable that depends on them. Deflated they take a fifth of the room: most of a library is names and lines.
#[proc_macro]
pub fn libraries(names: TokenStream) -> TokenStream {
    let names = names.to_string();
    let wanted = names.split(',').map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty());
    let mut list = String::from("&[");
    if let Some(Folders { out, dependencies }) = folders() {
        for name in wanted {
            let file = format!("lib{name}.so");
            let Ok(content) = std::fs::read(dependencies.join(&file)) else { continue };
            let small = out.join(&file).with_extension("deflated");
            let deflated = miniz_oxide::deflate::compress_to_vec(&content, LEVEL);
            std::fs::write(&small, deflated)
                .unwrap_or_else(|error| panic!("cannot write {}: {error}", small.display()));
            let (digest, length) = (digest(&content), content.len());
            list += &format!("({file:?}, {digest}u64, {length}usize, include_bytes!({small:?}) as &[u8]),");
        }
    }
    list += "]";
    list.parse().expect("tuples of literals are Rust")
}

/// Where Cargo keeps what belongs to the crate that is being compiled.
struct Folders {
    /// Of files that are made while it is compiled: `target/release/build/waylay-…/out`.
    out: PathBuf,
    /// Of what it depends on: `target/release/deps`.
    dependencies: PathBuf,
}

/// None in builds that are not optimised.
fn folders() -> Option<Folders> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR")?);
    let profile = out.ancestors().nth(3)?;
    let dependencies = (profile.file_name()? == "release").then(|| profile.join("deps"))?;
    Some(Folders { out, dependencies })
}

/// FNV-1a: tells builds apart, and is no protection against anybody.
fn digest(content: &[u8]) -> u64 {
    content
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
