//! The dashboard: one port, nothing from outside; all that it changes is what people say about a failure.
//!
//! Pages are made on the server from the same pieces as reports; what is live is made once a second for all who look,
//! and only while somebody does. Text of programs under test is escaped by the pieces, and a strict policy keeps scripts
//! out should a piece ever forget.
//!
//! - [`guard`]: who may ask, how often, and what every answer forbids browsers to do
//! - `connections`: how many at once, and what becomes of those that say nothing or do not listen
//! - `shell`: what all pages share
//! - `live`, `failures`, `failure`, `suppressions`, `campaigns`, `night`, `trends`, `fleet`: the pages
//! - `remarks`: what people say about a failure
//! - `download`: evidence

mod campaigns;
mod connections;
mod download;
mod failure;
mod failures;
mod fleet;
pub mod guard;
mod live;
mod night;
mod remarks;
mod shell;
mod suppressions;
mod trends;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jiff::tz::TimeZone;
use tokio::net::TcpListener;
use tokio::sync::watch;
use waylay_history::suppression::Suppressions;
use waylay_history::{History, HistoryError};

use crate::board::Board;
use crate::config::{Config, Dashboard};
use crate::{metrics, sys};
use connections::{Connections, Patient};
use guard::{Guard, Peer};

/// A request's head; ours have a few hundred bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// A request's body; only a token, or what somebody says about a failure, is ever sent.
const LARGEST_BODY: usize = 4096;
/// How long a client may take to say what it wants.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to send the little that it has to send beside.
const BODY_PATIENCE: Duration = Duration::from_secs(5);
/// How long it may leave an answer where it is.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// Connections to the history that are kept open.
const READERS: usize = 4;
/// Failures or campaigns on one page.
pub(crate) const PAGE: u64 = 50;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address is not to be had.
    #[error("cannot serve the dashboard at {address}: {source}{}", hint(.source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The token is not to be had.
    #[error("{0}")]
    Token(#[from] guard::TokenError),
}

/// What to do about an address that is not to be had.
fn hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::AddrInUse => {
            ". Perhaps another `waylay serve` runs; --listen names another address"
        }
        std::io::ErrorKind::PermissionDenied => ". Ports below 1024 are for privileged users",
        std::io::ErrorKind::AddrNotAvailable => ". This machine has no such address",
        _ => "",
    }
}

pub(crate) use shell::part;

/// Where the stream of events is.
const EVENTS: &str = "/events";

/// What the pages are made from.
#[derive(Debug)]
pub struct Site {
    out: PathBuf,
    zone: TimeZone,
    suppressions: Suppressions,
    board: Arc<Board>,
    readers: Mutex<Vec<History>>,
}

impl Site {
    /// The site of a service.
    pub fn new(config: &Config, board: Arc<Board>) -> Site {
        Site {
            out: config.out.clone(),
            zone: config.zone.clone(),
            suppressions: config.suppressions.clone(),
            board,
            readers: Mutex::default(),
        }
    }

    /// Asks the history, on a thread that may wait.
    async fn ask<T: Send + 'static>(
        self: &Arc<Site>,
        question: impl FnOnce(&History) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let site = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || {
            let known = site.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let history = match known {
                Some(history) => history,
                None => History::open_to_read(&site.out)?,
            };
            let answer = question(&history);
            let mut readers = site.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if history.is_cut_off() {
                readers.clear();
            } else if readers.len() < READERS {
                readers.push(history);
            }
            answer
        });
        answer
            .await
            .map_err(|error| Trouble::Own(error.to_string()))?
            .map_err(|error| Trouble::Own(error.to_string()))
    }
}

/// Why a request has no page.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is no such thing.
    Nothing(&'static str),
    /// The service itself failed.
    Own(String),
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let (status, title, words) = match self {
            Trouble::Nothing(words) => (StatusCode::NOT_FOUND, "Not found", words.to_owned()),
            Trouble::Own(words) => (StatusCode::INTERNAL_SERVER_ERROR, "Something is wrong", words),
        };
        let body = format!("<div class=\"card\">{}</div>", waylay_report::escape::Html(&words));
        (status, shell::page(title, "", &body)).into_response()
    }
}

