//! What to do about a peer, by how it failed.

use super::looks_like;
use crate::finding::Finding;
use crate::probe::{Answer, Failure, Step};
use crate::subject::Peer;

/// About a peer that did not answer.
pub(super) fn of_failure(failure: &Failure, kind: &str) -> String {
    if let Some(found) = failure.looks_like {
        return looks_like(found).to_owned();
    }
    let reason = failure.reason.as_str();
    match failure.step {
        Step::Resolve => "check the host in the URL, and the name server (`getent hosts NAME`, /etc/resolv.conf; in Kubernetes, the namespace in the name)".to_owned(),
        Step::Connect if reason.contains("refused") => {
            "nothing listens there: is the peer running, is the port right, does it listen on that address and not on its loopback alone?".to_owned()
        }
        Step::Connect if reason.contains("unreachable") || reason.contains("No route") => {
            "there is no way there from this machine: check its routes (`ip route get ADDRESS`), VPN and network policies".to_owned()
        }
        Step::Connect => {
            "what is sent there is dropped: look at firewalls, security groups and network policies on the way, and whether the address is right".to_owned()
        }
        Step::Proxy => "check the variable of the environment and the proxy's rules; `no_proxy` exempts hosts from it".to_owned(),
        Step::Tls => of_tls(reason),
        Step::Request => match kind {
            "otlp" => "check the port and `protocol`: gRPC is usually at 4317, HTTP at 4318".to_owned(),
            _ => "check that the port is that of the peer's API".to_owned(),
        },
    }
}

fn of_tls(reason: &str) -> String {
    let advice = if reason.contains("UnknownIssuer") {
        "its certificate is signed by an authority that is not trusted here: name the authority's file in `tls.ca_file`"
    } else if reason.contains("Expired") || reason.contains("expired") {
        "its certificate has expired: tell who runs the peer; and look at this machine's clock"
    } else if reason.contains("NotValidYet") || reason.contains("not valid yet") {
        "its certificate is not valid yet: look at this machine's clock, and the peer's"
    } else if reason.contains("NotValidForName") || reason.contains("not valid for name") {
        "its certificate is for another name: write that name in the URL, or in `tls.server_name`"
    } else if reason.contains("CertificateRequired") || reason.contains("alert") {
        "it refuses the gateway in the handshake: it may want a client certificate (`tls.cert_file`, `tls.key_file`), or another one"
    } else if reason.contains("preparing TLS") {
        "give files in PEM format that the gateway's user may read"
    } else {
        "check that the port is one with TLS, and what versions of TLS the peer has: from 1.2 on they are spoken"
    };
    advice.to_owned()
}

/// About a peer that answered with a refusal. `evidence` is what was seen.
pub(super) fn of_answer(sink: &str, target: &str, peer: &Peer, answer: &Answer, evidence: String) -> Finding {
    let broken = |what: &str, remedy: &str| {
        Finding::broken(format!("{sink}: {target} {what}"), &*evidence).remedy(remedy)
    };
    let at_risk = |what: &str, remedy: &str| {
        Finding::at_risk(format!("{sink}: {target} {what}"), &*evidence).remedy(remedy)
    };
    let credentials = "check the credentials of the sink (`headers`, `api_key`, `token`, `user` and `password`), that `${NAME}` and `${file:…}` \
                       have what they should, and that they have not expired";
    if let Some((status, _)) = &answer.grpc {
        return match status {
            16 => broken("does not know the credentials", credentials),
            7 => broken("knows the credentials, and does not allow writing", "give them the right to write"),
            12 => broken(
                "has no such service",
                "check that the port is that of the receiver, and `protocol`; profiles need a receiver that has them",
            ),
            8 | 14 => at_risk("is overloaded or not available", "look at the peer; the gateway retries"),
            _ => at_risk("refuses the request", "see what it answered"),
        };
    }
    if peer.probe.lacks_tenant && matches!(answer.status, 400 | 401) {
        return Finding::note(format!("{sink}: {target} refuses a request without a tenant"), evidence)
            .remedy("the gateway's requests name their tenant, which the doctor's do not: whether the credentials are right was not seen");
    }
    match answer.status {
        401 => broken("does not know the credentials", credentials),
        403 => broken(
            "knows the credentials, and does not allow writing",
            "give them the right to write; or something between refuses: see what it answered",
        ),
        404 => broken(
            "has nothing at this path",
            "check the path of the URL: see docs/configuration.md for the one that each type of sink adds",
        ),
        405 => broken(
            "takes no data at this path",
            "check the path of the URL; a receiver of remote write may have to be switched on (`--web.enable-remote-write-receiver`)",
        ),
        300..=399 => broken("redirects elsewhere", "write the URL that it redirects to"),
        407 => broken(
            "is behind a proxy that wants credentials",
            "write them in the variable of the environment that names the proxy",
        ),
        413 => at_risk(
            "refuses a request as too large that is empty",
            "something between has a wrong limit: see what it answered",
        ),
        415 => broken(
            "does not take this kind of content",
            "check that the URL is that of a receiver for this type of sink",
        ),
        429 => at_risk(
            "refuses requests for now: there are too many",
            "raise the limit at the peer, or send it less; the gateway retries, and the journal grows meanwhile",
        ),
        500.. => at_risk(
            "fails",
            "look at the peer and its log; the gateway retries, and the journal grows meanwhile",
        ),
        _ if peer.probe.is_http2() => {
            broken("does not speak gRPC", "check the port and `protocol`: gRPC is usually at 4317")
        }
        _ => at_risk("refuses the request", "see what it answered"),
    }
}
