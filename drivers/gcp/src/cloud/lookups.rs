//! Questions of one thing: an instance by its name, what does a request, a disk.

use picket_driver::{Call, DriverError};

use super::rates::Group;
use super::{Cloud, Failure, region_of};
use crate::instance::{Disk, Instance};
use crate::operation::Operation;
use crate::requests::RequestId;

impl Cloud {
    /// The instance that has that name now, to tell whose it is. Nothing else is done by a name.
    pub(crate) async fn named(
        &self,
        zone: &str,
        name: &str,
        call: &Call,
    ) -> Result<Result<Instance, Failure>, DriverError> {
        let path = self.zonal(zone, &format!("instances/{name}"));
        let told = self.ask("instances.get", (region_of(zone), Group::Reads), &path, &[], call).await?;
        Ok(told.map(|(instance, _)| instance))
    }

    /// What does that request; `None`: nothing yet.
    pub(crate) async fn of_request(
        &self,
        zone: &str,
        request: RequestId,
        call: &Call,
    ) -> Result<Option<Operation>, DriverError> {
        let filter = format!("clientOperationId = \"{request}\"");
        let told = self.operations(zone, &filter, call).await?;
        let (operations, _) = told.map_err(Failure::of_question)?;
        let wanted = request.to_string();
        Ok(operations.into_iter().find(|operation| operation.client_operation_id.as_deref() == Some(&wanted)))
    }

    /// A disk of a zone or of a region by its path; `None`: there is none.
    pub(crate) async fn disk(&self, path: &str, call: &Call) -> Result<Option<Disk>, DriverError> {
        let place = |kind: &str| Some(path.split_once(kind)?.1.split('/').next()?.to_owned());
        let (method, region) = match (place("/zones/"), place("/regions/")) {
            (Some(zone), _) => ("disks.get", region_of(&zone).to_owned()),
            (None, region) => ("regionDisks.get", region.unwrap_or_default()),
        };
        match self.ask(method, (&region, Group::Reads), path, &[], call).await? {
            Ok((disk, _)) => match Disk::wrong(&disk, path) {
                None => Ok(Some(disk)),
                Some(why) => Err(Failure::senseless(method, 200, &why).of_question()),
            },
            // That there is no such zone or project says nothing of the disk.
            Err(failure) if failure.is_not_found() && failure.names(path) => Ok(None),
            Err(failure) => Err(failure.of_question()),
        }
    }
}
