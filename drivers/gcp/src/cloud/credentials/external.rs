//! An external account of a workload identity pool: where its own token is, and what becomes of that.

use std::path::PathBuf;

use picket_driver::Secret;
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::url;

/// An external account.
#[derive(Debug)]
pub(crate) struct External {
    pub(crate) audience: String,
    pub(crate) token_kind: String,
    pub(crate) tokens: Url,
    pub(crate) subject: Subject,
    /// Where its token is turned into a service account's.
    pub(crate) impersonates: Option<Url>,
    /// How long that one is to live.
    pub(crate) life: u64,
}

/// Where an external account's own token is.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) place: TokenLocation,
    /// Which field of a JSON text has it; `None`: all of the text is it.
    pub(crate) field: Option<String>,
}

/// A file, or a place on the web.
#[derive(Debug)]
pub(crate) enum TokenLocation {
    File(PathBuf),
    Web { url: Url, headers: Vec<(String, Secret)> },
}

#[derive(Deserialize)]
pub(super) struct ExternalAccount {
    audience: String,
    subject_token_type: String,
    token_url: String,
    credential_source: Value,
    #[serde(default)]
    service_account_impersonation_url: Option<String>,
    #[serde(default)]
    service_account_impersonation: Impersonation,
}

#[derive(Default, Deserialize)]
struct Impersonation {
    #[serde(default)]
    token_lifetime_seconds: Option<u64>,
}

pub(super) fn made(made: ExternalAccount) -> Result<External, String> {
    let impersonates = made.service_account_impersonation_url.as_deref();
    let impersonates = impersonates.map(|text| url("service_account_impersonation_url", text)).transpose()?;
    Ok(External {
        tokens: url("token_url", &made.token_url)?,
        subject: subject(&made.credential_source)?,
        audience: made.audience,
        token_kind: made.subject_token_type,
        impersonates,
        life: made.service_account_impersonation.token_lifetime_seconds.unwrap_or(3_600),
    })
}

/// What a source may have that is not known here, what it is then, and what would be right.
const UNKNOWN: [(&str, &str, &str); 4] = [
    ("environment_id", "is AWS's", AWS),
    ("regional_cred_verification_url", "is AWS's", AWS),
    (
        "executable",
        "runs a program",
        "let a timer of yours run it, have it write its token into a file, and name that file (credential_source.file)",
    ),
    ("certificate", "is a certificate", "give a token in a file or at a URL, or a key of a service account"),
];
const AWS: &str = "what it has at its url is the name of a role, and no token; give a token in a file or at a URL, or a key of a service account";

fn subject(source: &Value) -> Result<Subject, String> {
    for (key, is, right) in UNKNOWN {
        if source.get(key).is_some() {
            return Err(format!(
                "its credential_source {is} ({key}), which is not known to this driver: {right}"
            ));
        }
    }
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let place = match (text(source, "file"), text(source, "url")) {
        (Some(file), _) => TokenLocation::File(file.into()),
        (None, Some(place)) => {
            let pairs = source.get("headers").and_then(Value::as_object).into_iter().flatten();
            let header = |(key, value): (&String, &Value)| Some((key.clone(), Secret::new(value.as_str()?)));
            TokenLocation::Web {
                url: url("credential_source.url", &place)?,
                headers: pairs.filter_map(header).collect(),
            }
        }
        (None, None) => {
            return Err("its credential_source has neither a file nor a url".to_owned());
        }
    };
    let format = source.get("format").filter(|format| text(format, "type").as_deref() == Some("json"));
    let field = format.map(|format| {
        text(format, "subject_token_field_name")
            .ok_or("its credential_source.format is json, without subject_token_field_name")
    });
    Ok(Subject { place, field: field.transpose()? })
}
