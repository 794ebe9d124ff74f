//! Decides which requests are answered. Pure.
//!
//! Web pages, other users of the machine, and other programs that know the port must not be able to
//! read or change anything. Therefore:
//!
//! - The `Host` is 127.0.0.1 and the port. A name that an attacker's DNS server resolves to
//!   127.0.0.1 is refused.
//! - A link has a token, which is valid once and for a short time. It is exchanged for the
//!   cookie of a session, which scripts cannot read and other sites do not send.
//! - All pages have a random path, to which the cookie is limited. Cookies ignore ports, so a
//!   server of another user at 127.0.0.1 could otherwise receive it.
//! - Requests that another site caused are refused, as far as the browser says so.
//! - Changes also need the page's own `Origin`, and a token of the session that only its pages
//!   know.

mod sessions;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, time::Instant};

use http::{HeaderMap, Method, StatusCode, header};

pub(crate) use sessions::{Session, Sessions, random_text};

/// The header of requests that change something: the token of the session.
pub(crate) const CSRF_HEADER: &str = "x-longshore-token";
/// The name of the session's cookie.
const COOKIE: &str = "longshore-ui";

/// The reason for the refusal of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The `Host` is not the page's address.
    Host,
    /// The method is not used.
    Method,
    /// Another site caused the request.
    CrossSite,
    /// The request has no valid session.
    NoSession,
    /// The link's token is unknown, was used, or has expired.
    Link,
    /// The token of the session is missing.
    Csrf,
}

impl Refusal {
    /// The HTTP status.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::CrossSite | Self::Csrf => StatusCode::FORBIDDEN,
            Self::NoSession | Self::Link => StatusCode::UNAUTHORIZED,
        }
    }

    /// The cause and the remedy.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Host => {
                "The host of the request is not this page's address. Open the link that \
                 `longshore ui` prints, with 127.0.0.1 and the same port."
            }
            Self::Method => "This method is not supported.",
            Self::CrossSite => {
                "The request was caused by another site. Open the link that `longshore ui` \
                 prints in a new tab."
            }
            Self::NoSession => {
                "There is no session. Open a link that `longshore ui` prints; press Enter in its \
                 terminal for a new one."
            }
            Self::Link => {
                "The link was already used, or has expired. Press Enter in the terminal of \
                 `longshore ui` for a new one."
            }
            Self::Csrf => "The token of the session is missing or invalid. Reload the page.",
        }
    }
}

/// Checks that a request is meant for this server.
///
/// # Errors
/// [`Refusal::Host`] and [`Refusal::Method`].
pub(crate) fn check_target(
    method: &Method,
    headers: &HeaderMap,
    own: SocketAddr,
) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let is_own = |host: &http::HeaderValue| host.as_bytes() == own.to_string().as_bytes();
    if !hosts.next().is_some_and(is_own) || hosts.next().is_some() {
        return Err(Refusal::Host);
    }
    match *method {
        Method::GET | Method::POST => Ok(()),
        _ => Err(Refusal::Method),
    }
}

/// Finds the session of a request, and checks that one of its pages caused the request.
///
/// # Errors
/// [`Refusal::CrossSite`], [`Refusal::NoSession`] and [`Refusal::Csrf`].
pub(crate) fn check(
    method: &Method,
    headers: &HeaderMap,
    own: SocketAddr,
    sessions: &Sessions,
    now: Instant,
) -> Result<Session, Refusal> {
    check_site(headers)?;
    let mut cookies = cookies(headers);
    let session = cookies.find_map(|value| sessions.find(value, now));
    let session = session.ok_or(Refusal::NoSession)?;
    if method == Method::POST {
        let origin = headers.get(header::ORIGIN);
        let own = format!("http://{own}");
        if origin.is_none_or(|origin| origin.as_bytes() != own.as_bytes()) {
            return Err(Refusal::CrossSite);
        }
        let token = headers.get(CSRF_HEADER);
        if token.is_none_or(|token| !session.has_csrf(token.as_bytes())) {
            return Err(Refusal::Csrf);
        }
    }
    Ok(session)
}

/// Refuses requests that another site has caused, according to the browser's `Sec-Fetch-Site`.
fn check_site(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get("sec-fetch-site") {
        None => Ok(()),
        Some(site) if matches!(site.as_bytes(), b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Refusal::CrossSite),
    }
}

/// The values of the session's cookie.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines.filter_map(|line| line.to_str().ok());
    let pairs = pairs.flat_map(|line| line.split(';'));
    pairs.filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

/// The `Set-Cookie` of a new session. `base` is the path of the pages.
pub(crate) fn set_cookie(id: &str, base: &str) -> String {
    let seconds = sessions::SESSION_LIFETIME.as_secs();
    format!("{COOKIE}={id}; Path=/{base}/; Max-Age={seconds}; HttpOnly; SameSite=Strict")
}
