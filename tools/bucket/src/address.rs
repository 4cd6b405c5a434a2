//! Where a bucket is, and how to speak with it: `s3://bucket/prefix`, and the variables that every tool for S3 takes
//! (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL`, `AWS_REGION`, …).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, PutPayload, RetryConfig};

use crate::trouble::Trouble;

/// How an address begins.
pub const SCHEME: &str = "s3://";
/// How long one request may take: a part of an upload has eight mebibytes.
const REQUEST: Duration = Duration::from_secs(120);
/// How long it takes to reach a server that is there.
const CONNECT: Duration = Duration::from_secs(10);

/// A bucket and the beginning of names in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The bucket.
    pub bucket: String,
    /// What all names begin with; may be empty.
    pub prefix: Path,
}

impl FromStr for Address {
    type Err = Trouble;

    fn from_str(text: &str) -> Result<Address, Trouble> {
        let wrong = |why: &str| {
            Trouble::Refused(format!("`{text}` is no address of a bucket ({why}): say s3://bucket/night"))
        };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong("it does not begin with s3://"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(plain) {
            return Err(wrong("names of buckets have 3 to 63 letters, digits, dots and dashes"));
        }
        let prefix = Path::parse(prefix.trim_matches('/')).map_err(|error| wrong(&error.to_string()))?;
        Ok(Address { bucket: bucket.to_owned(), prefix })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.bucket, self.prefix)
    }
}

impl Address {
    /// Opens it. `patience` is how long a request is tried again when the server fails or is away.
    ///
    /// # Errors
    /// When the variables make no sense.
    pub fn open(&self, patience: Duration) -> Result<AmazonS3, Trouble> {
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(5),
                base: 2.0,
            },
            max_retries: usize::MAX,
            retry_timeout: patience,
        };
        let plain = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .iter()
            .filter_map(|name| std::env::var(name).ok())
            .any(|endpoint| endpoint.starts_with("http://"));
        let client =
            ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT).with_allow_http(plain);
        AmazonS3Builder::from_env()
            .with_bucket_name(&self.bucket)
            .with_client_options(client)
            .with_retry(retry)
            .with_checksum_algorithm(Checksum::SHA256)
            .build()
            .map_err(|error| Trouble::Refused(format!("cannot use {self}: {error}")))
    }

    /// Whether this process may do there what it will have to do: asked before a night begins, not at its end.
    ///
    /// # Errors
    /// When it may not, or nobody answers.
    pub async fn check(&self, store: &dyn ObjectStore) -> Result<(), Trouble> {
        let said = |error| Trouble::of(&self.to_string(), error);
        store.list_with_delimiter(Some(&self.prefix)).await.map_err(said)?;
        let probe = self.prefix.child(format!(".probe-{}", crate::manifest::process_name()));
        store.put(&probe, PutPayload::from_static(b"waylay")).await.map_err(said)?;
        store.delete(&probe).await.map_err(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["s3://nights/2026-11-18/mix", "s3://nights/"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("s3://nights/a/".parse::<Address>().unwrap().to_string(), "s3://nights/a");
        for wrong in ["nights/a", "s3://", "s3://ab/x", "s3://Nights/x", "s3://nights/a//b", "file:///x"] {
            let error = wrong.parse::<Address>().unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains("say s3://bucket/night"), "{error}");
        }
    }
}
