//! Completions for shells and pages for `man`, made from the command line itself.

use std::io::Write;

use crate::args::{Arguments, CompletionsOptions, ManOptions};
use crate::output::{CLEAN, Failed, write_file};

pub(crate) fn completions(options: &CompletionsOptions) -> Result<u8, Failed> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command_for_help(), "waylay", &mut script);
    let _ = std::io::stdout().lock().write_all(&script);
    Ok(CLEAN)
}

pub(crate) fn manual(options: &ManOptions) -> Result<u8, Failed> {
    let command = Arguments::command_for_help();
    let page = |command: clap::Command| -> Result<Vec<u8>, Failed> {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|error| Failed::Own(error.to_string()))?;
        Ok(page)
    };
    let Some(folder) = &options.into else {
        let _ = std::io::stdout().lock().write_all(&page(command)?);
        return Ok(CLEAN);
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| Failed::Own(format!("cannot make {}: {error}", folder.display())))?;
    let mut written = 0;
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        let name = format!("waylay-{}", one.get_name());
        // A page is looked for under the name that it gives itself.
        let named = one.clone().display_name(name.clone()).bin_name(name.clone());
        write_file(&folder.join(format!("{name}.1")), &page(named)?)?;
        written += 1;
    }
    write_file(&folder.join("waylay.1"), &page(command)?)?;
    eprintln!("waylay: wrote {} pages into {}", written + 1, folder.display());
    Ok(CLEAN)
}
