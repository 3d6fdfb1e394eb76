//! Gateways on the wire: who answers, who leads, who else takes part.

use picket_core::election::{Known, Member};
use picket_core::ids::Term;
use picket_engine::{Engine, Part};
use picket_proto::v1;

use crate::convert::time::{duration, timestamp};

/// Who answers, in which part.
pub(crate) fn served(me: &Member, part: &Part) -> v1::Served {
    let gateway = me.gateway.clone();
    match part {
        Part::Leads(term) => {
            v1::Served { leader: gateway.clone(), gateway, leads: true, term: term.0, age: None }
        }
        Part::Follows { leader, term, age } => v1::Served {
            gateway,
            leads: false,
            leader: leader.gateway.clone(),
            term: term.0,
            age: Some(duration(*age)),
        },
    }
}

/// All that take part, and which of them leads.
pub(crate) fn gateways(engine: &Engine) -> v1::ListGatewaysResponse {
    let me = engine.me();
    let (leader, term, absence) = match (engine.part(), engine.known()) {
        (Ok(Part::Leads(term)), _) => (Some(me.gateway.clone()), term, None),
        (Ok(Part::Follows { leader, term, .. }), _) => (Some(leader.gateway), term, None),
        (Err(absent), Known::Leader(leader, term)) if leader.gateway != me.gateway => {
            (Some(leader.gateway), term, Some(absent))
        }
        (Err(absent), _) => (None, Term(0), Some(absent)),
    };
    let aside = engine.aside();
    let mut members = engine.others();
    members.retain(|member| member.gateway != me.gateway);
    members.push(Member { aside, ..me.clone() });
    members.sort_by(|a, b| a.gateway.cmp(&b.gateway));
    let mut digests = engine.digests();
    digests.others.insert(me.gateway.clone(), digests.own);
    let gateways = members.into_iter().map(|member| v1::Gateway {
        settings: digests.others.get(&member.gateway).cloned().unwrap_or_default(),
        leads: leader.as_ref() == Some(&member.gateway),
        name: member.gateway,
        endpoints: member.endpoints,
        version: member.version,
        aside: member.aside.unwrap_or_default(),
    });
    v1::ListGatewaysResponse {
        gateways: gateways.collect(),
        answered_by: me.gateway,
        term: term.0,
        since: absence.as_ref().and_then(|absent| absent.since).map(timestamp),
        settings: digests.led_by,
        trouble: absence.map(|absent| absent.why).unwrap_or_default(),
        simulated: engine.is_simulated(),
    }
}
