//! Access control, decided from a request's head alone.
//!
//! On a loopback address reading needs no token, but the Host header must name this machine: otherwise a page from another site
//! could reach this one by a host name that resolves to it (DNS rebinding). A request that starts or stops a program needs the
//! token, and must come from a page of this site. On any other address every request needs the token. A browser sends it once in
//! the URL, and from then on in a cookie.
//!
//! A page of another site may link to this site, but its scripts, images and frames request nothing here: reading can write a
//! report, or compute for minutes.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, Method, StatusCode, header};

/// The least length of a token.
pub(crate) const LEAST_TOKEN: usize = 16;

/// The rules of access.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    address: SocketAddr,
    token: String,
    readers: Readers,
}

/// The clients that may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// All clients that can reach the address.
    All,
    /// The clients that have the token.
    WithToken,
}

/// The decision on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Allowed.
    Open,
    /// Allowed, and the answer sets this cookie.
    Known(String),
    /// Denied, and why.
    Refused(StatusCode, &'static str),
}

impl Door {
    /// The access control of a site that listens on an address.
    pub(crate) fn new(address: SocketAddr, token: String, readers: Readers) -> Self {
        Self { address, token, readers }
    }

    /// Whether a token is valid: long enough, and without characters that a URL or a cookie would have to encode.
    pub(crate) fn is_token(text: &str) -> bool {
        text.len() >= LEAST_TOKEN
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    }

