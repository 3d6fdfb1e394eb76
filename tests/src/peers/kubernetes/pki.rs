//! A cluster's authority, the certificates of its parts, and the files by which clients find it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

use crate::error::{PeerError, Result};

/// Where the API server is, for everybody in the cluster's network.
pub(super) const API: &str = "https://10.250.0.1:6443";

pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
}

fn failed(error: rcgen::Error) -> PeerError {
    PeerError::io("make a certificate of the cluster")(std::io::Error::other(error))
}

impl Authority {
    /// A new one; `ca.crt` and `sa.key`, which signs the tokens of service accounts, and `sa.pub` are in the folder then.
    pub(super) fn new(directory: &Path) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the tests' cluster");
        let key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, key).map_err(failed)?;
        std::fs::create_dir_all(directory).map_err(PeerError::io("create a cluster's pki"))?;
        let authority = Self { issuer, directory: directory.to_owned() };
        authority.write("ca.crt", &authority.issuer.pem())?;
        let tokens = KeyPair::generate().map_err(failed)?;
        authority.write("sa.key", &tokens.serialize_pem())?;
        authority.write("sa.pub", &tokens.public_key_pem())?;
        Ok(authority)
    }

    /// `NAME.crt` and `NAME.key`, for a common name in a group.
    pub(super) fn client(&self, name: &str, group: Option<&str>, common: &str) -> Result<()> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.leaf(name, params)
    }

    /// The same of the API server, at all addresses under which it is asked.
    pub(super) fn server(&self) -> Result<()> {
        let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned);
        let mut params = CertificateParams::new(names).map_err(failed)?;
        let addresses: [IpAddr; 3] = [[127, 0, 0, 1].into(), [10, 250, 0, 1].into(), [10, 96, 0, 1].into()];
        params.subject_alt_names.extend(addresses.map(SanType::IpAddress));
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.leaf("apiserver", params)
    }

    fn leaf(&self, name: &str, params: CertificateParams) -> Result<()> {
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        self.write(&format!("{name}.crt"), &certificate.pem())?;
        self.write(&format!("{name}.key"), &key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(PeerError::io(format!("write {}", path.display())))
    }
}

/// A kubeconfig for whoever has a certificate of that name in `pki`; where it is.
pub(super) fn by_certificate(cluster: &Path, name: &str) -> Result<PathBuf> {
    let pki = cluster.join("pki");
    let (certificate, key) = (pki.join(format!("{name}.crt")), pki.join(format!("{name}.key")));
    let login = format!("client-certificate: {}, client-key: {}", certificate.display(), key.display());
    kubeconfig(cluster, name, &login)
}

/// The same for whoever has this token.
pub(super) fn by_token(cluster: &Path, name: &str, token: &str) -> Result<PathBuf> {
    kubeconfig(cluster, name, &format!("token: {token}"))
}

fn kubeconfig(cluster: &Path, name: &str, login: &str) -> Result<PathBuf> {
    let authority = cluster.join("pki/ca.crt");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: cluster\n\
         clusters: [{{name: cluster, cluster: {{server: '{API}', certificate-authority: {}}}}}]\n\
         users: [{{name: {name}, user: {{{login}}}}}]\n\
         contexts: [{{name: cluster, context: {{cluster: cluster, user: {name}}}}}]\n",
        authority.display()
    );
    let path = cluster.join(format!("{name}.kubeconfig"));
    std::fs::write(&path, text).map_err(PeerError::io(format!("write {}", path.display())))?;
    // A gateway uses none that others may read.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).map_err(PeerError::io("chmod a kubeconfig"))?;
    Ok(path)
}
