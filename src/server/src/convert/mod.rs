//! Proto to core and back. Every function is total: what a core value can be, the wire can say, and what a request can
//! hold is taken or told as a fault of its field.

pub(crate) mod device;
pub(crate) mod evidence;
pub(crate) mod fence;
pub(crate) mod gateway;
pub(crate) mod node;
pub(crate) mod outcome;
pub(crate) mod pause;
pub(crate) mod plan;
pub(crate) mod queue;
pub(crate) mod receipt;
pub(crate) mod request;
pub(crate) mod time;
pub(crate) mod words;
