//! Why something did not work, in a sentence that says what to do, and whose fault it is.

use std::path::{Path, PathBuf};

use object_store::Error;

/// Why results could not be sent or fetched.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// What was asked for makes no sense, or is not allowed.
    #[error("{0}")]
    Refused(String),
    /// The bucket does not answer, or not for long enough.
    #[error("{0}")]
    Away(String),
    /// A file of this machine cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Trouble {
    /// 2 when the same would happen again, 3 when another time may be better: what engines try again.
    pub fn exit_code(&self) -> u8 {
        match self {
            Trouble::Refused(_) => 2,
            Trouble::Away(_) | Trouble::File { .. } => 3,
        }
    }

    /// What a store said of `address`.
    pub fn of(address: &str, error: Error) -> Trouble {
        let said = error.to_string();
        match &error {
            // A server that checks nothing else still says this of a bucket that it does not have.
            Error::NotFound { .. } => missing(address),
            _ if said.contains("NoSuchBucket") => missing(address),
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => denied(address),
            _ if [
                "AccessDenied",
                "InvalidAccessKeyId",
                "SignatureDoesNotMatch",
                "403 Forbidden",
                "NotSignedUp",
            ]
            .iter()
            .any(|word| said.contains(word)) =>
            {
                denied(address)
            }
            _ => Trouble::Away(format!("{address} does not do what it is asked: {}", one_line(&said))),
        }
    }
}

fn missing(address: &str) -> Trouble {
    Trouble::Refused(format!("there is no bucket for {address}: make it first, or name another"))
}

fn denied(address: &str) -> Trouble {
    Trouble::Refused(format!(
        "no permission for {address}: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may list, read, write and delete \
         there"
    ))
}

/// What servers say may be a page.
fn one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Names the file that could not be used.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Trouble {
    move |source| Trouble::File { path: path.to_owned(), source }
}
