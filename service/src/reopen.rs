//! The history while it is in use: opened again when its files are cut off under the service.

use waylay_history::History;

use crate::log::Log;

/// Opens the history again when one of its files was cut off under it.
pub(crate) fn open_again(out: &std::path::Path, history: &mut History, log: &Log) {
    if !history.is_cut_off() {
        return;
    }
    match History::open(out) {
        Ok(whole) => {
            *history = whole;
            log.line("the history's files were cut off while they were used; it was opened again");
        }
        Err(error) => log.line(&format!("the history's files were cut off: {error}")),
    }
}
