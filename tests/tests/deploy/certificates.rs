//! An authority, and who it vouches for.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

/// A certificate and its key, as files and as texts.
pub struct Leaf {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub texts: [String; 2],
}

impl Authority {
    pub fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the tests' authority");
        let issuer =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("ca.crt"), issuer.pem()).expect("written");
        Self { issuer, folder: folder.to_owned() }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    pub fn text(&self) -> String {
        self.issuer.pem()
    }

    /// Of who answers at these addresses, and asks others in its own name; on this machine its questions come from the loopback's.
    pub fn at(&self, addresses: &[IpAddr]) -> Leaf {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let all = addresses.iter().chain([&loopback]).map(|address| SanType::IpAddress(*address));
        self.leaf(&addresses[0].to_string(), all.collect())
    }

    /// Of who calls by that e-mail address.
    pub fn caller(&self, name: &str) -> Leaf {
        self.leaf(name, vec![SanType::Rfc822Name(name.try_into().expect("ASCII"))])
    }

    fn leaf(&self, name: &str, who: Vec<SanType>) -> Leaf {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = who;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed").pem();
        let texts = [certificate, key.serialize_pem()];
        let files = ["crt", "key"].map(|ending| self.folder.join(format!("{name}.{ending}")));
        for (file, text) in files.iter().zip(&texts) {
            std::fs::write(file, text).expect("written");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(file, mode).expect("chmod");
        }
        let [certificate, key] = files;
        Leaf { certificate, key, texts }
    }
}
