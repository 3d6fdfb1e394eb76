//! A small CA, made once: a certificate for the gateway and one for each caller.
//!
//! **Non-goals.** No renewal, no revocation: whoever needs these has a CA of their own.
//!
//! # Invariants
//!
//! - Nothing that is there is overwritten, and where anything is there nothing is made. Keys are for their
//!   owner alone from their first byte on. Shown by
//!   `keys_are_for_their_owner_alone_and_nothing_is_overwritten`.
//! - A caller's certificate does not serve as a gateway's, nor the other way round.

mod certificate;

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use certificate::{Ca, CertificateKind, Leaf, Pair};

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct PkiRequest<'a> {
    /// Where to.
    pub directory: &'a Path,
    /// Names and addresses of the gateway.
    pub servers: &'a [String],
    /// Callers.
    pub clients: &'a [String],
    /// For how long the certificates hold.
    pub days: u16,
}

/// What was made, with absolute paths.
#[derive(Clone, Debug, Serialize)]
pub struct CreatedFiles {
    /// Where.
    pub directory: String,
    /// The first name of the gateway.
    #[serde(skip)]
    pub server: String,
    /// The CA's certificate.
    pub ca_file: String,
    /// The CA's key.
    pub ca_key_file: String,
    /// The gateway's certificate.
    pub cert_file: String,
    /// The gateway's key.
    pub key_file: String,
    /// The callers.
    pub clients: Vec<CreatedClient>,
}

/// What was made for a caller.
#[derive(Clone, Debug, Serialize)]
pub struct CreatedClient {
    /// As roles name it.
    pub name: String,
    /// The certificate.
    pub cert_file: String,
    /// The key.
    pub key_file: String,
}

impl PkiRequest<'_> {
    /// Makes it, or says why not.
    pub fn make(&self) -> Result<CreatedFiles, String> {
        let files = self.client_files()?;
        let server = Leaf::server(self.servers)?;
        let clients = self.clients.iter().map(|name| Leaf::client(name)).collect::<Result<Vec<_>, _>>()?;
        let failed = |error: rcgen::Error| format!("a certificate cannot be made: {error}");
        let ca = Ca::new().map_err(failed)?;
        let mut pairs = vec![
            ("ca".to_owned(), ca.pair()),
            ("server".to_owned(), ca.sign(server, CertificateKind::Server, self.days).map_err(failed)?),
        ];
        for (file, client) in files.iter().zip(clients) {
            pairs.push((file.clone(), ca.sign(client, CertificateKind::Client, self.days).map_err(failed)?));
        }
        let directory = self.prepare(pairs.iter().map(|(name, _)| name.as_str()))?;
        for (name, pair) in &pairs {
            write(&directory, name, pair)?;
        }
        let at = |name: &str| directory.join(name).display().to_string();
        let client = |(name, file): (&String, &String)| CreatedClient {
            name: name.clone(),
            cert_file: at(&format!("{file}.pem")),
            key_file: at(&format!("{file}.key")),
        };
        Ok(CreatedFiles {
            directory: directory.display().to_string(),
            server: self.servers.first().map(|name| bracketed(name)).unwrap_or_default(),
            ca_file: at("ca.pem"),
            ca_key_file: at("ca.key"),
            cert_file: at("server.pem"),
            key_file: at("server.key"),
            clients: self.clients.iter().zip(&files).map(client).collect(),
        })
    }

    /// What each caller's files are called.
    fn client_files(&self) -> Result<Vec<String>, String> {
        let mut taken = vec!["ca".to_owned(), "server".to_owned()];
        for name in self.clients {
            let plain = name.strip_prefix("spiffe://").unwrap_or(name);
            let keep = |c: char| if c.is_ascii_alphanumeric() || "-_.@".contains(c) { c } else { '-' };
            let file: String = plain.trim_start_matches('.').chars().map(keep).collect();
            if taken.contains(&file) {
                return Err(format!(
                    "the files of {name:?} would be called {file}.pem and {file}.key, and these are another's"
                ));
            }
            taken.push(file);
        }
        Ok(taken.split_off(2))
    }

    /// The directory, in which none of the files is there yet.
    fn prepare<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<PathBuf, String> {
        let shown = self.directory.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.directory)
            .map_err(|error| format!("cannot make {shown}: {error}"))?;
        let directory = std::path::absolute(self.directory).map_err(|error| format!("{shown}: {error}"))?;
        let files = names.flat_map(|name| [format!("{name}.pem"), format!("{name}.key")]);
        let there: Vec<String> =
            files.filter(|file| directory.join(file).symlink_metadata().is_ok()).collect();
        if there.is_empty() {
            return Ok(directory);
        }
        Err(format!(
            "{} is there already in {shown}, and nothing is overwritten: name another directory",
            there.join(", ")
        ))
    }
}

/// As it stands in an endpoint.
fn bracketed(name: &str) -> String {
    if name.contains(':') { format!("[{name}]") } else { name.to_owned() }
}

fn write(directory: &Path, name: &str, pair: &Pair) -> Result<(), String> {
    for (end, text, mode) in [("key", &pair.key, 0o600), ("pem", &pair.certificate, 0o644)] {
        let path = directory.join(format!("{name}.{end}"));
        let written =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            });
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn make(directory: &Path, clients: &[&str]) -> Result<CreatedFiles, String> {
        let clients: Vec<String> = clients.iter().map(|name| (*name).to_owned()).collect();
        let servers = ["gw.example.org".to_owned(), "127.0.0.1".to_owned()];
        PkiRequest { directory, servers: &servers, clients: &clients, days: 1 }.make()
    }

    #[test]
    fn keys_are_for_their_owner_alone_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = make(&dir.path().join("pki"), &["alice@example.org", "spiffe://lab/ns/db"]).expect("made");
        let names: Vec<&str> =
            made.clients.iter().map(|client| client.cert_file.rsplit('/').next().expect("a name")).collect();
        assert_eq!(names, ["alice@example.org.pem", "lab-ns-db.pem"]);
        for key in [&made.ca_key_file, &made.key_file, &made.clients[0].key_file] {
            let mode = std::fs::metadata(key).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{key}");
        }
        let before = std::fs::read(&made.ca_key_file).expect("read");
        let why = make(&dir.path().join("pki"), &["bob@example.org"]).expect_err("there already");
        assert!(why.contains("ca.pem, ca.key, server.pem, server.key is there already"), "{why}");
        assert_eq!(std::fs::read(&made.ca_key_file).expect("read"), before);
        assert!(!dir.path().join("pki/bob@example.org.pem").exists(), "nothing is made");
    }

    #[test]
    fn names_that_the_gateway_would_not_take_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        for names in [
            &["uid:0"][..],
            &["tcp:127.0.0.1"],
            &[""],
            &["a b"],
            &["*"],
            &["x", "x"],
            &["server"],
            &["spiffe://"],
        ] {
            assert!(make(&dir.path().join("pki"), names).is_err(), "{names:?}");
        }
        assert!(!dir.path().join("pki").exists());
    }
}
