//! How the API server of a Kubernetes is reached, and whom to believe there.
//!
//! **Purpose.** A kubeconfig, or the service account of the pod in which this runs, as a [`kube::Config`],
//! and a client by it. An error in words, with its causes.
//! **Non-goals.** No requests: what is asked, and how often, is the asker's matter.
//!
//! # Invariants
//!
//! - The API server is at https, and its certificate is checked (S1). Shown by
//!   `a_kubeconfig_that_cannot_be_believed_is_refused`.
//! - Of a kubeconfig the chosen context alone is read. Shown by
//!   `what_another_context_names_spoils_nothing`.
//! - A program is run for a login where the settings name it, by a keeper, and kube sees no program. Shown
//!   by `what_the_settings_do_not_name_is_not_run`, `one_that_hangs_is_killed_with_all_that_it_started`.
//! - A file that somebody else may read or change is no login. Shown by
//!   `the_files_that_it_names_are_changed_by_nobody_else`.
//! - The client repeats nothing by itself: its caller decides. A request for which there was no login was
//!   never sent (S10). Shown by `what_nobody_was_there_to_send_did_not_happen`.

mod cached_login;
mod client;
mod kubeconfig;
mod plugin;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use hyper_util::client::legacy;
use kube::Config;
use kube::client::ConfigExt;
use kube::config::KubeConfigOptions;

use picket_reach::program::Program;

use crate::cached_login::CachedLogin;
use crate::kubeconfig::Chosen;
use crate::plugin::Plugin;
pub use client::{Connects, client, connects};

/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(3);

/// What is wrong with it, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct Wrong {
    place: FaultLocation,
    words: String,
    /// The API server answers all the same.
    answers: bool,
}

/// Where it is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultLocation {
    /// What is to be read is not there.
    Nowhere,
    Kubeconfig,
    Context,
    Program,
    Env,
}

impl Wrong {
    const fn at(place: FaultLocation, words: String) -> Self {
        Self { place, words, answers: false }
    }

    const fn new(words: String) -> Self {
        Self::at(FaultLocation::Kubeconfig, words)
    }

    /// Whether the API server answered whoever came without a login: it is reached, and knows nobody here.
    pub fn is_answered(&self) -> bool {
        self.answers
    }

    /// The key of the settings whose value is wrong; `None`: none is, as the file is not there (yet), or this is no pod.
    pub fn key(&self) -> Option<&'static str> {
        match self.place {
            FaultLocation::Nowhere => None,
            FaultLocation::Kubeconfig => Some("kubeconfig"),
            FaultLocation::Context => Some("context"),
            FaultLocation::Program => Some("login_program"),
            FaultLocation::Env => Some("login_env"),
        }
    }
}

/// How an API server is reached, as the settings have it.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// `None`: by the service account of the pod in which this runs.
    pub kubeconfig: Option<PathBuf>,
    /// One of that file; `None`: its current one.
    pub context: Option<String>,
    /// The program that its user logs in by (`exec`), at an absolute path; `None`: no program is run.
    pub program: Option<PathBuf>,
    /// The variables of this process that the program gets, besides `PATH`.
    pub env: Vec<String>,
    cached: CachedLogin,
}

/// What is known of a login before anything is sent.
#[derive(Clone, Debug)]
pub struct Known {
    config: Config,
    /// By whom its user logs in, and what it printed.
    plugin: Option<(Plugin, CachedLogin)>,
}

/// One that nobody looked at.
impl From<Config> for Known {
    fn from(config: Config) -> Self {
        Self { config, plugin: None }
    }
}

impl Login {
    /// As the settings have it.
    pub fn new(
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
        program: Option<PathBuf>,
        env: Vec<String>,
    ) -> Self {
        Self { kubeconfig, context, program, env, cached: CachedLogin::default() }
    }

    /// Whether its kubeconfig is there, and one that may be used, as far as it and the files that it names tell. Of these the permissions of
    /// all and what CAs, certificates and keys say is looked at. No program is run, and nothing is sent.
    ///
    /// # Errors
    /// Its name, and what is wrong with it.
    pub fn look(&self) -> Result<(), Wrong> {
        self.program()?;
        let Some(chosen) = self.chosen()? else { return Ok(()) };
        let (mut config, _) = self.by(&chosen)?;
        // A variable of whoever looks is no fault of the file's.
        if chosen.cluster.proxy_url.as_ref().is_none_or(String::is_empty) {
            config.proxy_url = None;
        }
        let config = believed(config).map_err(|wrong| chosen.wrong(wrong))?;
        client::tls(&config).map_err(|wrong| chosen.wrong(wrong))?;
        config.auth_layer().map(drop).map_err(|error| chosen.wrong(chain(&error)))
    }

