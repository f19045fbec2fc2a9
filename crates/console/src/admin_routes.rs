//! Routes of other parts of the gateway on the admin address.

use crate::trial_response::FormClaim;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tidegate_http1::{Body, Head, Reply};

/// Routes under a prefix of their own, for programs: they read and write. Whoever may use the admin address may use them; from
/// other machines, only those with credentials.
pub trait AdminRoutes: Send + Sync + 'static {
    /// The prefix of their paths, such as `/fleet/`.
    fn prefix(&self) -> &'static str;

    /// Whether the pages of this gateway may read what is at this path behind the prefix.
    fn is_for_pages(&self, _path: &str) -> bool {
        false
    }

    /// Answers a request.
    fn answer(&self, request: AdminRequest, body: Body) -> Pin<Box<dyn Future<Output = Reply> + Send + '_>>;
}

/// A request for such a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminRequest {
    /// The method.
    pub method: String,
    /// The path behind the prefix.
    pub path: String,
    /// The query; empty without one.
    pub query: String,
    /// Whether the body is compressed with gzip.
    pub is_compressed: bool,
}

/// Where such a request leads, with the claim to the memory of its body.
#[derive(Clone)]
pub(crate) struct MountedRoute {
    pub(crate) routes: Arc<dyn AdminRoutes>,
    pub(crate) request: AdminRequest,
    pub(crate) claim: Option<FormClaim>,
}

impl fmt::Debug for MountedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl AdminRequest {
    /// The request with this head, below a prefix.
    ///
    /// # Errors
    /// The answer to one whose body cannot be read.
    pub(crate) fn of(head: &Head<'_>, path: &str) -> Result<AdminRequest, Reply> {
        let is_compressed = match head.sole_header("content-encoding") {
            Ok(None | Some(b"identity")) => false,
            Ok(Some(b"gzip")) => true,
            _ => return Err(Reply::new(415).text("a body is compressed with gzip, or not at all\n")),
        };
        Ok(AdminRequest {
            method: head.method().to_owned(),
            path: path.to_owned(),
            query: head.query().unwrap_or_default().to_owned(),
            is_compressed,
        })
    }

    /// Whether it has a body.
    pub(crate) fn has_body(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "DELETE")
    }
}
