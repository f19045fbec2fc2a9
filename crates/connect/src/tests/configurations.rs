//! The configurations that all kinds are tried with.

use crate::Sender;
use tidegate_config::Config;

/// Secrets in them are `hunter2`.
pub(super) const CONFIGURATIONS: &[&str] = &[
    // Plain, on loopback.
    "",
    "listen: { http: '[::1]:4318', grpc: '[::1]:4317' }",
    // Everything that can be received, unencrypted.
    EVERYTHING,
    // The same with TLS and a credential.
    ENCRYPTED,
    // Client certificates, and a header beside.
    "listen: { http: 192.0.2.7:4318, grpc: 192.0.2.7:4317, tls: { cert_file: s, key_file: k, client_ca_file: c, client_auth: required } }\n\
     tenants: { certificate: organizational_unit }",
    // Tenants by a header, addresses that listen everywhere.
    "listen: { http: '[::]:4318', grpc: 0.0.0.0:4317, insecure: true, thanos_receive: { tenant_header: x-team } }\n\
     tenants: { header: X-Scope-OrgID, default_at: { http: 'team a' } }",
    // Names that mean something to shells and files.
    "tenants: { header: \"x-$'`%\" }\nsources: { elasticsearch: { prefix: \"/a b'\\\"$HOME`\" }, http: { path: \"/x'y&z$\" } }",
    // Syslog as old devices write it, on a socket, and by UDP alone.
    "sources: { syslog: { listeners: { a: { address: 'udp://127.0.0.1:514', format: rfc3164 } } } }",
    "sources: { syslog: { listeners: { a: { address: \"unixgram:/run/it's.sock\" } } } }",
    "sources: { syslog: { listeners: { a: { address: 'tcp://[::1]:514', framing: newline } } } }",
];

const EVERYTHING: &str = "
listen:
  http: 0.0.0.0:4318
  grpc: 0.0.0.0:4317
  elasticsearch: 0.0.0.0:9200
  apm: 0.0.0.0:8200
  thanos_receive: { address: 0.0.0.0:19291 }
  fleet: { address: 0.0.0.0:8220, postgres: { url: 'postgres://u:hunter2@db/fleet' } }
  opamp: { address: 0.0.0.0:4320, own_telemetry: 'http://a:1?token=hunter2' }
  insecure: true
sources:
  syslog: { listeners: { relay: { address: 'tcp://0.0.0.0:601' } } }
  fluent_forward: { address: 0.0.0.0:24224 }
limits: { sources: { otlp: { requests_per_second: 5 } } }
sinks:
  splunk: { type: splunk_hec, endpoints: ['https://s'], token: hunter2 }
  far: { type: otlp, endpoints: ['https://o'], headers: { authorization: 'Bearer hunter2' } }
";

const ENCRYPTED: &str = "
listen:
  http: 0.0.0.0:4318
  grpc: 0.0.0.0:4317
  elasticsearch: 0.0.0.0:9200
  apm: 0.0.0.0:8200
  thanos_receive: { address: 0.0.0.0:19291, tenant_certificate_field: common_name }
  fleet: { address: 0.0.0.0:8220 }
  opamp: { address: 0.0.0.0:4320 }
  tls: { cert_file: /etc/gw/s.pem, key_file: /etc/gw/hunter2.key, client_ca_file: /etc/gw/c.pem, client_auth: required }
access: { credentials_file: /etc/gw/credentials }
tenants: { credentials: true, header: x-tenant }
sources:
  syslog: { listeners: { relay: { address: 'tls://0.0.0.0:6514' } } }
  fluent_forward: { address: 0.0.0.0:24224, tls: {}, shared_key: hunter2, users: { app: hunter2 } }
";

pub(super) fn config(text: &str) -> Config {
    tidegate_config::parse("test", text, &|_| None).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

pub(super) fn sender() -> Sender {
    Sender::new("this-machine".parse().unwrap())
}
