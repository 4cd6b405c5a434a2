//! From what the linker sees to what the programmer wrote.

use std::borrow::Cow;

use cpp_demangle::DemangleOptions;

/// Demangles Rust (both manglings, without hash) and C++ names, those of Microsoft's compiler too; others come back without
/// their version.
pub(crate) fn demangle(raw: &str) -> String {
    if raw.starts_with('?') {
        let name = msvc_demangler::demangle(raw, msvc_demangler::DemangleFlags::NAME_ONLY);
        return name.unwrap_or_else(|_| raw.to_owned());
    }
    let (name, _) = raw.split_once('@').unwrap_or((raw, ""));
    if is_rust(name)
        && let Ok(demangled) = rustc_demangle::try_demangle(without_suffix(name))
    {
        return format!("{demangled:#}");
    }
    if name.starts_with("_Z") || name.starts_with("__Z") {
        let plain = strip_clone(name);
        let options = DemangleOptions::new().no_params().no_return_type();
        if let Ok(symbol) = cpp_demangle::Symbol::new(plain.as_bytes())
            && let Ok(demangled) = symbol.demangle_with_options(&options)
        {
            return demangled;
        }
    }
    strip_clone(name).into_owned()
}

/// A legacy Rust name is a C++ nested name that ends in a hash of 16 digits.
fn is_rust(name: &str) -> bool {
    if name.starts_with("_R") || name.starts_with("__R") {
        return true;
    }
    let base = without_suffix(name);
    base.starts_with("_ZN")
        && base
            .strip_suffix('E')
            .and_then(|base| base.len().checked_sub(19).and_then(|at| base.get(at..)))
            .is_some_and(|tail| {
                tail.starts_with("17h") && tail[3..].bytes().all(|byte| byte.is_ascii_hexdigit())
            })
}

/// A legacy Rust name without what optimisers append to copies, and to the parts of a variable that they took apart (`.0`).
fn without_suffix(name: &str) -> &str {
    let end = name.find("E.").filter(|_| name.starts_with("_ZN"));
    end.map_or(name, |end| &name[..=end])
}

/// Takes off what compilers append to copies and parts of a function: `.cold`, `.part.0`, `.isra.1`, ….
pub(crate) fn strip_clone(name: &str) -> Cow<'_, str> {
    const MARKS: [&str; 8] =
        [".cold", ".part.", ".isra.", ".constprop.", ".llvm.", ".lto_priv.", ".localalias", ".clone."];
    let end = MARKS.iter().filter_map(|mark| name.find(mark)).filter(|at| *at > 0).min();
    Cow::Borrowed(end.map_or(name, |end| &name[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_reads_as_written() {
        let table = [
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.123", "core::fmt::Write::write_fmt"),
            ("_ZN7counter4HITS17h1def390e6fffbd59E.0", "counter::HITS"),
            ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
            ("_ZN3foo3barEi", "foo::bar"),
            ("_ZN3foo3barILi3EEEvi", "foo::bar<3>"),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"),
            ("_Z3foov.part.0", "foo"),
            ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
            ("worker.constprop.0", "worker"),
            ("main", "main"),
        ];
        for (raw, written) in table {
            assert_eq!(demangle(raw), written);
        }
    }

    #[test]
    fn garbage_stays_as_it_is() {
        for raw in ["_Z", "_R", "_ZN", "_ZN17hE", "", ".cold"] {
            assert_eq!(demangle(raw), raw);
        }
    }
}
