//! Settings: from files and variables to checked values, every fault at once.
//!
//! **Purpose.** One TOML file, over it the files of a directory, over them `PICKET__...` variables
//! ([`Sources`]); checked into [`Settings`].
//! **Non-goals.** No driver and no releaser is known here. Their tables are handed on as they are, with the
//! places from which they came. Their faults are told with file and key as well ([`DeviceSettings::fault`],
//! [`Kinded::fault`]). Nothing is started, and no secret is read.
//!
//! # Invariants
//!
//! - Nothing unknown is ignored.
//! - A fault says where it is, what is wrong, and what would be right. All faults are told at once, or
//!   there are none and everything holds. Shown by `ten_faults_are_told_at_once`.
//! - No secret stands in the settings (S18). Shown by
//!   `secrets_do_not_stand_in_the_settings_and_are_not_repeated`.

mod audit;
mod budget;
mod device;
mod effective;
mod election;
mod entry;
mod etcd;
mod fault;
mod groups;
mod hidden;
mod kinded;
mod layer;
mod limits;
mod listen;
mod node;
mod receipts;
mod release;
mod roles;
mod rules;
mod secret;
mod sections;
mod settings;
mod size;
mod sources;
mod substitute;
mod table;
mod template;
mod written;

pub use audit::AuditSettings;
pub use device::{DeviceSettings, Nature};
pub use effective::Effective;
pub use election::ElectionSettings;
pub use etcd::{EtcdSettings, EtcdTls, EtcdUser, SecretSource};
pub use fault::{Fault, Faults, Place};
pub use groups::{GroupRules, GroupSettings, Grouping};
pub use kinded::Kinded;
pub use limits::Limits;
pub use listen::{Listen, ListenTls};
pub use node::NodeSettings;
pub use receipts::ReceiptSettings;
pub use release::ReleaseSettings;
pub use sections::{Gateway, Log, LogFormat, LogLevel, MetricsSettings, StoreSettings};
pub use settings::Settings;
pub use sources::Sources;
pub use written::{Change, Written};
