//! Who may ask, how often, and what every answer forbids browsers to do.
//!
//! On the loopback no token is needed, but the name by which the dashboard was asked for has to be one of this machine:
//! otherwise a page from elsewhere could have its own name lead here and read everything. With a token, every request
//! has to show it, in a header or in the cookie that a sign-in leaves; it is compared without telling by time how much
//! of it was right.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use subtle::ConstantTimeEq;

use super::{Shared, shell};
use crate::config::Dashboard;

/// Shorter ones can be guessed.
const SHORTEST_TOKEN: usize = 16;
/// The cookie that a sign-in leaves.
const COOKIE: &str = "waylay";
/// Requests of one address: so many at once, and so many per second after that. A page is four requests.
const BURST: f64 = 200.0;
const PER_SECOND: f64 = 50.0;
/// All who show the token together, as so many addresses.
const PEOPLE: f64 = 5.0;
/// Wrong tokens of one address: at once, and per second after that.
const GUESSES: f64 = 10.0;
const GUESSES_PER_SECOND: f64 = 0.1;
/// Addresses that are remembered.
const ADDRESSES: usize = 4096;

/// The policy of pages: only what this server sent, and no script that stands in a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; \
    img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Its file cannot be read.
    #[error("cannot read the token {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Others can read it.
    #[error(
        "others can read the token in {}: make it private with `chmod 600`", .path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// It can be guessed.
    #[error(
        "the token in {} has fewer than {SHORTEST_TOKEN} characters: make one with `{}`",
        .path.display(), crate::sys::MAKE_TOKEN
    )]
    Short {
        /// The file.
        path: PathBuf,
    },
}

/// What is let through.
#[derive(Debug)]
pub struct Guard {
    token: Option<String>,
    hosts: Vec<String>,
    requests: Mutex<Limiter>,
    /// Requests that show the token, from wherever.
    known: Mutex<Limiter>,
    guesses: Mutex<Limiter>,
}

impl Guard {
    /// The guard that a configuration asks for.
    pub fn new(dashboard: &Dashboard) -> Result<Guard, TokenError> {
        let token = match &dashboard.token_file {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| TokenError::Read { path: path.clone(), source })?;
                if !crate::sys::is_private(path) {
                    return Err(TokenError::Open { path: path.clone() });
                }
                let token = text.trim().to_owned();
                if token.len() < SHORTEST_TOKEN {
                    return Err(TokenError::Short { path: path.clone() });
                }
                Some(token)
            }
        };
        Ok(Guard {
            token,
            hosts: dashboard.hosts.clone(),
            requests: Mutex::new(Limiter::new(BURST, PER_SECOND)),
            known: Mutex::new(Limiter::new(BURST * PEOPLE, PER_SECOND * PEOPLE)),
            guesses: Mutex::new(Limiter::new(GUESSES, GUESSES_PER_SECOND)),
        })
    }

    /// Whether what was shown is the token.
    fn is_token(&self, shown: &str) -> bool {
        self.token.as_ref().is_some_and(|token| token.as_bytes().ct_eq(shown.as_bytes()).into())
    }

    fn shows_token(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let cookie = text(header::COOKIE).and_then(|all| {
            all.split(';').find_map(|one| one.trim().strip_prefix(COOKIE)?.strip_prefix('='))
        });
        bearer.or(cookie).is_some_and(|shown| self.is_token(shown))
    }

    /// Whether pages offer to change something.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a request that changes something comes from who may, by their own wish: a program that shows the token in a
    /// header, or a browser that says that one of our own pages sent it. A page from elsewhere can make a browser send a
    /// request, but cannot make it say that. (The cookie is not sent with such a request anyway: it is `SameSite=Strict`.)
    fn may_change(&self, headers: &HeaderMap) -> bool {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text("host").unwrap_or_default();
        let ours = text("sec-fetch-site") == Some("same-origin")
            || text("origin")
                .and_then(|origin| origin.split_once("://"))
                .is_some_and(|(_, name)| name == host);
        let by_header = text("authorization").is_some();
        self.has_token() && self.shows_token(headers) && (by_header || ours)
    }

    /// Whether the name in a request is one of this machine.
    fn knows_host(&self, headers: &HeaderMap) -> bool {
        let Some(host) = headers.get(header::HOST).and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback())
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Every request comes through here.
pub(super) async fn check(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = match judge(&shared.guard, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal,
    };
    let headers = response.headers_mut();
    let mut set = |name: header::HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "DENY");
    // Other sites are told nothing. Without any, a browser would not say either that a form is of our own page.
    set(header::REFERRER_POLICY, "same-origin");
    set(header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(header::CACHE_CONTROL, "no-store");
    response
}

