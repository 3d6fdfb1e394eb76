//! Whom a client believes, in handshakes with a server that shows what real boards show.

mod old;
mod short;
mod strict;

use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use picket_trust::Believed;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::ServerConfig;
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ProtocolVersion, SignatureScheme, SupportedProtocolVersion};
use sha2::{Digest, Sha256};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::short::Short;

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/handshakes/certificates");

/// A certificate of this folder.
fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(format!("{CERTIFICATES}/{name}.pem")).expect("a certificate")
}

fn key_of(der: PrivateKeyDer<'static>) -> Arc<dyn SigningKey> {
    rustls::crypto::ring::sign::any_supported_type(&der).expect("a key")
}

/// A key of this folder.
fn key(name: &str) -> Arc<dyn SigningKey> {
    if name == "short" {
        return Arc::new(Short::default());
    }
    key_of(PrivateKeyDer::from_pem_file(format!("{CERTIFICATES}/{name}.key")).expect("a key"))
}

/// What a server shows, and by which key it signs: the library's own check that they fit is left out.
#[derive(Clone)]
struct Shown(CertificateDer<'static>, Arc<dyn SigningKey>);

fn shown(name: &str) -> Shown {
    Shown(certificate(name), key(name))
}

fn made(params: &rcgen::CertificateParams) -> Shown {
    let key = rcgen::KeyPair::generate().expect("a key");
    let made = params.self_signed(&key).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Shown(made.der().clone(), key_of(key))
}

fn digest(certificate: &CertificateDer<'_>) -> Believed {
    Believed::Pinned(Sha256::digest(certificate).into())
}

/// These certificates in a file, in a folder of the test's own.
fn file(folder: &Path, certificates: &[&CertificateDer<'_>]) -> Believed {
    let path = folder.join("ca.pem");
    std::fs::write(&path, certificates.iter().map(|one| pem(one)).collect::<String>()).expect("written");
    Believed::Authorities(path)
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// Both sides shake hands in memory; what the client makes of it.
async fn shake(
    believed: &Believed,
    Shown(certificate, key): Shown,
    version: &'static SupportedProtocolVersion,
) -> io::Result<ProtocolVersion> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let shown = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], key));
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shown));
    let client = picket_trust::config(believed).expect("right settings");
    let (here, there) = tokio::io::duplex(1 << 16);
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connects = TlsConnector::from(Arc::new(client)).connect(name, here);
    let accepts = TlsAcceptor::from(Arc::new(server)).accept(there);
    let (connected, _) = tokio::join!(connects, accepts);
    Ok(connected?.get_ref().1.protocol_version().expect("a version"))
}

/// What boards show, the version of TLS, and who believes it for what it is.
const ODD: [(&str, &SupportedProtocolVersion); 7] = [
    ("v1", &TLS12),
    ("v1", &TLS13),
    ("negative", &TLS12),
    ("negative", &TLS13),
    ("p384", &TLS12),
    ("p384", &TLS13),
    // TLS 1.3 has signatures by PSS alone, and none of so short a key can be checked.
    ("short", &TLS12),
];

#[tokio::test]
async fn a_certificate_is_pinned_whatever_else_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, version) in ODD {
        let shown = shown(name);
        for believed in [digest(&shown.0), file(folder.path(), &[&shown.0]), Believed::Anyone] {
            let shaken = shake(&believed, shown.clone(), version).await;
            assert_eq!(
                shaken.as_ref().ok(),
                Some(&version.version),
                "{name} {:?} {believed:?} {shaken:?}",
                version.version
            );
        }
    }
}

#[tokio::test]
async fn one_that_expired_and_names_another_is_pinned_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut params = rcgen::CertificateParams::new(vec!["ilo.example.org".to_owned()]).expect("parameters");
    params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let shown = made(&params);
    for believed in [digest(&shown.0), file(folder.path(), &[&shown.0])] {
        let shaken = shake(&believed, shown.clone(), &TLS13).await;
        assert!(shaken.is_ok(), "{believed:?} {shaken:?}");
    }
}

