//! The suite sees each driver that is wrong on purpose, by the check that is there for it; and no check is there for nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::time::{BootTime, Clock};
use picket_driver::PowerDriver;
use picket_driver::conformance::orders::Orders;
use picket_driver::conformance::{Storage, Subject, Trouble, names, run_one, volume_names};

use crate::REDIRECT;
use crate::subject::Simulated;
use crate::wrong::{PASSWORD, WrongDriver};
use crate::wrong_volumes::WrongVolumes;
use crate::wrongs::Wrong;

/// Each wrong driver with the check that must see it.
const SEEN: [(&str, Wrong); 46] = [
    ("off and on are done, seen, and repeated without an error", Wrong::SendsNoOff),
    ("off and on are done, seen, and repeated without an error", Wrong::Toggles),
    ("readings are stamped, fresh, and of one epoch", Wrong::CachesReadings),
    ("already off as an error is no error", Wrong::TakesAlreadyForAnError),
    ("an off that takes time is not off before it is", Wrong::BelievesItself),
    ("neither On nor Off is Unknown", Wrong::TakesUnknownForOff),
    ("neither On nor Off is Unknown", Wrong::TakesUnknownForOn),
    ("silence is an error, in time, and never Off", Wrong::TakesSilenceForOff),
    ("silence is an error, in time, and never Off", Wrong::ComesBackLate),
    ("a restart begins an epoch after loss", Wrong::HidesLosses),
    ("after a restart no off is sent before a reading", Wrong::LooksForItself),
    ("nothing is sent in another life than that in which it was identified", Wrong::TellsNoLife),
    ("nothing is sent in another life than that in which it was identified", Wrong::GoesInAnyLife),
    ("after a quiesce a new epoch begins, fresh", Wrong::EndsNoSession),
    ("a quiesce that is not answered is none", Wrong::TakesSilenceForAnEnd),
    ("after a quiesce no late copy is executed", Wrong::EndsNoSession),
    ("no session is opened for an on", Wrong::OpensForAnOn),
    ("what it declares of its bounds holds", Wrong::DeclaresLess),
    ("what it declares of its bounds holds", Wrong::DeclaresLessForMore),
    ("a question is as old as its first copy", Wrong::RenewsItsQuestion),
    ("an answer that is lost leaves the effect unknown", Wrong::TakesSilenceForNothing),
    ("what is refused is not taken", Wrong::TakesRefusals),
    ("what is refused is not taken", Wrong::MisdatesRefusals),
    ("without a permit nothing is sent", Wrong::AsksNobody),
    ("a permit that ends under way lets nothing more go", Wrong::AsksOnce),
    ("the permit is asked before each command", Wrong::AsksNobody),
    ("looking changes nothing", Wrong::HoldsWhereItLooks),
    ("calls at the same time are put in order", Wrong::RefusesCompany),
    ("a caller may leave at any moment", Wrong::StaysShut),
    ("packets that arrive twice change nothing", Wrong::OpensForEachQuestion),
    ("a hold is put back as it was found", Wrong::PutsNothingBack),
    ("a hold is put back as it was found", Wrong::ClaimsAHold),
    ("a hold is put back as it was found", Wrong::SeesNoHold),
    ("it says who it is, and asks each time", Wrong::CachesIdentity),
    ("it says who it is, and asks each time", Wrong::MakesUpIdentity),
    ("a repeated off that is refused takes nothing back", Wrong::TakesRefusals),
    ("a repeated off that is refused takes nothing back", Wrong::MisdatesRefusals),
    ("a repeated off that is refused takes nothing back", Wrong::HidesRefusals),
    ("a repeated off that is refused takes nothing back", Wrong::DoubtsAfterRefusals),
    ("answers that come late are answers, and nothing is asked twice", Wrong::RenewsItsQuestion),
    ("answers that come late are answers, and nothing is asked twice", Wrong::HasNoPatience),
    ("answers that come late are answers, and nothing is asked twice", Wrong::SendsAnotherOff),
    ("an answer that is cut short is never Off, and shuts nobody out", Wrong::TakesSilenceForOff),
    ("an answer that is cut short is never Off, and shuts nobody out", Wrong::TakesSilenceForNothing),
    ("an answer that is cut short is never Off, and shuts nobody out", Wrong::LocksItselfOut),
    ("no login leaves a session behind", Wrong::EndsNoSession),
];

/// Those that take something of the subject besides.
const BESIDES: [(&str, Wrong); 2] = [
    ("wrong credentials are said, and have no effect", Wrong::CallsWrongCredentialsSilence),
    ("no secret is printed", Wrong::PrintsItsPassword),
];

