//! The keys of the clouds' drivers.

use crate::DefaultValue::{Computed, Nothing, Required, Value};
use crate::ValueType::{Flag, Text, TextOrInteger, Texts};
use crate::{Key, key};

/// `driver = "openstack"`.
pub const OPENSTACK: &[Key] = &[
    key(
        "server",
        Text,
        Required,
        "The server's UUID, or its node's providerID (openstack:///UUID, openstack://REGION/UUID).",
    ),
    key("cloud", Text, Required, "The cloud, as clouds.yaml names it."),
    key(
        "clouds_file",
        Text,
        Value("\"/etc/openstack/clouds.yaml\""),
        "The absolute path of clouds.yaml, mode 0600 where a secret is in it; secure.yaml beside it is laid over it.",
    ),
    key("region", Text, Computed("the providerID's, else the file's"), "The region."),
    key("hold", Flag, Value("true"), "The server is locked while it is fenced."),
];

/// `driver = "aws"`.
pub const AWS: &[Key] = &[
    key("instance", Text, Required, "The instance's id, or its node's providerID (aws:///ZONE/ID)."),
    key(
        "region",
        Text,
        Computed("that of the providerID's zone, else the profile's, AWS_REGION, or the metadata service's"),
        "The region.",
    ),
    key("profile", Text, Computed("AWS_PROFILE, else default"), "The profile in AWS's shared files."),
    key(
        "config_file",
        Text,
        Computed("AWS_CONFIG_FILE, else ~/.aws/config"),
        "The absolute path of AWS's shared config file.",
    ),
    key(
        "credentials_file",
        Text,
        Computed("AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials"),
        "The absolute path of AWS's shared credentials, mode 0600.",
    ),
    key(
        "credential_env",
        Texts,
        Nothing,
        "Names of variables that a credential_process inherits besides PATH.",
    ),
    key(
        "endpoint",
        Text,
        Computed("as AWS's tools find it, else the region's"),
        "The URL of EC2, as a VPC endpoint has it: https, or http on this machine.",
    ),
    key(
        "ca_file",
        Text,
        Computed("the system's CAs"),
        "The CAs that vouch for EC2 and STS, or a server's own certificate alone.",
    ),
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
    key(
        "instance",
        Text,
        Required,
        "The numeric id, or gce://PROJECT/ZONE/ID; with id beside it the node's providerID, or the instance's selfLink.",
    ),
    key("id", TextOrInteger, Nothing, "The numeric id, where instance has a name."),
    key("project", Text, Computed("what instance says"), "The project."),
    key("zone", Text, Computed("what instance says"), "The zone."),
    key(
        "credentials_file",
        Text,
        Computed("application default credentials, else the metadata server"),
        "The absolute path of a key or an account, mode 0600.",
    ),
    key(
        "endpoint",
        Text,
        Value("\"https://compute.googleapis.com\""),
        "The URL of Compute Engine, as Private Service Connect has it: https, or http on this machine.",
    ),
    key(
        "metadata",
        Text,
        Computed("GCE_METADATA_HOST, else \"http://metadata.google.internal\""),
        "The URL of the metadata server, which is asked for tokens.",
    ),
    key(
        "ca_file",
        Text,
        Computed("the system's CAs"),
        "The CAs that vouch for Google's services, also where tokens are given, or a server's own certificate alone.",
    ),
    key(
        "discard_local_ssd",
        Flag,
        Computed("an instance with local SSDs is not stopped"),
        "true: a stop discards local SSDs. false: it asks to keep them.",
    ),
];
