//! The secrets and certificates of a connection, read when it is made.

use std::path::{Path, PathBuf};

use picket_config::{EtcdSettings, SecretSource};
use tonic::transport::{ClientTlsConfig, Endpoint, Identity};
use zeroize::Zeroizing;

/// That address with the TLS of a new connection. An error says which file, and what is wrong with it.
pub(super) fn with_tls(address: Endpoint, settings: &EtcdSettings) -> Result<Endpoint, String> {
    let mut tls = ClientTlsConfig::new();
    if let Some((cert, key)) = &settings.tls.own {
        let key = Zeroizing::new(guarded(key)?);
        tls = tls.identity(Identity::from_pem(pem(cert)?, &*key));
    }
    let made = match &settings.tls.ca {
        Some(ca) => address.tls_config_with_verifier(tls, picket_trust::verifier(ca)?),
        None => address.tls_config(tls),
    };
    made.map_err(|error| error.to_string())
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
    use std::sync::Arc;
    use std::time::Duration;

    use picket_trust::fakes::OwnCertificate;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

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

    /// A member's own certificate, in a file; and the member.
    fn own() -> (tempfile::NamedTempFile, TlsAcceptor) {
        let mut made = OwnCertificate::new();
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), made.pem).expect("it is ours");
        made.server.alpn_protocols.push(b"h2".to_vec());
        (file, TlsAcceptor::from(Arc::new(made.server)))
    }

    fn settings(ca: &Path) -> EtcdSettings {
        EtcdSettings {
            endpoints: Vec::new(),
            tls: picket_config::EtcdTls { ca: Some(ca.to_owned()), own: None },
            user: None,
            prefix: "/picket/".to_owned(),
            request: Duration::from_secs(30),
            dial: Duration::from_secs(30),
            members: std::collections::BTreeMap::new(),
            allow_lease_bug: false,
        }
    }

    #[tokio::test]
    async fn a_member_is_believed_by_its_own_certificate_in_the_ca_file() {
        let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}", place.local_addr().expect("an address"));
        let (file, acceptor) = own();
        let (another, _) = own();
        let accepts = async {
            let (first, _) = place.accept().await.expect("a caller");
            let first = acceptor.accept(first).await;
            let (second, _) = place.accept().await.expect("a caller");
            (first.is_ok(), acceptor.accept(second).await.is_ok())
        };
        let connects = async {
            for ca in [file.path(), another.path()] {
                let settings = settings(ca);
                let address = Endpoint::from_shared(url.clone()).expect("an address");
                let connected = with_tls(address, &settings).expect("a certificate").connect().await;
                let told = connected.as_ref().err().map(|error| picket_trust::failure(error));
                let distrust = told.flatten().is_some_and(|why| why.is_distrust());
                assert_eq!((connected.is_ok(), distrust), (ca == file.path(), ca != file.path()));
            }
        };
        assert_eq!(tokio::join!(accepts, connects).0, (true, false));
    }
}
