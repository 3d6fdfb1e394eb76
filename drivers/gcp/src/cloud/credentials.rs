//! Who asks, as Google's files of credentials have it (application default credentials): a service
//! account's key, a user's, an external account of a workload identity pool, one of these in the place of a
//! service account; without a file, the metadata server.
//!
//! # Invariants
//!
//! - What a file is, is looked at before anything is sent by it: what is not known here is refused, in
//!   words. Shown by `each_kind_of_file_is_known_by_its_type`.
//! - A file is read anew for each token, so that a changed file serves at once.
//! - What is secret in it is shown nowhere (S18). Shown by
//!   `what_is_wrong_with_a_file_is_said_without_what_stands_in_it`.

mod external;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use picket_driver::Secret;
use picket_driver::source::{self, Source};
use picket_reach::address;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::external::{External, Subject, TokenLocation};

/// Names the file, as Google's own tools have it.
const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// Where gcloud leaves a user's, below the home directory.
const USUAL: &str = ".config/gcloud/application_default_credentials.json";
/// Where a user's are turned into a token.
const TOKENS: &str = "https://oauth2.googleapis.com/token";

/// The only cloud that is asked: others (Google Distributed Cloud, Trusted Partner Cloud) give tokens in other ways.
const UNIVERSE: &str = "googleapis.com";

/// Who asks.
#[derive(Debug)]
pub(crate) enum Credentials {
    /// By a secret of theirs.
    Own(OwnCredentials),
    /// Somebody whom another provider vouches for.
    External(Box<External>),
    /// The same, who has the token of another service account made.
    Impersonated { by: OwnCredentials, place: Url, delegates: Vec<String> },
    /// The instance on which this runs.
    Metadata,
}

/// Who has a secret of their own.
#[derive(Debug)]
pub(crate) enum OwnCredentials {
    /// Signs for itself.
    ServiceAccount { email: String, key: Secret, key_id: Option<String>, tokens: Url },
    /// A person, by what gcloud was given for them.
    User { client: String, secret: Secret, refresh: Secret, tokens: Url },
}

impl Credentials {
    /// For how many seconds a token is asked for, where the file says so.
    pub(crate) fn asks_for(&self) -> Option<u64> {
        match self {
            Self::External(external) => external.impersonates.as_ref().map(|_| external.life),
            Self::Own(_) | Self::Impersonated { .. } | Self::Metadata => None,
        }
    }
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    universe_domain: Option<String>,
}

