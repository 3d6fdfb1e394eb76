//! How the API server of a Kubernetes is reached, and whom to believe there: for whoever of Picket's asks one.
//!
//! **Purpose.** A kubeconfig, or the service account of the pod in which this runs, as a [`kube::Config`]. An error in words, with its causes.
//! **Non-goals.** No requests: what is asked, and how often, is its asker's.
//! **Invariants.** The API server is at https, and its certificate is checked. No program is run for a login. A file that everybody may
//! read is no login. The client repeats nothing by itself: whoever asks decides whether it is asked again.

use std::error::Error;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, NamedAuthInfo};

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
    config.default_retry = false;
    config.connect_timeout = Some(CONNECTING);
    Ok(config)
}

/// Whether that kubeconfig is there, and one that may be used, as far as its file tells. Nothing is sent, and no other file is read.
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
    let mode = std::fs::metadata(path).map_err(|error| wrong(&error))?.permissions().mode() & 0o777;
    if mode & 0o006 != 0 {
        return Err(wrong(&format!(
            "everybody may read or change it (mode {mode:03o}): run chmod 600 on it"
        )));
    }
    let read = Kubeconfig::read_from(path).map_err(|error| wrong(&chain(&error)))?;
    let runs = |one: &NamedAuthInfo| {
        one.auth_info.as_ref().is_some_and(|info| info.exec.is_some() || info.auth_provider.is_some())
    };
    if read.auth_infos.iter().any(runs) {
        return Err(wrong(
            &"a user of it has a program for a login (exec or auth-provider): name a token, a token file or a certificate",
        ));
    }
    Ok(read)
}

/// An error with its causes, each said once.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = next.source();
    }
    words
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
        ] {
            let told = refusal(mode, user, server, more).await;
            assert!(told.contains(why), "{told}");
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
