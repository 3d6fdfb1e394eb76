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
    write(dir.path(), "k", &pair().1, 0o600);
    let found = faults(dir.path());
    assert_eq!((found[0].key, found.len()), ("key_file", 1), "{found:?}");
    assert!(found[0].message.contains("does not go with the certificate"), "{found:?}");
}

#[test]
fn the_old_ones_serve_until_the_new_ones_match() {
    let dir = home();
    let tls = Tls::load(files(dir.path())).expect("good");
    let later = || tls.state.lock().expect("whole").looked_at -= 2 * LOOK;
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