    /// What is known of it. No program is run, and nothing is sent.
    ///
    /// # Errors
    /// It cannot be read, or cannot be believed.
    pub fn known(&self) -> Result<Known, Wrong> {
        let Some(chosen) = self.chosen()? else {
            let words = |error| format!("no kubeconfig is set, and this is no pod: {error}");
            let config =
                Config::incluster().map_err(|error| Wrong::at(FaultLocation::Nowhere, words(error)))?;
            return Ok(believed(config)?.into());
        };
        let (config, plugin) = self.by(&chosen)?;
        let config = believed(config).map_err(|wrong| chosen.wrong(wrong))?;
        Ok(Known { config, plugin: plugin.map(|plugin| (plugin, self.cached.clone())) })
    }

    fn chosen(&self) -> Result<Option<Chosen>, Wrong> {
        self.kubeconfig.as_deref().map(|path| Chosen::read(path, self.context.as_deref())).transpose()
    }

    /// The program, if one is set.
    fn program(&self) -> Result<Option<Program>, Wrong> {
        if let Some(name) = self.env.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let words = format!("expected names of variables, found {name:?}");
            return Err(Wrong::at(FaultLocation::Env, words));
        }
        let made = self.program.as_ref().map(|path| Program::at(path.clone(), &self.env)).transpose();
        made.map_err(|why| Wrong::at(FaultLocation::Program, why))
    }

    fn by(&self, chosen: &Chosen) -> Result<(Config, Option<Plugin>), Wrong> {
        if chosen.user.auth_provider.is_some() {
            return Err(chosen.wrong(
                "its user has an auth-provider, which kubectl does not know any more: name a token, a token file, a certificate, or a \
                 program (exec)",
            ));
        }
        let plugin = chosen.exec.as_ref().map(|exec| Plugin::of(chosen, exec, self)).transpose()?;
        let options = KubeConfigOptions::default();
        // It waits for nothing.
        let config = Config::from_custom_kubeconfig(chosen.alone(), &options).now_or_never();
        let config = config.ok_or_else(|| chosen.wrong("it is not read at once"))?;
        let config = config.map_err(|error| chosen.wrong(chain(&error)))?;
        if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                chosen.wrong("its certificate-authority has no certificate: PEM is expected, CERTIFICATE")
            );
        }
        Ok((config, plugin))
    }
}

