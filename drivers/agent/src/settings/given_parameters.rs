//! What an agent is told, and what it takes by itself where it is told nothing.

use picket_driver::Secret;

use super::parameters::is_yes;
use crate::metadata::{Metadata, same};

/// The parameters that are given, beside the agent's metadata.
#[derive(Clone, Copy)]
pub(super) struct GivenParameters<'a> {
    pub(super) parameters: &'a [(String, String)],
    pub(super) secrets: &'a [(String, Secret)],
    pub(super) metadata: &'a Metadata,
}

impl<'a> GivenParameters<'a> {
    /// What is given by the first of these names, with `_`.
    pub(super) fn given(&self, names: &[&str]) -> Option<&'a str> {
        let of = |name: &&str| self.parameters.iter().find(|(known, _)| same(known) == **name);
        names.iter().find_map(of).map(|(_, value)| value.as_str())
    }

    /// Whether that is given, or a secret of that name.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        let is_secret = |name: &&str| self.secrets.iter().any(|(known, _)| same(known) == **name);
        self.given(names).is_some() || names.iter().any(is_secret)
    }

    /// The same, or what the agent takes where it is not.
    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        self.given(&[name]).or_else(|| self.metadata.parameters.get(name)?.default.as_deref())
    }

    /// Whether a flag of one of these names is set.
    pub(super) fn is_set(&self, names: &[&str]) -> bool {
        match self.given(names) {
            Some(value) => is_yes(Some(value)),
            None => names.iter().any(|name| is_yes(self.value(name))),
        }
    }

    /// Whether the agent knows a parameter of that name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.metadata.parameters.contains_key(name)
    }
}
