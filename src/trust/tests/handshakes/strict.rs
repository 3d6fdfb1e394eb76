//! What a CA vouches for is judged by all rules, beside certificates that are believed for themselves.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_trust::Believed;
use rcgen::{BasicConstraints, CertificateParams, GeneralSubtree, IsCa, Issuer, KeyPair, NameConstraints};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};

use crate::{Shown, certificate, file, key, key_of, made, shake, shown};

fn ca() -> (CertificateDer<'static>, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a CA").der().clone();
    (certificate, Issuer::new(params, key))
}

fn of(issuer: &Issuer<'static, KeyPair>, params: &CertificateParams) -> Shown {
    let key = KeyPair::generate().expect("a key");
    let made = params.signed_by(&key, issuer).expect("a certificate");
    Shown(made.der().clone(), key_of(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()))))
}

#[tokio::test]
async fn what_a_ca_vouches_for_is_judged_by_all_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ca, issuer) = ca();
    let believed = file(folder.path(), &[&ca, &certificate("p384")]);
    let right = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    for version in [&TLS12, &TLS13] {
        let shaken = shake(&believed, of(&issuer, &right), version).await;
        assert!(shaken.is_ok(), "{shaken:?}");
        let shaken = shake(&believed, Shown(of(&issuer, &right).0, key("negative")), version).await;
        assert!(shaken.is_err(), "another key");
    }
    let mut old = right.clone();
    old.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let mut itself_a_ca = right.clone();
    itself_a_ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let named = CertificateParams::new(vec!["127.0.0.2".to_owned()]).expect("parameters");
    for (params, why) in [(old, "expired"), (itself_a_ca, "CaUsedAsEndEntity"), (named, "127.0.0.2")] {
        let error = shake(&believed, of(&issuer, &params), &TLS13).await.expect_err(why);
        let told = picket_trust::failure(&error).expect("a matter of TLS");
        assert!(told.is_distrust() && told.to_string().contains(why), "{told}");
    }
    let mut stranger = right.clone();
    stranger.distinguished_name.push(rcgen::DnType::CommonName, "a stranger");
    let error = shake(&believed, made(&stranger), &TLS13).await.expect_err("nobody vouches for it");
    let told = picket_trust::failure(&error).expect("a matter of TLS").to_string();
    assert!(told.contains("no CA that is named vouches for it"), "{told}");
}

/// Why that one is not believed, in words.
async fn refused(believed: &Believed, shown: Shown) -> String {
    let error = shake(believed, shown, &TLS13).await.expect_err("it is not believed");
    let told = picket_trust::failure(&error).expect("a matter of TLS");
    assert!(told.is_distrust(), "{told}");
    told.to_string()
}

/// The address of one board leads to the other: its password is for the first alone.
#[tokio::test]
async fn of_two_boards_whose_own_certificates_share_a_file_each_is_itself_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let [here, other] = ["127.0.0.1", "127.0.0.2"]
        .map(|name| made(&CertificateParams::new(vec![name.to_owned()]).expect("parameters")));
    let believed = file(folder.path(), &[&here.0, &other.0]);
    let shaken = shake(&believed, here, &TLS13).await;
    assert!(shaken.is_ok(), "{shaken:?}");
    let told = refused(&believed, other).await;
    assert!(told.contains("127.0.0.2") && told.contains("a file of its own"), "{told}");
}

#[tokio::test]
async fn what_stands_in_a_file_beside_others_is_no_servers_own_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ca, issuer) = ca();
    let mut old = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    old.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let leaf = of(&issuer, &old);
    for (shown, why) in
        [(shown("p384"), "CaUsedAsEndEntity"), (shown("v1"), "UnsupportedCertVersion"), (leaf, "expired")]
    {
        // As a fullchain.pem; the same one twice is no reason to believe it either.
        for beside in [ca.clone(), shown.0.clone()] {
            let told = refused(&file(folder.path(), &[&shown.0, &beside]), shown.clone()).await;
            assert!(told.contains(why) && told.contains("a file of its own"), "{told}");
        }
    }
}

#[tokio::test]
async fn certificates_of_no_use_are_skipped_where_there_is_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ca, issuer) = ca();
    let useless = CertificateDer::from(vec![0x30, 0]);
    let believed = file(folder.path(), &[&useless, &ca]);
    let right = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let shaken = shake(&believed, of(&issuer, &right), &TLS13).await;
    assert!(shaken.is_ok(), "{shaken:?}");
    // It is not the only one of its file.
    let told = refused(&file(folder.path(), &[&useless, &certificate("p384")]), shown("p384")).await;
    assert!(told.contains("a file of its own"), "{told}");
    let why = picket_trust::config(&file(folder.path(), &[&useless, &useless])).expect_err("none is of use");
    assert!(
        why.contains("ca.pem")
            && why.contains("no certificate that is of use")
            && why.contains("BadEncoding"),
        "{why}"
    );
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A client of etcd reads the file at each connection.
#[test]
fn a_certificate_of_no_use_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let believed = file(folder.path(), &[&CertificateDer::from(vec![0x30, 1, 0]), &certificate("ca")]);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..2 {
            picket_trust::config(&believed).expect("one is of use");
        }
    });
    let text = String::from_utf8(log.0.lock().clone()).expect("text");
    assert_eq!(text.matches("it is skipped").count(), 1, "{text}");
    assert!(text.contains("WARN") && text.contains("why=\"BadEncoding\""), "{text}");
}

#[tokio::test]
async fn a_ca_lends_nobody_a_short_key_or_a_certificate_of_version_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let believed = file(folder.path(), &[&certificate("ca")]);
    for (name, by) in [("short_of_ca", "short"), ("v1_of_ca", "v1")] {
        let shown = Shown(certificate(name), key(by));
        let error = shake(&believed, shown, &TLS12).await.expect_err(name);
        assert!(picket_trust::failure(&error).is_some_and(|why| why.is_distrust()), "{name} {error}");
    }
}

/// Its key may vouch for some names alone: shown as a server's own, it would do for all.
#[tokio::test]
async fn a_ca_of_some_names_is_no_servers_own_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("example.org".to_owned())],
        excluded_subtrees: Vec::new(),
    });
    let shown = made(&params);
    let told = refused(&file(folder.path(), &[&shown.0]), shown.clone()).await;
    assert!(told.contains("CaUsedAsEndEntity") && told.contains("name constraints"), "{told}");
    assert!(shake(&crate::digest(&shown.0), shown, &TLS13).await.is_ok(), "pinned by its digest it does");
}
