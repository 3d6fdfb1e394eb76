//! What answers say of nodes that their caller may not look at: nothing of them is named.
//!
//! # Invariants
//!
//! - A text that is made for people may name any node: a twin, an orphan, a parent, another node of a unit.
//!   For a caller without a role for all nodes, "another node" stands in the place of each hidden name.
//!   Shown by `names_that_a_role_hides_are_not_told`,
//!   `a_text_names_no_node_that_the_caller_may_not_look_at`.

use picket_core::hostlist;
use picket_core::ids::NodeId;
use picket_proto::v1::{self, ErrorReason};
use tonic::Status;
use tonic_types::{ErrorDetail, StatusExt};

use crate::calls::FencingHandlers;

/// In the place of one name.
const ONE: &str = "another node";

impl FencingHandlers {
    /// The same answer, for this caller.
    pub(crate) fn hiding<M: MessageTexts>(&self, mut message: M) -> M {
        if !self.knows_all() {
            message.texts(&mut |text| *text = without(text, &|name| self.is_hidden(name)));
        }
        message
    }

    /// The same refusal, for this caller. One for want of a role, or of a node that is not there, names what the caller named.
    pub(crate) fn refusing(&self, status: Status) -> Status {
        let mut details = status.get_error_details_vec();
        let is_of_callers = |detail: &ErrorDetail| {
            let words = [ErrorReason::RoleMissing.word(), ErrorReason::NodeNotFound.word()];
            matches!(detail, ErrorDetail::ErrorInfo(info) if words.contains(&info.reason.as_str()))
        };
        if self.knows_all() || details.iter().any(is_of_callers) {
            return status;
        }
        details.iter_mut().for_each(|detail| *detail = self.hiding(detail.clone()));
        let message = self.hiding(status.message().to_owned());
        Status::with_error_details_vec(status.code(), message, details)
    }

    fn is_hidden(&self, name: &str) -> bool {
        let node = NodeId::new(name).ok().filter(|node| self.engine.knows(node));
        node.is_some_and(|node| !self.knows(&node))
    }
}

/// In a refusal's metadata: by these names holds are dropped, and gateways are reached.
const KEPT: [&str; 3] = ["holders", "endpoint", "leader"];
/// Of the host lists of one text so many names are looked at. A list of more stands for hidden ones in any case.
const MOST_LISTED: usize = 256;

/// The text without the names of hidden nodes, nor of what is one's: its device, its release.
fn without(text: &str, is_hidden: &dyn Fn(&str) -> bool) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    // Whoever wrote the text chose how many lists it has, and each reader pays for them.
    let mut left = MOST_LISTED;
    while let Some(begin) = rest.find(|one: char| one.is_ascii_alphanumeric()) {
        shown.push_str(&rest[..begin]);
        rest = &rest[begin..];
        let token = &rest[..token_length(rest)];
        // A sentence may end right after a name.
        let plain = token.trim_end_matches(['.', '-', '_']);
        let list = || hostlist::expand(token).is_ok_and(|names| names.iter().any(|name| is_hidden(name)));
        let length = match token {
            token if token.contains('[') => match left.checked_sub(names_of(token)) {
                Some(fewer) => {
                    left = fewer;
                    list().then_some(token.len())
                }
                None => Some(token.len()),
            },
            token if is_hidden(token) => Some(token.len()),
            token if plain.len() < token.len() && is_hidden(plain) => Some(plain.len()),
            _ => None,
        };
        match length {
            Some(length) => {
                shown.push_str(ONE);
                rest = &rest[length..];
                if let Some(part) = rest.strip_prefix('/') {
                    rest = &part[token_length(part)..];
                }
            }
            None => {
                shown.push_str(token);
                rest = &rest[token.len()..];
            }
        }
    }
    shown.push_str(rest);
    counted(&shown)
}

/// How long the name, or the host list of one prefix, is with which the text begins.
fn token_length(text: &str) -> usize {
    let of_name = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
    let of_numbers = |one: char| one.is_ascii_digit() || matches!(one, '-' | ',');
    let mut length = 0;
    loop {
        length += text[length..].find(|one| !of_name(one)).unwrap_or(text.len() - length);
        let numbers = text[length..].strip_prefix('[').and_then(|within| within.split_once(']'));
        match numbers {
            Some((numbers, _)) if numbers.chars().all(of_numbers) => length += numbers.len() + 2,
            _ => return length,
        }
    }
}

/// How many names a host list stands for, as far as its ranges say.
fn names_of(list: &str) -> usize {
    let within = list.split('[').skip(1).filter_map(|part| part.split_once(']'));
    within.fold(1_usize, |product, (numbers, _)| {
        let count = |range: &str| match range.split_once('-') {
            Some((from, to)) => {
                let number = |text: &str| text.parse::<usize>().unwrap_or(usize::MAX);
                number(to).saturating_sub(number(from)).saturating_add(1)
            }
            None => 1,
        };
        product.saturating_mul(numbers.split(',').map(count).fold(0, usize::saturating_add))
    })
}