/// What handlers share.
#[derive(Clone)]
struct Shared {
    site: Arc<Site>,
    live: Arc<watch::Sender<Arc<str>>>,
    guard: Arc<Guard>,
}

/// The dashboard at work; dropping it ends it.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Web {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Begins to serve, on a thread of its own.
pub fn start(dashboard: &Dashboard, site: Site) -> Result<Web, WebError> {
    let guard = Guard::new(dashboard)?;
    let listen = |source| WebError::Listen { address: dashboard.listen, source };
    let listener = std::net::TcpListener::bind(dashboard.listen).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let (stop, stopped) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(READERS)
        .thread_name("waylay-web")
        .on_thread_start(sys::step_back)
        .build()
        .map_err(listen)?;
    let work = move || {
        sys::step_back();
        runtime.block_on(accept(listener, site, guard, stopped));
        // Whoever still looks has been told; nothing is worth waiting for.
        runtime.shutdown_timeout(Duration::from_secs(1));
    };
    let thread = std::thread::Builder::new().name("waylay-web".into()).spawn(work).map_err(listen)?;
    Ok(Web { address, stop, thread: Some(thread) })
}

async fn accept(
    listener: std::net::TcpListener,
    site: Site,
    guard: Guard,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let site = Arc::new(site);
    let live = Arc::new(watch::channel(Arc::from("")).0);
    tokio::spawn(live::keep_up(Arc::clone(&site), Arc::clone(&live)));
    let router = router(Shared { site, live, guard: Arc::new(guard) });
    let connections = Arc::new(Connections::default());
    loop {
        let accepted = tokio::select! {
            _ = stopped.changed() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // Too many open files, most likely: it passes.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // One too many is let go at once; it may come back.
        let Some(seat) = connections.seat(peer.ip()) else { continue };
        let inner = TowerToHyperService::new(router.clone());
        let heard = seat.heard();
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            heard(request.uri().path() == EVENTS);
            request.extensions_mut().insert(Peer(peer.ip()));
            hyper::service::Service::call(&inner, request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .max_buf_size(LONGEST_HEAD)
            .serve_connection(TokioIo::new(Patient::new(stream, ANSWER_PATIENCE)), service);
        tokio::spawn(async move {
            tokio::select! {
                _ = connection => (),
                () = seat.wanted() => (),
            }
        });
    }
}

fn router(shared: Shared) -> Router {
    Router::new()
        .route("/", get(live::page))
        .route(EVENTS, get(live::events))
        .route("/failures", get(failures::page))
        .route("/suppressions", get(suppressions::page))
        .route("/failure/{signature}", get(failure::page))
        .route("/failure/{signature}/remark", post(remarks::take))
        .route("/files/{campaign}/{signature}/{*name}", get(download::file))
        .route("/campaigns", get(campaigns::list))
        .route("/campaign/{name}", get(campaigns::page))
        .route("/trends", get(trends::page))
        .route(fleet::PAGE, get(fleet::page))
        .route("/night/{night}", get(night::page))
        .route("/metrics", get(prometheus))
        .route("/health", get(|| async { "ok\n" }))
        .route("/login", post(guard::login))
        .route("/style.css", get(|| async { asset("text/css; charset=utf-8", shell::css()) }))
        .route("/script.js", get(|| async { asset("text/javascript; charset=utf-8", shell::script()) }))
        .route("/favicon.svg", get(|| async { asset("image/svg+xml", shell::ICON.to_owned()) }))
        .fallback(|| async { Trouble::Nothing("There is no such page.") })
        .layer(axum::middleware::from_fn_with_state(shared.clone(), guard::check))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(shared)
}

fn asset(kind: &'static str, text: String) -> Response {
    // They change with the version only; an hour is soon enough.
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "max-age=3600")], text).into_response()
}

async fn prometheus(State(shared): State<Shared>) -> Result<Response, Trouble> {
    let standing = shared.site.board.look();
    let text = shared.site.ask(move |history| metrics::text(history, &standing)).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
