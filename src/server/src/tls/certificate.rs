//! Whose a certificate is.
//!
//! # Invariants
//!
//! - These functions are called only for certificates that were verified.
//! - A certificate names one caller or none. A name that could be taken for another kind of caller's is
//!   refused: `uid:0`, `tcp:127.0.0.1`, a SPIFFE id that is none, a host with an `@`. Shown by
//!   `what_could_be_taken_for_somebody_else_is_refused`.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// The longest name, in bytes: as long as a holder's may be.
const LONGEST: usize = 253;

/// What counts of a caller's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallerCertificate {
    /// The caller's name.
    pub(crate) name: String,
    /// When it expires, in seconds since 1970.
    pub(crate) not_after: i64,
}

/// Reads a verified certificate.
///
/// Its name is its SPIFFE id (an URI in the subject's alternative names that begins with `spiffe://`), else the first
/// DNS name there, else the first e-mail address there, else, where it has none of these, the subject's common name.
pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<CallerCertificate, String> {
    let parsed = parse(certificate)?;
    let names =
        parsed.subject_alternative_name().map_err(|error| format!("its names cannot be read: {error}"))?;
    let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
    let (mut spiffe, mut dns, mut mail) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        match name {
            GeneralName::URI(uri) if uri.starts_with("spiffe://") => spiffe.push(*uri),
            GeneralName::DNSName(name) if is_host(name) => dns.push(*name),
            GeneralName::RFC822Name(name) if is_mailbox(name) => mail.push(*name),
            _ => {}
        }
    }
    // RFC of SPIFFE, X509-SVID, 2: such a certificate has exactly one.
    if spiffe.len() > 1 {
        return Err(format!("it has {} SPIFFE ids, and must have one", spiffe.len()));
    }
    let common = || {
        let mut names = parsed.subject().iter_common_name();
        let name = names.next().and_then(|name| name.as_str().ok());
        name.filter(|name| !name.contains([':', '/', '*', '@']) && names.next().is_none())
    };
    let name = match spiffe.first().or(dns.first()).or(mail.first()) {
        Some(name) => Some(*name),
        None if names.is_empty() => common(),
        None => None,
    };
    match name {
        Some(name) if is_plain(name) => {
            Ok(CallerCertificate { name: name.to_owned(), not_after: end(&parsed) })
        }
        _ => Err(
            "it names nobody: a SPIFFE id, a DNS name or an e-mail address as alternative name is wanted, \
                  or a plain common name"
                .to_owned(),
        ),
    }
}

/// When a certificate expires, in seconds since 1970.
pub(super) fn not_after(certificate: &CertificateDer<'_>) -> Result<i64, String> {
    parse(certificate).map(|parsed| end(&parsed))
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    let parsed = X509Certificate::from_der(certificate);
    parsed.map(|(_, parsed)| parsed).map_err(|error| format!("it cannot be read: {error}"))
}

fn end(parsed: &X509Certificate<'_>) -> i64 {
    parsed.validity().not_after.timestamp()
}

/// A host's name, as `picket pki` writes it: labels of letters, digits, `-` and `_`.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
    };
    name.split('.').all(is_label)
}

/// A mailbox, with one `@` and nothing that makes a name another kind's.
fn is_mailbox(name: &str) -> bool {
    let parts = name.split_once('@');
    parts.is_some_and(|(who, host)| !who.is_empty() && is_host(host)) && !name.contains([':', '/', '*', ' '])
}

fn is_plain(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.trim() == name && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn name(common: &str, names: Vec<SanType>) -> Result<String, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, common);
        params.subject_alt_names = names;
        let made = params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate");
        read(made.der()).map(|shown| shown.name)
    }

    fn uri(text: &str) -> SanType {
        SanType::URI(text.try_into().expect("ASCII"))
    }

    fn dns(text: &str) -> SanType {
        SanType::DnsName(text.try_into().expect("ASCII"))
    }

    fn mail(text: &str) -> SanType {
        SanType::Rfc822Name(text.try_into().expect("ASCII"))
    }

    #[test]
    fn the_best_name_counts() {
        let all = vec![mail("a@x"), dns("db.x"), uri("https://x"), uri("spiffe://x/db")];
        assert_eq!(name("c", all.clone()).as_deref(), Ok("spiffe://x/db"));
        assert_eq!(name("c", all[..3].to_vec()).as_deref(), Ok("db.x"));
        assert_eq!(name("c", all[..1].to_vec()).as_deref(), Ok("a@x"));
        assert_eq!(name("db operator", vec![]).as_deref(), Ok("db operator"));
    }

    #[test]
    fn what_could_be_taken_for_somebody_else_is_refused() {
        for common in ["uid:0", "tcp:127.0.0.1", "spiffe://x/db", "", " db", "a\nb", "*", "root@x"] {
            assert!(name(common, vec![]).is_err(), "{common:?}");
        }
        for names in [
            vec![dns("uid:0")],
            vec![mail("uid:0@x")],
            vec![dns("*")],
            vec![uri("https://x/db")],
            vec![dns("alice@example.org")],
            vec![dns("db..x")],
            vec![dns("db.x.")],
            vec![dns("a b")],
            vec![mail("a@b@x")],
            vec![mail("@x")],
            vec![mail("x")],
        ] {
            assert!(name("db", names.clone()).is_err(), "{names:?}");
        }
        assert!(name("db", vec![uri("spiffe://x/a"), uri("spiffe://x/b")]).is_err());
        assert!(name(&"x".repeat(254), vec![]).is_err());
    }
}
