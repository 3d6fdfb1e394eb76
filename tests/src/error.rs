//! What can go wrong with a peer, in words for the person whose test fails.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a peer could not be had, or did not do its part.
#[derive(thiserror::Error)]
pub enum PeerError {
    /// A program or library that the tests need is not installed.
    #[error("{what} is missing: install the Debian package {package}, or run `cargo xtask test`, which does")]
    Missing {
        /// The program, header or module.
        what: String,
        /// Where Debian has it.
        package: &'static str,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the file or program.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program ended that should not have, or ended badly.
    #[error("{program} failed ({status}):\n{output}")]
    Ended {
        /// Its name and arguments.
        program: String,
        /// How it ended.
        status: String,
        /// What it said.
        output: String,
    },
    /// Something did not come to pass in time.
    #[error("not within {} ms: {what}\n{seen}", within.as_millis())]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        within: Duration,
        /// What was seen instead.
        seen: String,
    },
    /// A fault was asked of a peer that does not know it.
    #[error("{peer} does not know the fault {knob}")]
    UnknownKnob {
        /// The peer.
        peer: &'static str,
        /// The fault.
        knob: &'static str,
    },
    /// A file of a peer is not what it should be.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// Shorthand for everything here.
pub type Result<T, E = PeerError> = std::result::Result<T, E>;

impl PeerError {
    /// Names what was tried when the operating system refused.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Names what was asked of a gateway that refused, or was not there.
    pub fn call(what: impl Into<String>) -> impl FnOnce(tonic::Status) -> Self {
        let what = what.into();
        move |status| Self::Io { what, source: std::io::Error::other(status) }
    }
}

/// A test that returns an error prints it with `Debug`: people read that, so it is the message.
impl fmt::Debug for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
