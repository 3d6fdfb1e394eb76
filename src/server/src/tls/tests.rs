//! Files that are right, wrong, and replaced.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{CertificateParams, KeyPair};

use super::*;

fn pair() -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

fn write(dir: &Path, name: &str, text: &str, mode: u32) {
    std::fs::write(dir.join(name), text).expect("written");
    std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn files(dir: &Path) -> TlsFiles {
    TlsFiles { certificate: dir.join("c"), key: dir.join("k"), client_ca: dir.join("a") }
}

fn home() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let (certificate, key) = pair();
    write(dir.path(), "c", &certificate, 0o644);
    write(dir.path(), "k", &key, 0o600);
    write(dir.path(), "a", &certificate, 0o644);
    dir
}

fn faults(dir: &Path) -> Vec<TlsFault> {
    Tls::load(files(dir)).expect_err("faults")
}

#[test]
fn all_that_is_wrong_with_the_files_is_told_with_their_keys() {
    let dir = home();
    Tls::load(files(dir.path())).expect("good");
    write(dir.path(), "c", "no PEM", 0o644);
    write(dir.path(), "k", "no PEM", 0o600);
    std::fs::remove_file(dir.path().join("a")).expect("removed");
    let found = faults(dir.path());
    let keys: Vec<&str> = found.iter().map(|fault| fault.key).collect();
    assert_eq!(keys, ["cert_file", "key_file", "client_ca_file"], "{found:?}");
}

#[test]
fn a_key_that_everybody_may_read_or_that_is_another_ones_is_refused() {
    let dir = home();
    let key = std::fs::read_to_string(dir.path().join("k")).expect("read");
    for (mode, word) in [(0o604, "everybody may read it (mode 604)"), (0o602, "everybody may change it")] {
        write(dir.path(), "k", &key, mode);
        let found = faults(dir.path());
        assert!(found[0].message.contains(word) && found[0].message.contains("chmod 600"), "{found:?}");
    }
    write(dir.path(), "k", &key, 0o600);
    // Who writes the callers' CAs may call by any name.
    for (file, named) in [("c", "cert_file"), ("a", "client_ca_file")] {
        let mode =
            |mode| std::fs::set_permissions(dir.path().join(file), std::fs::Permissions::from_mode(mode));
        mode(0o666).expect("it is ours");
        let found = faults(dir.path());
        assert_eq!((found[0].key, found.len()), (named, 1), "{found:?}");
        assert!(found[0].message.ends_with(&format!("run chmod o-w {}", dir.path().join(file).display())));
        mode(0o644).expect("it is ours");
    }
    write(dir.path(), "k", &pair().1, 0o600);
    let found = faults(dir.path());
    assert_eq!((found[0].key, found.len()), ("key_file", 1), "{found:?}");
    assert!(found[0].message.contains("does not go with the certificate"), "{found:?}");
}

#[test]
fn the_old_ones_serve_until_the_new_ones_match() {
    let dir = home();
    let tls = Tls::load(files(dir.path())).expect("good");
    let later = || tls.state.lock().looked_at -= 2 * LOOK;
    let first = tls.current();
    let (certificate, key) = pair();
    write(dir.path(), "c", &certificate, 0o644);
    assert!(Arc::ptr_eq(&first, &tls.current()), "within a second nothing is looked at");
    later();
    assert!(Arc::ptr_eq(&first, &tls.current()), "the key is still the old one");
    write(dir.path(), "k", &key, 0o600);
    later();
    let second = tls.current();
    assert!(!Arc::ptr_eq(&first, &second), "both are new");
    later();
    assert!(Arc::ptr_eq(&second, &tls.current()), "nothing changed");
    std::fs::remove_file(dir.path().join("c")).expect("removed");
    later();
    assert!(Arc::ptr_eq(&second, &tls.current()), "what is gone is no reason to serve nobody");
}

#[test]
fn who_is_connected_stays_so_only_while_a_ca_in_force_vouches_for_them() {
    let dir = home();
    let tls = Tls::load(files(dir.path())).expect("good");
    let later = || tls.state.lock().looked_at -= 2 * LOOK;
    let ca = |name: &str| {
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        rcgen::CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA")
    };
    let (one, other) = (ca("one"), ca("other"));
    let chain = |ca: &rcgen::CertifiedIssuer<'_, KeyPair>| {
        let mut params = CertificateParams::new(vec!["db".to_owned()]).expect("parameters");
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let signed = params.signed_by(&KeyPair::generate().expect("a key"), ca).expect("signed");
        [signed.der().clone()]
    };
    write(dir.path(), "a", &format!("{}{}", one.pem(), other.pem()), 0o644);
    later();
    let served = tls.current();
    let first = tls.trusted(&chain(&one), &served).expect("vouched for");
    let second = tls.trusted(&chain(&other), &served).expect("vouched for");

    write(dir.path(), "a", &other.pem(), 0o644);
    later();
    tls.current();
    assert!(first.over.is_cancelled() && !second.over.is_cancelled());
    assert!(tls.trusted(&chain(&one), &served).is_err(), "replaced while hands were shaken");
    assert!(tls.trusted(&chain(&other), &served).is_ok());
}