/// Those of devices whose sessions have names.
const NAMED: [(&str, Wrong); 2] = [
    ("what is stored with a session goes in no other, and a successor ends it", Wrong::EndsNobodysSession),
    ("what is stored with a session goes in no other, and a successor ends it", Wrong::NamesNoSession),
];

/// Those of devices that know the volumes of their machines.
const OF_VOLUMES: [(&str, Wrong); 16] = [
    ("what is attached is told in full, and the root stays", Wrong::LetsTheRootGo),
    ("what is attached is told in full, and the root stays", Wrong::HidesTheRoot),
    ("what is attached is told in full, and the root stays", Wrong::CachesVolumes),
    ("a detach names machine and place, and two are one", Wrong::SendsNoDetach),
    ("a detach names machine and place, and two are one", Wrong::RefusesTwice),
    ("a detach names machine and place, and two are one", Wrong::NamesAnotherPlace),
    ("a detach names machine and place, and two are one", Wrong::HidesTheRoot),
    ("a volume that goes is not free before it is", Wrong::BelievesItsDetach),
    ("a volume that goes is not free before it is", Wrong::HidesWhatGoes),
    ("what another machine has by now stays there", Wrong::TakesFromAnybody),
    ("of several machines one alone loses it", Wrong::TakesFromAnybody),
    ("without a permit no volume is let go", Wrong::LetsGoUnasked),
    ("no clear answer is no word on volumes", Wrong::TakesSilenceForNoVolumes),
    ("no clear answer is no word on volumes", Wrong::TakesSilenceForFree),
    ("a detach that is not answered may have been done", Wrong::TakesSilenceForNoDetach),
    ("a detach that is not answered may have been done", Wrong::TakesSilenceForADetach),
];

/// A simulated device by a driver that is wrong.
struct Mutant {
    device: Simulated,
    wrong: Wrong,
}

#[async_trait]
impl Subject for Mutant {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let inner = self.device.driver();
        // Orders are made at once: nothing of them waits.
        let own = || futures_now(Orders::new(inner.traits(), self.device.clock())).expect("orders");
        let driver = WrongDriver::new(inner.clone(), self.wrong, own());
        if self.device.storage().is_none() {
            return Arc::new(driver);
        }
        let another = Arc::new(self.device.sim_of_another());
        Arc::new(driver.with(WrongVolumes::new(inner.clone(), another, self.wrong, own())))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.device.clock()
    }

    async fn is_on(&self) -> bool {
        self.device.is_on().await
    }

    async fn set_power(&self, on: bool) {
        self.device.set_power(on).await;
    }

    async fn commands(&self) -> Option<u64> {
        self.device.commands().await
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        Subject::hurt(&self.device, trouble).await
    }

    async fn mend(&self) {
        self.device.mend().await;
    }

    async fn sessions(&self) -> Option<u64> {
        self.device.sessions().await
    }

    fn idle_limit(&self) -> Option<Duration> {
        self.device.idle_limit()
    }

    async fn hold_state(&self) -> Option<String> {
        self.device.hold_state().await
    }

    async fn identity(&self) -> Option<Identity> {
        self.device.identity().await
    }

    fn storage(&self) -> Option<&dyn Storage> {
        self.device.storage()
    }

    async fn lost_at(&self) -> Option<BootTime> {
        self.device.lost_at().await
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned()]
    }
}

/// What is ready at once.
fn futures_now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

#[tokio::test(start_paused = true)]
async fn each_wrong_driver_is_seen_by_the_check_that_is_there_for_it() {
    for (check, wrong) in SEEN.into_iter().chain(BESIDES).chain(NAMED).chain(OF_VOLUMES) {
        let device = match () {
            () if NAMED.contains(&(check, wrong)) => Simulated::named("bmc"),
            () if volume_names().any(|name| name == check) => Simulated::with_volumes(),
            () => Simulated::new("bmc", |_| {}),
        };
        let mutant = Mutant { device, wrong };
        match run_one(&mutant, check).await {
            Err(failure) => println!("{wrong:?}: {failure}"),
            Ok(shown) => panic!("{wrong:?} passes (shown: {shown}): {check}"),
        }
    }
}

#[test]
fn no_check_is_there_for_nothing() {
    let seen = SEEN.into_iter().chain(BESIDES).chain(NAMED).chain(OF_VOLUMES);
    let seen: BTreeSet<&str> = seen.map(|(check, _)| check).collect();
    // drivers/redfish has paths, and a service whose redirects no driver follows.
    let all: BTreeSet<&str> = names().filter(|name| *name != REDIRECT).collect();
    assert_eq!(seen, all, "each check has a driver that fails it, and each of these is a check");
}
