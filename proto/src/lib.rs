//! picket.v1: the wire.