#[derive(Deserialize)]
struct ServiceAccount {
    client_email: String,
    private_key: String,
    #[serde(default)]
    private_key_id: Option<String>,
    #[serde(default)]
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct User {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    #[serde(default)]
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct ImpersonatedServiceAccount {
    service_account_impersonation_url: String,
    source_credentials: Value,
    #[serde(default)]
    delegates: Vec<String>,
}

/// A file where Google's own tools look for one.
#[derive(Debug)]
pub(crate) struct DefaultFile {
    path: PathBuf,
    /// It is named by [`VARIABLE`].
    named: bool,
}

impl DefaultFile {
    /// By this process's environment; `None`: there is neither such a variable nor a home.
    pub(crate) fn found() -> Option<Self> {
        Self::of(std::env::var_os(VARIABLE), std::env::var_os("HOME"))
    }

    fn of(named: Option<OsString>, home: Option<OsString>) -> Option<Self> {
        let named = named.filter(|path| !path.is_empty()).map(PathBuf::from);
        let of_home = || Some(Self { path: PathBuf::from(home?).join(USUAL), named: false });
        named.map(|path| Self { path, named: true }).or_else(of_home)
    }

    fn words(&self, why: &str) -> String {
        let named = if self.named { format!(" ({VARIABLE} names it)") } else { String::new() };
        format!("{}{named}: {why}", self.path.display())
    }
}

impl Credentials {
    /// As they are now.
    pub(crate) fn find(file: Option<&Path>) -> Result<Self, String> {
        match DefaultFile::found() {
            // One that is named, and is not there, is none that may be left out.
            Some(usual) if file.is_none() && usual.named => {
                Self::read(&usual.path).map_err(|why| usual.words(&why))
            }
            usual => Ok(Self::look(file, usual)?.unwrap_or(Self::Metadata)),
        }
    }

    /// The same at the check, before anything is asked. `None`: there is no file, and one may come to be there later.
    pub(crate) fn look(file: Option<&Path>, usual: Option<DefaultFile>) -> Result<Option<Self>, String> {
        if let Some(path) = file {
            return Self::read(path).map(Some).map_err(|why| format!("{}: {why}", path.display()));
        }
        match usual.filter(|usual| usual.path.exists()) {
            Some(usual) => Self::read(&usual.path).map(Some).map_err(|why| usual.words(&why)),
            None => Ok(None),
        }
    }

    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
        source::unchanged(path)?;
        let kind = kind(&text)?;
        if kind == "external_account" {
            let made = external::made(serde_json::from_slice(&text).map_err(wrong)?)?;
            return Ok(Credentials::External(Box::new(made)));
        }
        // The others have a secret in them: whether everybody may read it is looked at as for every other secret.
        let text = source::read(&Source::File(path.display().to_string()))?;
        if kind != "impersonated_service_account" {
            let known = "service_account, authorized_user, impersonated_service_account and external_account";
            return OwnCredentials::read(&kind, text.expose(), known).map(Credentials::Own);
        }
        let made: ImpersonatedServiceAccount = serde_json::from_slice(text.expose()).map_err(wrong)?;
        let place = url("service_account_impersonation_url", &made.service_account_impersonation_url)?;
        let source = Secret::new(made.source_credentials.to_string());
        let by = self::kind(source.expose());
        let by = by.and_then(|kind| {
            OwnCredentials::read(&kind, source.expose(), "there service_account and authorized_user")
        });
        let by = by.map_err(|why| format!("its source_credentials: {why}"))?;
        Ok(Credentials::Impersonated { by, place, delegates: made.delegates })
    }
}

impl OwnCredentials {
    fn read(kind: &str, text: &[u8], known: &str) -> Result<Self, String> {
        match kind {
            "service_account" => {
                let made: ServiceAccount = serde_json::from_slice(text).map_err(wrong)?;
                let tokens = url("token_uri", made.token_uri.as_deref().unwrap_or(TOKENS))?;
                let (email, key, key_id) =
                    (made.client_email, Secret::new(made.private_key), made.private_key_id);
                Ok(OwnCredentials::ServiceAccount { email, key, key_id, tokens })
            }
            "authorized_user" => {
                let made: User = serde_json::from_slice(text).map_err(wrong)?;
                let tokens = url("token_uri", made.token_uri.as_deref().unwrap_or(TOKENS))?;
                let (client, secret, refresh) = (made.client_id, made.client_secret, made.refresh_token);
                Ok(OwnCredentials::User {
                    client,
                    secret: Secret::new(secret),
                    refresh: Secret::new(refresh),
                    tokens,
                })
            }
            other => Err(format!("its type is {:?}: known are {known}", shortened(other))),
        }
    }
}

/// What that text says it is, of the one cloud that is asked.
fn kind(text: &[u8]) -> Result<String, String> {
    let Kind { kind, universe_domain } = serde_json::from_slice(text).map_err(wrong)?;
    match universe_domain.filter(|universe| universe != UNIVERSE) {
        Some(universe) => Err(format!(
            "its universe_domain is {:?}, and this driver asks {UNIVERSE} alone: give credentials of {UNIVERSE}",
            shortened(&universe)
        )),
        None => Ok(kind),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

fn wrong(error: serde_json::Error) -> String {
    format!("it is no file of credentials: {}", place_of(&error))
}

fn url(key: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
    let url = url.ok_or_else(|| format!("its {key} is no URL"))?;
    if !address::stays_near(&url) {
        return Err(format!(
            "its {key} is not https: who listens on the way would have what is secret (http is for this machine alone)"
        ));
    }
    Ok(url)
}

/// Where an error is, without what stands there.
fn place_of(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    match error.classify() {
        // It names the field that is missing or of the wrong kind, and may repeat a value.
        Category::Data if error.to_string().starts_with("missing field") => error.to_string(),
        Category::Data => format!("a field is of the wrong kind, line {}", error.line()),
        _ => format!("no JSON, line {}", error.line()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};
    use tempfile::NamedTempFile;

    use super::*;

    fn read(text: &str, mode: u32) -> Result<Credentials, String> {
        let file = NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).expect("ours");
        Credentials::find(Some(file.path()))
    }

    fn external(source: Value) -> String {
        json!({
            "type": "external_account", "audience": "//iam.googleapis.com/x", "token_url": "https://sts.googleapis.com/v1/token",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": source,
        })
        .to_string()
    }

    #[test]
    fn each_kind_of_file_is_known_by_its_type() {
        let key =
            json!({ "type": "service_account", "client_email": "p@x", "private_key": "hunter2" }).to_string();
        let user =
            json!({ "type": "authorized_user", "client_id": "c", "client_secret": "hunter2", "refresh_token": "hunter2" }).to_string();
        for (text, mode, wanted) in [
            (key.clone(), 0o600, "ServiceAccount"),
            (user, 0o400, "User"),
            (external(json!({ "file": "/var/token" })), 0o644, "External"),
            (
                external(json!({ "url": "http://127.0.0.1/t", "headers": { "X-Key": "hunter2" } })),
                0o644,
                "Web",
            ),
            (
                external(
                    json!({ "file": "/t", "format": { "type": "json", "subject_token_field_name": "t" } }),
                ),
                0o644,
                "Some(\"t\")",
            ),
        ] {
            let shown = format!("{:?}", read(&text, mode).unwrap_or_else(|why| panic!("{text}: {why}")));
            assert!(shown.contains(wanted) && !shown.contains("hunter2"), "{shown}");
        }
        let by = json!({
            "type": "impersonated_service_account", "delegates": ["projects/-/serviceAccounts/d@x"],
            "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/p@x:generateAccessToken",
            "source_credentials": { "type": "authorized_user", "client_id": "c", "client_secret": "hunter2", "refresh_token": "hunter2" },
        });
        let shown = format!("{:?}", read(&by.to_string(), 0o600).expect("known"));
        assert!(
            shown.contains("Impersonated") && shown.contains("d@x") && !shown.contains("hunter2"),
            "{shown}"
        );
        let everybody = read(&by.to_string(), 0o644).expect_err("everybody may read it");
        assert!(everybody.contains("chmod 600") && !everybody.contains("hunter2"), "{everybody}");
        let everybody = read(&key, 0o644).expect_err("everybody may read it");
        assert!(everybody.contains("chmod 600") && !everybody.contains("hunter2"), "{everybody}");
    }

    /// What stands where Google's own tools look is looked at as well, before anything is sent by it; what is not there may come to be.
    #[test]
    fn a_file_that_is_found_is_looked_at_and_one_that_is_not_there_yet_is_no_fault() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("adc.json");
        let named = Some(path.clone().into_os_string());
        assert!(
            matches!(Credentials::look(None, DefaultFile::of(named.clone(), None)), Ok(None)),
            "it is not there"
        );
        std::fs::write(&path, external(json!({ "environment_id": "aws1" }))).expect("written");
        let why = Credentials::look(None, DefaultFile::of(named, None)).expect_err("it is AWS's");
        let words = format!(
            "{} (GOOGLE_APPLICATION_CREDENTIALS names it): its credential_source is AWS's",
            path.display()
        );
        assert!(why.starts_with(&words), "{why}");
        let below = home.path().join(USUAL);
        std::fs::create_dir_all(below.parent().expect("a directory")).expect("made");
        std::fs::write(&below, "hunter2").expect("written");
        let of_home = DefaultFile::of(None, Some(home.path().as_os_str().to_owned()));
        let why = Credentials::look(None, of_home).expect_err("no JSON");
        assert!(why.contains("application_default_credentials.json: it is no file of credentials"), "{why}");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_without_what_stands_in_it() {
        for (text, word) in [
            ("hunter2".to_owned(), "no JSON"),
            (
                json!({ "type": "service_account", "private_key": "hunter2" }).to_string(),
                "missing field `client_email`",
            ),
            (
                json!({ "type": "service_account", "private_key": ["hunter2"], "client_email": "x" })
                    .to_string(),
                "wrong kind",
            ),
            (json!({ "type": "gdch_service_account" }).to_string(), "known are service_account"),
            (external(json!({ "executable": { "command": "hunter2" } })), "runs a program (executable)"),
            (external(json!({ "certificate": { "use_default_certificate_config": true } })), "(certificate)"),
            (external(json!({ "colour": "hunter2" })), "neither a file nor a url"),
            // As `gcloud iam workload-identity-pools create-cred-config --aws --enable-imdsv2` writes it.
            (
                external(json!({
                    "environment_id": "aws1", "region_url": "http://169.254.169.254/latest/meta-data/placement/availability-zone",
                    "url": "http://169.254.169.254/latest/meta-data/iam/security-credentials",
                    "regional_cred_verification_url": "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
                    "imdsv2_session_token_url": "http://169.254.169.254/latest/api/token",
                })),
                "is AWS's (environment_id)",
            ),
            (
                json!({ "type": "service_account", "client_email": "x", "private_key": "hunter2", "universe_domain": "hunter.example" })
                    .to_string(),
                "universe_domain is \"hunter.example\"",
            ),
            (
                json!({ "type": "impersonated_service_account", "service_account_impersonation_url": "https://x/y",
                    "source_credentials": { "type": "external_account", "audience": "hunter2" } })
                .to_string(),
                "its source_credentials: its type is \"external_account\"",
            ),
            (
                json!({ "type": "impersonated_service_account", "service_account_impersonation_url": "http://x/y",
                    "source_credentials": { "type": "authorized_user", "client_id": "c", "client_secret": "hunter2",
                        "refresh_token": "hunter2" } })
                .to_string(),
                "service_account_impersonation_url is not https",
            ),
            (external(json!({ "file": "/t", "format": { "type": "json" } })), "subject_token_field_name"),
            (
                external(json!({ "url": "http://hunter2.example/t" })),
                "its credential_source.url is not https",
            ),
        ] {
            let why = read(&text, 0o600).expect_err("wrong");
            assert!(why.contains(word) && !why.contains("hunter2"), "{why}");
        }
        assert!(
            Credentials::find(Some(Path::new("/nowhere.json")))
                .is_err_and(|why| why.contains("/nowhere.json"))
        );
    }
}
