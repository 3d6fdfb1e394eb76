//! What callers ask for, and how they are let in.

use std::time::Duration;

use picket_core::budget::{Aside, Ticket};
use picket_core::device::Grade;
use picket_core::event::{BoundKey, Holder, Person};
use picket_core::ids::{FenceId, Generation};
use picket_core::outcome::Outcome;
use picket_core::record::{Fence, NodeRecord, SetAside};
use picket_core::roles::{self, Role};
use picket_core::time::WallTime;

use crate::office::queue::Waits;

/// When a caller's stream ends; the releases run all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Once the node is proven off.
    Confirmed,
    /// Once every release is complete or abandoned.
    #[default]
    Released,
}

/// A caller's wish to have a node off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceCall {
    /// Who keeps the node off, and what comes after.
    pub holder: Holder,
    /// The caller's key and the digest of its parameters.
    pub key: Option<BoundKey>,
    /// The least grade of evidence; `None`: claimed.
    pub min_grade: Option<Grade>,
    /// From the intent to the confirmation; `None`: the rules' default.
    pub deadline: Option<Duration>,
    /// After this moment the request changes nothing any more.
    pub not_after: Option<WallTime>,
    /// The request changes something only in this generation.
    pub expected_generation: Option<Generation>,
    /// Which limits are set aside for it.
    pub set_aside: Option<Asides>,
    /// It waited in the queue, and this is its turn; `None` for whoever comes from outside.
    pub turn: Option<Turn>,
}

/// Limits that are set aside for a request, each by its own name: by whom, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asides {
    /// Budget, cool-down and brake.
    pub budget: Option<SetAside>,
    /// The store's quorum.
    pub quorum: Option<SetAside>,
}

impl Asides {
    pub(crate) fn which(asked: Option<&Self>) -> Aside {
        let is_set = |of: fn(&Self) -> &Option<SetAside>| asked.is_some_and(|asides| of(asides).is_some());
        Aside { budget: is_set(|asides| &asides.budget), quorum: is_set(|asides| &asides.quorum) }
    }
}

/// The turn of a request that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its number in the queue.
    pub ticket: Ticket,
    /// The node's generation when it came: it opens no fence in another one.
    pub generation: Generation,
}

/// How a request was let in that may wait.
#[derive(Clone, Debug)]
pub enum LetIn {
    /// At once.
    In(Admission),
    /// It waits.
    Waits(Waits),
}

/// What is asked of a node that is fenced, or was: to bring it back, to try again, to stand down, to give a release up.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Who asks, and why.
    pub person: Person,
    /// The caller's key and the digest of its parameters: asked again, nothing is done twice.
    pub key: Option<BoundKey>,
    /// After this moment the request changes nothing any more.
    pub not_after: Option<WallTime>,
    /// The request changes something only in this generation.
    pub expected_generation: Option<Generation>,
    /// Whether the caller is a person who may decide what is done next with the node (an operator). What failed is tried again for them alone.
    pub by_person: bool,
}

impl From<Person> for Ask {
    fn from(person: Person) -> Self {
        Self { person, key: None, not_after: None, expected_generation: None, by_person: true }
    }
}

/// In which roles a request is made, and by which right it was let in.
#[derive(Clone, Debug, Default)]
pub struct Acting {
    /// The roles, in words, for the audit.
    pub roles: String,
    /// The caller, and the role that the request needs. It is judged again when the request is done, which may have waited (S14).
    pub right: Option<(roles::Person, Role)>,
}

impl Acting {
    /// Who the caller is, for people, where more than the name is known; for the audit.
    pub(crate) fn shown(&self) -> Option<&str> {
        self.right.as_ref()?.0.shown()
    }
}

/// How an [`Ask`] was taken.
#[derive(Clone, Debug)]
pub enum Taken {
    /// Stored just now; the record after it.
    Now(Box<NodeRecord>),
    /// The key was bound before, when the node had this fence, or none: nothing was done again.
    Before(Option<FenceId>),
}

/// How a fence request was let in.
#[derive(Clone, Debug)]
pub enum Admission {
    /// It opened this fence.
    Opened(FenceId),
    /// It joined this fence, which goes on.
    Joined(FenceId),
    /// The node is proven off by this leadership, and read Off just now.
    Already(FenceId),
    /// The key's fence has ended since; this is what became of it.
    Superseded(Box<Fence>),
}

impl Admission {
    /// The fence whose progress the caller follows.
    pub fn fence(&self) -> FenceId {
        match self {
            Admission::Opened(id) | Admission::Joined(id) | Admission::Already(id) => *id,
            Admission::Superseded(fence) => fence.id,
        }
    }
}

/// The outcome of a fence for a caller, if it has one yet.
///
/// `grade` is the caller's own minimum: evidence below it is no success for this caller.
pub(crate) fn outcome_of(fence: &Fence, until: Until, grade: Option<Grade>) -> Option<Outcome> {
    let outcome = fence.outcome.clone()?;
    if let (Outcome::Fenced { released }, Some(evidence)) = (&outcome, &fence.evidence) {
        if grade.is_some_and(|least| evidence.grade < least) {
            return Some(Outcome::NeedsOperator(picket_core::outcome::Reason::GradeTooLow));
        }
        if !released && until == Until::Released {
            return None;
        }
    }
    Some(outcome)
}
