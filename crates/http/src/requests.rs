//! The requests of a workload: one, or several with weights, and the choice of the i-th.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, USER_AGENT};
use http::uri::{self, PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use kendall_load::Reuse;
use kendall_stats::random::{Purpose, stream, unit};
use kendall_system::reveal;
use url::Url;

use crate::error::HttpError;
use crate::expect::Expect;
use crate::options::HttpOptions;
use crate::origin::{Origin, Scheme};
use crate::pattern::{Filler, Pattern, unescaped};
use crate::written::{Written, read_file};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("kendall/", env!("CARGO_PKG_VERSION")));

/// The requests of a workload.
#[derive(Debug)]
pub(crate) struct Requests {
    origin: Origin,
    seed: u64,
    each: Vec<RequestTemplate>,
    /// For each request, the cumulated share.
    up_to: Vec<f64>,
}

/// One kind of request.
#[derive(Debug)]
struct RequestTemplate {
    name: String,
    method: Method,
    target: Pattern,
    headers: Vec<(HeaderName, Pattern)>,
    body: Pattern,
    expect: Expect,
    /// The rendered request and its HTTP/1.1 bytes, if it is the same every time.
    fixed: Option<(Filled, Bytes)>,
}

/// A request with its placeholders filled.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    pub(crate) method: Method,
    pub(crate) target: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Requests {
    pub(crate) fn new(address: SocketAddr, options: &HttpOptions, seed: u64) -> Result<Self, HttpError> {
        let (origin, url) = Origin::read(&options.url.replace("{port}", &address.port().to_string()))?;
        let written = match &options.requests_file {
            None => vec![(options.request.clone(), None)],
            Some(path) => read_file(path, &options.request)?,
        };
        let whole: f64 = written.iter().map(|(written, _)| written.weight()).sum();
        let (mut each, mut up_to, mut sum) = (Vec::<RequestTemplate>::new(), Vec::new(), 0.0);
        for (written, place) in &written {
            let failed = |why| HttpError::request(place.as_ref(), why);
            let mut template = RequestTemplate::new(written, &url, &origin).map_err(failed)?;
            template.fix(&origin, options.reuse).map_err(failed)?;
            if each.iter().any(|known| known.name == template.name) {
                return Err(failed(format!(
                    "there are two requests {:?}; give each a different name",
                    template.name
                )));
            }
            sum += written.weight();
            up_to.push(sum / whole);
            each.push(template);
        }
        Ok(Self { origin, seed, each, up_to })
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The names of the requests, and the share of each.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (&str, f64)> {
        let before = std::iter::once(0.0).chain(self.up_to.iter().copied());
        let shares = self.up_to.iter().zip(before).map(|(up_to, before)| up_to - before);
        self.each.iter().map(|template| template.name.as_str()).zip(shares)
    }

    pub(crate) fn expect(&self, template: usize) -> &Expect {
        &self.each[template].expect
    }

    pub(crate) fn is_head(&self, template: usize) -> bool {
        self.each[template].method == Method::HEAD
    }

    /// The index of the request with this number.
    pub(crate) fn which(&self, index: u64) -> usize {
        if self.each.len() == 1 {
            return 0;
        }
        let place = unit(&mut stream(self.seed, Purpose::Class, index));
        // The last share is 1 except for rounding.
        self.up_to.partition_point(|&up_to| up_to <= place).min(self.each.len() - 1)
    }

    /// The HTTP/1.1 bytes of the request with this number, from the template at an index.
    pub(crate) fn http1(&self, template: usize, index: u64, reuse: Reuse) -> Bytes {
        match &self.each[template].fixed {
            Some((_, bytes)) => bytes.clone(),
            None => self.filled(template, index).http1(&self.origin, reuse),
        }
    }

    /// The request with this number, from the template at an index.
    pub(crate) fn filled(&self, template: usize, index: u64) -> Filled {
        let template = &self.each[template];
        match &template.fixed {
            Some((filled, _)) => filled.clone(),
            None => template
                .fill(&mut Filler::new(self.seed, index))
                .expect("digits stand where the digits of request 0 stood when it was checked"),
        }
    }
}

impl RequestTemplate {
    fn new(written: &Written, url: &Url, origin: &Origin) -> Result<Self, String> {
        let target = match &written.path {
            None => target(url),
            Some(path) => {
                let joined =
                    url.join(path).map_err(|error| format!("its path {path:?} is not valid: {error}"))?;
                if Origin::of(&joined).as_ref() != Ok(origin) {
                    return Err(format!(
                        "its path {path} leads elsewhere; all requests of a run go to {}",
                        origin.authority
                    ));
                }
                target(&joined)
            }
        };
        let body = written.body()?;
        let default = if body.is_some() { Method::POST } else { Method::GET };
        let method = match &written.method {
            None => default,
            Some(name) => {
                name.parse().map_err(|_| format!("its method {name:?} is not valid; write GET, POST, …"))?
            }
        };
        if method == Method::CONNECT {
            return Err("its method is CONNECT, which opens a tunnel and has no answer to measure".into());
        }
        let name = written.name.clone().unwrap_or_else(|| format!("{method} {target}"));
        let headers = headers(written)?;
        let target = Pattern::read(reveal(&target)?.as_bytes());
        let body = match body.map(String::from_utf8) {
            None => Pattern::read(b""),
            Some(Ok(text)) if written.body.is_some() => Pattern::read(reveal(&text)?.as_bytes()),
            Some(Ok(text)) => Pattern::read(text.as_bytes()),
            Some(Err(bytes)) => Pattern::read(bytes.as_bytes()),
        };
        Ok(Self { name, method, target, headers, body, expect: written.expect()?, fixed: None })
    }

    /// Renders the request once if it is the same every time; returns an error if it cannot be rendered.
    fn fix(&mut self, origin: &Origin, reuse: Reuse) -> Result<(), String> {
        let filled = self.fill(&mut Filler::new(0, 0))?;
        let mut patterns = self.headers.iter().map(|(_, value)| value).chain([&self.target, &self.body]);
        if patterns.all(Pattern::is_fixed) {
            let bytes = filled.http1(origin, reuse);
            self.fixed = Some((filled, bytes));
        }
        Ok(())
    }

    fn fill(&self, filler: &mut Filler) -> Result<Filled, String> {
        let mut write = |pattern: &Pattern| {
            let mut text = Vec::new();
            pattern.fill(filler, &mut text);
            Bytes::from(text)
        };
        let target = PathAndQuery::from_maybe_shared(write(&self.target))
            .map_err(|error| format!("its path is not valid: {error}"))?;
        let mut headers =
            HeaderMap::from_iter([(USER_AGENT, AGENT), (ACCEPT, HeaderValue::from_static("*/*"))]);
        for (name, value) in &self.headers {
            let value = HeaderValue::from_maybe_shared(write(value)).map_err(|_| {
                format!("the value of its header {name} has a character that headers cannot have")
            })?;
            headers.insert(name, value);
        }
        let body = write(&self.body);
        let sends = !body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(&self.method);
        if sends {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        Ok(Filled { method: self.method.clone(), target, headers, body })
    }
}

/// The target of a URL, with its original placeholders.
fn target(url: &Url) -> String {
    let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
    unescaped(&format!("{}{query}", url.path()))
}

/// The headers of a request, without those of the framing.
fn headers(written: &Written) -> Result<Vec<(HeaderName, Pattern)>, String> {
    let header = |(name, value): (&String, &String)| {
        let name: HeaderName =
            name.parse().map_err(|_| format!("{name:?} is not a valid name of a header"))?;
        match name {
            CONTENT_LENGTH | TRANSFER_ENCODING => {
                return Err(format!("kendall sets the header {name}; remove it"));
            }
            CONNECTION => {
                return Err("instead of the header connection, set reuse to keep or close".to_owned());
            }
            _ => {}
        }
        Ok((name, Pattern::read(reveal(value.trim())?.as_bytes())))
    };
    written.headers.iter().map(header).collect()
}

impl Filled {
    /// The bytes of the request in HTTP/1.1 (RFC 9112, sections 3 and 5).
    fn http1(&self, origin: &Origin, reuse: Reuse) -> Bytes {
        let mut out = Vec::with_capacity(256 + self.body.len());
        let mut write = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
        write(&[self.method.as_str().as_bytes(), b" ", self.target.as_str().as_bytes(), b" HTTP/1.1\r\n"]);
        if !self.headers.contains_key(HOST) {
            write(&[b"host: ", origin.authority.as_bytes(), b"\r\n"]);
        }
        for (name, value) in &self.headers {
            write(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        if reuse == Reuse::Close {
            write(&[b"connection: close\r\n"]);
        }
        write(&[b"\r\n", &self.body]);
        out.into()
    }

    /// The head of the request for HTTP/2 and HTTP/3, and its body.
    pub(crate) fn into_request(self, origin: &Origin) -> (http::Request<()>, Bytes) {
        let Self { method, target, mut headers, body } = self;
        let named =
            headers.remove(HOST).and_then(|host| host.to_str().ok().and_then(|host| host.parse().ok()));
        let mut parts = uri::Parts::default();
        parts.scheme = Some(match origin.scheme {
            Scheme::Http => uri::Scheme::HTTP,
            Scheme::Https => uri::Scheme::HTTPS,
        });
        parts.authority =
            Some(named.unwrap_or_else(|| {
                origin.authority.parse().expect("a URL's host and port are an authority")
            }));
        parts.path_and_query = Some(target);
        let mut request = http::Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = Uri::from_parts(parts).expect("scheme, authority and path are all there");
        *request.headers_mut() = headers;
        (request, body)
    }
}

#[cfg(test)]
mod tests;
