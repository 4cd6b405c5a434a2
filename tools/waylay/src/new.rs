//! `waylay new NAME --lang rust|c|cpp`: a plugin project that builds and runs as it is.

mod project;

use serde_json::json;

use crate::args::{Language, NewOptions};
use crate::output::{CLEAN, Failed, print_json};
use project::{Lang, NewError, generate};

pub(crate) fn command(options: &NewOptions, json: bool) -> Result<u8, Failed> {
    let lang = match options.lang {
        Language::Rust => Lang::Rust,
        Language::C => Lang::C,
        Language::Cpp => Lang::Cpp,
    };
    let made =
        generate(&options.name, lang, &options.into.join(&options.name)).map_err(|error| match error {
            NewError::Write { .. } => Failed::Own(error.to_string()),
            _ => Failed::Usage(error.to_string()),
        })?;
    if json {
        print_json(&json!({ "folder": made.folder, "files": made.files, "steps": made.steps }))?;
    } else {
        println!("made {} with {} files; next:", made.folder.display(), made.files.len());
        println!("  cd {}", made.folder.display());
        for step in made.steps {
            println!("  {step}");
        }
    }
    Ok(CLEAN)
}
