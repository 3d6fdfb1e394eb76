//! Why somebody did not get through the handshake, in words.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// What was wrong, for the log and the audit.
pub(crate) fn words(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let words = match tls {
        Some(Error::NoCertificatesPresented) => "no certificate was shown",
        Some(Error::InvalidCertificate(why)) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet: are both clocks right?"
            }
            CertificateError::UnknownIssuer => "the certificate is not of a CA in client_ca_file",
            CertificateError::BadSignature => {
                "the certificate's signature is wrong: it is not of a CA in client_ca_file"
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "the certificate is not for clients (extended key usage)"
            }
            _ => return format!("the certificate is of no use: {why}"),
        },
        Some(Error::PeerIncompatible(why)) => {
            return format!("it does not speak TLS 1.3 as this gateway does: {why:?}");
        }
        Some(Error::InvalidMessage(_)) => "what it speaks is no TLS",
        Some(Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown,
        )) => "it does not trust this gateway's certificate",
        Some(Error::AlertReceived(AlertDescription::CertificateExpired)) => {
            "it says that this gateway's certificate has expired"
        }
        Some(other) => return other.to_string(),
        None => return error.to_string(),
    };
    words.to_owned()
}
