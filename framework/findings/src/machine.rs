//! The machine that this process runs on, as people name it. Asked of the system when it is shown, and never kept up to date.

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// What can be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// System, version of its kernel, and the name by which it is sold.
    pub system: String,
    /// Processor model.
    pub processor: String,
    /// Processors that this process may use: not all that there are, in a container or with an affinity.
    pub cores: usize,
    /// Main memory in MiB.
    pub memory_mib: u64,
    /// Main memory in MiB that could be had now.
    pub available_mib: u64,
}

impl Machine {
    /// Looks at it.
    pub fn look() -> Machine {
        let wanted = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let found = System::new_with_specifics(wanted).ok();
        let memory_mib = |bytes: fn(&System) -> u64| found.as_ref().map_or(0, bytes) >> 20;
        let brand = found.as_ref().and_then(|system| system.cpus().first()).map(|cpu| cpu.brand().trim());
        let name =
            System::name().ok().map(|name| format!("{name} {}", System::os_version().unwrap_or_default()));
        Machine {
            system: system(System::kernel_version().ok(), name),
            processor: brand.filter(|brand| !brand.is_empty()).unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_mib(System::total_memory),
            available_mib: memory_mib(System::available_memory),
        }
    }
}

/// Threads that wanted to run, on average over the last minute, where the system counts them. Windows does not: what `sysinfo`
/// makes up there begins with zero and needs minutes.
pub fn load() -> Option<f64> {
    System::load_average().ok().map(|load| load.one)
}

/// `linux 6.1.0-13 (Debian GNU/Linux 12)`, as far as it is known.
fn system(kernel: Option<String>, name: Option<String>) -> String {
    let kernel = kernel.map(|kernel| format!(" {kernel}")).unwrap_or_default();
    let name = name.map(|name| format!(" ({})", name.trim())).unwrap_or_default();
    format!("{}{kernel}{name}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_named_as_far_as_it_is_known() {
        let os = std::env::consts::OS;
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(system(text("6.1.0"), text("Debian 12")), format!("{os} 6.1.0 (Debian 12)"));
        assert_eq!(system(None, None), os);
        let machine = Machine::look();
        assert!(machine.system.starts_with(os) && machine.system.len() > os.len(), "{machine:?}");
        assert!(machine.memory_mib > 0 && machine.available_mib <= machine.memory_mib, "{machine:?}");
        assert!(machine.cores > 0 && !machine.processor.is_empty(), "{machine:?}");
    }
}