/// Several in a row are told by their number.
fn counted(text: &str) -> String {
    let (mut told, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(ONE) {
        told.push_str(&rest[..at]);
        rest = &rest[at + ONE.len()..];
        let mut count = 1;
        while let Some(next) = rest.strip_prefix(", ").and_then(|next| next.strip_prefix(ONE)) {
            (count, rest) = (count + 1, next);
        }
        match count {
            1 => told.push_str(ONE),
            more => told.push_str(&format!("{more} other nodes")),
        }
    }
    told + rest
}

/// A message with texts that are made for people.
pub(crate) trait MessageTexts {
    /// Each of them, to be changed.
    fn texts(&mut self, each: &mut dyn FnMut(&mut String));
}

impl<M: MessageTexts> MessageTexts for Option<M> {
    fn texts(&mut self, each: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(|one| one.texts(each));
    }
}

impl<M: MessageTexts> MessageTexts for Vec<M> {
    fn texts(&mut self, each: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(|one| one.texts(each));
    }
}

impl MessageTexts for String {
    fn texts(&mut self, each: &mut dyn FnMut(&mut String)) {
        each(self);
    }
}

/// These fields are texts, or have some.
macro_rules! texts {
    ($($message:ident: $($field:ident)*;)*) => {$(
        impl MessageTexts for v1::$message {
            fn texts(&mut self, each: &mut dyn FnMut(&mut String)) {
                $(self.$field.texts(each);)*
            }
        }
    )*};
}

texts! {
    Attestation: reason;
    CheckDevicesResponse: device;
    Device: problems reading;
    DeviceEvidence: said hold long_window hold_detail;
    DeviceHold: engaged detail;
    DeviceProblem: text;
    DeviceReading: said;
    DrillResponse: update findings;
    Evidence: lowered_by devices attestation;
    Exchange: asked answered;
    Fence: askers holds releases evidence outcome moments exchanges;
    FenceAsker: reason;
    FenceUpdate: text wait readings releases evidence outcome open_releases;
    Gateway: aside;
    Hold: reason;
    Limit: whose;
    ListGatewaysResponse: gateways trouble;
    Moment: what;
    Node: detail devices holds pauses wait retired releases barred refused_settings;
    Pause: reason;
    PlanFenceResponse: steps outcome;
    PlanStep: text obstacles;
    Release: detail;
    ResumeResponse: pauses;
    Retirement: reason;
    Wait: what whose otherwise;
}

impl MessageTexts for v1::Outcome {
    fn texts(&mut self, each: &mut dyn FnMut(&mut String)) {
        self.detail.texts(each);
        self.limit.texts(each);
        if let Some(superseded) = &mut self.superseded {
            superseded.texts(each);
        }
    }
}

impl MessageTexts for ErrorDetail {
    fn texts(&mut self, each: &mut dyn FnMut(&mut String)) {
        match self {
            Self::ErrorInfo(info) => {
                info.metadata
                    .iter_mut()
                    .filter(|(key, _)| !KEPT.contains(&key.as_str()))
                    .for_each(|(_, text)| each(text));
            }
            Self::PreconditionFailure(failure) => {
                failure.violations.iter_mut().for_each(|one| each(&mut one.description));
            }
            Self::QuotaFailure(failure) => {
                failure.violations.iter_mut().for_each(|one| each(&mut one.description));
            }
            Self::BadRequest(bad) => {
                bad.field_violations.iter_mut().for_each(|one| each(&mut one.description));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        without(text, &|name| ["n2", "n3", "r1.example"].contains(&name))
    }

    #[test]
    fn names_that_a_role_hides_are_not_told() {
        for (text, want) in [
            ("it takes away too n1, n2, n3", "it takes away too n1, 2 other nodes"),
            (
                "n2/bmc claims the same of itself (n2).",
                "another node claims the same of itself (another node).",
            ),
            ("it stands on r1.example.", "it stands on another node."),
            ("n[1-3], which run there", "another node, which run there"),
            ("n1 (n10, n22, n-2, xn2) stays", "n1 (n10, n22, n-2, xn2) stays"),
            ("held by child:n2: \u{e4} n3", "held by child:another node: \u{e4} another node"),
            ("[], ], n2[, n1[1-", "[], ], another node[, n1[1-"),
            ("", ""),
        ] {
            assert_eq!(shown(text), want);
        }
    }

    /// Whoever writes a text chooses how much is looked through.
    #[test]
    fn a_host_list_of_very_many_names_is_not_looked_through() {
        let looked = std::cell::Cell::new(0);
        let nobody = |_: &str| {
            looked.set(looked.get() + 1);
            false
        };
        assert_eq!(without("zz[1-65000] and a[1-99]b[1-99]", &nobody), "another node and another node");
        assert!(looked.get() < 10, "{}", looked.get());
        assert_eq!(without("n[1-3,7]", &nobody), "n[1-3,7]");
        looked.set(0);
        let many = "a[1-200] b[1-56] c[1-2] n1";
        assert_eq!(without(many, &nobody), "a[1-200] b[1-56] another node n1");
        assert_eq!(looked.get(), 257, "all lists of one text together");
    }
}