fn believed(mut config: Config) -> Result<Config, Wrong> {
    let wrong = |words: String| Err(Wrong::new(words));
    if config.accept_invalid_certs {
        return wrong(
            "the kubeconfig says insecure-skip-tls-verify: whom to believe is never switched off".to_owned(),
        );
    }
    if config.cluster_url.scheme() != Some(&http::uri::Scheme::HTTPS) {
        return wrong(format!("the API server is at {}: https alone is believed", config.cluster_url));
    }
    if let Some(proxy) = &config.proxy_url {
        let host = proxy.host().unwrap_or_default();
        return wrong(format!(
            "the API server is to be asked through the proxy {host}: no proxy is asked; take proxy-url out of the kubeconfig, and \
             HTTPS_PROXY out of the environment"
        ));
    }
    config.default_retry = false;
    config.connect_timeout = Some(CONNECTING);
    Ok(config)
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
mod logging_in;
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use picket_trust::fakes::OwnCertificate;

    use super::*;

    fn of(path: &Path) -> Login {
        Login { kubeconfig: Some(path.to_owned()), ..Login::default() }
    }

    fn refusal(mode: u32, user: &str, server: &str, more: &str) -> String {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"{server}\"{more}}}}}]\nusers: [{{name: u, user: {user}}}]\n"
        );
        std::fs::write(file.path(), text).expect("written");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).expect("it is ours");
        let login = of(file.path());
        let [looked, known] =
            [login.look(), login.known().map(drop)].map(|told| told.err().map(|wrong| wrong.words));
        assert_eq!(looked.is_some(), known.is_some(), "{looked:?} {known:?}");
        looked.unwrap_or_default()
    }

    #[test]
    fn a_kubeconfig_that_cannot_be_believed_is_refused() {
        let (token, https) = ("{token: t}", "https://127.0.0.1:6443");
        assert_eq!(refusal(0o600, token, https, ""), "");
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
            let told = refusal(mode, user, server, more);
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn the_files_that_it_names_are_changed_by_nobody_else() {
        let home = tempfile::tempdir().expect("a directory");
        let [login, token, ca] = ["login", "token", "ca"].map(|name| home.path().join(name));
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
                    clusters: [{name: c, cluster: {server: \"https://127.0.0.1\", certificate-authority: ca}}]\n\
                    users: [{name: u, user: {tokenFile: token}}]\n";
        let pem = OwnCertificate::new().pem;
        let put = |path: &Path, text: &str, mode| {
            std::fs::write(path, text).expect("written");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        put(&login, text, 0o600);
        for (token_mode, ca_mode, at_fault) in [(0o622, 0o644, &token), (0o600, 0o666, &ca)] {
            put(&token, "t", token_mode);
            put(&ca, &pem, ca_mode);
            let told = of(&login).look().expect_err("everybody may change it").to_string();
            assert!(told.ends_with(&format!("run chmod o-w {}", at_fault.display())), "{told}");
        }
        put(&ca, &pem, 0o644);
        of(&login).look().expect("nobody else may change them");
    }

    /// What is told of a kubeconfig of these texts.
    fn told(contexts: &str, clusters: &str, users: &str, more: &str) -> String {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("login");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncontexts: [{contexts}]\nclusters: [{clusters}]\nusers: [{users}]\n{more}\n"
        );
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        of(&path).look().err().map_or(String::new(), |wrong| wrong.to_string())
    }

    #[test]
    fn a_kubeconfig_by_which_nobody_can_log_in_is_told_beforehand() {
        let context = "{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: gone, user: u}}, \
                       {name: d, context: {cluster: c, user: gone}}, {name: e, context: {cluster: c}}, \
                       {name: f, context: {cluster: bare, user: u}}";
        let cluster = "{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}, {name: bare, cluster: {}}";
        let user = "{name: u, user: {token: t}}";
        let of = |more: &str| told(context, cluster, user, more);
        assert_eq!(of("current-context: a"), "");
        for (more, words) in [
            ("", "it has no current-context: run kubectl config use-context NAME"),
            ("current-context: \"\"", "it has no current-context"),
            ("current-context: z", "it has no context z: it has a, b, d, e, f"),
            ("current-context: b", "its context b names the cluster gone: it has c, bare"),
            ("current-context: d", "its context d names the user gone: it has u"),
            ("current-context: e", "its context e names no user: it has u"),
            ("current-context: f", "its cluster bare has no server"),
        ] {
            let told = of(more);
            assert!(told.contains(words), "{more}: {told}");
        }
        for (user, words) in [
            ("{token: t, client-certificate: /nowhere/c}", "/nowhere/c cannot be read"),
            ("{tokenFile: /nowhere/t}", "/nowhere/t cannot be read"),
            ("{client-certificate-data: AAAA, client-key-data: AAAA}", "its TLS"),
            ("{token: \"of two\\nlines\"}", "its token"),
        ] {
            let told = told(context, cluster, &format!("{{name: u, user: {user}}}"), "current-context: a");
            assert!(told.contains(words), "{user}: {told}");
            assert!(!told.contains("of two"), "{told}");
        }
        for (cluster, words) in [
            ("{server: \"http://127.0.0.1:6443\"}", "https alone"),
            ("{server: \"https://127.0.0.1\", insecure-skip-tls-verify: true}", "insecure-skip-tls-verify"),
            (
                "{server: \"https://127.0.0.1\", certificate-authority: /nowhere/ca}",
                "/nowhere/ca cannot be read",
            ),
            ("{server: \"https://127.0.0.1\", certificate-authority-data: AAAA}", "certificate-authority"),
        ] {
            let told = told(context, &format!("{{name: c, cluster: {cluster}}}"), user, "current-context: a");
            assert!(told.contains(words), "{cluster}: {told}");
        }
    }

    #[test]
    fn what_another_context_names_spoils_nothing() {
        let contexts = "{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: b, user: v}}";
        let clusters = "{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}, \
                        {name: b, cluster: {server: \"https://127.0.0.1\", certificate-authority: /nowhere/ca}}";
        let users = "{name: u, user: {token: t}}, {name: v, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}}, \
                     {name: w, user: {tokenFile: /nowhere/t}}, {name: x, user: {auth-provider: {name: gcp}}}";
        assert_eq!(told(contexts, clusters, users, "current-context: a"), "");
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
        let told = of(file.path()).look().expect_err("it is garbled").to_string();
        let named = format!("kubeconfig {}: ", file.path().display());
        assert!(told.starts_with(&named) && told.contains("parse"), "{told}");
        let path = file.path().to_owned();
        drop(file);
        let told = of(&path).look().expect_err("it is gone").to_string();
        assert!(told.starts_with(&named) && told.contains("No such file"), "{told}");
    }
}
