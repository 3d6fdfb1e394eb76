//! The tables of `clouds.yaml` in the shapes in which openstacksdk takes them, and how one is laid over another.
//!
//! Numbers are read as the text that stands there: a password of digits is one. No table can be shown: secrets stand in them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) clouds: BTreeMap<String, Cloud>,
}

/// The fields of `auth`, which may stand beside it as well; and a cloud's own.
macro_rules! tables {
    (
        auth { $($(#[$on_auth:meta])* $auth:ident,)+ }
        own { $($(#[$on_own:meta])* $own:ident: $shape:ty,)+ }
    ) => {
        #[derive(Clone, Default, Deserialize)]
        #[serde(default)]
        pub(super) struct Auth {
            $($(#[$on_auth])* pub(super) $auth: Option<String>,)+
        }

        #[derive(Clone, Default, Deserialize)]
        #[serde(default)]
        pub(super) struct Cloud {
            pub(super) auth: Auth,
            $($(#[$on_own])* pub(super) $own: Option<$shape>,)+
            $($(#[$on_auth])* $auth: Option<String>,)+
        }

        impl Auth {
            fn under(mut self, over: Auth) -> Self {
                $(self.$auth = over.$auth.or(self.$auth);)+
                self
            }
        }

        impl Cloud {
            /// With another one laid over it.
            pub(super) fn under(mut self, over: Cloud) -> Self {
                self.auth = self.auth.under(over.auth);
                $(self.$own = over.$own.or(self.$own);)+
                $(self.$auth = over.$auth.or(self.$auth);)+
                self
            }

            fn beside(&mut self) -> Auth {
                Auth { $($auth: self.$auth.take(),)+ }
            }
        }
    };
}

tables! {
    auth {
        #[serde(alias = "auth-url")]
        auth_url,
        #[serde(alias = "user-name", alias = "user_name")]
        username,
        #[serde(alias = "user-id")]
        user_id,
        #[serde(alias = "user-domain-name")]
        user_domain_name,
        #[serde(alias = "user-domain-id")]
        user_domain_id,
        #[serde(alias = "domain-name")]
        domain_name,
        #[serde(alias = "domain-id")]
        domain_id,
        password,
        #[serde(alias = "project-name")]
        project_name,
        #[serde(alias = "project-id")]
        project_id,
        #[serde(alias = "tenant-name")]
        tenant_name,
        #[serde(alias = "tenant-id")]
        tenant_id,
        #[serde(alias = "project-domain-name")]
        project_domain_name,
        #[serde(alias = "project-domain-id")]
        project_domain_id,
        #[serde(alias = "system-scope")]
        system_scope,
        #[serde(alias = "application-credential-id")]
        application_credential_id,
        #[serde(alias = "application-credential-name")]
        application_credential_name,
        #[serde(alias = "application-credential-secret")]
        application_credential_secret,
    }
    own {
        #[serde(alias = "auth-type")]
        auth_type: String,
        #[serde(alias = "auth-plugin")]
        auth_plugin: String,
        #[serde(alias = "region-name")]
        region_name: OneOrMany,
        regions: Vec<Region>,
        interface: OneOrMany,
        #[serde(alias = "endpoint-type")]
        endpoint_type: OneOrMany,
        verify: String,
        insecure: String,
        cacert: String,
        cert: String,
        profile: String,
        /// The old name of `profile`.
        cloud: String,
        #[serde(alias = "compute-endpoint-override")]
        compute_endpoint_override: String,
        #[serde(alias = "block-storage-endpoint-override")]
        block_storage_endpoint_override: String,
        #[serde(alias = "volume-endpoint-override")]
        volume_endpoint_override: String,
        #[serde(alias = "image-endpoint-override")]
        image_endpoint_override: String,
    }
}

impl Cloud {
    pub(super) fn has_secret(&self) -> bool {
        let is_in = |auth: &Auth| auth.password.is_some() || auth.application_credential_secret.is_some();
        is_in(&self.auth)
            || is_in(&self.clone().beside())
            || self.regions.iter().flatten().any(|region| region.values.has_secret())
    }

    /// With what stands beside `auth` in it, and by the names of now. As openstacksdk has it, what stands in `auth` goes before what stands
    /// beside it, but for projects and domains; and a project before a tenant, which is its old name.
    pub(super) fn gathered(mut self) -> Self {
        let beside = self.beside();
        let mut auth = beside.clone().under(self.auth);
        auth.domain_id = beside.domain_id.or(auth.domain_id);
        auth.domain_name = beside.domain_name.or(auth.domain_name);
        auth.user_domain_id = beside.user_domain_id.or(auth.user_domain_id);
        auth.user_domain_name = beside.user_domain_name.or(auth.user_domain_name);
        auth.project_domain_id = beside.project_domain_id.or(auth.project_domain_id);
        auth.project_domain_name = beside.project_domain_name.or(auth.project_domain_name);
        let tenant_id = beside.tenant_id.or(auth.tenant_id.take());
        let tenant_name = beside.tenant_name.or(auth.tenant_name.take());
        auth.project_id = beside.project_id.or(auth.project_id).or(tenant_id);
        auth.project_name = beside.project_name.or(auth.project_name).or(tenant_name);
        let auth_type = self.auth_type.take().or(self.auth_plugin.take());
        Self { auth, auth_type, ..self }
    }
}

/// A text, or a list of texts.
#[derive(Clone)]
pub(super) struct OneOrMany(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of texts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![number.to_string()]))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![number.to_string()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMany(texts))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

/// One of `regions`: its name, and what is otherwise in it.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionTable {
    name: String,
    #[serde(default)]
    values: Option<Cloud>,
}

#[derive(Clone)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) values: Cloud,
}

impl<'de> Deserialize<'de> for Region {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Region;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a region's name, or a table of name and values")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Region, E> {
                Ok(Region { name: name.to_owned(), values: Cloud::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Region, A::Error> {
                let RegionTable { name, values } =
                    RegionTable::deserialize(MapAccessDeserializer::new(table))?;
                Ok(Region { name, values: values.unwrap_or_default() })
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}
