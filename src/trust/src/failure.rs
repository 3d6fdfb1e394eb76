//! Why no TLS came to be, in words.

use std::error::Error;
use std::fmt;
use std::io;

use rustls::{AlertDescription, CertificateError, PeerIncompatible, PeerMisbehaved};

use crate::verifier::Own;

/// What a client of ours offers (the suites of rustls on ring).
const OFFERED: &str = "offered were TLS 1.3, and TLS 1.2 with ECDHE and AES-GCM or ChaCha20-Poly1305";
/// Of a service that has none of that.
const ADVICE: &str = "nothing older is safe: update the service, or switch one of these on there";

/// Why a handshake came to nothing. Nothing was said to the far side but the handshake.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Distrust,
    Speech,
    Cut,
}

impl Failure {
    /// The certificate is not believed, or the far side does not hold its key.
    pub fn is_distrust(&self) -> bool {
        self.kind == Kind::Distrust
    }

    /// The connection ended in the handshake: somebody else may be at fault.
    pub fn is_cut(&self) -> bool {
        self.kind == Kind::Cut
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

/// What failed in an attempt to connect, found among the causes of its error; `None`: TLS was not at fault.
pub fn failure(error: &(dyn Error + 'static)) -> Option<Failure> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(judged(tls));
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // The source of such an error is what stands behind that which it holds.
        if let Some(held) = error.get_ref() {
            return failure(held).or_else(|| ended(error));
        }
        return ended(error);
    }
    failure(error.source()?)
}

fn ended(error: &io::Error) -> Option<Failure> {
    let cut = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset);
    let words = format!(
        "TLS: the service ended the connection in the handshake ({error}), as one without any of what was offered may; {OFFERED}; {ADVICE}"
    );
    cut.then_some(Failure { kind: Kind::Cut, words })
}

fn judged(error: &rustls::Error) -> Failure {
    let speech = |words| Failure { kind: Kind::Speech, words };
    let came_back = match error {
        rustls::Error::InvalidCertificate(why) => {
            return Failure { kind: Kind::Distrust, words: disbelieved(why) };
        }
        rustls::Error::InvalidMessage(why) => {
            return speech(format!(
                "what answers there speaks no TLS ({why:?}): is it plain http, or another port?"
            ));
        }
        // The alerts of RFC 8446, 6.2, by their names there.
        rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "answered with the alert protocol_version: it has none of the offered versions"
        }
        rustls::Error::AlertReceived(AlertDescription::HandshakeFailure) => {
            "answered with the alert handshake_failure: it has none of the offered ciphers and key exchanges, as where RSA key \
             exchange or CBC is all that it has"
        }
        rustls::Error::AlertReceived(AlertDescription::InsufficientSecurity) => {
            "answered with the alert insufficient_security: it wants other ciphers"
        }
        // Over TLS 1.3 they come after the handshake.
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied),
        ) => {
            return speech(format!(
                "TLS: the service answered with the alert {alert:?}: it wants a certificate of ours, or does not take the one \
                 that was shown"
            ));
        }
        rustls::Error::AlertReceived(alert) => {
            return speech(format!("TLS: the service answered with the alert {alert:?}; {OFFERED}"));
        }
        rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "chose a version before TLS 1.2"
        }
        rustls::Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedCipherSuite) => {
            "chose a cipher suite that was not offered"
        }
        rustls::Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme) => {
            "signed by an algorithm that was not offered, as SHA-1 is"
        }
        other => return speech(format!("TLS: {other}; {OFFERED}")),
    };
    speech(format!("TLS: the service {came_back}; {OFFERED}; {ADVICE}"))
}

fn disbelieved(why: &CertificateError) -> String {
    let expected = match why {
        // It says itself what was expected.
        CertificateError::Other(why) if why.0.is::<Own>() => "",
        CertificateError::BadSignature => "",
        _ => "; expected one that a CA in its CA file, or else of the system, vouches for",
    };
    format!("its certificate is not believed ({}){expected}", reason(why))
}

/// Why a certificate is not believed.
pub fn reason(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "no CA that is named vouches for it".to_owned(),
        CertificateError::BadSignature => {
            "a signature is wrong: the service does not hold its key, or another CA of that name made it"
                .to_owned()
        }
        CertificateError::Other(why) => why.to_string(),
        why => why.to_string(),
    }
}
