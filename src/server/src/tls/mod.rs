//! TLS 1.3 with certificates on both sides.
//!
//! **Invariants.** Nobody is let in without a certificate of the callers' CA. Nothing is resumed: each connection shows
//! its certificate anew. Files that changed are read again for new connections, at most once a second; while the new
//! ones do not parse or do not match, the old ones serve, and the log says so.

pub(crate) mod certificate;
mod files;
pub(crate) mod refusal;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use files::{Mark, Marks};
pub use files::{TlsFault, TlsFiles};
use rustls::ServerConfig;

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
    marks: Marks,
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Everything that is wrong with them, each with the key of the settings that names the file.
    pub fn load(files: TlsFiles) -> Result<Self, Vec<TlsFault>> {
        let marks = Mark::of(&files);
        let config = Arc::new(files.read()?);
        let state = Mutex::new(State { looked_at: Instant::now(), marks, config });
        Ok(Self { files, state })
    }

    /// What new connections are served with.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked_at.elapsed() >= LOOK {
            state.looked_at = Instant::now();
            let marks = Mark::of(&self.files);
            if marks != state.marks {
                state.marks = marks;
                match self.files.read() {
                    Ok(config) => {
                        state.config = Arc::new(config);
                        tracing::info!("the certificates were replaced: new connections use the new ones");
                    }
                    Err(faults) => {
                        for fault in faults {
                            tracing::error!(
                                file = fault.key,
                                fault = fault.message,
                                "the new certificates cannot be used: the old ones still serve"
                            );
                        }
                    }
                }
            }
        }
        state.config.clone()
    }
}

#[cfg(test)]
mod tests;
