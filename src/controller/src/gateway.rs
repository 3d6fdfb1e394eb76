//! The way to the gateways.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use picket_proto::client::{BoxError, Gateways, Maker, is_here};

use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::settings::{Certificates, Settings};

const CONNECT: Duration = Duration::from_secs(5);
/// How often a silent connection is asked whether it still stands, and for how long it may not answer.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(10));

/// What is wrong with an endpoint, if anything is.
pub fn wrong(endpoint: &str) -> Option<String> {
    let bad = |why: &str| {
        Some(format!(
            "{endpoint:?} is no endpoint{why}: write https://gateway:7070 or unix:/run/picket/picket.sock"
        ))
    };
    if let Some(path) = endpoint.strip_prefix("unix:") {
        return if path.starts_with('/') { None } else { bad(" (the path is not absolute)") };
    }
    let rest = match endpoint.strip_prefix("https://") {
        Some(rest) => rest,
        None => match endpoint.strip_prefix("http://") {
            Some(rest) if is_here(rest.trim_end_matches('/')) => rest,
            Some(_) => return bad(" (without encryption on the loopback alone)"),
            None => return bad(""),
        },
    };
    let port = rest.trim_end_matches('/').rsplit_once(':');
    match port {
        Some((host, port))
            if !host.is_empty() && port.parse::<u16>().is_ok() && !host.contains(['/', '@']) =>
        {
            None
        }
        _ => bad(" (it has no port)"),
    }
}

/// The gateways of the settings. Nothing is sent; the certificates are read at each connection, so that renewed ones are used.
pub fn gateways(settings: &Settings) -> Gateways {
    let certificates = settings.certificates.clone();
    let make: Arc<Maker> = Arc::new(move |name: &str| way(name, certificates.as_ref()));
    Gateways::new(settings.endpoints.iter().map(|name| name.trim_end_matches('/').to_owned()), make)
}

fn way(name: &str, certificates: Option<&Certificates>) -> Result<Endpoint, BoxError> {
    let mut endpoint = Endpoint::from_shared(name.to_owned())?;
    if name.starts_with("https://") {
        let files = certificates.ok_or("no certificates for it")?;
        endpoint = endpoint.tls_config(tls(files)?)?;
    }
    Ok(endpoint
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1))
}

/// Reads the files.
///
/// # Errors
/// One cannot be read, or somebody else may change it; or somebody else may read the key.
pub fn tls(files: &Certificates) -> Result<ClientTlsConfig, String> {
    let read = |path: &Path| named(path, picket_permissions::read(path));
    let key = named(&files.key, picket_permissions::read_secret(&files.key))?;
    let identity = Identity::from_pem(read(&files.certificate)?, key);
    Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&files.ca)?)).identity(identity))
}

fn named<T>(path: &Path, read: Result<T, picket_permissions::Fault>) -> Result<T, String> {
    read.map_err(|fault| format!("{}: {fault}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_endpoint_is_encrypted_or_on_this_machine() {
        for right in
            ["https://g:7070", "https://g:7070/", "http://127.0.0.1:1", "http://[::1]:1", "unix:/run/p.sock"]
        {
            assert_eq!(wrong(right), None);
        }
        for bad in [
            "http://127.evil.example:1",
            "http://localhost:1@evil.example:2",
            "",
            "g:7070",
            "http://g:7070",
            "https://g",
            "https://:1",
            "https://u@g:1",
            "unix:p.sock",
        ] {
            let told = wrong(bad).expect(bad);
            assert!(told.contains("write https://"), "{told}");
        }
    }

    #[test]
    fn a_key_that_everybody_may_read_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let [ca, certificate, key] = ["ca", "c", "k"].map(|name| dir.path().join(name));
        for file in [&ca, &certificate, &key] {
            std::fs::write(file, "x").expect("written");
        }
        let files = Certificates { ca, certificate, key };
        let mode = |mode| std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(mode));
        mode(0o644).expect("it is ours");
        assert!(tls(&files).expect_err("refused").contains("chmod 600"));
        mode(0o600).expect("it is ours");
        assert!(tls(&files).is_ok());
        std::fs::set_permissions(&files.ca, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
        let told = tls(&files).expect_err("everybody may say who is believed");
        assert!(told.ends_with(&format!("chmod o-w {}", files.ca.display())), "{told}");
    }
}
