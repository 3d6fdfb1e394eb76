//! Why a command as a whole did not do what it should.

use std::io;
use std::time::Duration;

use crate::duration::words;
use crate::exit::Exit;
use crate::told::Told;

/// Why. Its text is told once, at the edge.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Wrong arguments or settings, or nobody to ask.
    #[error("{0}")]
    Usage(String),
    /// No gateway answers.
    #[error("no gateway answers at {endpoint}: {why}\n{check}")]
    Unreachable {
        /// Where.
        endpoint: String,
        /// The system's words.
        why: String,
        /// What to look at.
        check: String,
    },
    /// One side does not take the other's certificate.
    #[error("{endpoint} and you do not come together: {why}\n{check}")]
    Refused {
        /// Where.
        endpoint: String,
        /// The words of TLS.
        why: String,
        /// What to look at.
        check: String,
    },
    /// The gateway refused.
    #[error("{0}")]
    Told(Box<Told>),
    /// The time of the command is over.
    #[error("not done within {}", words(*.0))]
    TimedOut(Duration),
    /// An answer that cannot be understood.
    #[error("the gateway's answer makes no sense: {0}")]
    Nonsense(&'static str),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Fault {
    /// In one line, where several are told.
    pub fn in_short(&self) -> String {
        match self {
            Fault::Unreachable { endpoint, why, .. } | Fault::Refused { endpoint, why, .. } => {
                format!("{endpoint}: {why}")
            }
            other => other.to_string(),
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Fault::Usage(_) => Exit::Usage,
            Fault::Unreachable { .. } => Exit::Unreachable,
            Fault::Refused { .. } => Exit::Denied,
            Fault::Told(told) => told.exit(),
            Fault::TimedOut(_) => Exit::TimedOut,
            Fault::Nonsense(_) | Fault::Output(_) => Exit::Failed,
        }
    }
}
