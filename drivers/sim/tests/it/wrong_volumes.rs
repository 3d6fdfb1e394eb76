//! Volumes that are wrong on purpose: the simulated ones, but for one thing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, DriverError, Effect, ErrorKind, PowerDriver, Standing, Volume, VolumeAt, Volumes};

use crate::wrongs::Wrong;

/// The simulated driver's volumes with that wrong.
#[derive(Debug)]
pub struct WrongVolumes {
    inner: Arc<dyn PowerDriver>,
    /// Another machine's, which is to be left alone.
    another: Arc<dyn PowerDriver>,
    wrong: Wrong,
    /// Orders of its own, with a permit that nobody ends.
    own: Orders,
    first: Mutex<Option<Vec<Volume>>>,
    taken: Mutex<BTreeSet<VolumeAt>>,
}

impl WrongVolumes {
    pub fn new(
        inner: Arc<dyn PowerDriver>,
        another: Arc<dyn PowerDriver>,
        wrong: Wrong,
        own: Orders,
    ) -> Self {
        Self { inner, another, wrong, own, first: Mutex::default(), taken: Mutex::default() }
    }

    fn inner(&self) -> &dyn Volumes {
        self.inner.volumes().expect("the simulated one has volumes")
    }

    fn another(&self) -> &dyn Volumes {
        self.another.volumes().expect("the simulated one has volumes")
    }

    fn is(&self, wrong: Wrong) -> bool {
        self.wrong == wrong
    }
}

#[async_trait]
impl Volumes for WrongVolumes {
    fn max_in_flight(&self) -> Option<Duration> {
        self.inner().max_in_flight()
    }

    async fn attached(&self, call: &Call) -> Result<Vec<Volume>, DriverError> {
        let mut told = match self.inner().attached(call).await {
            Err(_) if self.is(Wrong::TakesSilenceForNoVolumes) => Vec::new(),
            told => told?,
        };
        match self.wrong {
            Wrong::LetsTheRootGo => told.iter_mut().for_each(|volume| volume.stays = None),
            Wrong::HidesTheRoot => told.retain(|volume| volume.stays.is_none()),
            Wrong::CachesVolumes => told = self.first.lock().get_or_insert(told).clone(),
            Wrong::HidesWhatGoes => told.retain(|volume| !self.taken.lock().contains(&volume.at)),
            _ => {}
        }
        Ok(told)
    }

    async fn detach(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        volume: &VolumeAt,
        forced: bool,
        call: &Call,
    ) -> Result<(), DriverError> {
        let again = !self.taken.lock().insert(volume.clone());
        if again && self.is(Wrong::RefusesTwice) {
            return Err(DriverError::new(ErrorKind::Refused, Effect::DidNotHappen, "it is not there"));
        }
        if self.is(Wrong::SendsNoDetach) {
            return call.may_send();
        }
        let elsewhere = VolumeAt { device: "/dev/elsewhere".to_owned(), ..volume.clone() };
        let named = if self.is(Wrong::NamesAnotherPlace) { &elsewhere } else { volume };
        let unasked = Call::control(call.deadline(), call.clock().clone(), self.own.permit());
        let call = if self.is(Wrong::LetsGoUnasked) { &unasked } else { call };
        if self.is(Wrong::TakesFromAnybody) {
            self.another().detach(order, permit, volume, forced, call).await?;
        }
        match self.inner().detach(order, permit, named, forced, call).await {
            Err(error) if self.is(Wrong::TakesSilenceForNoDetach) => {
                Err(DriverError { effect: Effect::DidNotHappen, ..error })
            }
            Err(_) if self.is(Wrong::TakesSilenceForADetach) => Ok(()),
            told => told,
        }
    }

    async fn standing(&self, volume: &VolumeAt, call: &Call) -> Result<Standing, DriverError> {
        match self.inner().standing(volume, call).await {
            Err(_) if self.is(Wrong::TakesSilenceForFree) => Ok(Standing::Free("nobody says no".to_owned())),
            Ok(_) if self.is(Wrong::BelievesItsDetach) && self.taken.lock().contains(volume) => {
                Ok(Standing::Free("it was told to go".to_owned()))
            }
            told => told,
        }
    }
}
