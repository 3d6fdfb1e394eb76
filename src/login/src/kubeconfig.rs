//! What a kubeconfig has for one context: of what its other contexts, clusters and users name nothing is looked at.

use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Context, ExecConfig, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

use crate::{FaultLocation, Wrong, chain};

/// The chosen context alone.
#[derive(Debug)]
pub(crate) struct Chosen {
    path: PathBuf,
    name: String,
    context: Context,
    pub(crate) cluster: Cluster,
    /// Without its program: nobody else is to run that.
    pub(crate) user: AuthInfo,
    pub(crate) exec: Option<ExecConfig>,
}

impl Chosen {
    /// By that context; `None`: by the file's current one.
    pub(crate) fn read(path: &Path, context: Option<&str>) -> Result<Self, Wrong> {
        let shown = path.display();
        let wrong = |place, why: String| Wrong::at(place, format!("kubeconfig {shown}: {why}"));
        let is_missing = || std::fs::metadata(path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        picket_permissions::check_secret(path).map_err(|fault| {
            let place = if is_missing() { FaultLocation::Nowhere } else { FaultLocation::Kubeconfig };
            wrong(place, fault.to_string())
        })?;
        let read =
            Kubeconfig::read_from(path).map_err(|error| wrong(FaultLocation::Kubeconfig, chain(&error)))?;

        let contexts = || names(read.contexts.iter().map(|one| &one.name));
        let (place, name) = match (context, read.current_context.as_deref()) {
            (Some(name), _) => (FaultLocation::Context, name),
            (None, Some(name)) if !name.is_empty() => (FaultLocation::Kubeconfig, name),
            (None, _) => {
                return Err(wrong(
                    FaultLocation::Kubeconfig,
                    format!(
                        "it has no current-context: run kubectl config use-context NAME --kubeconfig {shown}, or name one by the key \
                         context; it has {}",
                        contexts()
                    ),
                ));
            }
        };
        let found = read.contexts.iter().find(|one| one.name == name).and_then(|one| one.context.clone());
        let context =
            found.ok_or_else(|| wrong(place, format!("it has no context {name}: it has {}", contexts())))?;

        let cluster_name = &context.cluster;
        let cluster = read.clusters.iter().find(|one| one.name == *cluster_name);
        let cluster = cluster.and_then(|one| one.cluster.clone()).ok_or_else(|| {
            let all = names(read.clusters.iter().map(|one| &one.name));
            let why = format!("its context {name} names the cluster {cluster_name}: it has {all}");
            wrong(FaultLocation::Kubeconfig, why)
        })?;
        if cluster.server.as_ref().is_none_or(String::is_empty) {
            return Err(wrong(
                FaultLocation::Kubeconfig,
                format!("its cluster {cluster_name} has no server"),
            ));
        }

        let users = || names(read.auth_infos.iter().map(|one| &one.name));
        let user_name = context.user.as_ref().filter(|name| !name.is_empty());
        let user_name = user_name.ok_or_else(|| {
            wrong(FaultLocation::Kubeconfig, format!("its context {name} names no user: it has {}", users()))
        })?;
        let user = read.auth_infos.iter().find(|one| one.name == *user_name);
        let mut user = user.and_then(|one| one.auth_info.clone()).ok_or_else(|| {
            wrong(
                FaultLocation::Kubeconfig,
                format!("its context {name} names the user {user_name}: it has {}", users()),
            )
        })?;
        let exec = user.exec.take();
        let (path, name) = (path.to_owned(), name.to_owned());
        let chosen = Self { path, name, context, cluster, user, exec };
        for file in chosen.files() {
            picket_permissions::check(file.as_ref())
                .map_err(|fault| chosen.wrong(format!("{file}: {fault}")))?;
        }
        // What no header can carry would end the process that sends it.
        let token = chosen.user.token.as_ref().map(secrecy::ExposeSecret::expose_secret);
        if token.is_some_and(|token| !is_token(token)) {
            return Err(
                chosen.wrong("its token must be visible ASCII characters without spaces, at least one")
            );
        }
        Ok(chosen)
    }

    /// What is wrong with the file.
    pub(crate) fn wrong(&self, why: impl std::fmt::Display) -> Wrong {
        Wrong::new(format!("kubeconfig {}: {why}", self.path.display()))
    }

    /// The files that it names: whom to believe, and the proofs of who asks.
    fn files(&self) -> impl Iterator<Item = &String> {
        let user = [&self.user.token_file, &self.user.client_certificate, &self.user.client_key];
        self.cluster.certificate_authority.iter().chain(user.into_iter().flatten())
    }

    /// A kubeconfig that has nothing else.
    pub(crate) fn alone(&self) -> Kubeconfig {
        let (name, user_name) = (self.name.clone(), self.context.user.clone().unwrap_or_default());
        Kubeconfig {
            clusters: vec![NamedCluster {
                name: self.context.cluster.clone(),
                cluster: Some(self.cluster.clone()),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: user_name,
                auth_info: Some(self.user.clone()),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: name.clone(),
                context: Some(self.context.clone()),
                ..NamedContext::default()
            }],
            current_context: Some(name),
            ..Kubeconfig::default()
        }
    }
}

/// RFC 6750 §2.1 allows less; what a header cannot carry would be refused by every server.
pub(crate) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

fn names<'a>(all: impl Iterator<Item = &'a String>) -> String {
    let all: Vec<&str> = all.map(String::as_str).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
