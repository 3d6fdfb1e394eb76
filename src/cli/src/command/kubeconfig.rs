//! `picket kubeconfig`: a kubeconfig for a role that is shipped, and what makes its account.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::console::{Console, Stream, yaml};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::global::Format;
use crate::style::{Page, Tone};

/// Where the accounts are.
const NAMESPACE: &str = "picket";
const SHIPPED: &str = "deploy/kubernetes";

/// Its arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The role that its user has; several times for several of one account
    #[arg(long, required = true, value_enum, value_name = "ROLE")]
    role: Vec<Role>,
    /// The API server, at https
    #[arg(long, value_name = "URL", requires = "token_file")]
    server: Option<String>,
    /// The PEM file of its CA, or of its own certificate
    #[arg(long, value_name = "FILE", requires = "token_file")]
    ca: Option<PathBuf>,
    /// The account's token; without one the commands are told that make the account and its token
    #[arg(long, value_name = "FILE", requires_all = ["server", "ca"])]
    token_file: Option<PathBuf>,
    /// Where to, for its owner alone; nothing that is there is overwritten [default: standard output]
    #[arg(long, value_name = "FILE", requires = "token_file")]
    out: Option<PathBuf>,
}

/// A role that is shipped, by the part of Picket that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// A release of the kind kubernetes
    Release,
    /// A liveness source of the kind kubernetes
    Liveness,
    /// A release's `machines`, here or in the management cluster
    Machines,
    /// A release's `network_fences = "undone"`
    NetworkFences,
    /// picket-controller
    Controller,
    /// picket-controller with `controller.remediation = true`
    Remediation,
}

impl Role {
    /// The manifests in [`SHIPPED`] that say so.
    fn manifests(self) -> &'static [&'static str] {
        match self {
            Self::Release | Self::Liveness => &["release"],
            Self::Machines => &["machines"],
            Self::NetworkFences => &["networkfences"],
            Self::Controller => &["controller"],
            Self::Remediation => &["controller", "remediation"],
        }
    }

    /// Whose they are, in [`NAMESPACE`].
    fn account(self) -> &'static str {
        match self {
            Self::Controller | Self::Remediation => "picket-controller",
            _ => "picket",
        }
    }

    /// Where the settings name the file.
    fn key(self) -> &'static str {
        match self {
            Self::Release | Self::NetworkFences => "kubeconfig of a release of the kind kubernetes",
            Self::Liveness => "kubeconfig of a liveness source of the kind kubernetes",
            Self::Machines => "machines of a release of the kind kubernetes",
            Self::Controller | Self::Remediation => "kubernetes.kubeconfig of the controller",
        }
    }
}

/// What binds the roles of a manifest that binds none itself.
fn bindings(manifest: &str) -> &'static [&'static str] {
    match manifest {
        "release" => &[
            "kubectl create clusterrolebinding picket-release --clusterrole=picket-release --serviceaccount=picket:picket",
            "kubectl -n kube-node-lease create rolebinding picket-release --role=picket-release --serviceaccount=picket:picket",
        ],
        "machines" => &[
            "kubectl create clusterrolebinding picket-machines --clusterrole=picket-machines --serviceaccount=picket:picket",
        ],
        "networkfences" => &[
            "kubectl create clusterrolebinding picket-network-fences --clusterrole=picket-network-fences --serviceaccount=picket:picket",
        ],
        _ => &[],
    }
}

/// Makes it, or tells what makes its account.
pub fn run(args: &Args, format: Format, console: &mut Console) -> Result<Exit, Fault> {
    let account = account(&args.role).map_err(Fault::Usage)?;
    let (Some(server), Some(ca), Some(token)) = (&args.server, &args.ca, &args.token_file) else {
        let commands = commands(&args.role, account);
        match format {
            Format::Table => {
                let page = console.page(Stream::Out);
                console.write(Stream::Out, &pasted(&commands, page))?;
            }
            Format::Json | Format::Yaml => console.document(&json!({ "commands": commands }))?,
        }
        return Ok(Exit::Done);
    };
    let made = composed(account, server, ca, token).map_err(Fault::Usage)?;
    let Some(out) = &args.out else {
        match format {
            Format::Table => console.write(Stream::Out, &yaml(&made)?)?,
            Format::Json | Format::Yaml => console.document(&made)?,
        }
        return Ok(Exit::Done);
    };
    let path = written(out, &yaml(&made)?).map_err(Fault::Usage)?;
    match format {
        Format::Table => {
            let mut keys: Vec<&str> = args.role.iter().map(|role| role.key()).collect();
            keys.dedup();
            let told = format!(
                "Made {}, for its owner alone. The settings name it as: {}.",
                path.display(),
                keys.join("; ")
            );
            let page = console.page(Stream::Out);
            console.write(Stream::Out, &page.text(Tone::Plain, &told))?;
        }
        Format::Json | Format::Yaml => console.document(&json!({ "file": path }))?,
    }
    Ok(Exit::Done)
}