#[allow(clippy::result_large_err, reason = "a refusal is a response, and is made once")]
fn judge(guard: &Guard, request: &Request) -> Result<(), Response> {
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    // Whoever shows the token is counted apart: strangers at the same address, behind a tunnel say, keep nobody out.
    let (limiter, who) = match guard.shows_token(request.headers()) {
        true => (&guard.known, IpAddr::from([0, 0, 0, 0])),
        false => (&guard.requests, peer),
    };
    let may_ask = limiter.lock().unwrap_or_else(PoisonError::into_inner).take(who, Instant::now());
    if !may_ask {
        return Err((StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], "too many requests\n")
            .into_response());
    }
    let posts = request.method() == Method::POST;
    let signs_in = posts && request.uri().path() == "/login";
    let remarks =
        posts && request.uri().path().starts_with("/failure/") && request.uri().path().ends_with("/remark");
    if !(request.method() == Method::GET || request.method() == Method::HEAD || signs_in || remarks) {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET\n").into_response());
    }
    if remarks && !guard.may_change(request.headers()) {
        let words =
            "only who shows the token, from a page of this dashboard, can say something about a failure\n";
        return Err((StatusCode::FORBIDDEN, words).into_response());
    }
    if guard.token.is_none() {
        return if guard.knows_host(request.headers()) {
            Ok(())
        } else {
            let words = "this dashboard is asked for by a name that it does not know: see `hosts` in its configuration\n";
            Err((StatusCode::MISDIRECTED_REQUEST, words).into_response())
        };
    }
    // What a sign-in looks like is no secret.
    let open = ["/login", "/style.css", "/script.js", "/favicon.svg"].contains(&request.uri().path());
    if open || guard.shows_token(request.headers()) {
        return Ok(());
    }
    if request.headers().contains_key(header::AUTHORIZATION) || request.headers().contains_key(header::COOKIE)
    {
        guess(guard, peer)?;
    }
    Err((StatusCode::UNAUTHORIZED, shell::sign_in("")).into_response())
}

#[allow(clippy::result_large_err, reason = "a refusal is a response, and is made once")]
fn guess(guard: &Guard, peer: IpAddr) -> Result<(), Response> {
    let mut guesses = guard.guesses.lock().unwrap_or_else(PoisonError::into_inner);
    if guesses.take(peer, Instant::now()) {
        return Ok(());
    }
    Err((StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "60")], "too many wrong tokens\n")
        .into_response())
}

/// A sign-in: the token goes into a cookie that scripts do not see and other sites do not send.
pub(super) async fn login(State(shared): State<Shared>, request: Request) -> Response {
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0);
    let body = axum::body::to_bytes(request.into_body(), super::LARGEST_BODY);
    let body = match tokio::time::timeout(super::BODY_PATIENCE, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return (StatusCode::PAYLOAD_TOO_LARGE, "too large\n").into_response(),
        Err(_) => {
            // What is left of it would be taken for the next request.
            let close = [(header::CONNECTION, "close")];
            return (StatusCode::REQUEST_TIMEOUT, close, "too slow\n").into_response();
        }
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    let shown = text.split('&').find_map(|pair| pair.strip_prefix("token=")).map(decode).unwrap_or_default();
    if !shared.guard.is_token(&shown) {
        // Whoever knows the token is not kept out by those who guess from the same address.
        if let Err(refusal) = guess(&shared.guard, peer) {
            return refusal;
        }
        return (StatusCode::UNAUTHORIZED, shell::sign_in("That is not the token.")).into_response();
    }
    let cookie = format!("{COOKIE}={shown}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000");
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        Err(_) => {
            (StatusCode::UNAUTHORIZED, shell::sign_in("A token of a browser is plain text.")).into_response()
        }
    }
}

/// What a form encodes.
pub(super) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let coded = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, coded.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// So many at once, and so many per second after that, for each address.
#[derive(Debug)]
struct Limiter {
    most: f64,
    per_second: f64,
    left: HashMap<IpAddr, (f64, Instant)>,
}

impl Limiter {
    fn new(most: f64, per_second: f64) -> Limiter {
        Limiter { most, per_second, left: HashMap::new() }
    }

