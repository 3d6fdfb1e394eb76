//! The API server: requests that end in time and are sent once.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig, NamedAuthInfo};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::Fault;

/// How long the API server works on a request at most: its own parameter.
const SERVED: Duration = Duration::from_secs(8);
/// How long one is waited for.
const ASKED: Duration = Duration::from_secs(10);
const CONNECTING: Duration = Duration::from_secs(3);

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
    pub async fn new(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, Fault> {
        let mut config = match kubeconfig {
            Some(path) => of_file(path, context).await?,
            None => Config::incluster()
                .map_err(|error| Fault::own(format!("no kubeconfig is set, and this is no pod: {error}")))?,
        };
        if config.accept_invalid_certs {
            return Err(Fault::own(
                "the kubeconfig says insecure-skip-tls-verify: whom to believe is never switched off",
            ));
        }
        if config.cluster_url.scheme() != Some(&http::uri::Scheme::HTTPS) {
            let url = &config.cluster_url;
            return Err(Fault::own(format!("the API server is at {url}: https alone is believed")));
        }
        // Whoever asks decides whether it is asked again.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECTING);
        Client::try_from(config).map(Self).map_err(|error| Fault::of("the kubeconfig", &error))
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

async fn of_file(path: &Path, context: Option<&str>) -> Result<Config, Fault> {
    let place = path.display();
    let wrong = |why: &dyn std::fmt::Display| Fault::own(format!("kubeconfig {place}: {why}"));
    let mode = std::fs::metadata(path).map_err(|error| wrong(&error))?.permissions().mode() & 0o777;
    if mode & 0o006 != 0 {
        return Err(wrong(&format!(
            "everybody may read or change it (mode {mode:03o}): run chmod 600 on it"
        )));
    }
    let read = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
    let runs = |one: &NamedAuthInfo| {
        one.auth_info.as_ref().is_some_and(|info| info.exec.is_some() || info.auth_provider.is_some())
    };
    if read.auth_infos.iter().any(runs) {
        return Err(wrong(
            &"a user of it has a program for a login (exec or auth-provider): name a token, a token file or a certificate",
        ));
    }
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(read, &options).await.map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(mode: u32, user: &str, server: &str, more: &str) -> String {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"{more}}}}}]\nusers: [{{name: u, user: {user}}}]\n"
        );
        std::fs::write(file.path(), text).expect("written");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).expect("it is ours");
        match Api::new(Some(file.path()), None).await {
            Ok(_) => String::new(),
            Err(fault) => fault.to_string(),
        }
    }

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_believed_is_refused() {
        let (token, https) = ("{token: t}", "https://127.0.0.1:6443");
        assert_eq!(refusal(0o600, token, https, "").await, "");
        for (mode, user, server, more, why) in [
            (0o644, token, https, "", "chmod 600"),
            (0o600, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}", https, "", "exec"),
            (0o600, token, "http://127.0.0.1:6443", "", "https alone"),
            (0o600, token, https, ", insecure-skip-tls-verify: true", "insecure-skip-tls-verify"),
        ] {
            let told = refusal(mode, user, server, more).await;
            assert!(told.contains(why), "{told}");
        }
    }
}
