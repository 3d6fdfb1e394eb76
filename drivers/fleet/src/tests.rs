//! A scene that the tests on sockets share.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::Arc;

use picket_core::time::Clock;

use crate::{BmcOptions, Fleet, StartError};

/// One BMC at an address that nobody else has.
pub(crate) async fn start(clock: &Arc<dyn Clock>, options: impl Fn(Ipv4Addr) -> BmcOptions) -> Fleet {
    loop {
        let random = RandomState::new().build_hasher().finish().to_le_bytes();
        // Above those of the end-to-end tests, and not .0 or .255.
        let host = Ipv4Addr::new(127, 200 + random[0] % 50, random[1], 1 + random[2] % 250);
        match Fleet::start(&[options(host)], clock).await {
            Ok(fleet) => return fleet,
            Err(StartError::Listen { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
