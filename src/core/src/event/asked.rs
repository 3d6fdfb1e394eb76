//! What events bring with them: who asks, for what, and what was found.

use std::time::Duration;

use crate::device::Grade;
use crate::ids::{FenceId, ReleaseId};
use crate::record::{Part, SetAside, Then};
use crate::roles;
use crate::topology::Topology;

/// A caller's idempotency key, and the digest of what it asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundKey {
    /// Under which name it is stored for the node.
    pub key: String,
    /// Digest of the request's parameters.
    pub digest: String,
}

impl BoundKey {
    /// The key `written` of a holder, or of a caller who names none: nobody else binds it.
    pub fn of(owner: &str, written: &str, digest: String) -> Self {
        // Neither of the two has control characters: no name is that of another owner's key, nor that of a version before.
        Self { key: format!("{owner}\n{written}"), digest }
    }

    /// The key as its caller wrote it. A version before stored it under this name, whoever it was.
    pub fn written(&self) -> &str {
        self.key.split_once('\n').map_or(&self.key, |(_, written)| written)
    }

    /// Whether `before` is the same key: by its name, or bound by a version before to the same request (S20).
    pub fn is_same(&self, before: &Self) -> bool {
        before.key == self.key || (before.key == self.written() && before.digest == self.digest)
    }
}

/// Who keeps the node off, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The hold's name.
    pub name: String,
    /// Who asked.
    pub by: String,
    /// Why.
    pub reason: String,
    /// What comes after the release.
    pub then: Then,
    /// A person asked, and no program: whether the node recovered is not asked (K9).
    pub by_person: bool,
    /// Who asked, so that the roles can be asked again; `None`: the gateway itself.
    pub asker: Option<roles::Person>,
}

impl Holder {
    /// Who asked.
    pub fn person(&self) -> roles::Person {
        self.asker.clone().unwrap_or_else(|| roles::Person::known_by_name(&self.by))
    }

    /// Who asked, for people: `alice as root`, else the name that stands in the record.
    pub fn shown(&self) -> &str {
        self.asker.as_ref().and_then(roles::Person::shown).unwrap_or(&self.by)
    }
}

/// A release that a fence will make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRelease {
    /// Its name in the settings.
    pub id: ReleaseId,
    /// S8.
    pub max_in_flight: Option<Duration>,
    /// What its attempts set up lets volumes go for as long as it stands; once it was seen to be gone nothing is switched on for so
    /// long. `None`: they set up nothing.
    pub lingers: Option<Duration>,
    /// Its far side may know the node by its name alone: the evidence says less of whom it lets go (K1).
    pub by_name: bool,
}

/// How long an attempt may take effect at the longest; `None`: nothing bounds it.
pub type MaxLife = Option<Duration>;

/// What of a release was found attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// What is to be let go.
    pub parts: Vec<Part>,
    /// What stays, and why, in words.
    pub stays: Vec<(Part, String)>,
    /// It was asked for once the node was proven off. Only then does it complete anything.
    pub on_ground: bool,
    /// S8, of a part that is new.
    pub max_in_flight: MaxLife,
}

/// What opens a fence.
#[derive(Clone, Debug)]
pub struct FenceRequest {
    /// The id that it will have.
    pub id: FenceId,
    /// Who keeps the node off.
    pub holder: Holder,
    /// From the intent to the confirmation.
    pub deadline: Duration,
    /// The least grade that lets it be confirmed.
    pub min_grade: Grade,
    /// The node's levels.
    pub topology: Topology,
    /// The node's releases, in order.
    pub releases: Vec<PlannedRelease>,
    /// The caller's key.
    pub key: Option<BoundKey>,
    /// Which limits were set aside for it.
    pub set_aside: Option<Overrides>,
}

/// What joins a fence that is open.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// Who keeps the node off.
    pub holder: Holder,
    /// The caller's key.
    pub key: Option<BoundKey>,
    /// From now to the confirmation: the fence has at least so long. `None`: whatever it has is enough.
    pub deadline: Option<Duration>,
}

/// Limits that were set aside for a fence, each by its own name: by whom and why, and what that changed, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Budget, cool-down and brake (S14).
    pub budget: Option<(SetAside, String)>,
    /// The store's quorum (S17).
    pub quorum: Option<(SetAside, String)>,
}

/// A person who acts, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Who.
    pub name: String,
    /// Why.
    pub reason: String,
}
