//! Who asks, as Google's files of credentials have it (application default credentials): a service account's key, a user's, an external
//! account of a workload identity pool; without a file, the metadata server.
//!
//! **Invariant.** A file is read anew for each token, so that one that was changed serves at once. What is secret in it is shown nowhere.

mod external;

use std::path::{Path, PathBuf};

use picket_driver::Secret;
use picket_driver::source::{self, Source};
use picket_reach::address;
use reqwest::Url;
use serde::Deserialize;

pub(crate) use self::external::{External, Place, Subject};

/// Names the file, as Google's own tools have it.
const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// Where gcloud leaves a user's, below the home directory.
const USUAL: &str = ".config/gcloud/application_default_credentials.json";
/// Where a user's are turned into a token.
const TOKENS: &str = "https://oauth2.googleapis.com/token";

/// Who asks.
#[derive(Debug)]
pub(crate) enum Credentials {
    /// Signs for itself.
    ServiceAccount { email: String, key: Secret, key_id: Option<String>, tokens: Url },
    /// A person, by what gcloud was given for them.
    User { client: String, secret: Secret, refresh: Secret, tokens: Url },
    /// Somebody whom another provider vouches for.
    External(Box<External>),
    /// The instance on which this runs.
    Metadata,
}

impl Credentials {
    /// For how many seconds a token is asked for, where the file says so.
    pub(crate) fn asks_for(&self) -> Option<u64> {
        match self {
            Self::External(external) => external.impersonates.as_ref().map(|_| external.life),
            Self::ServiceAccount { .. } | Self::User { .. } | Self::Metadata => None,
        }
    }
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
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

/// The file that application default credentials name; `None`: there is none.
fn usual() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(USUAL)).filter(|path| path.exists()))
}

impl Credentials {
    /// As they are now.
    pub(crate) fn find(file: Option<&Path>) -> Result<Self, String> {
        match file.map(Path::to_path_buf).or_else(usual) {
            Some(path) => Self::read(&path).map_err(|why| format!("{}: {why}", path.display())),
            None => Ok(Credentials::Metadata),
        }
    }

    fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
        source::unchanged(path)?;
        let wrong = |error: serde_json::Error| format!("it is no file of credentials: {}", place_of(&error));
        let kind: Kind = serde_json::from_slice(&text).map_err(wrong)?;
        if kind.kind == "external_account" {
            return external::made(serde_json::from_slice(&text).map_err(wrong)?)
                .map(|external| Credentials::External(Box::new(external)));
        }
        // The others have a secret in them: whether everybody may read it is looked at as for every other secret.
        let text = source::read(&Source::File(path.display().to_string()))?;
        match kind.kind.as_str() {
            "service_account" => {
                let made: ServiceAccount = serde_json::from_slice(text.expose()).map_err(wrong)?;
                let tokens = url("token_uri", made.token_uri.as_deref().unwrap_or(TOKENS))?;
                let (email, key, key_id) =
                    (made.client_email, Secret::new(made.private_key), made.private_key_id);
                Ok(Credentials::ServiceAccount { email, key, key_id, tokens })
            }
            "authorized_user" => {
                let made: User = serde_json::from_slice(text.expose()).map_err(wrong)?;
                let tokens = url("token_uri", made.token_uri.as_deref().unwrap_or(TOKENS))?;
                let (client, secret, refresh) = (made.client_id, made.client_secret, made.refresh_token);
                Ok(Credentials::User {
                    client,
                    secret: Secret::new(secret),
                    refresh: Secret::new(refresh),
                    tokens,
                })
            }
            other => Err(format!(
                "its type is {:?}: known are service_account, authorized_user and external_account",
                other.chars().take(40).collect::<String>()
            )),
        }
    }
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
        let everybody = read(&key, 0o644).expect_err("everybody may read it");
        assert!(everybody.contains("chmod 600") && !everybody.contains("hunter2"), "{everybody}");
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
            (external(json!({ "executable": { "command": "hunter2" } })), "neither a file nor a url"),
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