    /// Decides on a request with this method, query and headers.
    pub(crate) fn entry(&self, method: &Method, query: Option<&str>, headers: &HeaderMap) -> Entry {
        let Some(host) = text(headers, header::HOST.as_str()) else {
            return Entry::Refused(StatusCode::BAD_REQUEST, "the request names no host");
        };
        // A proxy before this server may have checked another one of them (RFC 9112, section 3.2).
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Entry::Refused(StatusCode::BAD_REQUEST, "the request names several hosts");
        }
        if self.address.ip().is_loopback() && !is_this_machine(host) {
            return Entry::Refused(
                StatusCode::MISDIRECTED_REQUEST,
                "this page is reached as 127.0.0.1 or localhost only",
            );
        }
        if is_foreign(headers) {
            return Entry::Refused(
                StatusCode::FORBIDDEN,
                "a page of another site sent this request; open the address that kendall printed",
            );
        }
        let changes = !matches!(*method, Method::GET | Method::HEAD);
        if changes && !text(headers, header::ORIGIN.as_str()).is_some_and(|origin| is_origin(origin, host)) {
            return Entry::Refused(StatusCode::FORBIDDEN, "only a page of this site may send this request");
        }
        match self.known(query, headers) {
            Some(known) => known,
            None if self.readers == Readers::All && !changes => Entry::Open,
            None => {
                let why = "open the address that kendall printed, with its token";
                Entry::Refused(StatusCode::UNAUTHORIZED, why)
            }
        }
    }

    /// Whether the request has the token, and whether the cookie is still to be set.
    fn known(&self, query: Option<&str>, headers: &HeaderMap) -> Option<Entry> {
        let token = &self.token;
        // Ports of a host share their cookies, so the cookie's name contains the port.
        let name = format!("kendall-{}", self.address.port());
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies =
            cookies.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        if cookies.any(|(key, value)| key == name && are_equal(value, token)) {
            return Some(Entry::Open);
        }
        let mut asked = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        asked
            .any(|(key, value)| key == "token" && are_equal(value, token))
            .then(|| Entry::Known(format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict")))
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Whether a page of another site sent the request, and not by a link to a page that the browser then shows
/// (W3C, Fetch Metadata Request Headers). Other programs send no such headers.
fn is_foreign(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| text(headers, name) == Some(value);
    let is_foreign =
        text(headers, "sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    is_foreign && !(is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document"))
}

/// Whether a Host header names this machine as loopback.
fn is_this_machine(host: &str) -> bool {
    // [::1]:8080, 127.0.0.1:8080, localhost:8080; the port is not checked, since the client may use a tunnel.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether an Origin header is that of this site.
fn is_origin(origin: &str, host: &str) -> bool {
    // A proxy before this server may speak TLS.
    let of = |scheme| origin.strip_prefix(scheme).is_some_and(|of| of.eq_ignore_ascii_case(host));
    of("http://") || of("https://")
}

/// Compares in constant time, so that the time does not reveal where they differ.
fn are_equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        lines.iter().map(line).collect()
    }

    fn loopback() -> Door {
        Door::new(([127, 0, 0, 1], 5080).into(), TOKEN.into(), Readers::All)
    }

    #[test]
    fn on_loopback_only_this_machines_names_lead_in() {
        let get = |host| loopback().entry(&Method::GET, None, &headers(&[("host", host)]));
        for host in
            ["127.0.0.1:5080", "localhost:5080", "LOCALHOST", "[::1]:5080", "127.0.0.2", "localhost:9"]
        {
            assert_eq!(get(host), Entry::Open, "{host}");
        }
        for host in
            ["evil.example:5080", "localhost.evil.example", "10.0.0.1", "", "[::2]:5080", "127.0.0.1.nip.io"]
        {
            assert!(matches!(get(host), Entry::Refused(StatusCode::MISDIRECTED_REQUEST, _)), "{host}");
        }
        let mut two = headers(&[("host", "127.0.0.1:5080")]);
        two.append(header::HOST, HeaderValue::from_static("evil.example"));
        let two = loopback().entry(&Method::GET, None, &two);
        assert!(matches!(two, Entry::Refused(StatusCode::BAD_REQUEST, _)));
        let nameless = loopback().entry(&Method::GET, None, &HeaderMap::new());
        assert!(matches!(nameless, Entry::Refused(StatusCode::BAD_REQUEST, _)));
    }

    #[test]
    fn only_a_page_of_this_site_changes_anything() {
        let post = |lines: &[(&'static str, &'static str)]| {
            let known = [("host", "localhost:5080"), ("cookie", "kendall-5080=0123456789abcdef")];
            loopback().entry(&Method::POST, None, &headers(&[&known, lines].concat()))
        };
        assert_eq!(post(&[("origin", "http://localhost:5080")]), Entry::Open);
        for origin in
            ["http://localhost:5081", "http://evil.example", "null", "http://localhost:5080.evil.example"]
        {
            assert!(
                matches!(post(&[("origin", origin)]), Entry::Refused(StatusCode::FORBIDDEN, _)),
                "{origin}"
            );
        }
        assert!(matches!(post(&[]), Entry::Refused(StatusCode::FORBIDDEN, _)));
        let own = [("host", "localhost:5080"), ("origin", "http://localhost:5080")];
        let without = loopback().entry(&Method::POST, None, &headers(&own));
        assert!(matches!(without, Entry::Refused(StatusCode::UNAUTHORIZED, _)), "{without:?}");
    }

    #[test]
    fn a_page_of_another_site_only_links_here() {
        let get = |site, mode, dest| {
            let lines = [
                ("host", "localhost:5080"),
                ("cookie", "kendall-5080=0123456789abcdef"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            loopback().entry(&Method::GET, None, &headers(&lines))
        };
        for site in ["same-origin", "none"] {
            assert_eq!(get(site, "cors", "empty"), Entry::Open);
            assert_eq!(get(site, "navigate", "document"), Entry::Open);
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(get(site, "navigate", "document"), Entry::Open, "a link");
            for (mode, dest) in [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")] {
                assert!(
                    matches!(get(site, mode, dest), Entry::Refused(StatusCode::FORBIDDEN, _)),
                    "{mode} {dest}"
                );
            }
        }
    }

    #[test]
    fn elsewhere_a_token_is_asked_for_once_and_then_a_cookie() {
        let door = Door::new(([0, 0, 0, 0], 5080).into(), TOKEN.into(), Readers::WithToken);
        let host = ("host", "lab.example:5080");
        let get = |query, lines: &[(&'static str, &'static str)]| {
            door.entry(&Method::GET, query, &headers(&[&[host], lines].concat()))
        };
        let refused = |entry| matches!(entry, Entry::Refused(StatusCode::UNAUTHORIZED, _));
        assert!(refused(get(None, &[])));
        assert!(refused(get(Some("token="), &[])));
        assert!(refused(get(Some("token=0123456789abcdeF"), &[])));
        assert!(refused(get(Some("token=0123456789abcdef0"), &[])));
        let Entry::Known(cookie) = get(Some("q=a&token=0123456789abcdef"), &[]) else {
            panic!("it is the token")
        };
        assert!(
            cookie.starts_with("kendall-5080=0123456789abcdef;")
                && cookie.contains("HttpOnly; SameSite=Strict")
        );
        assert_eq!(get(None, &[("cookie", "a=b; kendall-5080=0123456789abcdef")]), Entry::Open);
        assert!(refused(get(None, &[("cookie", "kendall-5081=0123456789abcdef")])));
        assert!(refused(get(None, &[("cookie", "kendall-5080=0123456789abcdee")])));
    }

    #[test]
    fn a_token_is_long_and_plain() {
        assert!(Door::is_token(TOKEN) && Door::is_token("A-_aaaaaaaaaaaaa"));
        assert!(
            !Door::is_token("short")
                && !Door::is_token("0123456789abcde;")
                && !Door::is_token("0123456789abcdeé")
        );
    }
}
