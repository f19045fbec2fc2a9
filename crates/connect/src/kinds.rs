//! The kinds: one file and one line in the table for each.

mod beats;
mod elastic_apm;
mod otel;

use crate::kind::Kind;

/// Declares the modules, and the table of their constants `KIND`.
macro_rules! kinds {
    ($($module:ident),* $(,)?) => {
        $( mod $module; )*

        /// All kinds, in the order in which they are listed.
        pub const KINDS: &[&Kind] = &[$( &$module::KIND ),*];
    };
}

kinds! {
    otel_python,
    otel_js,
    otel_java,
    otel_go,
    otel_rust,
    otel_dotnet,
    collector,
    kubernetes,
    opamp_supervisor,
    prometheus,
    vmagent,
    grafana_alloy,
    telegraf,
    thanos,
    elasticsearch,
    filebeat,
    metricbeat,
    packetbeat,
    heartbeat,
    auditbeat,
    winlogbeat,
    logstash,
    elastic_agent,
    elastic_apm_python,
    elastic_apm_node,
    elastic_apm_java,
    elastic_apm_go,
    fluent_bit,
    fluentd,
    vector,
    promtail,
    rsyslog,
    syslog_ng,
    logger,
    docker,
    curl,
}
