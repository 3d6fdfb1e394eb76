//! The tables of `clouds.yaml`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) clouds: BTreeMap<String, Cloud>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cloud {
    pub(super) auth: Auth,
    pub(super) auth_type: Option<String>,
    pub(super) region_name: Option<String>,
    pub(super) interface: Option<String>,
    pub(super) endpoint_type: Option<String>,
    pub(super) verify: Option<bool>,
    pub(super) insecure: Option<bool>,
    pub(super) cacert: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) profile: Option<String>,
    pub(super) compute_endpoint_override: Option<String>,
    pub(super) block_storage_endpoint_override: Option<String>,
    pub(super) volume_endpoint_override: Option<String>,
    pub(super) image_endpoint_override: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Auth {
    pub(super) auth_url: Option<String>,
    pub(super) username: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) user_domain_name: Option<String>,
    pub(super) user_domain_id: Option<String>,
    pub(super) domain_name: Option<String>,
    pub(super) domain_id: Option<String>,
    pub(super) password: Option<String>,
    pub(super) project_name: Option<String>,
    pub(super) project_id: Option<String>,
    pub(super) project_domain_name: Option<String>,
    pub(super) project_domain_id: Option<String>,
    pub(super) system_scope: Option<String>,
    pub(super) application_credential_id: Option<String>,
    pub(super) application_credential_name: Option<String>,
    pub(super) application_credential_secret: Option<String>,
}

/// Lays what `over` says over what is there.
macro_rules! lay {
    ($under:expr, $over:expr, $($field:ident),+ $(,)?) => {
        $(if $over.$field.is_some() { $under.$field = $over.$field; })+
    };
}

impl Cloud {
    pub(super) fn under(mut self, over: Cloud) -> Self {
        lay!(
            self,
            over,
            auth_type,
            region_name,
            interface,
            endpoint_type,
            verify,
            insecure,
            cacert,
            cert,
            profile
        );
        lay!(self, over, compute_endpoint_override, block_storage_endpoint_override);
        lay!(self, over, volume_endpoint_override, image_endpoint_override);
        let (auth, over) = (&mut self.auth, over.auth);
        lay!(
            auth,
            over,
            auth_url,
            username,
            user_id,
            user_domain_name,
            user_domain_id,
            domain_name,
            domain_id,
            password
        );
        lay!(auth, over, project_name, project_id, project_domain_name, project_domain_id, system_scope);
        lay!(
            auth,
            over,
            application_credential_id,
            application_credential_name,
            application_credential_secret
        );
        self
    }

    pub(super) fn has_secret(&self) -> bool {
        self.auth.password.is_some() || self.auth.application_credential_secret.is_some()
    }
}
