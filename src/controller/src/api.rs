//! The API server: requests that end in time and are sent once.

use std::path::Path;
use std::time::Duration;

use http::{Method, Request};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Client;
use picket_login::Login;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::Fault;

/// How long the API server works on a request at most: its own parameter.
const SERVED: Duration = Duration::from_secs(8);
/// How long one is waited for.
const ASKED: Duration = Duration::from_secs(10);

/// What is sent, and as what.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// A whole object.
    Whole(&'a Value),
    /// RFC 6902, with tests of what was read.
    Json(&'a Value),
    /// RFC 7386.
    Merge(&'a Value),
}

/// The API server of one cluster. Cheap to clone.
#[derive(Clone)]
pub struct Api(Client);

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// By a kubeconfig, or by the service account of the pod in which this runs. Nothing is sent.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(login: &Login) -> Result<Self, Fault> {
        let made = login.known().and_then(|known| {
            picket_login::client(&known, |config| {
                let connects = picket_login::connects(config, tcp())?;
                Ok(legacy::Client::builder(TokioExecutor::new()).build(connects))
            })
        });
        made.map(Self).map_err(|wrong| unusable(&wrong.to_string(), login.kubeconfig.as_deref()))
    }

    /// For watches.
    pub fn client(&self) -> Client {
        self.0.clone()
    }

    /// Reads from a quorum.
    ///
    /// # Errors
    /// It did not answer, or refused.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        self.ask(Method::GET, path, None).await
    }

    /// The same; `None` where there is none.
    ///
    /// # Errors
    /// It did not answer, or refused.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Fault> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(fault) if fault.is_not_found() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Sends that, once.
    ///
    /// # Errors
    /// It did not answer, or refused.
    pub async fn send(&self, method: Method, path: &str, body: Body<'_>) -> Result<Value, Fault> {
        self.ask(method, path, Some(body)).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Body<'_>>,
    ) -> Result<T, Fault> {
        let what = format!("{} {path}", method.as_str().to_ascii_lowercase());
        let uri = format!("{path}?timeout={}s", SERVED.as_secs());
        let mut request = Request::builder().method(method).uri(uri);
        let mut sent = Vec::new();
        if let Some(body) = body {
            let (kind, body) = match body {
                Body::Whole(body) => ("application/json", body),
                Body::Json(body) => ("application/json-patch+json", body),
                Body::Merge(body) => ("application/merge-patch+json", body),
            };
            request = request.header(http::header::CONTENT_TYPE, kind);
            sent = body.to_string().into_bytes();
        }
        let request = request.body(sent).map_err(|error| Fault::own(format!("{what}: {error}")))?;
        match tokio::time::timeout(ASKED, self.0.request::<T>(request)).await {
            Ok(answer) => answer.map_err(|error| Fault::of(&what, &error)),
            Err(_) => Err(Fault::own(format!("{what}: the API server did not answer in time"))),
        }
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // What was sent to a machine that is gone is not waited for by a watch, either, which has no end of its own.
    tcp.set_tcp_user_timeout(Some(ASKED));
    tcp
}

#[cfg(test)]
impl Api {
    /// One that answers everything with that, and what it is sent.
    pub(crate) fn answering(answer: &Value) -> (Self, std::sync::Arc<parking_lot::Mutex<Vec<Value>>>) {
        let sent = std::sync::Arc::<parking_lot::Mutex<Vec<Value>>>::default();
        let (heard, answer) = (sent.clone(), answer.to_string());
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (heard, answer) = (heard.clone(), answer.clone());
            async move {
                let body = request.into_body().collect_bytes().await?;
                heard.lock().extend(serde_json::from_slice::<Value>(&body).ok());
                let answer = kube::client::Body::from(answer.into_bytes());
                Ok::<_, tower::BoxError>(http::Response::new(answer))
            }
        });
        (Self(Client::new(service, "default")), sent)
    }
}

/// Why nobody can be asked by it, which file that is, and what would be right.
fn unusable(why: &str, kubeconfig: Option<&Path>) -> Fault {
    let Some(path) = kubeconfig else { return Fault::own(why) };
    Fault::own(format!(
        "{}\nkubernetes.kubeconfig = {path:?}: it names a file as kubectl takes it, with a current context (or the one that \
         kubernetes.context names), of which the cluster has a server at https, and the user a token, a certificate, or the program that \
         kubernetes.login_program names",
        why.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use picket_trust::fakes::OwnCertificate;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    #[tokio::test]
    async fn an_api_server_is_believed_by_its_own_certificate_in_the_kubeconfig() {
        let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = place.local_addr().expect("an address");
        let [shown, another] = [OwnCertificate::new(), OwnCertificate::new()];
        let acceptor = TlsAcceptor::from(Arc::new(shown.server));
        tokio::spawn(async move {
            while let Ok((stream, _)) = place.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let _request = stream.read(&mut [0; 4_096]).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.expect("written");
            }
        });
        let home = tempfile::tempdir().expect("a directory");
        let [kubeconfig, ca] = ["kubeconfig", "ca.pem"].map(|name| home.path().join(name));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"https://{address}\", certificate-authority: ca.pem}}}}]\n\
             users: [{{name: u, user: {{token: t}}}}]\n"
        );
        std::fs::write(&kubeconfig, text).expect("written");
        std::fs::set_permissions(&kubeconfig, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        let login = Login::new(Some(kubeconfig), None, None, Vec::new());
        let asked = async |believed: String| {
            std::fs::write(&ca, believed).expect("written");
            let api = Api::new(&login).expect("a kubeconfig");
            api.get::<Value>("/version").await.map_err(|fault| fault.to_string())
        };
        asked(shown.pem.clone()).await.expect("an answer");
        // One certificate of no use takes nothing from the others; and then none is the server's own.
        let useless = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let why = asked(format!("{}{useless}", shown.pem)).await.expect_err("two");
        assert!(why.contains("CaUsedAsEndEntity") && why.contains("a file of its own"), "{why}");
        let why = asked(another.pem).await.expect_err("another one");
        assert!(why.starts_with("get /version: its certificate is not believed"), "{why}");
    }
}
