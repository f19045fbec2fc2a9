//! Whose a request is.

use crate::access::{Certificate, Granted};
use crate::caller::Caller;
use crate::refused::Refused;
use tidegate_ledger::{MAX_TENANT_NAME, Refusal};

/// Where a tenant's name is found. The first that has one decides: the certificate, the credentials, the header, the
/// default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenancy {
    /// The field of the client's certificate. Where this is set a certificate must have it, and nothing else counts.
    pub certificate: Option<Field>,
    /// Whether credentials name tenants.
    pub credentials: bool,
    /// The header.
    pub header: Option<Box<str>>,
    /// Who sends without a name. Without this, a name is required.
    pub default: Option<Box<str>>,
}

/// A field of a certificate's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `CN`
    CommonName,
    /// `O`
    Organization,
    /// `OU`
    OrganizationalUnit,
}

impl Tenancy {
    /// The tenant of a request by `caller`, to whom `granted` was granted. `default` stands in for that of all addresses.
    ///
    /// # Errors
    /// `tenant` when there is no name, or it cannot be one; `forbidden` when the credentials are those of another
    /// tenant than the header says.
    pub fn name<'a>(
        &'a self,
        caller: &Caller<'a>,
        granted: &'a Granted,
        default: Option<&'a str>,
    ) -> Result<&'a str, Refused> {
        if let Some(field) = self.certificate {
            let name = caller.certificate.and_then(|certificate| field.of(certificate));
            return name.ok_or(Refused::new(Refusal::Tenant, NO_FIELD)).and_then(valid);
        }
        let said = match &self.header {
            None => None,
            Some(header) => {
                let value = caller.headers.sole(header);
                let value = value.map_err(|_| Refused::new(Refusal::Tenant, REPEATED))?;
                let text = |value| str::from_utf8(value).map_err(|_| Refused::new(Refusal::Tenant, INVALID));
                value.map(|value| text(value).and_then(valid)).transpose()?
            }
        };
        match (granted.tenant().filter(|_| self.credentials), said) {
            // Credentials of one tenant do not speak for another.
            (Some(own), Some(said)) if own != said => Err(Refused::new(Refusal::Forbidden, ANOTHER)),
            (Some(own), _) => valid(own),
            (None, Some(said)) => Ok(said),
            (None, None) => {
                let default = default.or(self.default.as_deref());
                default.ok_or(Refused::new(Refusal::Tenant, MISSING))
            }
        }
    }

    /// The tenant of what strangers send: nobody has vouched for what they say, so it is the default.
    ///
    /// # Errors
    /// `tenant` when there is none, or only certificates name tenants.
    pub fn of_strangers<'a>(&'a self, default: Option<&'a str>) -> Result<&'a str, Refused> {
        if self.certificate.is_some() {
            return Err(Refused::new(Refusal::Tenant, NO_FIELD));
        }
        default.or(self.default.as_deref()).ok_or(Refused::new(Refusal::Tenant, STRANGER))
    }
}

impl Field {
    fn of(self, certificate: &Certificate) -> Option<&str> {
        match self {
            Field::CommonName => certificate.common_name.as_deref(),
            Field::Organization => certificate.organizations.first().map(|name| &**name),
            Field::OrganizationalUnit => certificate.organizational_units.first().map(|name| &**name),
        }
    }
}

/// A name that can stand wherever names do: in headers, labels, folders and keys of objects.
///
/// # Errors
/// `tenant` when it cannot.
pub fn valid(name: &str) -> Result<&str, Refused> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!*'():@+=~ ".contains(&byte);
    // Beginning with a dot it would be hidden, or a way up.
    let edges = name.starts_with(['.', ' ']) || name.ends_with(' ');
    if name.is_empty() || name.len() > MAX_TENANT_NAME || edges || !name.bytes().all(allowed) {
        return Err(Refused::new(Refusal::Tenant, INVALID));
    }
    Ok(name)
}

const MISSING: &str =
    "the request names no tenant: send it in the header that the gateway is configured with\n";
const STRANGER: &str =
    "requests without credentials belong to the default tenant, and the gateway has none\n";
const REPEATED: &str = "the request names its tenant more than once: send one tenant header\n";
const NO_FIELD: &str = "the client's certificate does not have the field that names the tenant\n";
const ANOTHER: &str = "these credentials belong to another tenant than the one that the header names\n";
const INVALID: &str = "a tenant's name is 1 to 128 letters, digits, blanks and -_.!*'():@+=~, and begins with no \
                       dot or blank\n";

#[cfg(test)]
mod tests;
