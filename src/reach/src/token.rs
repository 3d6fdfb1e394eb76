//! A bearer token. It has no `Display`, and its debug print says nothing (S18).

use std::fmt;
use std::path::PathBuf;

use reqwest::header::HeaderValue;

use crate::settings::Settings;

/// A bearer token.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// From `token_file`, `token_env` or `token_credential`; none of them: no token.
    pub fn read(settings: &mut Settings<'_>) -> Option<Self> {
        let sources = [
            ("token_file", settings.text("token_file")),
            ("token_env", settings.text("token_env")),
            ("token_credential", settings.text("token_credential")),
        ];
        let given: Vec<(&str, String)> =
            sources.into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
        if let [_, (key, _), ..] = &given[..] {
            settings.fault(key, "a token has one source: give token_file, token_env or token_credential");
            return None;
        }
        let (key, from) = given.into_iter().next()?;
        let read = match key {
            "token_file" => from_file(PathBuf::from(from)),
            "token_env" => from_variable(&from),
            _ => from_credential(&from),
        };
        read.and_then(|bytes| Self::check(&bytes)).map_err(|why| settings.fault(key, why)).ok()
    }

    fn check(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim_end_matches(['\n', '\r']);
        // RFC 6750 §2.1 allows less; what a header cannot carry would be refused by every server.
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !fits {
            return Err("the token must be visible ASCII characters without spaces, at least one".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// The value of the header `Authorization`.
    pub fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The text without the token.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "[token]")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A file that nobody else may read, or change.
fn from_file(path: PathBuf) -> Result<Vec<u8>, String> {
    picket_permissions::read_secret(&path).map_err(|fault| fault.to_string())
}

fn from_variable(name: &str) -> Result<Vec<u8>, String> {
    // Somebody may have put the token itself there: what cannot be a variable's name is not repeated.
    let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !is_name {
        return Err("expected the name of a variable: capital letters, digits and _".to_owned());
    }
    let value = std::env::var_os(name).ok_or_else(|| format!("the environment has no variable {name}"))?;
    Ok(value.into_encoded_bytes())
}

fn from_credential(name: &str) -> Result<Vec<u8>, String> {
    if name.contains('/') || name.starts_with('.') {
        return Err("expected the name of a credential: a file name without a path".to_owned());
    }
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY")
        .ok_or("CREDENTIALS_DIRECTORY is not set: systemd sets it for LoadCredential=")?;
    from_file(PathBuf::from(directory).join(name))
}
