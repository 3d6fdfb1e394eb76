//! The keys of the clouds' drivers.

use crate::DefaultValue::{Computed, Nothing, Required, Value};
use crate::ValueType::{Flag, Text, TextOrInteger, Texts};
use crate::{Key, key};

/// `driver = "openstack"`.
pub const OPENSTACK: &[Key] = &[
    key("server", Text, Required, "The server's UUID, or the node's providerID."),
    key("cloud", Text, Required, "The cloud, as clouds.yaml names it."),
    key(
        "clouds_file",
        Text,
        Value("\"/etc/openstack/clouds.yaml\""),
        "The absolute path of clouds.yaml, mode 0600.",
    ),
    key("region", Text, Computed("the providerID's, else the file's"), "The region."),
    key("hold", Flag, Value("true"), "The server is locked while it is fenced."),
];

/// `driver = "aws"`.
pub const AWS: &[Key] = &[
    key("instance", Text, Required, "The instance's id, or the node's providerID."),
    key("region", Text, Computed("the providerID's zone's, else the profile's"), "The region."),
    key("profile", Text, Computed("AWS_PROFILE, else default"), "The profile in AWS's shared files."),
    key("config_file", Text, Computed("AWS's usual place"), "The absolute path of AWS's shared config file."),
    key(
        "credentials_file",
        Text,
        Computed("AWS's usual place"),
        "The absolute path of AWS's shared credentials, mode 0600.",
    ),
    key(
        "credential_env",
        Texts,
        Nothing,
        "Names of variables that a credential_process inherits besides PATH.",
    ),
    key("endpoint", Text, Computed("the region's"), "The URL of EC2."),
    key("ca_file", Text, Computed("the system's CAs"), "The CAs that vouch for EC2."),
    key("hold", Flag, Value("true"), "The instance is tagged picket-fenced while it is fenced."),
    key(
        "terminate",
        Flag,
        Value("false"),
        "The instance is terminated rather than stopped, and EC2 keeps its volumes.",
    ),
    key("terminate_deletes", Texts, Nothing, "Devices whose volumes may go with a terminated instance."),
];

/// `driver = "gcp"`.
pub const GCP: &[Key] = &[
    key("instance", Text, Required, "The numeric id, gce://PROJECT/ZONE/ID, or the node's providerID."),
    key("id", TextOrInteger, Nothing, "The numeric id, where instance has a name."),
    key("project", Text, Computed("what instance says"), "The project."),
    key("zone", Text, Computed("what instance says"), "The zone."),
    key(
        "credentials_file",
        Text,
        Computed("application default credentials, else the metadata server"),
        "The absolute path of a key or an account, mode 0600.",
    ),
    key("endpoint", Text, Value("\"https://compute.googleapis.com\""), "The URL of Compute Engine."),
    key(
        "metadata",
        Text,
        Computed("\"http://metadata.google.internal\", or GCE_METADATA_HOST"),
        "The URL of the metadata server.",
    ),
    key("ca_file", Text, Computed("the system's CAs"), "The CAs that vouch for Google's services."),
    key(
        "discard_local_ssd",
        Flag,
        Computed("an instance with local SSDs is not stopped"),
        "What becomes of local SSDs.",
    ),
];
