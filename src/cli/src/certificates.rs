//! What https wants: the CA of the gateway's certificate, and a certificate of one's own with its key.

use std::path::{Path, PathBuf};

use clap::Args;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// The PEM files that https wants; those of the context where they are not given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Certificates {
    /// The CA of the gateway's certificate
    #[arg(long, global = true, value_name = "FILE", env = "PICKET_CA_FILE")]
    pub ca_file: Option<PathBuf>,
    /// Your certificate
    #[arg(long, global = true, value_name = "FILE", env = "PICKET_CERT_FILE")]
    pub cert_file: Option<PathBuf>,
    /// Its key
    #[arg(long, global = true, value_name = "FILE", env = "PICKET_KEY_FILE")]
    pub key_file: Option<PathBuf>,
}

/// The files, all three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    /// All three, or which are missing.
    pub fn of(given: &Certificates) -> Result<Self, String> {
        let (ca, certificate, key) = (&given.ca_file, &given.cert_file, &given.key_file);
        if let (Some(ca), Some(certificate), Some(key)) = (ca, certificate, key) {
            return Ok(Self { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() });
        }
        let all = [("ca_file", ca), ("cert_file", certificate), ("key_file", key)];
        let missing: Vec<&str> = all.iter().filter(|(_, file)| file.is_none()).map(|(key, _)| *key).collect();
        let is = if missing.len() == 1 { "is" } else { "are" };
        Err(format!(
            "https wants certificates on both sides, and {} {is} missing: put them into the context, or give --ca-file, \
             --cert-file and --key-file; picket pki init makes some",
            missing.join(" and ")
        ))
    }

    /// Reads them.
    pub fn read(&self) -> Result<ClientTlsConfig, String> {
        let key = picket_permissions::read_secret(&self.key).map_err(|fault| unread(&self.key, &fault))?;
        let ca = Certificate::from_pem(read(&self.ca)?);
        let identity = Identity::from_pem(read(&self.certificate)?, key);
        Ok(ClientTlsConfig::new().ca_certificate(ca).identity(identity))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    picket_permissions::read(path).map_err(|fault| unread(path, &fault))
}

fn unread(path: &Path, fault: &picket_permissions::Fault) -> String {
    match &fault.what {
        picket_permissions::What::Unread(error) => format!("cannot read {}: {error}", path.display()),
        _ => format!("{}: {fault}", path.display()),
    }
}

/// What to look at where TLS came to nothing, by rustls's words; `None` where it was something else.
pub fn hint(why: &str) -> Option<&'static str> {
    const FOREIGN: &str = "the gateway's certificate is not of your ca_file: is it that gateway?";
    let hints = [
        (
            "fatal alert: CertificateExpired",
            "your certificate has expired, or is not valid yet: are both clocks right? The gateway's log says which",
        ),
        (
            "fatal alert: UnknownCA",
            "your certificate is not of a CA that the gateway knows (its client_ca_file)",
        ),
        (
            "fatal alert: DecryptError",
            "your certificate is not of a CA that the gateway knows (its client_ca_file)",
        ),
        ("fatal alert: CertificateRequired", "the gateway wants a certificate, and none was shown"),
        ("fatal alert: ProtocolVersion", "the gateway speaks TLS 1.3 only"),
        (
            "fatal alert: ",
            "the gateway does not take your certificate: is it valid yet, and for clients? Its log says more",
        ),
        ("peer certificate: UnknownIssuer", FOREIGN),
        ("peer certificate: BadSignature", FOREIGN),
        (
            "peer certificate: certificate not valid for name",
            "the gateway's certificate is for other names than that of the endpoint",
        ),
        ("peer certificate: certificate expired", "the gateway's certificate has expired"),
        (
            "CaUsedAsEndEntity",
            "the gateway shows the certificate of a CA, as openssl req -x509 makes it: picket pki init makes a CA and one for the \
             gateway",
        ),
        ("invalid peer certificate", "the gateway's certificate is of no use"),
        ("corrupt message", "what answers there speaks no TLS: is it http, or another port?"),
    ];
    hints.iter().find(|(word, _)| why.contains(word)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_that_everybody_may_read_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| {
            std::fs::write(dir.path().join(name), "x").expect("written");
            dir.path().join(name)
        };
        let files = Files { ca: at("ca"), certificate: at("c"), key: at("k") };
        let mode = |mode| std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(mode));
        mode(0o644).expect("it is ours");
        let why = files.read().expect_err("refused");
        assert!(why.contains("mode 644") && why.contains("chmod 600"), "{why}");
        mode(0o600).expect("it is ours");
        assert!(files.read().is_ok());
        std::fs::set_permissions(&files.ca, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
        let why = files.read().expect_err("everybody may say who is believed");
        assert!(why.ends_with(&format!("chmod o-w {}", files.ca.display())), "{why}");
    }

    #[test]
    fn what_is_no_matter_of_certificates_has_no_hint() {
        assert_eq!(hint("Connection refused (os error 111)"), None);
        assert!(
            hint("received fatal alert: CertificateExpired").is_some_and(|hint| hint.contains("expired"))
        );
        assert!(hint("received fatal alert: Something").is_some());
        let own = "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))";
        assert!(hint(own).is_some_and(|hint| hint.contains("picket pki init")));
    }
}
