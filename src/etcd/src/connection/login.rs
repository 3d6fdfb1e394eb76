//! The secrets and certificates of a connection, read when it is made.

use std::path::{Path, PathBuf};

use picket_config::{EtcdSettings, SecretSource};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use zeroize::Zeroizing;

/// The TLS of a new connection. An error says which file, and what is wrong with it.
pub(super) fn tls(settings: &EtcdSettings) -> Result<ClientTlsConfig, String> {
    let mut tls = ClientTlsConfig::new();
    if let Some(ca) = &settings.tls.ca {
        tls = tls.ca_certificate(Certificate::from_pem(pem(ca)?));
    }
    if let Some((cert, key)) = &settings.tls.own {
        let key = Zeroizing::new(guarded(key)?);
        tls = tls.identity(Identity::from_pem(pem(cert)?, &*key));
    }
    Ok(tls)
}

fn pem(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = picket_permissions::read(path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    if bytes.windows(11).any(|part| part == b"-----BEGIN ") {
        Ok(bytes)
    } else {
        Err(format!("{} has no certificate in PEM form", path.display()))
    }
}

/// The password. The error says where it was looked for, never what was found.
pub(super) fn password(source: &SecretSource) -> Result<Zeroizing<String>, String> {
    let bytes = match source {
        SecretSource::File(path) => guarded(path)?,
        SecretSource::Variable(name) => {
            // Somebody may have put the password itself there: what cannot be a variable's name is not repeated.
            let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
            if !is_name {
                return Err("password_env is no name of a variable: capital letters, digits and _".to_owned());
            }
            let value = std::env::var_os(name);
            value.ok_or_else(|| format!("the environment has no variable {name}"))?.into_encoded_bytes()
        }
        SecretSource::Credential(name) => {
            if name.contains('/') || name.starts_with('.') {
                return Err(
                    "password_credential is no name of a credential: a file name without a path".to_owned()
                );
            }
            let directory = std::env::var_os("CREDENTIALS_DIRECTORY")
                .ok_or("CREDENTIALS_DIRECTORY is not set: systemd sets it for LoadCredential=")?;
            guarded(&PathBuf::from(directory).join(name))?
        }
    };
    let text =
        Zeroizing::new(String::from_utf8(bytes).map_err(|_| "the password is no UTF-8 text".to_owned())?);
    let text = Zeroizing::new(text.trim_end_matches(['\n', '\r']).to_owned());
    if text.is_empty() { Err("the password is empty".to_owned()) } else { Ok(text) }
}

/// A file that nobody else may read, or change.
fn guarded(path: &Path) -> Result<Vec<u8>, String> {
    picket_permissions::read_secret(path).map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_password_is_read_without_its_line_end_and_never_told() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let source = SecretSource::File(file.path().to_owned());
        std::fs::write(file.path(), "hunter2 \n").expect("it is ours");
        assert_eq!(password(&source).expect("it is there").as_str(), "hunter2 ");
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(file.path(), open).expect("it is ours");
        for source in [
            source,
            SecretSource::Variable("hunter2".to_owned()),
            SecretSource::Credential("a/hunter2".to_owned()),
        ] {
            let why = password(&source).expect_err("it is refused");
            assert!(!why.contains("hunter2"), "{why}");
        }
    }
}
