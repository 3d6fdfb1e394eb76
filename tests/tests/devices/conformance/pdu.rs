//! One outlet of a PDU: net-snmp's.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_driver::conformance::Trouble;
use picket_tests::peers::Pdu;

use crate::conformance::bmc::Peer;

/// Which of them.
pub const OUTLET: u32 = 3;

pub struct Outlet(Pdu);

impl Outlet {
    pub async fn start() -> Self {
        Self(Pdu::start(4).await.expect("snmpd runs"))
    }
}

#[async_trait]
impl Peer for Outlet {
    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    fn is_on(&self) -> bool {
        self.0.is_on(OUTLET)
    }

    fn set_power(&self, on: bool) {
        self.0.press(OUTLET, on).expect("its state can be written");
    }

    fn commands(&self) -> u64 {
        self.0.commands().len() as u64
    }

    async fn hurt(&self, trouble: Trouble) -> Option<bool> {
        match trouble {
            Trouble::Silence | Trouble::AnswersLost => None,
            Trouble::Refuses => {
                self.0.stick(OUTLET, true).expect("a knob");
                Some(true)
            }
            // It falls at once, takes an off twice, and has no sessions.
            _ => Some(false),
        }
    }

    fn mend(&self) {
        self.0.stick(OUTLET, false).expect("a knob");
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn idle_limit(&self) -> Duration {
        Duration::MAX
    }
}
