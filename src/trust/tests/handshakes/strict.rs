//! What a CA vouches for is judged by all rules, beside certificates that are believed for themselves.

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
    // Beside it stands a pinned one, so that both ways are open.
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

#[tokio::test]
async fn a_ca_lends_nobody_a_short_key_or_a_certificate_of_version_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let believed = file(folder.path(), &[&certificate("ca"), &certificate("p384")]);
    for (name, by) in [("short_of_ca", "short"), ("v1_of_ca", "v1")] {
        let shown = Shown(certificate(name), key(by));
        let error = shake(&believed, shown, &TLS12).await.expect_err(name);
        assert!(picket_trust::failure(&error).is_some_and(|why| why.is_distrust()), "{name} {error}");
    }
    let shaken = shake(&believed, shown("p384"), &TLS12).await;
    assert!(shaken.is_ok(), "the one that stands there itself: {shaken:?}");
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
    let shaken = shake(&file(folder.path(), &[&shown.0]), shown.clone(), &TLS13).await;
    assert!(shaken.is_err(), "{shaken:?}");
    assert!(shake(&crate::digest(&shown.0), shown, &TLS13).await.is_ok(), "pinned by its digest it does");
}
