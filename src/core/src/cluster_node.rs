//! Which Node of Kubernetes a caller means, and what a source knows of it (K1).

/// A Node of Kubernetes, as a caller names it: another one of that name has another UID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// What a source says of whether that Node is the gateway's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// It is.
    Yes,
    /// It is not: another one is, or none. Why, in words.
    No(String),
    /// That could not be told now: why, in words.
    Untold(String),
}
