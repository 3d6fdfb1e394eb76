//! A CA of a test, and what it signs.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

const DAY: Duration = Duration::from_secs(86_400);

/// From when until when a certificate holds.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    Now,
    /// For so many seconds more.
    Shortly(u64),
    NotAnyMore,
    NotYet,
}

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The CA.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

fn params(name: &str, usage: ExtendedKeyUsagePurpose, holds: Holds) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "somebody");
    params.subject_alt_names = vec![match name.parse() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) if name.contains("://") => SanType::URI(name.try_into().expect("ASCII")),
        Err(_) if name.contains('@') => SanType::Rfc822Name(name.try_into().expect("ASCII")),
        Err(_) => SanType::DnsName(name.try_into().expect("ASCII")),
    }];
    params.extended_key_usages = vec![usage];
    let now = SystemTime::now();
    let (from, to) = match holds {
        Holds::Now => (now - DAY, now + DAY),
        Holds::Shortly(seconds) => (now - DAY, now + Duration::from_secs(seconds)),
        Holds::NotAnyMore => (now - 2 * DAY, now - DAY),
        Holds::NotYet => (now + DAY, now + 2 * DAY),
    };
    (params.not_before, params.not_after) = (from.into(), to.into());
    params
}

fn write(dir: &Path, file: &str, certificate: &str, key: &KeyPair) -> Files {
    let files = Files { certificate: dir.join(format!("{file}.pem")), key: dir.join(format!("{file}.key")) };
    std::fs::write(&files.certificate, certificate).expect("written");
    secret(&files.key, &key.serialize_pem(), 0o600);
    files
}

/// A file of this mode.
pub fn secret(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("it is ours");
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "a CA of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA"))
    }

    /// Its own certificate, in a file.
    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.0.pem()).expect("written");
    }

    /// A caller's certificate.
    pub fn client(&self, dir: &Path, file: &str, name: &str, holds: Holds) -> Files {
        self.sign(dir, file, params(name, ExtendedKeyUsagePurpose::ClientAuth, holds))
    }

    /// A gateway's certificate.
    pub fn server(&self, dir: &Path, file: &str, name: &str) -> Files {
        self.sign(dir, file, params(name, ExtendedKeyUsagePurpose::ServerAuth, Holds::Now))
    }

    fn sign(&self, dir: &Path, file: &str, params: CertificateParams) -> Files {
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.0).expect("a certificate");
        write(dir, file, &signed.pem(), &key)
    }
}

/// A certificate that nobody vouches for but itself.
pub fn self_made(dir: &Path, file: &str, name: &str) -> Files {
    let key = KeyPair::generate().expect("a key");
    let made = params(name, ExtendedKeyUsagePurpose::ClientAuth, Holds::Now).self_signed(&key);
    write(dir, file, &made.expect("a certificate").pem(), &key)
}
