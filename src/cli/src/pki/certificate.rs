//! The certificates themselves.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, Error, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};

/// Clocks differ: what is made now holds since a while ago.
const BEFORE: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const CA_DAYS: u32 = 3_650;

/// A certificate and its key, as PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateKind {
    Server,
    Client,
}

/// Whose a certificate is to be.
pub(super) struct Leaf {
    common: String,
    names: Vec<SanType>,
}

impl Leaf {
    /// A gateway's, by its names and addresses.
    pub(super) fn server(names: &[String]) -> Result<Self, String> {
        let one = |name: &String| match name.parse::<IpAddr>() {
            Ok(address) => Ok(SanType::IpAddress(address)),
            Err(_) => dns(name).ok_or_else(|| format!("{name:?} is neither a host name nor an address")),
        };
        let names = names.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Self { common: "picket gateway".to_owned(), names })
    }

    /// A caller's, by its SPIFFE id, e-mail address or host name.
    pub(super) fn client(name: &str) -> Result<Self, String> {
        let plain = name.chars().all(|c| c.is_ascii_graphic()) && name.len() <= 253 && !name.contains('*');
        let kind = match name.strip_prefix("spiffe://") {
            Some(rest) if !rest.is_empty() => name.try_into().ok().map(SanType::URI),
            Some(_) => None,
            None if name.contains([':', '/']) => None,
            None if name.contains('@') => name.try_into().ok().map(SanType::Rfc822Name),
            None => dns(name),
        };
        match kind.filter(|_| plain) {
            Some(kind) => Ok(Self { common: name.chars().take(64).collect(), names: vec![kind] }),
            None => Err(format!(
                "{name:?} names no caller: a host name (db.example.org), an e-mail address or a SPIFFE id is wanted"
            )),
        }
    }
}

fn dns(name: &str) -> Option<SanType> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let fits = name.len() <= 253 && name.split('.').all(label);
    if fits { name.try_into().ok().map(SanType::DnsName) } else { None }
}

/// The CA.
pub(super) struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub(super) fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "picket CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        hold(&mut params, CA_DAYS);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    pub(super) fn pair(&self) -> Pair {
        Pair { certificate: self.0.pem(), key: self.0.key().serialize_pem() }
    }

    pub(super) fn sign(&self, leaf: Leaf, kind: CertificateKind, days: u16) -> Result<Pair, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, leaf.common);
        params.subject_alt_names = leaf.names;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![match kind {
            CertificateKind::Server => ExtendedKeyUsagePurpose::ServerAuth,
            CertificateKind::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        hold(&mut params, days.into());
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn hold(params: &mut CertificateParams, days: u32) {
    let now = SystemTime::now();
    params.not_before = (now - BEFORE).into();
    params.not_after = (now + DAY * days).into();
}
