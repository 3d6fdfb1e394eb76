//! Requests, and how they are written.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, IF_MATCH, USER_AGENT,
};
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use hyper::body::Bytes;
use picket_driver::Secret;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::line::Line;
use crate::session::Session;
use crate::settings::Settings;

/// A request.
#[derive(Clone)]
pub struct ServiceRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    pub(crate) if_match: Option<String>,
    /// It needs no authentication.
    pub(crate) open: bool,
    /// It may be hidden from us, which says nothing of who we are.
    pub(crate) may_hide: bool,
    /// In a session of its own.
    pub(crate) token: Option<Secret>,
}

/// Without its body, which may have the password in it (S18).
impl fmt::Debug for ServiceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

impl ServiceRequest {
    /// Read that.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            if_match: None,
            open: false,
            may_hide: false,
            token: None,
        }
    }

    /// The same, before we said who we are.
    pub fn open(path: impl Into<String>) -> Self {
        Self { open: true, ..Self::get(path) }
    }

    /// Look how that task is, which not everybody may.
    pub fn monitor(path: impl Into<String>) -> Self {
        Self { may_hide: true, ..Self::get(path) }
    }

    /// Do that.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }

    /// Change that, if it is still as it was read.
    pub fn patch(path: impl Into<String>, body: Value, if_match: Option<String>) -> Self {
        Self { method: Method::PATCH, body: Some(body), if_match, ..Self::get(path) }
    }

    /// Delete that session, in itself; `None` where its place is not known.
    pub fn end(session: &Session) -> Option<Self> {
        let path = session.path.as_ref()?;
        Some(Self { method: Method::DELETE, token: Some(session.token.clone()), ..Self::get(path) })
    }

    /// Delete that, as ourselves.
    pub fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }
}

impl Line {
    fn basic(&self) -> Option<HeaderValue> {
        let Settings { username, password, .. } = &*self.settings;
        let mut plain = Zeroizing::new(Vec::with_capacity(username.len() + 1 + password.expose().len()));
        plain.extend_from_slice(username.as_bytes());
        plain.push(b':');
        plain.extend_from_slice(password.expose());
        let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(&*plain)));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// What is written for `ask`; `None` where HTTP cannot carry it.
    pub(crate) fn request(
        &self,
        ask: &ServiceRequest,
        token: Option<&Secret>,
        by_basic: bool,
    ) -> Option<Request<Full<Bytes>>> {
        let body = ask.body.as_ref().map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(&ask.path)
            .header(HOST, self.settings.authority())
            .header(USER_AGENT, concat!("picket/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "application/json")
            // Without it any coding may be sent (RFC 9110 §12.5.3).
            .header(ACCEPT_ENCODING, "identity")
            .header("OData-Version", "4.0")
            .header(CACHE_CONTROL, "no-cache");
        if ask.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(version) = &ask.if_match {
            request = request.header(IF_MATCH, version);
        }
        if let Some(token) = token {
            let mut value = HeaderValue::from_bytes(token.expose()).ok()?;
            value.set_sensitive(true);
            request = request.header("X-Auth-Token", value);
        }
        if by_basic {
            request = request.header(AUTHORIZATION, self.basic()?);
        }
        request.body(Full::new(body)).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_shown_without_what_it_says() {
        let ask =
            ServiceRequest::post("/redfish/v1/x", json!({ "UserName": "admin", "Password": "hunter2" }));
        let shown = format!("{ask:?} {ask:#?}");
        assert!(shown.contains("POST") && !shown.contains("hunter2"), "{shown}");
    }
}
