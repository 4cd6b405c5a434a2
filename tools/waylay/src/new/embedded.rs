//! The files of the projects that `waylay new` makes, embedded when the command is built: templates, whose marks are
//! filled in, and copies of the SDK and the headers as they are.

use super::Lang;

/// Whether marks are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// `{{name}}` and the like are replaced.
    Template,
    /// Written as it is.
    Copy,
}

/// One file.
#[derive(Debug)]
pub(super) struct Embedded {
    /// Where it goes, relative to the project.
    pub(super) path: &'static str,
    /// What is in it.
    pub(super) text: &'static str,
    /// What happens to its marks.
    pub(super) treatment: Treatment,
}

macro_rules! template {
    ($from:literal => $to:literal) => {
        Embedded {
            path: $to,
            text: include_str!(concat!("../../templates/", $from)),
            treatment: Treatment::Template,
        }
    };
}

macro_rules! copy {
    ($from:literal => $to:literal) => {
        Embedded {
            path: $to,
            text: include_str!(concat!("../../../../framework/", $from)),
            treatment: Treatment::Copy,
        }
    };
}

/// The files of a project, in the order of writing.
pub(super) fn files(lang: Lang) -> &'static [Embedded] {
    match lang {
        Lang::Rust => RUST,
        Lang::C => C,
        Lang::Cpp => CPP,
    }
}

static RUST: &[Embedded] = &[
    template!("rust/Cargo.toml.template" => "Cargo.toml"),
    template!("rust/src/lib.rs" => "src/lib.rs"),
    template!("rust/waylay.toml" => "waylay.toml"),
    template!("rust/README.md" => "README.md"),
    template!("rust/gitignore.template" => ".gitignore"),
    template!("rust/waylay-sdk/abi/Cargo.toml.template" => "waylay-sdk/abi/Cargo.toml"),
    copy!("abi/src/lib.rs" => "waylay-sdk/abi/src/lib.rs"),
    template!("rust/waylay-sdk/plugin/Cargo.toml.template" => "waylay-sdk/plugin/Cargo.toml"),
    copy!("plugin/src/boundary.rs" => "waylay-sdk/plugin/src/boundary.rs"),
    copy!("plugin/src/calls.rs" => "waylay-sdk/plugin/src/calls.rs"),
    copy!("plugin/src/combine.rs" => "waylay-sdk/plugin/src/combine.rs"),
    copy!("plugin/src/context.rs" => "waylay-sdk/plugin/src/context.rs"),
    copy!("plugin/src/describe.rs" => "waylay-sdk/plugin/src/describe.rs"),
    copy!("plugin/src/distribution.rs" => "waylay-sdk/plugin/src/distribution.rs"),
    copy!("plugin/src/export.rs" => "waylay-sdk/plugin/src/export.rs"),
    copy!("plugin/src/failed.rs" => "waylay-sdk/plugin/src/failed.rs"),
    copy!("plugin/src/frames.rs" => "waylay-sdk/plugin/src/frames.rs"),
    copy!("plugin/src/frames/unix.rs" => "waylay-sdk/plugin/src/frames/unix.rs"),
    copy!("plugin/src/frames/windows.rs" => "waylay-sdk/plugin/src/frames/windows.rs"),
    copy!("plugin/src/generator.rs" => "waylay-sdk/plugin/src/generator.rs"),
    copy!("plugin/src/hooks.rs" => "waylay-sdk/plugin/src/hooks.rs"),
    copy!("plugin/src/lib.rs" => "waylay-sdk/plugin/src/lib.rs"),
    copy!("plugin/src/panic_site.rs" => "waylay-sdk/plugin/src/panic_site.rs"),
    copy!("plugin/src/scenario.rs" => "waylay-sdk/plugin/src/scenario.rs"),
    copy!("plugin/src/shared.rs" => "waylay-sdk/plugin/src/shared.rs"),
    copy!("plugin/src/stateless.rs" => "waylay-sdk/plugin/src/stateless.rs"),
    copy!("plugin/src/test.rs" => "waylay-sdk/plugin/src/test.rs"),
    copy!("plugin/src/threads.rs" => "waylay-sdk/plugin/src/threads.rs"),
    copy!("plugin/src/worker.rs" => "waylay-sdk/plugin/src/worker.rs"),
];

static C: &[Embedded] = &[
    template!("c/transfers.c" => "transfers.c"),
    template!("c/waylay.toml" => "waylay.toml"),
    template!("c/CMakeLists.txt" => "CMakeLists.txt"),
    template!("c/Makefile" => "Makefile"),
    template!("c/README.md" => "README.md"),
    template!("c/gitignore.template" => ".gitignore"),
    copy!("abi/include/waylay.h" => "include/waylay.h"),
    copy!("abi/include/waylay_steps.c" => "include/waylay_steps.c"),
    copy!("abi/cmake/WaylayConfig.cmake" => "cmake/WaylayConfig.cmake"),
];

static CPP: &[Embedded] = &[
    template!("cpp/transfers.cpp" => "transfers.cpp"),
    template!("cpp/waylay.toml" => "waylay.toml"),
    template!("cpp/CMakeLists.txt" => "CMakeLists.txt"),
    template!("cpp/Makefile" => "Makefile"),
    template!("cpp/README.md" => "README.md"),
    template!("cpp/gitignore.template" => ".gitignore"),
    copy!("abi/include/waylay.h" => "include/waylay.h"),
    copy!("abi/include/waylay.hpp" => "include/waylay.hpp"),
    copy!("abi/include/waylay_steps.c" => "include/waylay_steps.c"),
    copy!("abi/cmake/WaylayConfig.cmake" => "cmake/WaylayConfig.cmake"),
];
