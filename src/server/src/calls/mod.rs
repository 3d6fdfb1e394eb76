//! The calls, one file a kind.

pub(crate) mod fence;
pub(crate) mod history;
pub(crate) mod motion;
pub(crate) mod nodes;
pub(crate) mod watch;

use std::sync::Arc;

use futures::stream::BoxStream;
use picket_audit::Told;
use picket_core::ids::NodeId;
use picket_engine::{Engine, NodeView};
use picket_proto::v1;
use serde_json::json;
use tonic::Status;

use crate::convert::device::Now;
use crate::door::{Door, Guest};
use crate::errors::{self, Verb};
use crate::fault::Fault;

/// The messages of a stream that follows a node.
pub(crate) type Updates = BoxStream<'static, Result<v1::FenceUpdate, Status>>;

/// What every call needs. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) engine: Engine,
    pub(crate) door: Arc<Door>,
}

impl Desk {
    /// What time it is.
    pub(crate) fn now(&self) -> Now {
        let clock = self.engine.clock();
        Now { wall: clock.wall(), boot: clock.boot() }
    }

    /// What is known of a node here, where this gateway leads: what it knew before, or never learned, is not the truth.
    pub(crate) fn view(&self, node: &NodeId) -> Result<NodeView, Fault> {
        self.leads()?;
        self.engine.node(node).map_err(|error| errors::engine(error, Verb::Look, node, &self.engine))
    }

    /// What a request came to before any node's task heard of it: a refusal is audited with its caller and reason.
    pub(crate) fn heard<T>(&self, guest: &Guest, call: &str, came: Result<T, Fault>) -> Result<T, Fault> {
        came.inspect_err(|fault| {
            let audit = self.engine.audit();
            let details = json!({ "call": call, "outcome": "refused", "how": fault.message() });
            audit.tell_counted(Told {
                at: self.engine.clock().wall().millis(),
                who: guest.caller.clone(),
                what: "request".to_owned(),
                details,
                ..Told::default()
            });
        })
    }

    /// Whether this gateway leads.
    pub(crate) fn leads(&self) -> Result<(), Fault> {
        self.engine.leading().map(|_| ()).map_err(|why| errors::no_leader(&why))
    }

    /// A node on the wire.
    pub(crate) fn node(&self, view: &NodeView) -> v1::Node {
        crate::convert::node::node(view, self.now(), self.engine.leading().is_ok())
    }
}
