//! Evidence as files. Only what the failure's own list names can be had: a name is looked up there and never made into a
//! path before, so there is nothing to climb out of.

use std::fs::File;
use std::io::{Read, Seek};

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use waylay_driver::archive::{self, FailureFolder};
use waylay_history::feed::failure_folder;

use super::{Shared, Trouble};

/// Everything in one file.
pub(super) const BUNDLE: &str = "bundle.zip";
/// A piece on its way.
const PIECE: usize = 64 * 1024;
/// What a browser must not do with a file, should it show it.
const POLICY: &str = "default-src 'none'; sandbox";

/// One file of a failure.
pub(super) async fn file(
    State(shared): State<Shared>,
    Path((campaign, signature, name)): Path<(String, String, String)>,
) -> Result<Response, Trouble> {
    let none = Trouble::Nothing("There is no such file.");
    let out = shared.site.out.clone();
    let wanted = name.clone();
    let found = shared
        .site
        .ask(move |history| {
            // The history knows the names of campaigns and failures; others are no folders here. A campaign may have a failure
            // under another signature of the same cause.
            let sightings = history.sightings(&signature, u64::MAX >> 1)?;
            let known = sightings.into_iter().find(|one| one.campaign == campaign);
            Ok(known.map(|one| (campaign, one.signature)))
        })
        .await?;
    let Some((campaign, signature)) = found else { return Err(none) };
    let folder = failure_folder(&out, &campaign, &signature);
    let found =
        FailureFolder { campaign: out.join(&campaign), folder: folder.clone(), id: signature.clone() };
    let read = tokio::task::spawn_blocking(move || -> Option<Response> {
        let failure = archive::read_failure(&found).ok()?;
        if wanted == BUNDLE {
            return bundle(&found);
        }
        failure.files.iter().find(|file| file.name == wanted)?;
        stream_of(File::open(folder.join(&wanted)).ok()?, &wanted)
    });
    read.await.map_err(|error| Trouble::Own(error.to_string()))?.ok_or(none)
}

fn headers(response: &mut Response, kind: &'static str, name: &str) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Names are our own, and plain; anything else is saved under a name that is.
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let shown = kind.starts_with("text/plain");
    let how = if shown { "inline" } else { "attachment" };
    if let Ok(value) = HeaderValue::from_str(&format!("{how}; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
}

/// A file piece by piece, so that a dump of a gigabyte takes no memory.
fn stream_of(file: File, name: &str) -> Option<Response> {
    let length = file.metadata().ok()?.len();
    let pieces = stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            file.read(&mut piece).map(|length| {
                piece.truncate(length);
                (piece, file)
            })
        });
        match read.await {
            Ok(Ok((piece, _))) if piece.is_empty() => None,
            Ok(Ok((piece, file))) => Some((Ok(Bytes::from(piece)), Some(file))),
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(std::io::Error::other(error)), None)),
        }
    });
    let mut response = Body::from_stream(pieces).into_response();
    let ending = name.rsplit('.').next().unwrap_or_default();
    let kind = match ending {
        "txt" | "log" | "json" | "sh" | "1" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    headers(&mut response, kind, name.rsplit('/').next().unwrap_or_default());
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Some(response)
}

/// Everything that the failure's folder has, packed into a file that is gone when it was sent.
fn bundle(found: &FailureFolder) -> Option<Response> {
    let out = found.campaign.parent()?;
    let mut packed = tempfile::tempfile_in(out).ok()?;
    archive::bundle(found, &[], &mut packed).ok()?;
    packed.rewind().ok()?;
    stream_of(packed, &format!("{}.zip", found.id))
}
