//! Readings of power: one by one, and several in one turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use picket_core::device::Grade;
use picket_core::ids::DeviceId;
use picket_core::power::{Power, Reading};
use picket_driver::{Call, DriverError, ErrorKind, PowerDriver};
use tokio::time::Instant;

use super::turns::{Ready, Turns};
use super::{Did, Doing, Hands, POWER, words};
use crate::parents::{Copies, CopyHosts, Looker};
use crate::units::Together;

impl Hands {
    pub(in crate::node) fn read(&self, device: &DeviceId) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            let time = hands.time(&device);
            let ready = hands.ready_to_run(&device, time).await;
            hands.read_now(device, time, ready).await
        })
    }

    /// Reads these devices side by side. Those that share a unit have one turn there, so that nobody else's calls come between:
    /// what is read is to be of about the same time.
    pub(in crate::node) fn read_all<'d>(
        &self,
        devices: impl IntoIterator<Item = &'d DeviceId>,
    ) -> FuturesUnordered<Doing> {
        let mut units: BTreeMap<&str, Arc<Together>> = BTreeMap::new();
        let reads = devices.into_iter().map(|device| match self.plan.units.get(device) {
            None => self.read(device),
            Some(unit) => {
                let together = units.entry(unit.name()).or_insert_with(|| Together::new(unit));
                together.add(self.rank(device), self.time(device) + self.waits(device));
                self.read_together(device, together.clone())
            }
        });
        reads.collect()
    }

    fn read_together(&self, device: &DeviceId, together: Arc<Together>) -> Doing {
        let (hands, device) = (self.clone(), device.clone());
        Box::pin(async move {
            let time = hands.time(&device);
            let began = async {
                let driver = hands.driver(&device)?;
                let place = together.next().await?;
                let login = hands.login(&device).await;
                let program = hands.program(&device, time).await?;
                Ok((driver, hands.call(time), Turns { _shared: place, login, _program: program }))
            };
            let ready = began.await;
            hands.read_now(device, time, ready).await
        })
    }

    /// One reading, now. Its turns are kept until it is over.
    async fn read_now<P>(
        &self,
        device: DeviceId,
        time: Duration,
        ready: Result<Ready<P>, DriverError>,
    ) -> (DeviceId, Did) {
        let asking = self.ask(&device, POWER);
        let asked_at = self.parts.clock.boot();
        let result = match ready {
            Ok((driver, call, turns)) => {
                let began = Instant::now();
                let result = turns.bounded(time, self.read_with_copies(&device, &*driver, &call)).await;
                // What others' machines take says nothing of how fast this device is.
                let took = result.as_ref().map_or_else(|_| began.elapsed(), |(_, took)| *took);
                let result = result.map(|(reading, _)| reading);
                // A dead device says nothing of how fast the others' programs are.
                let is_program = result.is_ok() && self.plan.runs_programs(&device);
                let units = self.plan.units.get(&device).into_iter();
                let units = units.chain(is_program.then_some(&self.parts.programs));
                units.for_each(|unit| unit.took(took, result.is_ok()));
                self.heard(&device, result.as_ref().err());
                result
            }
            Err(error) => Err(error),
        };
        asking.answered(&result, words::reading);
        (device, Did::Read { asked_at, result })
    }

    /// How the last reading of a device ended.
    fn heard(&self, device: &DeviceId, error: Option<&DriverError>) {
        let is_unanswered =
            error.is_some_and(|error| matches!(error.kind, ErrorKind::Unreachable | ErrorKind::TimedOut));
        let mut unanswered = self.unanswered.lock();
        match is_unanswered {
            true => drop(unanswered.insert(device.clone())),
            false => drop(unanswered.remove(device)),
        }
    }

    /// What a device says, and how long it took to say that. Off of the node is none while a copy of it may run on another machine (S1).
    async fn read_with_copies(
        &self,
        device: &DeviceId,
        driver: &dyn PowerDriver,
        call: &Call,
    ) -> Result<(Reading, Duration), DriverError> {
        let (began, least) = (Instant::now(), driver.traits().grade.min(Grade::Hypervisor));
        let engine = self.parts.parents.engine();
        let looker = Looker { engine, child: &self.plan.id, cloud: driver.cloud(), least, call };
        let (of_none, of_device) = (CopyHosts::default(), self.copy_hosts.get(device));
        let copy_hosts = of_device.unwrap_or(&of_none);
        let own = async {
            let reading = driver.read_power(call).await?;
            // After that answer: an evacuation that it may follow is told by then.
            let hosts = match reading.power {
                Power::Off => driver.copies(call).await?,
                Power::On | Power::Unknown => Vec::new(),
            };
            Ok((reading, hosts, began.elapsed()))
        };
        let is_off = |(reading, ..): &(Reading, _, _)| reading.power == Power::Off;
        let ((mut reading, hosts, took), seen) = copy_hosts.beside(own, is_off, &looker).await?;
        if reading.power != Power::Off {
            copy_hosts.forget();
            return Ok((reading, took));
        }
        match copy_hosts.judge(hosts.into_iter().collect(), seen, &looker).await {
            Copies::Off(None) => {}
            Copies::Off(Some(read_at)) => {
                // It is as old as the oldest answer that it stands on.
                reading.asked_at = reading.asked_at.min(read_at);
                reading.answered_at = call.now();
            }
            Copies::MayRun(why) => {
                reading.power = Power::Unknown;
                reading.said = format!("{}; {why}", reading.said);
            }
        }
        Ok((reading, took))
    }
}
