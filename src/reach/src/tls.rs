//! Whom we believe on the web: its own CA, or those of the system. Nothing turns the check off.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// TLS 1.2 and 1.3 with the roots of `ca_file`, or else of the system.
pub(crate) fn config(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let roots = match ca_file {
        Some(path) => own(path)?,
        None => of_the_system()?,
    };
    with_roots(roots)
}

/// For plain HTTP: no TLS can succeed with it.
pub(crate) fn none() -> Result<ClientConfig, String> {
    with_roots(RootCertStore::empty())
}

fn with_roots(roots: RootCertStore) -> Result<ClientConfig, String> {
    // The provider is named, so that no default of the process is needed and none can change this.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn own(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let wrong =
        |error: &dyn std::fmt::Display| format!("{shown} cannot be read as PEM certificates: {error}");
    // Who may change whom we believe may answer in the place of what we ask.
    picket_permissions::check_if_there(path).map_err(|fault| format!("{shown}: {fault}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots
            .add(certificate)
            .map_err(|error| format!("{shown} has a certificate that is of no use: {error}"))?;
    }
    if roots.is_empty() { Err(format!("{shown} has no certificate in PEM form")) } else { Ok(roots) }
}

fn of_the_system() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems carry some that cannot be used; what matters is that there are others.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        return Err(format!("the system has no CA certificates{why}; name the receiver's in ca_file"));
    }
    Ok(roots)
}
