//! A program that prints a login, as a kubeconfig names one (`exec`): EKS, GKE and AKS are logged in to by
//! such programs.
//!
//! Source of its protocol: <https://kubernetes.io/docs/reference/config-api/client-authentication.v1/>, and
//! `.v1beta1/` beside it.
//!
//! # Invariants
//!
//! - The settings name the program. A keeper ends it within eight seconds, with all that it started. Shown
//!   by `one_that_hangs_is_killed_with_all_that_it_started`.
//! - What it prints on its standard output, and what its arguments are, is shown nowhere (S18). Shown by
//!   `what_goes_wrong_with_it_is_told_and_what_it_printed_is_not`.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use picket_reach::program::Program;
use picket_reach::{excerpt, process};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use crate::kubeconfig::{Chosen, is_token};
use crate::{FaultLocation, Login, Wrong, chain};

/// How long it may take: less than a request.
const LONGEST: Duration = Duration::from_secs(8);
/// How long a credential is used that does not say when it ends: less than EKS's tokens live, which say it.
const UNSAID: Duration = Duration::from_secs(10 * 60);
const GROUP: &str = "client.authentication.k8s.io/";

/// A program with its arguments and environment.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Plugin {
    program: Program,
    api_version: String,
    longest: Duration,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plugin({})", self.program.shown())
    }
}

impl Plugin {
    /// The program that the settings name, where it is the one that the kubeconfig names; without the setting, what is to be set.
    pub(crate) fn of(chosen: &Chosen, exec: &ExecConfig, login: &Login) -> Result<Self, Wrong> {
        let command = exec.command.as_deref().unwrap_or_default();
        let Some(program) = login.program()? else {
            let hint = exec.install_hint.as_ref().map(|hint| excerpt(hint.as_bytes()));
            let hint = hint.map_or(String::new(), |hint| format!("; the kubeconfig says of it: {hint}"));
            return Err(chosen.wrong(format!(
                "its user logs in by the program {command:?} (exec), which is run where the settings name it: set login_program to its \
                 absolute path, and login_env to the variables that it needs{hint}"
            )));
        };
        let named = login.program.as_deref().unwrap_or(Path::new(""));
        // The arguments are that program's.
        let is_named = match command.contains('/') {
            true => Path::new(command) == named,
            false => named.file_name().is_some_and(|name| name == command),
        };
        if !is_named {
            return Err(chosen.wrong(format!(
                "its user logs in by the program {command:?}, and login_program is {}",
                named.display()
            )));
        }
        let version = exec.api_version.as_deref().and_then(|text| text.strip_prefix(GROUP));
        let version = version.filter(|version| ["v1", "v1beta1"].contains(version)).ok_or_else(|| {
            chosen.wrong(format!("the apiVersion of its user's exec: expected {GROUP}v1 or {GROUP}v1beta1"))
        })?;
        if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(
                chosen.wrong("its user's exec wants a person at a terminal (interactiveMode: Always)")
            );
        }
        let api_version = format!("{GROUP}{version}");
        let mut spec = json!({ "interactive": false });
        if exec.provide_cluster_info {
            let cluster =
                ExecAuthCluster::try_from(&chosen.cluster).map_err(|error| chosen.wrong(chain(&error)))?;
            spec["cluster"] = serde_json::to_value(cluster).map_err(|error| chosen.wrong(error))?;
        }
        let info = json!({ "kind": "ExecCredential", "apiVersion": api_version, "spec": spec }).to_string();
        let args: Vec<&str> = exec.args.iter().flatten().map(String::as_str).collect();
        let env = exec.env.iter().flatten().map(|one| variable(one).ok_or(()));
        let env = env.collect::<Result<Vec<_>, ()>>().map_err(|()| {
            chosen.wrong("the env of its user's exec: expected a list of variables, each with name and value")
        })?;
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(chosen.wrong("the args of its user's exec: one has a zero byte"));
        }
        let env = env.into_iter().chain([("KUBERNETES_EXEC_INFO", info.as_str())]);
        Ok(Self { program: program.with(&args).with_env(env), api_version, longest: LONGEST })
    }

    /// Runs it once.
    ///
    /// # Errors
    /// It has no login to give. No power is switched by it.
    pub(crate) async fn run(&self) -> Result<Credential, Wrong> {
        let told = self.told().await;
        told.map_err(|why| {
            Wrong::at(FaultLocation::Program, format!("login_program {} {why}", self.program.shown()))
        })
    }

    async fn told(&self) -> Result<Credential, String> {
        let ran = process::run(self.program.command(), b"", Instant::now() + self.longest, || Ok(())).await;
        let ran = ran.map_err(|error| error.to_string())?;
        let status = ran.status.ok_or_else(|| format!("was killed after {:?}", self.longest))?;
        if !status.success() {
            return Err(format!("ended with {status}: {}", excerpt(&ran.stderr.bytes)));
        }
        if ran.stdout.cut {
            return Err("printed more than a login".to_owned());
        }
        read(&ran.stdout.bytes, &self.api_version, SystemTime::now())
    }

    #[cfg(test)]
    pub(crate) fn within(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }
}

