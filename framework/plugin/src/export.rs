//! The macros that turn a crate into a plugin, and that say from which commit it is built.

/// Says from which commit the plugin is built, once per crate. Reports name it beside the build id, and say between which commits a
/// failure came. A build script or the environment gives it: `waylay_plugin::commit!(env!("COMMIT"));`.
///
/// ```
/// waylay_plugin::commit!("3f2a9c1");
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! commit {
    ($commit:expr) => {
        const _: () = {
            const TEXT: &str = concat!("waylay-commit=", $commit, "\0");
            // Exported, so that the linker keeps what nothing in the program reads.
            #[used]
            #[unsafe(no_mangle)]
            static WAYLAY_COMMIT: [u8; TEXT.len()] = match TEXT.as_bytes().first_chunk() {
                Some(text) => *text,
                None => unreachable!(),
            };
        };
    };
}

/// Exports a plugin: its name, its tests, the shared kinds that it can make, and hooks for combiners. Once per crate,
/// whose `crate-type` includes `cdylib`.
///
/// ```
/// # use waylay_plugin::{Context, Failed, Kind, Outcome, Shared, Test, Worker};
/// # struct Push; struct Pop; struct Queue;
/// # impl Test for Push {
/// #     const NAME: &'static str = "push"; const ABOUT: &'static str = "";
/// #     fn create(_: &Context<'_>) -> Result<Self, Failed> { Ok(Push) }
/// #     fn main(&self, _: &Worker<'_>) -> Outcome { Ok(()) }
/// # }
/// # impl Test for Pop {
/// #     const NAME: &'static str = "pop"; const ABOUT: &'static str = "";
/// #     fn create(_: &Context<'_>) -> Result<Self, Failed> { Ok(Pop) }
/// #     fn main(&self, _: &Worker<'_>) -> Outcome { Ok(()) }
/// # }
/// # unsafe impl Shared for Queue { const KIND: &'static str = "queue"; }
/// # impl Kind for Queue { const ABOUT: &'static str = ""; fn create() -> Result<Self, Failed> { Ok(Queue) } }
/// waylay_plugin::export! { name: "queues", tests: [Push, Pop], kinds: [Queue] }
/// # fn main() {}
/// ```
///
/// Two tests of one name do not compile:
///
/// ```compile_fail
/// # use waylay_plugin::{Context, Failed, Outcome, Test, Worker};
/// # struct Push;
/// # impl Test for Push {
/// #     const NAME: &'static str = "push"; const ABOUT: &'static str = "";
/// #     fn create(_: &Context<'_>) -> Result<Self, Failed> { Ok(Push) }
/// #     fn main(&self, _: &Worker<'_>) -> Outcome { Ok(()) }
/// # }
/// waylay_plugin::export! { name: "queues", tests: [Push, Push] }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export {
    (
        name: $name:expr, tests: [$($test:ty),* $(,)?]
        $(, kinds: [$($kind:ty),* $(,)?])? $(, hooks: [$($hooks:ty),* $(,)?])? $(,)?
    ) => {
        const _: () = {
            use $crate::exported::{self, abi};

            const _: () = exported::check_names(&[$(<$test as $crate::Test>::NAME),*]);
            const _: () = exported::check_names(&[$($(<$kind as $crate::Shared>::KIND),*)?]);
            const _: () = exported::check_names(&[$($(<$hooks as $crate::Hooks>::NAME),*)?]);

            fn table() -> &'static exported::Table {
                static TABLE: ::std::sync::OnceLock<exported::Table> = ::std::sync::OnceLock::new();
                TABLE.get_or_init(|| {
                    exported::Table::new(
                        $name,
                        ::std::vec![$(exported::TestEntry::of::<$test>()),*],
                        ::std::vec![$($(exported::KindEntry::of::<$kind>()),*)?],
                        ::std::vec![$($(exported::HooksEntry::of::<$hooks>()),*)?],
                    )
                })
            }

            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            extern "C" fn WaylayPlugin() -> exported::Described {
                table().info()
            }

            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            unsafe extern "C" fn CreateInstance(args: *const abi::CreateArgs) -> *mut abi::Instance {
                // SAFETY: the host passes what the contract says.
                unsafe { exported::create_instance(table(), args) }
            }

            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            unsafe extern "C" fn DestroyInstance(instance: *mut abi::Instance) {
                // SAFETY: the host passes what `CreateInstance` returned, once.
                unsafe { exported::destroy_instance(instance) }
            }
        };
    };
}
