//! Index templates, put where the documents go.

use super::Settings;
use super::answer::RejectionReason;
use super::peer::Node;
use crate::delivery::EndpointError;
use crate::endpoints::Peer as _;
use crate::secrets::Shown;
use hyper::Uri;
use tidegate_elastic::templates::templates;

/// The templates could not be put.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A node cannot be used.
    #[error(transparent)]
    Peer(#[from] EndpointError),
    /// None took them.
    #[error("putting the index template `{name}` at {}: {said}", Shown(uri))]
    Refused {
        /// Which one.
        name: &'static str,
        /// Where.
        uri: Uri,
        /// The node's answer.
        said: String,
    },
    /// There is nowhere to put them.
    #[error("there is no endpoint to put index templates at: give at least one")]
    NoEndpoint,
}

/// Puts the index templates for what is written with these settings, at the first endpoint that takes them; their
/// names.
///
/// # Errors
/// [`SetupError`] of the last endpoint, when none took them.
pub async fn put_templates(settings: &Settings) -> Result<Vec<&'static str>, SetupError> {
    let mut outcome = Err(SetupError::NoEndpoint);
    for uri in &settings.endpoints {
        let peer = Node::new(uri, settings)?;
        outcome = put_at(&peer, uri, settings).await;
        peer.close().await;
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

async fn put_at(peer: &Node, uri: &Uri, settings: &Settings) -> Result<Vec<&'static str>, SetupError> {
    let mut names = Vec::new();
    for template in templates(settings.flavour) {
        let path = format!("/_index_template/{}", template.name);
        let refused = |said: RejectionReason| SetupError::Refused {
            name: template.name,
            uri: uri.clone(),
            said: said.to_string(),
        };
        peer.put(&path, template.body).await.map_err(refused)?;
        names.push(template.name);
    }
    Ok(names)
}
