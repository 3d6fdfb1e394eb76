//! What `picket -o json` told of a fence or an unfence.

use std::time::SystemTime;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::error::{PeerError, Result};
use crate::gateway::Said;

/// How a call ended, of one node.
#[derive(Debug)]
pub struct Told {
    /// Its exit code.
    pub code: i32,
    /// The node's part of what it printed.
    pub result: Value,
}

impl Told {
    /// By what the command line answered.
    ///
    /// # Errors
    /// It printed no result.
    pub fn of(said: &Said) -> Result<Self> {
        let all: Value = serde_json::from_str(&said.out).unwrap_or_default();
        match &all["results"][0] {
            Value::Null => Err(PeerError::Ended {
                program: "picket -o json".to_owned(),
                status: format!("{}, without a result", said.code),
                output: format!("{}{}", said.out, said.err),
            }),
            result => Ok(Self { code: said.code, result: result.clone() }),
        }
    }

    /// What it came to: `fenced`, `needs_operator`.
    pub fn kind(&self) -> &str {
        self.result["outcome"]["kind"].as_str().unwrap_or("nothing yet")
    }

    /// Why, where it did not come to what was asked: `levels_spent`.
    pub fn reason(&self) -> &str {
        self.result["outcome"]["reason"].as_str().unwrap_or_default()
    }

    /// The same in words: what a person reads last.
    pub fn detail(&self) -> &str {
        self.result["outcome"]["detail"].as_str().unwrap_or_default()
    }

    /// Proven off, with everything released.
    pub fn is_fenced(&self) -> bool {
        self.kind() == "fenced" && self.result["outcome"]["released"] == true
    }

    /// What became of the release that names that: a volume, a disk.
    ///
    /// # Panics
    /// None does.
    pub fn release(&self, named: &str) -> &Value {
        let mut all = self.result["releases"].as_array().into_iter().flatten();
        all.find(|one| one.to_string().contains(named))
            .unwrap_or_else(|| panic!("{named} is among no releases: {:#}", self.result))
    }

    /// When it was proven off. `None`: it was not.
    pub fn proven_at(&self) -> Option<SystemTime> {
        proven_at(&self.result)
    }

    /// The same in seconds since 1970, as some peers count.
    pub fn proven_at_seconds(&self) -> Option<f64> {
        let since = self.proven_at()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(since.as_secs_f64())
    }
}

/// When a node was proven off, as any JSON of a fence has it. `None`: it was not.
pub fn proven_at(fence: &Value) -> Option<SystemTime> {
    let said = fence["evidence"]["confirmed_at"].as_str()?;
    OffsetDateTime::parse(said, &Rfc3339).ok().map(SystemTime::from)
}
