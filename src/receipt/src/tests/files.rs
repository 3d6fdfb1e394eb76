//! The key file: made at the first start, kept, replaced, and refused where others may get at it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::file::{KeyFault, make};
use crate::keys::Keys;

/// RFC 8410 §10.3.
const OF_THE_RFC: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
    -----END PRIVATE KEY-----\n";

/// A key for another algorithm.
fn of_another_kind() -> String {
    use base64::Engine;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    let random = ring::rand::SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let text = base64::engine::general_purpose::STANDARD.encode(made.as_ref());
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
}

fn random(with: u8) -> impl Fn(&mut [u8]) {
    move |bytes| bytes.fill(with)
}

fn open(path: &Path, with: u8) -> Result<Keys, KeyFault> {
    Keys::open("g1", path, &random(with))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn put(path: &Path, text: &str, mode: u32) {
    let new = path.with_extension("put");
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn it_is_made_for_its_user_alone_and_found_again() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state/receipt.pem");
    let first = open(&path, 1).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(open(&path, 2).unwrap().present().id(), first.present().id());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI"), "as others write it");
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_key_that_others_made_is_read_to_the_bit() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("receipt.pem");
    put(&path, OF_THE_RFC, 0o600);
    let public: String =
        open(&path, 1).unwrap().present().public().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(public, "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1");
}

#[test]
fn one_that_others_may_get_at_is_refused_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("receipt.pem");
    for mode in [0o640, 0o604, 0o660, 0o644, 0o620, 0o601] {
        put(&path, OF_THE_RFC, mode);
        let error = open(&path, 1).unwrap_err().to_string();
        assert!(error.contains(&format!("mode {mode:03o}")) && error.contains("run chmod 600"), "{error}");
        assert!(!error.contains("MC4C"), "{error}");
    }
    put(&path, OF_THE_RFC, 0o400);
    assert!(open(&path, 1).is_ok());
}

/// As in a volume of a pod: kubelet makes it of mode 777, and the gateway its own directory in it.
#[test]
fn what_others_may_change_above_its_own_directory_does_not_count() {
    let home = tempfile::tempdir().unwrap();
    let volume = home.path().join("volume");
    fs::create_dir(&volume).unwrap();
    fs::set_permissions(&volume, fs::Permissions::from_mode(0o2777)).unwrap();
    let path = volume.join("receipts/key.pem");
    let first = open(&path, 1).unwrap();
    assert_eq!(open(&path, 2).unwrap().present().id(), first.present().id());
    // Whoever may write beside the key may put another one in its place.
    let error = open(&volume.join("key.pem"), 1).unwrap_err().to_string();
    assert!(error.contains("everybody may change") && error.contains("mode 2777"), "{error}");
    fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o1777)).unwrap();
    let error = open(&path, 1).unwrap_err().to_string();
    assert!(error.contains("everybody may change") && error.contains("mode 1777"), "{error}");
}

#[test]
fn what_is_no_key_is_refused_and_never_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("receipt.pem");
    let (other, broken) = (of_another_kind(), OF_THE_RFC.replace("MC4C", "MC5C"));
    for (text, says) in [
        ("", "has no private key in PEM form"),
        ("secret", "has no private key in PEM form"),
        (other.as_str(), "no Ed25519 key"),
        (broken.as_str(), "no Ed25519 key"),
    ] {
        put(&path, text, 0o600);
        let error = open(&path, 1).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("a new one is made"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let directory = home.path().join("directory");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(open(&directory, 1).unwrap_err().to_string().contains("is no file"));
}

#[test]
fn one_that_is_another_s_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("receipt.pem");
    put(&path, OF_THE_RFC, 0o600);
    // Only root gives files away; who is not root is given none.
    if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
        let error = open(&path, 1).unwrap_err().to_string();
        assert!(error.contains("belongs to user 65534") && error.contains("chown"), "{error}");
    }
}

#[test]
fn one_that_is_there_already_is_not_replaced_by_a_new_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("receipt.pem");
    // As if another process had made it in this moment, and one before had been killed in the middle.
    fs::write(home.path().join("receipt.pem.new"), "half").unwrap();
    put(&path, OF_THE_RFC, 0o600);
    assert!(matches!(make(&path, &[1; 32]), Err(KeyFault::Io { verb: "made", .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), OF_THE_RFC);
    assert!(!home.path().join("receipt.pem.new").exists());
    // A link to nothing is no place for a key either.
    let link = home.path().join("link.pem");
    symlink(home.path().join("nowhere.pem"), &link).unwrap();
    assert!(open(&link, 1).is_err());
}

#[test]
fn a_replaced_file_is_another_key_once_it_is_a_good_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("receipt.pem");
    let keys = open(&path, 1).unwrap();
    let first = keys.present().id().clone();
    assert!(!keys.reread().unwrap());
    put(&path, "no key", 0o600);
    assert!(keys.reread().is_err());
    assert!(!keys.reread().unwrap(), "told once");
    fs::remove_file(&path).unwrap();
    assert!(!keys.reread().unwrap());
    assert_eq!(*keys.present().id(), first);
    put(&path, OF_THE_RFC, 0o600);
    assert!(keys.reread().unwrap());
    assert_ne!(*keys.present().id(), first);
    assert!(!keys.reread().unwrap());
}

#[test]
fn without_a_file_each_process_has_a_key_of_its_own() {
    let (one, two) = (Keys::ephemeral("g1", &random(1)), Keys::ephemeral("g1", &random(2)));
    assert_ne!(one.present().id(), two.present().id());
    assert!(!one.reread().unwrap());
}
