//! How the API server of a Kubernetes is reached, and whom to believe there: for whoever of Picket's asks one.
//!
//! **Purpose.** A kubeconfig, or the service account of the pod in which this runs, as a [`kube::Config`], and a client by it. An error in
//! words, with its causes.
//! **Non-goals.** No requests: what is asked, and how often, is its asker's.
//! **Invariants.** The API server is at https, and its certificate is checked. No program is run for a login. A file that somebody else may
//! read or change is no login. The client repeats nothing by itself: whoever asks decides whether it is asked again.

mod client;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use hyper_util::client::legacy;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, NamedAuthInfo};

pub use client::{Connects, client, connects};

/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(3);

/// What is wrong with it, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

/// By the kubeconfig `path`, and of that by `context` (`None`: its current one); without a path by the service account. Nothing is sent.
///
/// # Errors
/// It cannot be read, or cannot be believed.
pub async fn config(path: Option<&Path>, context: Option<&str>) -> Result<Config, Wrong> {
    let mut config = match path {
        Some(path) => of_file(path, context).await?,
        None => Config::incluster()
            .map_err(|error| Wrong(format!("no kubeconfig is set, and this is no pod: {error}")))?,
    };
    if config.accept_invalid_certs {
        let why = "the kubeconfig says insecure-skip-tls-verify: whom to believe is never switched off";
        return Err(Wrong(why.to_owned()));
    }
    if config.cluster_url.scheme() != Some(&http::uri::Scheme::HTTPS) {
        let url = &config.cluster_url;
        return Err(Wrong(format!("the API server is at {url}: https alone is believed")));
    }
    if let Some(proxy) = &config.proxy_url {
        let host = proxy.host().unwrap_or_default();
        return Err(Wrong(format!(
            "the API server is to be asked through the proxy {host}: no proxy is asked; take proxy-url out of the kubeconfig, and \
             HTTPS_PROXY out of the environment"
        )));
    }
    config.default_retry = false;
    config.connect_timeout = Some(CONNECTING);
    Ok(config)
}

/// Whether that kubeconfig is there, and one that may be used, as far as its file tells. Nothing is sent, and of the files that
/// it names the permissions alone are looked at.
///
/// # Errors
/// Its name, and what is wrong with it.
pub fn look(path: &Path) -> Result<(), Wrong> {
    read(path).map(drop)
}

async fn of_file(path: &Path, context: Option<&str>) -> Result<Config, Wrong> {
    let read = read(path)?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(read, &options).await;
    config.map_err(|error| Wrong(format!("kubeconfig {}: {error}", path.display())))
}

fn read(path: &Path) -> Result<Kubeconfig, Wrong> {
    let wrong = |why: &dyn std::fmt::Display| Wrong(format!("kubeconfig {}: {why}", path.display()));
    picket_permissions::check_secret(path).map_err(|fault| wrong(&fault))?;
    let read = Kubeconfig::read_from(path).map_err(|error| wrong(&chain(&error)))?;
    let runs = |one: &NamedAuthInfo| {
        one.auth_info.as_ref().is_some_and(|info| info.exec.is_some() || info.auth_provider.is_some())
    };
    if read.auth_infos.iter().any(runs) {
        return Err(wrong(
            &"a user of it has a program for a login (exec or auth-provider): name a token, a token file or a certificate",
        ));
    }
    for file in files(&read) {
        picket_permissions::check(file.as_ref()).map_err(|fault| wrong(&format!("{file}: {fault}")))?;
    }
    Ok(read)
}

/// The files that it names: whom to believe, and the proofs of who asks.
fn files(read: &Kubeconfig) -> impl Iterator<Item = &String> {
    let clusters =
        read.clusters.iter().filter_map(|one| one.cluster.as_ref()?.certificate_authority.as_ref());
    let users = read.auth_infos.iter().filter_map(|one| one.auth_info.as_ref());
    clusters.chain(
        users.flat_map(|user| [&user.token_file, &user.client_certificate, &user.client_key]).flatten(),
    )
}

/// An error with its causes, each said once; where no connection came to be for TLS's sake, what failed there.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = || std::iter::successors(Some(error), |cause: &&'_ (dyn Error + 'static)| (*cause).source());
    // On a connection that stood TLS may end, too: no handshake failed then.
    let connecting = causes().find(|cause| cause.downcast_ref().is_some_and(legacy::Error::is_connect));
    // An API server speaks the TLS of today: one that was cut off says nothing of that.
    if let Some(why) = connecting.and_then(picket_trust::failure).filter(|why| !why.is_cut()) {
        return why.to_string();
    }
    let mut words = String::new();
    for cause in causes() {
        let more = cause.to_string();
        if words.is_empty() {
            words = more;
        } else if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    async fn refusal(mode: u32, user: &str, server: &str, more: &str) -> String {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"{more}}}}}]\nusers: [{{name: u, user: {user}}}]\n"
        );
        std::fs::write(file.path(), text).expect("written");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).expect("it is ours");
        match config(Some(file.path()), None).await {
            Ok(_) => look(file.path()).err().map_or(String::new(), |wrong| wrong.to_string()),
            Err(wrong) => wrong.to_string(),
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
            (
                0o600,
                token,
                https,
                ", proxy-url: \"http://proxy.example.org:3128\"",
                "the proxy proxy.example.org: no proxy",
            ),
        ] {
            let told = refusal(mode, user, server, more).await;
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn the_files_that_it_names_are_changed_by_nobody_else() {
        let home = tempfile::tempdir().expect("a directory");
        let [login, token, ca] = ["login", "token", "ca"].map(|name| home.path().join(name));
        let text = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://127.0.0.1\", certificate-authority: ca}}]\n\
                    users: [{name: u, user: {tokenFile: token}}]\n";
        let put = |path: &Path, text: &str, mode| {
            std::fs::write(path, text).expect("written");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        put(&login, text, 0o600);
        for (token_mode, ca_mode, at_fault) in [(0o622, 0o644, &token), (0o600, 0o666, &ca)] {
            put(&token, "t", token_mode);
            put(&ca, "c", ca_mode);
            let told = look(&login).expect_err("everybody may change it").to_string();
            assert!(told.ends_with(&format!("run chmod o-w {}", at_fault.display())), "{told}");
        }
        put(&ca, "c", 0o644);
        look(&login).expect("nobody else may change them");
    }

    #[test]
    fn what_fails_on_a_connection_that_stood_is_no_handshake() {
        for told in [
            rustls::Error::AlertReceived(rustls::AlertDescription::HandshakeFailure),
            rustls::Error::InvalidCertificate(rustls::CertificateError::Expired),
        ] {
            let words = told.to_string();
            assert_eq!(chain(&std::io::Error::other(told)), words);
        }
    }

    #[test]
    fn one_that_is_missing_or_garbled_is_told_by_its_name() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "clusters: [oh: no").expect("written");
        let told = look(file.path()).expect_err("it is garbled").to_string();
        let named = format!("kubeconfig {}: ", file.path().display());
        assert!(told.starts_with(&named) && told.contains("parse"), "{told}");
        let path = file.path().to_owned();
        drop(file);
        let told = look(&path).expect_err("it is gone").to_string();
        assert!(told.starts_with(&named) && told.contains("No such file"), "{told}");
    }
}
