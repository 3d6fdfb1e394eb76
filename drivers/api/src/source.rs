//! Where a secret comes from: a file, a variable of the environment, a credential of systemd. Never the settings.

use std::path::{Path, PathBuf};

use crate::secret::Secret;
use zeroize::Zeroizing;

/// Where a secret comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file that holds nothing else; a line end after it is not part of it.
    File(String),
    /// A variable of the environment.
    Variable(String),
    /// A credential of systemd: a file in `$CREDENTIALS_DIRECTORY`.
    Credential(String),
}

const NO_NAME: &str = "expected the name of a variable of the environment: capital letters, digits and _";

/// Reads the secret. The error says where it was looked for, never what was found.
pub fn read(source: &Source) -> Result<Secret, String> {
    let bytes = match source {
        Source::File(path) => file(path.into())?,
        Source::Variable(name) => {
            // Somebody may have put the secret itself there: what cannot be a variable's name is not repeated.
            let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            let name = if is_name { name } else { return Err(NO_NAME.to_owned()) };
            std::env::var_os(name)
                .ok_or_else(|| format!("the environment has no variable {name}"))?
                .into_encoded_bytes()
        }
        Source::Credential(name) => {
            if name.contains('/') || name.starts_with('.') {
                return Err(format!(
                    "{name:?} is not the name of a credential: it is a file name without a path"
                ));
            }
            let directory = std::env::var_os("CREDENTIALS_DIRECTORY")
                .ok_or("CREDENTIALS_DIRECTORY is not set: systemd sets it for LoadCredential=")?;
            file(PathBuf::from(directory).join(name))?
        }
    };
    let bytes = Zeroizing::new(bytes);
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    if end == 0 {
        return Err("the secret is empty".to_owned());
    }
    Ok(Secret::new(&bytes[..end]))
}

/// Reads a key, which may be written as `0x` and hexadecimal digits, because it need not be text.
pub fn read_key(source: &Source) -> Result<Secret, String> {
    let secret = read(source)?;
    let Some(digits) = secret.expose().strip_prefix(b"0x") else { return Ok(secret) };
    let nibble = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| Some(nibble(pair.first()?)? << 4 | nibble(pair.get(1)?)?)).collect();
    match bytes.filter(|bytes| !bytes.is_empty()) {
        Some(bytes) => Ok(Secret::new(bytes)),
        None => Err("after 0x an even number of hexadecimal digits is expected".to_owned()),
    }
}

/// A file that nobody else may read, or change.
fn file(path: PathBuf) -> Result<Vec<u8>, String> {
    picket_permissions::read_secret(&path).map_err(|fault| fault.to_string())
}

/// Whether a file with secrets in it is one that nobody else may read, or change.
///
/// # Errors
/// It is not there, or somebody else may; with what would be right.
pub fn private(path: &Path) -> Result<(), String> {
    picket_permissions::check_secret(path).map_err(|fault| fault.to_string())
}

/// Whether a file without secrets in it is one that nobody else may change. What is not there is told by whoever reads it.
///
/// # Errors
/// Somebody else may; with what would be right.
pub fn unchanged(path: &Path) -> Result<(), String> {
    picket_permissions::check_if_there(path).map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_line_end_is_not_part_of_a_secret_but_a_space_is() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "s p \r\n").expect("it can be written");
        let secret = read(&Source::File(file.path().display().to_string())).expect("it is there");
        assert_eq!(secret.expose(), b"s p ");
    }

    #[test]
    fn a_secret_that_everybody_may_read_or_change_is_none() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "secret").expect("it can be written");
        let source = Source::File(file.path().display().to_string());
        for (mode, may) in [(0o644, "read"), (0o602, "change"), (0o666, "read"), (0o640, ""), (0o400, "")] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).expect("it is ours");
            match read(&source) {
                Ok(_) => assert_eq!(may, "", "{mode:o}"),
                Err(why) => {
                    let told = format!("everybody may {may} it (mode {mode:o}): run chmod 600 ");
                    assert!(why.starts_with(&told) && !why.contains("secret"), "{why}");
                }
            }
        }
    }

    #[test]
    fn a_key_may_be_hexadecimal() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let source = Source::File(file.path().display().to_string());
        for (text, key) in
            [("0x00fF\n", Some(&[0x00, 0xFF][..])), ("text", Some(b"text")), ("0x0", None), ("0x0g", None)]
        {
            std::fs::write(file.path(), text).expect("it can be written");
            assert_eq!(read_key(&source).ok().as_ref().map(Secret::expose), key, "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (source, word) in [
            (Source::Variable("PICKET_NO_SUCH_VARIABLE".to_owned()), "PICKET_NO_SUCH_VARIABLE"),
            (Source::Variable("hunter2".to_owned()), "capital letters"),
            (Source::Credential("../etc/shadow".to_owned()), "without a path"),
            (Source::File("/nowhere".to_owned()), "/nowhere"),
        ] {
            let error = read(&source).expect_err("it is not there");
            assert!(error.contains(word) && !error.contains("hunter2"), "{error}");
        }
    }
}
