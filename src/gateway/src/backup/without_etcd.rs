//! What is said where this picketd was built without etcd.

use std::path::Path;

use picket_config::EtcdSettings;
use picket_core::store::Content;
use picket_driver::Context;

use crate::failure::Failure;

pub(super) fn place(settings: &EtcdSettings) -> String {
    format!("{} in etcd", settings.prefix)
}

pub(super) async fn take(_: &EtcdSettings, _: &Path, _: Option<&str>, _: &Context) -> Result<(), Failure> {
    Err(Failure::Built("etcd"))
}

pub(super) async fn fill(_: &EtcdSettings, _: &Content, _: &Context) -> Result<(), Failure> {
    Err(Failure::Built("etcd"))
}

pub(super) async fn unseal(_: &EtcdSettings, _: &Context) -> Result<String, Failure> {
    Err(Failure::Built("etcd"))
}

pub(super) async fn accept(_: &EtcdSettings, _: &str, _: &Context) -> Result<String, Failure> {
    Err(Failure::Built("etcd"))
}