/// The commands as they can be pasted; the document between two of them stays as it is.
fn pasted(commands: &[String], page: Page) -> String {
    let mut in_document = false;
    let mut out = String::new();
    for line in commands {
        in_document &= line != "END";
        let page = if in_document { page.wide() } else { page };
        out += &page.command(0, line);
        in_document |= line.ends_with("<<'END'");
    }
    out
}

/// Whose these roles are.
fn account(roles: &[Role]) -> Result<&'static str, String> {
    let mut accounts = roles.iter().map(|role| role.account());
    let first = accounts.next().unwrap_or_default();
    match accounts.find(|other| *other != first) {
        None => Ok(first),
        Some(other) => Err(format!(
            "these roles are of two accounts, {first} and {other}, and each has a kubeconfig of its own: name those of one"
        )),
    }
}

fn commands(roles: &[Role], account: &str) -> Vec<String> {
    let mut manifests: Vec<&str> = Vec::new();
    for manifest in roles.iter().flat_map(|role| role.manifests()) {
        if !manifests.contains(manifest) {
            manifests.push(manifest);
        }
    }
    let of_controller = manifests.contains(&"controller");
    let mut all = vec!["umask 077".to_owned()];
    if of_controller {
        all.push("picket-controller crds | kubectl apply -f -".to_owned());
    } else {
        all.push(format!("kubectl create namespace {NAMESPACE}"));
        all.push(format!("kubectl -n {NAMESPACE} create serviceaccount {account}"));
    }
    for manifest in manifests {
        all.push(format!("kubectl apply -f {SHIPPED}/{manifest}.yaml"));
        all.extend(bindings(manifest).iter().map(|line| (*line).to_owned()));
    }
    // A token of `kubectl create token` ends; one of a Secret lives as long as that.
    let secret = format!("{account}-token");
    let words: String = roles.iter().map(|role| format!(" --role {}", word(*role))).collect();
    all.extend([
        "kubectl apply -f - <<'END'".to_owned(),
        "apiVersion: v1".to_owned(),
        "kind: Secret".to_owned(),
        "type: kubernetes.io/service-account-token".to_owned(),
        "metadata:".to_owned(),
        format!("  name: {secret}"),
        format!("  namespace: {NAMESPACE}"),
        "  annotations:".to_owned(),
        format!("    kubernetes.io/service-account.name: {account}"),
        "END".to_owned(),
        // The token comes a moment after the Secret.
        format!(
            "until kubectl -n {NAMESPACE} get secret {secret} -o jsonpath='{{.data.token}}' | base64 -d > token && test -s token; do sleep 1; done"
        ),
        format!(
            "kubectl -n {NAMESPACE} get secret {secret} -o jsonpath='{{.data.ca\\.crt}}' | base64 -d > ca.crt"
        ),
        "server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}')".to_owned(),
        format!(
            "picket kubeconfig{words} --server \"$server\" --ca ca.crt --token-file token --out kubeconfig"
        ),
        "rm token".to_owned(),
    ]);
    all
}

fn word(role: Role) -> String {
    role.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn composed(account: &str, server: &str, ca: &Path, token: &Path) -> Result<Value, String> {
    let host = server.strip_prefix("https://").unwrap_or_default();
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@') {
        return Err(format!(
            "--server: expected the API server at https, as https://HOST:6443; found {server:?}"
        ));
    }
    // Who says which API server is believed, says what is let go.
    let wrong = |why: &dyn std::fmt::Display| format!("--ca: {}: {why}", ca.display());
    picket_permissions::check(ca).map_err(|fault| wrong(&fault))?;
    let ca_text = std::fs::read_to_string(ca).map_err(|error| wrong(&error))?;
    if !ca_text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(wrong(&"expected certificates in PEM (BEGIN CERTIFICATE)"));
    }
    let wrong = |why: &dyn std::fmt::Display| format!("--token-file: {}: {why}", token.display());
    let token = picket_permissions::read_secret(token).map_err(|fault| wrong(&fault))?;
    let token = std::str::from_utf8(&token).unwrap_or_default().trim_end_matches(['\n', '\r']);
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(&"the token must be visible ASCII characters without spaces, at least one"));
    }
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": account,
        "contexts": [{ "name": account, "context": { "cluster": "cluster", "user": account } }],
        "clusters": [{
            "name": "cluster",
            "cluster": { "server": server, "certificate-authority-data": STANDARD.encode(ca_text) },
        }],
        "users": [{ "name": account, "user": { "token": token } }],
    }))
}

/// A new file, where nobody else may put another one in its place.
fn written(out: &Path, text: &str) -> Result<PathBuf, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("--out: {}: {why}", out.display());
    let path = std::path::absolute(out).map_err(|error| wrong(&error))?;
    if path.symlink_metadata().is_ok() {
        return Err(wrong(&"it is there already, and nothing is overwritten: name another file"));
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    picket_permissions::check(directory).map_err(|fault| wrong(&fault))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let done = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    done.map_err(|error| wrong(&error))?;
    Ok(path)
}

#[cfg(test)]
mod tests;