fn variable(one: &HashMap<String, String>) -> Option<(&str, &str)> {
    let (name, value) = (one.get("name")?, one.get("value")?);
    let is_right = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
    is_right.then_some((name, value))
}

/// What a program printed. It has no debug print (S18).
pub(crate) struct Credential {
    token: Option<String>,
    /// A certificate with its key, in PEM.
    identity: Option<(String, String)>,
    /// When it ends, or is not used any more.
    pub(crate) end: SystemTime,
}

impl Credential {
    /// That user, logged in by it.
    pub(crate) fn of(&self, user: &AuthInfo) -> AuthInfo {
        let mut user = user.clone();
        if let Some(token) = &self.token {
            (user.username, user.password, user.token_file) = (None, None, None);
            user.token = Some(token.clone().into());
        }
        if let Some((certificate, key)) = &self.identity {
            (user.client_certificate, user.client_key) = (None, None);
            user.client_certificate_data = Some(STANDARD.encode(certificate));
            user.client_key_data = Some(STANDARD.encode(key).into());
        }
        user
    }
}

fn read(printed: &[u8], api_version: &str, now: SystemTime) -> Result<Credential, String> {
    let told: Value = serde_json::from_slice(printed).map_err(|_| "printed no JSON")?;
    if told["kind"] != "ExecCredential" || told["apiVersion"] != api_version {
        return Err(format!("printed no ExecCredential of {api_version}, as the kubeconfig has it"));
    }
    let status = &told["status"];
    let text = |key: &str| status[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let token = text("token");
    if token.as_ref().is_some_and(|token| !is_token(token)) {
        return Err("printed a token that is no visible ASCII characters without spaces".to_owned());
    }
    let identity = match (text("clientCertificateData"), text("clientKeyData")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("printed one of clientCertificateData and clientKeyData alone".to_owned()),
    };
    if token.is_none() && identity.is_none() {
        return Err("printed neither a token nor a certificate with its key".to_owned());
    }
    let end = match &status["expirationTimestamp"] {
        Value::Null => now + UNSAID,
        Value::String(end) => OffsetDateTime::parse(end, &Rfc3339)
            .map_err(|_| "printed an expirationTimestamp that is no time")?
            .into(),
        _ => return Err("printed an expirationTimestamp that is no time".to_owned()),
    };
    if end <= now {
        return Err("printed a login that has ended, by this machine's clock".to_owned());
    }
    Ok(Credential { token, identity, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_counts_until_its_end_and_is_never_repeated() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let v1 = "client.authentication.k8s.io/v1";
        let with = |status: &str| {
            format!("{{\"kind\": \"ExecCredential\", \"apiVersion\": \"{v1}\", \"status\": {{{status}}}}}")
        };
        let token = "\"token\": \"hunter2\"";
        for (status, left) in [
            (token.to_owned(), 600),
            (format!("{token}, \"expirationTimestamp\": null"), 600),
            (format!("{token}, \"expirationTimestamp\": \"2027-01-15T09:00:00Z\""), 3_600),
            (format!("{token}, \"expirationTimestamp\": \"2027-01-15T10:00:00+02:00\""), 0),
            ("\"clientCertificateData\": \"c\", \"clientKeyData\": \"hunter2\"".to_owned(), 600),
        ] {
            let read = read(with(&status).as_bytes(), v1, now);
            let Ok(read) = read else {
                assert_eq!(left, 0, "{status}");
                continue;
            };
            assert_eq!(read.end.duration_since(now).expect("later").as_secs(), left, "{status}");
            let user = read.of(&AuthInfo { token_file: Some("/t".to_owned()), ..AuthInfo::default() });
            assert_eq!(user.token.is_some(), user.token_file.is_none(), "{status}");
            assert_eq!(user.token.is_none(), user.client_key_data.is_some(), "{status}");
        }
        for (printed, word) in [
            ("hunter2".to_owned(), "no JSON"),
            (with(token).replace(v1, "client.authentication.k8s.io/v1beta1"), "no ExecCredential of"),
            (with(token).replace("ExecCredential", "hunter2"), "no ExecCredential of"),
            (with(""), "neither"),
            (with("\"token\": \"\""), "neither"),
            (with("\"token\": \"hunter2\\n\""), "visible ASCII"),
            (with("\"clientKeyData\": \"hunter2\""), "alone"),
            (with(&format!("{token}, \"clientCertificateData\": \"hunter2\"")), "alone"),
            (with(&format!("{token}, \"expirationTimestamp\": \"hunter2\"")), "no time"),
            (with(&format!("{token}, \"expirationTimestamp\": 5")), "no time"),
            (with(&format!("{token}, \"expirationTimestamp\": \"2027-01-15T07:59:59Z\"")), "has ended"),
        ] {
            let why = read(printed.as_bytes(), v1, now).err().unwrap_or_default();
            assert!(why.contains(word) && !why.contains("hunter2"), "{printed}: {why}");
        }
    }
}
