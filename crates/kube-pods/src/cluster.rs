//! The API server of the cluster in which the gateway is a pod.

use std::path::Path;
use tidegate_json_api::{ApiError, ApiSettings};

/// Where the service account of a pod is.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The API server cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The environment is not that of a pod.
    #[error(
        "finding the Kubernetes API: {0} is not set in the environment; set the API's URL if this is not a pod"
    )]
    NoCluster(&'static str),
    /// The address in the environment is not one.
    #[error("finding the Kubernetes API: {0}")]
    Address(ApiError),
}

/// The API server of a pod: the address from the environment, token and authority from the service account's folder.
///
/// # Errors
/// When the environment has no address.
pub fn in_cluster(variable: impl Fn(&str) -> Option<String>) -> Result<ApiSettings, ClusterError> {
    let set = |name: &'static str| {
        variable(name).filter(|value| !value.is_empty()).ok_or(ClusterError::NoCluster(name))
    };
    let (host, port) = (set("KUBERNETES_SERVICE_HOST")?, set("KUBERNETES_SERVICE_PORT")?);
    let url = if host.contains(':') {
        format!("https://[{host}]:{port}")
    } else {
        format!("https://{host}:{port}")
    };
    let account = Path::new(SERVICE_ACCOUNT);
    Ok(ApiSettings {
        url: url.parse().map_err(|_| ClusterError::Address(ApiError::Url(url)))?,
        token: Some(account.join("token")),
        ca: Some(account.join("ca.crt")),
        certificate: None,
        server_name: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_finds_its_api_server_in_the_environment() {
        let settings = |host: &str| {
            in_cluster(|name| match name {
                "KUBERNETES_SERVICE_HOST" => Some(host.to_owned()),
                "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
                _ => None,
            })
        };
        assert_eq!(settings("10.0.0.1").unwrap().url, "https://10.0.0.1:443/");
        assert_eq!(settings("fd00::1").unwrap().url, "https://[fd00::1]:443/");
        let error = settings("").unwrap_err().to_string();
        assert!(error.contains("KUBERNETES_SERVICE_HOST"), "{error}");
    }
}
