//! Finds the tenant of a request.

use crate::access::{Certificate, Identity, TenantRule};
use crate::caller::Caller;
use crate::rejection::Rejection;
use tidegate_ledger::{MAX_TENANT_NAME, Refusal};

/// Where a tenant's name is found: see [`Tenancy::of`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tenancy {
    /// The field of the client's certificate. Where this is set a certificate must have it, and no header counts.
    pub certificate: Option<SubjectField>,
    /// The header.
    pub header: Option<Box<str>>,
    /// The header that counts where the first is absent, in which an empty value of either is an absent one: the
    /// rules of Thanos.
    pub second_header: Option<Box<str>>,
    /// The tenant of requests that name none.
    pub default: Option<Box<str>>,
    /// Whether a request without a tenant is refused.
    pub required: bool,
}

/// The sender of a request.
#[derive(Debug, Clone, Copy)]
pub enum TenantClaim<'a> {
    /// It has valid credentials, or none are needed.
    Identified(&'a Identity),
    /// It has none where others need them, so its tenant header does not count.
    Anonymous,
}

/// A field of a certificate's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectField {
    /// `CN`
    CommonName,
    /// `O`
    Organization,
    /// `OU`
    OrganizationalUnit,
}

impl Tenancy {
    /// The tenant of a request: the one function that decides it. `default` stands in for that of all addresses.
    ///
    /// A credential speaks for the tenant that it names, or else for the default one, and a header may not say
    /// otherwise; only the credential of a proxy (`tenant=*`) leaves it to the header, and so does a gateway that asks
    /// nobody for credentials.
    ///
    /// # Errors
    /// `tenant` when there is no name where one is required, or it cannot be one; `forbidden` when the credential does
    /// not speak for the tenant that the header, or the certificate, names.
    pub fn of<'a>(
        &'a self,
        caller: &Caller<'a>,
        sender: TenantClaim<'a>,
        default: Option<&'a str>,
    ) -> Result<Option<&'a str>, Rejection> {
        let owner = match sender {
            TenantClaim::Identified(granted) => granted.owner(),
            TenantClaim::Anonymous => None,
        };
        if let Some(field) = self.certificate {
            let certificate = caller.certificate.filter(|_| !matches!(sender, TenantClaim::Anonymous));
            let name = certificate.and_then(|certificate| field.of(certificate));
            let name = name.ok_or(Rejection::new(Refusal::Tenant, NO_FIELD)).and_then(validate_name)?;
            return match owner {
                Some(TenantRule::Named(own)) if **own != *name => {
                    Err(Rejection::new(Refusal::Forbidden, ANOTHER_FIELD))
                }
                _ => Ok(Some(name)),
            };
        }
        let default = default.or(self.default.as_deref());
        if matches!(sender, TenantClaim::Anonymous) {
            return self.or_none(default, STRANGER);
        }
        let said = self.said(caller)?;
        let (own, words, missing) = match owner {
            None | Some(TenantRule::Any) => return self.or_none(said.or(default), MISSING),
            Some(TenantRule::Named(own)) => (Some(&**own), ANOTHER, MISSING),
            Some(TenantRule::Default) => (default, UNNAMED, NO_DEFAULT),
        };
        match said {
            // A credential of one tenant is not valid for another.
            Some(said) if own != Some(said) => Err(Rejection::new(Refusal::Forbidden, words)),
            _ => self.or_none(own, missing),
        }
    }

    /// The tenant of what a source reads by itself: the one in its settings, or else the default one.
    ///
    /// # Errors
    /// `tenant` when there is neither and one is required.
    pub(crate) fn configured<'a>(&'a self, own: Option<&'a str>) -> Result<Option<&'a str>, Rejection> {
        self.or_none(own.or(self.default.as_deref()), NO_OWN)
    }

    fn or_none<'a>(
        &self,
        name: Option<&'a str>,
        missing: &'static str,
    ) -> Result<Option<&'a str>, Rejection> {
        match name {
            None if self.required => Err(Rejection::new(Refusal::Tenant, missing)),
            name => Ok(name),
        }
    }

    /// The tenant that the header names.
    fn said<'a>(&self, caller: &Caller<'a>) -> Result<Option<&'a str>, Rejection> {
        let Some(header) = &self.header else { return Ok(None) };
        let value = |header: &str| {
            let value = caller.headers.sole(header);
            value.map_err(|_| Rejection::new(Refusal::Tenant, REPEATED))
        };
        let said = match (value(header)?, &self.second_header) {
            (None | Some(b""), Some(second)) => value(second)?.filter(|value| !value.is_empty()),
            (said, _) => said,
        };
        let text = |value| str::from_utf8(value).map_err(|_| Rejection::new(Refusal::Tenant, INVALID));
        said.map(|value| text(value).and_then(validate_name)).transpose()
    }
}

impl SubjectField {
    fn of(self, certificate: &Certificate) -> Option<&str> {
        match self {
            SubjectField::CommonName => certificate.common_name.as_deref(),
            SubjectField::Organization => certificate.organizations.first().map(|name| &**name),
            SubjectField::OrganizationalUnit => certificate.organizational_units.first().map(|name| &**name),
        }
    }
}

/// A name that can stand wherever names do: in headers, labels, folders and keys of objects.
///
/// # Errors
/// `tenant` when it cannot.
pub fn validate_name(name: &str) -> Result<&str, Rejection> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!*'():@+=~ ".contains(&byte);
    // Beginning with a dot it would be hidden, or a way up.
    let edges = name.starts_with(['.', ' ']) || name.ends_with(' ');
    if name.is_empty() || name.len() > MAX_TENANT_NAME || edges || !name.bytes().all(allowed) {
        return Err(Rejection::new(Refusal::Tenant, INVALID));
    }
    Ok(name)
}

const MISSING: &str =
    "the request names no tenant: send it in the header that the gateway is configured with\n";
const NO_OWN: &str = "this source has no tenant, and the gateway has no default tenant: its operator sets the source's \
                      `tenant`, or `tenants.default`\n";
const NO_DEFAULT: &str = "this credential names no tenant, and the gateway has no default tenant: its operator writes \
                          `tenant=NAME` on the credential's line, or sets `tenants.default`\n";
const STRANGER: &str =
    "requests without credentials belong to the default tenant, and the gateway has none\n";
const REPEATED: &str = "the request names its tenant more than once: send one tenant header\n";
const NO_FIELD: &str = "the client's certificate does not have the field that names the tenant\n";
const ANOTHER: &str = "this credential speaks for another tenant than the header names: leave the header out, or \
                       have `tenant=*` written on the credential's line if a proxy sends for many tenants\n";
const ANOTHER_FIELD: &str = "this credential speaks for another tenant than the client's certificate names\n";
const UNNAMED: &str = "this credential speaks for the default tenant only, and the header names another: have \
                       `tenant=NAME` written on the credential's line, or `tenant=*` if a proxy sends for many \
                       tenants\n";
const INVALID: &str = "a tenant's name is 1 to 128 letters, digits, blanks and -_.!*'():@+=~, and begins with no \
                       dot or blank\n";

#[cfg(test)]
mod tests;