    /// Whether one more is allowed now.
    fn take(&mut self, who: IpAddr, now: Instant) -> bool {
        if self.left.len() >= ADDRESSES && !self.left.contains_key(&who) {
            // Those that would have everything again by now need not be remembered. When hardly any is, all are
            // forgotten: whoever has thousands of addresses is not stopped by this, and must not make it slow.
            let full = Duration::from_secs_f64(self.most / self.per_second);
            self.left.retain(|_, (_, at)| now.duration_since(*at) < full);
            if self.left.len() > ADDRESSES / 2 {
                self.left.clear();
            }
        }
        let (left, at) = self.left.entry(who).or_insert((self.most, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() * self.per_second).min(self.most);
        *at = now;
        if *left < 1.0 {
            return false;
        }
        *left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(token: Option<&str>) -> Guard {
        let folder = tempfile::tempdir().unwrap();
        let token_file = token.map(|token| {
            let path = folder.path().join("token");
            std::fs::write(&path, token).unwrap();
            crate::sys::make_private(&path);
            path
        });
        let listen = "127.0.0.1:0".parse().unwrap();
        Guard::new(&Dashboard { listen, token_file, hosts: vec!["night.example".into()], url: None }).unwrap()
    }

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn only_names_of_this_machine_are_answered_without_a_token() {
        let guard = guard(None);
        for good in ["127.0.0.1:7979", "localhost", "LOCALHOST:80", "[::1]:7979", "night.example:1"] {
            assert!(guard.knows_host(&headers(header::HOST, good)), "{good}");
        }
        for bad in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "night.example.evil"] {
            assert!(!guard.knows_host(&headers(header::HOST, bad)), "{bad}");
        }
    }

    #[test]
    fn a_token_is_shown_in_a_header_or_a_cookie_and_nothing_else_will_do() {
        let guard = guard(Some("0123456789abcdef\n"));
        let shows = |name, value| guard.shows_token(&headers(name, value));
        assert!(shows(header::AUTHORIZATION, "Bearer 0123456789abcdef"));
        assert!(shows(header::COOKIE, "a=b; waylay=0123456789abcdef"));
        assert!(!shows(header::COOKIE, "xwaylay=0123456789abcdef"));
        assert!(!shows(header::AUTHORIZATION, "Bearer 0123456789abcde"));
        assert!(!shows(header::AUTHORIZATION, "Basic 0123456789abcdef"));
        assert!(!shows(header::AUTHORIZATION, "Bearer "));
    }

    /// Files of Windows inherit who may read them.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "0123456789abcdef").unwrap();
        for (mode, accepted) in [(0o644, false), (0o640, false), (0o602, false), (0o600, true), (0o400, true)]
        {
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            let listen = "127.0.0.1:0".parse().unwrap();
            let made = Guard::new(&Dashboard {
                listen,
                token_file: Some(path.clone()),
                hosts: Vec::new(),
                url: None,
            });
            assert_eq!(made.is_ok(), accepted, "{mode:o}");
            let told = made.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(told.contains("chmod 600"), !accepted, "{told}");
        }
    }

    #[test]
    fn every_other_text_than_the_token_is_refused_whatever_it_has_in_common_with_it() {
        let token = "0123456789abcdefÄ";
        let guard = guard(Some(token));
        assert!(guard.is_token(token));
        let mut wrong = vec![String::new(), token.to_uppercase(), format!(" {token}"), format!("{token}\0")];
        wrong.extend(
            (0..token.len()).filter(|end| token.is_char_boundary(*end)).map(|end| token[..end].to_owned()),
        );
        wrong.extend(
            (1..token.len()).filter(|at| token.is_char_boundary(*at)).map(|at| token[at..].to_owned()),
        );
        wrong.extend((1..300).map(|more| format!("{token}{}", "x".repeat(more))));
        wrong.extend((0..16).flat_map(|at| {
            (b' '..=b'~').filter(move |byte| *byte != token.as_bytes()[at]).map(move |byte| {
                let mut bytes = token.as_bytes().to_vec();
                bytes[at] = byte;
                String::from_utf8(bytes).unwrap()
            })
        }));
        assert!(wrong.len() > 1500, "{}", wrong.len());
        for text in wrong {
            assert!(!guard.is_token(&text), "{text:?}");
            for (name, value) in [
                (header::AUTHORIZATION, format!("Bearer {text}")),
                (header::COOKIE, format!("waylay={text}")),
                (header::COOKIE, format!("waylay={text}; waylay={text}")),
            ] {
                let Ok(value) = HeaderValue::from_str(&value) else { continue };
                let shown = HeaderMap::from_iter([(name, value)]);
                assert!(!guard.shows_token(&shown), "{shown:?}");
            }
        }
        assert!(!self::guard(None).is_token(""), "where there is no token, nothing is one");
    }

    #[test]
    fn a_limit_is_per_address_and_fills_up_again() {
        let mut limiter = Limiter::new(3.0, 1.0);
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let now = Instant::now();
        assert_eq!([(); 4].map(|()| limiter.take(a, now)), [true, true, true, false]);
        assert!(limiter.take(b, now));
        assert!(limiter.take(a, now + Duration::from_secs(1)));
        assert!(!limiter.take(a, now + Duration::from_secs(1)));
    }

    #[test]
    fn what_is_remembered_of_addresses_is_bounded() {
        let mut limiter = Limiter::new(3.0, 1.0);
        let now = Instant::now();
        for number in 0..20_000u32 {
            limiter.take(IpAddr::from(number.to_be_bytes()), now);
        }
        assert!(limiter.left.len() <= ADDRESSES);
    }

    #[test]
    fn forms_are_decoded() {
        assert_eq!(decode("a%2Bb+c%3d%"), "a+b c=%");
    }
}
