//! The gRPC service: proto to core and back, who may.
