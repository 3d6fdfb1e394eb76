//! TLS 1.3 with certificates on both sides.
//!
//! # Invariants
//!
//! - Nobody is let in without a certificate of the callers' CA. Shown by
//!   `without_a_certificate_nobody_is_let_in`, `every_wrong_certificate_is_refused_and_told_to_both_sides`.
//! - Nothing is resumed: each connection shows its certificate anew.
//! - Files that changed are read again, at most once a second. While the new ones do not parse or do not
//!   match, the old ones serve, and the log says so. Shown by
//!   `the_old_ones_serve_until_the_new_ones_match`.
//! - No connection stays open if no CA in force vouches for its certificate. Shown by
//!   `who_is_connected_stays_so_only_while_a_ca_in_force_vouches_for_them`.

pub(crate) mod certificate;
mod files;
pub(crate) mod refusal;
pub(crate) mod trusted_connections;

use std::sync::Arc;
use std::time::{Duration, Instant};

use files::{FileStamp, FileStamps, LoadedFiles};
pub use files::{TlsFault, TlsFiles};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use trusted_connections::{TrustedConnection, TrustedConnections};

/// The files are looked at no more often than this.
const LOOK: Duration = Duration::from_secs(1);

/// What TLS is spoken with.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    looked_at: Instant,
    /// The files as they were when they were last read, whether or not they could be used.
    marks: FileStamps,
    read: LoadedFiles,
    trusted_connections: TrustedConnections,
    ends: Vec<(&'static str, i64)>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Everything that is wrong with them, each with the key of the settings that names the file.
    pub fn load(files: TlsFiles) -> Result<Self, Vec<TlsFault>> {
        let marks = FileStamp::of(&files);
        let read = files.read()?;
        let state = State {
            looked_at: Instant::now(),
            marks,
            read,
            trusted_connections: TrustedConnections::default(),
            ends: files.ends(),
        };
        let state = Mutex::new(state);
        Ok(Self { files, state })
    }

    /// What new connections are served with.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock();
        if state.looked_at.elapsed() >= LOOK {
            self.look(&mut state);
        }
        state.read.config.clone()
    }

    /// Looks at the files now; true if they were replaced and are used.
    pub(crate) fn look_again(&self) -> bool {
        self.look(&mut self.state.lock())
    }

    /// When the certificates end that are in use: the gateway's own (`server`), and the first of the callers' CAs
    /// (`client_ca`); in seconds since 1970.
    pub(crate) fn ends(&self) -> Vec<(&'static str, i64)> {
        self.state.lock().ends.clone()
    }

    fn look(&self, state: &mut State) -> bool {
        state.looked_at = Instant::now();
        let marks = FileStamp::of(&self.files);
        if marks == state.marks {
            return false;
        }
        state.marks = marks;
        match self.files.read() {
            Ok(read) => {
                let closed = state.trusted_connections.judge(&*read.verifier);
                state.read = read;
                state.ends = self.files.ends();
                tracing::info!("the certificates were replaced: new connections use the new ones");
                if closed > 0 {
                    tracing::warn!(
                        connections = closed,
                        "nothing in client_ca_file vouches for these callers any more: they are closed"
                    );
                }
                true
            }
            Err(faults) => {
                for fault in faults {
                    tracing::error!(
                        file = fault.key,
                        fault = fault.message,
                        "the new certificates cannot be used: the old ones still serve"
                    );
                }
                false
            }
        }
    }

    /// What a new connection stands by, whose handshake was served with `served`.
    pub(crate) fn trusted(
        &self,
        chain: &[CertificateDer<'_>],
        served: &Arc<ServerConfig>,
    ) -> Result<Arc<TrustedConnection>, String> {
        let mut state = self.state.lock();
        let State { read, trusted_connections, .. } = &mut *state;
        // The files may have been replaced while hands were shaken.
        let verifier = (!Arc::ptr_eq(served, &read.config)).then_some(&*read.verifier);
        trusted_connections.add(chain, verifier)
    }

    /// Looks at the files for as long as it is polled, so that also who is connected already is judged by new ones.
    pub(crate) async fn keep_looking(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.current();
        }
    }
}

#[cfg(test)]
mod tests;
