//! Why a command as a whole did not do what it should.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde::Serialize;
use tonic::Code;

use crate::duration;
use crate::exit::Exit;
use crate::gateway_error::GatewayError;

/// What is not known of a request whose answer did not come in time.
const ARRIVED: &str = "a request that changes something may have arrived: look before it is sent again";

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
    Gateway(Box<GatewayError>),
    /// The time of the command is over.
    #[error("not done within {}\n{ARRIVED}", duration::set(*.0))]
    TimedOut(Duration),
    /// Something else on this machine did not work.
    #[error("{0}")]
    Failed(String),
    /// An answer that cannot be understood.
    #[error("the gateway's answer makes no sense: {0}")]
    Nonsense(&'static str),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// The document of a command that failed as a whole: `error` is never null.
#[derive(Debug, Serialize)]
pub struct Failure {
    error: GatewayError,
    exit_code: u8,
}

impl From<&Fault> for Failure {
    fn from(fault: &Fault) -> Self {
        Self { error: fault.told(), exit_code: fault.exit().code() }
    }
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

    /// In the form of a gateway's error. What arose on this side has no reason, and the code that fits it best.
    fn told(&self) -> GatewayError {
        let text = self.to_string();
        // What a script does about a time that is over stands in its own text, and not in ours.
        let mut lines = text.lines().map(str::to_owned).filter(|line| line != ARRIVED);
        let message = lines.next().unwrap_or_default();
        let (code, endpoint) = match self {
            Fault::Gateway(told) => return (**told).clone(),
            Fault::Usage(_) => (Code::InvalidArgument, None),
            Fault::Unreachable { endpoint, .. } => (Code::Unavailable, Some(endpoint)),
            Fault::Refused { endpoint, .. } => (Code::Unauthenticated, Some(endpoint)),
            Fault::TimedOut(_) => (Code::DeadlineExceeded, None),
            Fault::Nonsense(_) => (Code::Internal, None),
            Fault::Output(_) | Fault::Failed(_) => (Code::Unknown, None),
        };
        let metadata: BTreeMap<String, String> =
            endpoint.map(|at| ("endpoint".to_owned(), at.clone())).into_iter().collect();
        GatewayError::of_this_side(code, message, lines.collect(), metadata)
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Fault::Usage(_) => Exit::Usage,
            Fault::Unreachable { .. } => Exit::Unreachable,
            Fault::Refused { .. } => Exit::Denied,
            Fault::Gateway(told) => told.exit(),
            Fault::TimedOut(_) => Exit::TimedOut,
            Fault::Nonsense(_) | Fault::Output(_) | Fault::Failed(_) => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_that_a_request_may_have_arrived() {
        let fault = Fault::TimedOut(Duration::from_secs(30));
        assert!(fault.to_string().contains("may have arrived"), "{fault}");
        let told = fault.told();
        assert_eq!((told.message.as_str(), told.details.len()), ("not done within 30 s", 0));
    }
}
