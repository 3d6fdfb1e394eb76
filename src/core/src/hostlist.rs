//! hostlist