/// A copy of a certificate is anybody's: what counts is its key.
#[tokio::test]
async fn who_shows_a_pinned_certificate_without_its_key_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, version) in ODD {
        let certificate = certificate(name);
        let foreign = match name {
            "p384" => {
                let made = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key");
                key_of(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.serialize_der())))
            }
            "negative" => made(&rcgen::CertificateParams::default()).1,
            "short" => key("v1"),
            _ => key("short"),
        };
        let foreign = if name == "v1" && version.version == ProtocolVersion::TLSv1_3 {
            key("negative")
        } else {
            foreign
        };
        for believed in [digest(&certificate), file(folder.path(), &[&certificate]), Believed::Anyone] {
            let shaken = shake(&believed, Shown(certificate.clone(), foreign.clone()), version).await;
            let error = shaken.expect_err("it holds another key");
            assert!(picket_trust::failure(&error).is_some_and(|why| why.is_distrust()), "{name} {error}");
        }
    }
}

#[tokio::test]
async fn another_certificate_than_the_pinned_one_is_refused_and_told() {
    let shaken = shake(&digest(&certificate("v1")), shown("p384"), &TLS13).await;
    let error = shaken.expect_err("another one");
    let why = picket_trust::failure(&error).expect("a matter of TLS");
    let Believed::Pinned(digest) = digest(&certificate("p384")) else { panic!("a digest") };
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(why.is_distrust() && why.to_string().contains(&digest), "{why}");
}

/// What is said of a server that is pinned, and whose signature does not count.
async fn unsigned(
    certificate: CertificateDer<'static>,
    key: Arc<dyn SigningKey>,
    version: &'static SupportedProtocolVersion,
) -> String {
    let believed = digest(&certificate);
    let error = shake(&believed, Shown(certificate, key), version).await.expect_err("it does not count");
    let why = picket_trust::failure(&error).expect("a matter of TLS");
    assert!(why.is_distrust(), "{why}");
    why.to_string()
}

#[tokio::test]
async fn a_key_too_short_for_tls_1_3_is_told() {
    let why = unsigned(certificate("short"), key("short"), &TLS13).await;
    assert!(why.contains("1024 bits") && why.contains("TLS 1.3 off"), "{why}");
}

/// PKCS #1 with SHA-384 is offered, and is not checked by so short a key.
#[tokio::test]
async fn a_short_key_that_signs_by_sha_384_is_told() {
    let by = Arc::new(Short::by(SignatureScheme::RSA_PKCS1_SHA384));
    let why = unsigned(certificate("short"), by, &TLS12).await;
    assert!(why.contains("1024 bits") && !why.contains("TLS 1.3 off"), "{why}");
}

/// Nobody is told to weaken a service for a stranger's sake.
#[tokio::test]
async fn a_stranger_with_an_rsa_key_is_never_told_as_a_short_key() {
    for (name, foreign) in [("negative", "v1"), ("p384", "v1"), ("negative", "short"), ("short", "v1")] {
        let why = unsigned(certificate(name), key(foreign), &TLS13).await;
        assert!(
            why.contains("does not hold its key") && !why.contains("TLS 1.3 off"),
            "{name} {foreign} {why}"
        );
    }
}

/// OpenSSL takes the first that is offered and fits its key.
#[test]
fn signatures_that_a_short_key_can_give_are_offered_first() {
    let verifier = picket_trust::verifier(format!("{CERTIFICATES}/ca.pem").as_ref()).expect("a verifier");
    let offered = verifier.supported_verify_schemes();
    let at = |wanted: SignatureScheme| offered.iter().position(|scheme| *scheme == wanted).expect("offered");
    for old in [SignatureScheme::RSA_PKCS1_SHA256, SignatureScheme::RSA_PKCS1_SHA512] {
        assert!(at(old) < at(SignatureScheme::RSA_PSS_SHA512), "{offered:?}");
    }
}
