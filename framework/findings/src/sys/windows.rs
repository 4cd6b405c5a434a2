//! Windows: what the system says of the machine.

/// Name and version of the system, the processor, and main memory in KiB, as far as they can be had.
pub(crate) fn machine() -> (String, String, u64) {
    use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
    let mut memory =
        MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..MEMORYSTATUSEX::default() };
    // SAFETY: the structure says its own size and lives across the call.
    unsafe { GlobalMemoryStatusEx(&mut memory) };
    let processor = std::env::var("PROCESSOR_IDENTIFIER").unwrap_or_else(|_| "unknown".to_owned());
    (std::env::consts::OS.to_owned(), processor, memory.ullTotalPhys / 1024)
}
