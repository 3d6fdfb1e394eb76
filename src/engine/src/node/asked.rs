//! What callers asked, and how it was taken, as the audit is told of it.

use picket_audit::Told;
use picket_core::event::{BoundKey, Person};
use picket_core::parent::hold_of;
use picket_core::record::NodeRecord;
use serde_json::{Map, Value};

use super::command::{Command, Wish};
use crate::parents::{ParentAnswer, ParentAsk};
use crate::receipts::Receipted;
use crate::request::{Admission, Taken};

/// A request that changes something, as the audit is told of it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    call: &'static str,
    who: String,
    role: String,
    reason: String,
    more: Vec<(&'static str, String)>,
}

impl Asked {
    fn new(call: &'static str, person: &Person, key: Option<&BoundKey>) -> Self {
        let more = key.map(|bound| ("key", bound.written().to_owned())).into_iter().collect();
        Self { call, who: person.name.clone(), role: String::new(), reason: person.reason.clone(), more }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.more.push((name, value.to_string()));
        self
    }

    /// The entry, with what became of it: how it was taken, or why it was not.
    pub(crate) fn told(self, entry: Told, became: Result<String, String>) -> Told {
        let mut details = Map::new();
        details.insert("call".to_owned(), self.call.into());
        details.insert("reason".to_owned(), self.reason.into());
        details.extend(self.more.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
        let (outcome, how) = match became {
            Ok(how) => ("accepted", how),
            Err(why) => ("refused", why),
        };
        details.insert("outcome".to_owned(), outcome.into());
        details.insert("how".to_owned(), how.into());
        Told { who: self.who, role: self.role, details: Value::Object(details), ..entry }
    }
}

/// How a request was taken, in words.
pub(super) trait InWords {
    fn in_words(&self) -> String;

    /// Whether it only repeats what was so: a caller may do that as often as it likes.
    fn repeats(&self) -> bool {
        false
    }
}

impl InWords for Admission {
    fn in_words(&self) -> String {
        match self {
            Admission::Opened(id) => format!("opened fence {id}"),
            Admission::Joined(id) => format!("joined fence {id}"),
            Admission::Already(id) => format!("already fenced, by fence {id}"),
            Admission::Superseded(fence) => format!("its fence {} has ended", fence.id),
        }
    }

    fn repeats(&self) -> bool {
        !matches!(self, Admission::Opened(_))
    }
}

impl InWords for Taken {
    fn in_words(&self) -> String {
        match self {
            Taken::Now(record) => format!("stored; the node is {}", record.phase.label().replace('_', " ")),
            Taken::Before(Some(id)) => format!("asked before, of fence {id}: nothing was done again"),
            Taken::Before(None) => "asked before, of no fence: nothing was done again".to_owned(),
        }
    }

    fn repeats(&self) -> bool {
        matches!(self, Taken::Before(_))
    }
}

impl InWords for ParentAnswer {
    fn in_words(&self) -> String {
        match self {
            ParentAnswer::Held { already: true } => "it is proven off already".to_owned(),
            ParentAnswer::Held { already: false } => "it is being fenced".to_owned(),
            ParentAnswer::LetGo | ParentAnswer::Seen(_) | ParentAnswer::Settled => "stored".to_owned(),
        }
    }
}

impl InWords for Receipted {
    fn in_words(&self) -> String {
        format!("issued receipt {}, until {}", self.id, self.expires_at)
    }
}

impl InWords for () {
    fn in_words(&self) -> String {
        "stored".to_owned()
    }
}

impl InWords for NodeRecord {
    fn in_words(&self) -> String {
        format!("stored; the node is {}", self.phase.label().replace('_', " "))
    }
}

impl Command {
    /// What the audit is told of it; `None`: it changes nothing.
    pub(crate) fn asked(&self) -> Option<Asked> {
        Some(match self {
            Command::As(acting, command) => {
                let asked = Asked { role: acting.roles.clone(), ..command.asked()? };
                match acting.shown() {
                    Some(shown) => asked.with("person", shown),
                    None => asked,
                }
            }
            Command::Fence(call, ..) => {
                let person = Person { name: call.holder.by.clone(), reason: call.holder.reason.clone() };
                let asked = Asked::new("fence", &person, call.key.as_ref()).with("holder", &call.holder.name);
                let Some(asides) = &call.set_aside else { return Some(asked) };
                let given = [("budget", &asides.budget), ("quorum", &asides.quorum)];
                let given = given.iter().filter_map(|(what, aside)| Some((*what, aside.as_ref()?)));
                let (what, why): (Vec<&str>, Vec<&str>) =
                    given.map(|(what, aside)| (what, aside.reason.as_str())).unzip();
                asked.with("set_aside", what.join(", ")).with("set_aside_for", why.join("; "))
            }
            Command::Unfence { holder, ask, .. } => {
                Asked::new("unfence", &ask.person, ask.key.as_ref()).with("holder", holder)
            }
            Command::Retry(ask, _) => Asked::new("retry", &ask.person, ask.key.as_ref()),
            Command::Abandon(release, ask, _) => {
                Asked::new("abandon", &ask.person, ask.key.as_ref()).with("release", release)
            }
            Command::StandDown(ask, _) => Asked::new("stand_down", &ask.person, ask.key.as_ref()),
            Command::Drill(call, ..) => {
                let person = Person { name: call.holder.by.clone(), reason: call.holder.reason.clone() };
                Asked::new("drill", &person, call.key.as_ref())
            }
            Command::Wish(wish, ask, _) => {
                let asked = Asked::new(wish.label(), &ask.person, ask.key.as_ref());
                match wish {
                    Wish::Hold(holder) | Wish::EndChildsHold(holder) => asked.with("holder", holder),
                    Wish::Accept { device, .. } => asked.with("device", device),
                    Wish::Attest | Wish::RetrySeenOff | Wish::Retire | Wish::DropRestored => asked,
                }
            }
            Command::Receipt(call, _) => {
                let person = Person { name: call.by.clone(), reason: String::new() };
                let asked = Asked::new("get_receipt", &person, None).with("audience", &call.audience);
                match call.renews {
                    Some(renews) => asked.with("renews", renews),
                    None => asked,
                }
            }
            Command::ReturnReceipt { id, by, .. } => {
                let person = Person { name: by.clone(), reason: String::new() };
                Asked::new("return_receipt", &person, None).with("receipt", id)
            }
            Command::Parent(ParentAsk::Hold { child, by, .. }, ..) => {
                let person = Person { name: by.clone(), reason: format!("{child} runs on it") };
                Asked::new("fence", &person, None).with("holder", hold_of(child))
            }
            Command::Parent(ParentAsk::LetGo { child }, ..) => {
                let person = Person { name: "picket".to_owned(), reason: format!("{child} is brought back") };
                Asked::new("unfence", &person, None).with("holder", hold_of(child))
            }
            Command::Parent(ParentAsk::Look { .. } | ParentAsk::Read | ParentAsk::Settle, ..)
            | Command::Check(_)
            | Command::Plan(..)
            | Command::PlanDrill(..)
            | Command::StepAside { .. }
            | Command::Withdrawn(_)
            | Command::Announced(..)
            | Command::Replaced(..)
            | Command::NotBack(..)
            | Command::VerifyReceipt { .. } => return None,
        })
    }
}
