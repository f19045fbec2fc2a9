//! The steps behind `parse` of a source: statements like those of any pipeline, in the files `presets/*.ottl`.
//!
//! A preset is no parser of its own. Its steps run in the pipeline before the journal, ahead of those of the source's `pipeline`, and are
//! checked, metered and bounded as they are. A line without the format stays as it is.

use crate::declare::choices;
use tidegate_pipeline as engine;

choices! {
    /// The format of log lines.
    pub enum Parse is "a format of log lines" {
        /// `json`, `logfmt` or `klog`, by the beginning of each line.
        Auto = "auto",
        /// JSON objects, as loggers for many languages write them.
        Json = "json",
        /// Pairs such as `level=info msg="a message"`.
        Logfmt = "logfmt",
        /// Access logs of nginx in the format `combined`, and its error logs.
        Nginx = "nginx",
        /// Access logs of Apache in the formats `common` and `combined`, and its error logs.
        Apache = "apache",
        /// Lines of Kubernetes' components.
        Klog = "klog",
    }
}

/// A step of a preset.
struct PresetStep {
    name: &'static str,
    /// The condition on which a line has the format.
    when: &'static str,
    /// The statements, a line each. Lines with `#` are comments.
    statements: &'static [&'static str],
}

const FIELDS: &str = include_str!("presets/fields.ottl");
const SEVERITY: &str = include_str!("presets/severity.ottl");

const JSON: PresetStep = PresetStep {
    name: "json",
    when: r#"IsMap(log.body) or IsString(log.body) and HasPrefix(log.body, "{")"#,
    statements: &[include_str!("presets/json.ottl"), FIELDS, SEVERITY],
};

const LOGFMT: PresetStep = PresetStep {
    name: "logfmt",
    when: r#"IsString(log.body) and IsMatch(log.body, "^[\\w.@/-]+=")"#,
    statements: &[include_str!("presets/logfmt.ottl"), FIELDS, SEVERITY],
};

const ACCESS_LOG: PresetStep = PresetStep {
    name: "access_log",
    when: r#"IsString(log.body) and IsMatch(log.body, "^\\S+ \\S+ \\S+ \\[\\d\\d/[A-Z][a-z]{2}/\\d{4}:")"#,
    statements: &[include_str!("presets/access_log.ottl")],
};

const NGINX_ERROR: PresetStep = PresetStep {
    name: "nginx_error",
    when: r#"IsString(log.body) and IsMatch(log.body, "^\\d{4}/\\d\\d/\\d\\d ")"#,
    statements: &[include_str!("presets/nginx_error.ottl"), SEVERITY],
};

const APACHE_ERROR: PresetStep = PresetStep {
    name: "apache_error",
    when: r#"IsString(log.body) and IsMatch(log.body, "^\\[[A-Z][a-z]{2} [A-Z][a-z]{2} \\d\\d ")"#,
    statements: &[include_str!("presets/apache_error.ottl"), SEVERITY],
};

const KLOG: PresetStep = PresetStep {
    name: "klog",
    when: r#"IsString(log.body) and IsMatch(log.body, "^[IWEF]\\d{4} \\d\\d:\\d\\d:\\d\\d\\.\\d+ ")"#,
    statements: &[include_str!("presets/klog.ottl")],
};

impl Parse {
    fn preset(self) -> &'static [&'static PresetStep] {
        match self {
            // A message may look like a line of another format: one of JSON like logfmt more often than the reverse.
            Parse::Auto => &[&KLOG, &LOGFMT, &JSON],
            Parse::Json => &[&JSON],
            Parse::Logfmt => &[&LOGFMT],
            Parse::Nginx => &[&ACCESS_LOG, &NGINX_ERROR],
            Parse::Apache => &[&ACCESS_LOG, &APACHE_ERROR],
            Parse::Klog => &[&KLOG],
        }
    }

    /// The steps, each with its name. A statement that fails leaves its line as it is; it is counted, and not logged.
    pub fn steps(self) -> impl Iterator<Item = (&'static str, engine::StepDefinition)> {
        self.preset().iter().map(|step| {
            let statements = step.statements.iter().flat_map(|statements| statements.lines());
            let statements = statements.filter(|line| !line.is_empty() && !line.starts_with('#'));
            let definition = engine::StepDefinition {
                when: Some(step.when.to_owned()),
                on_error: engine::ErrorMode::Silent,
                kind: engine::StepKind::Edit(statements.map(str::to_owned).collect()),
            };
            (step.name, definition)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_pipeline::{Definition, Pipeline};

    #[test]
    fn every_preset_compiles_without_a_warning() {
        for parse in Parse::ALL {
            let definition = Definition { steps: parse.steps().map(|(_, step)| step).collect() };
            let (_, warnings) =
                Pipeline::compile(&definition).unwrap_or_else(|problems| panic!("{parse}: {problems:#?}"));
            assert!(warnings.is_empty(), "{parse}: {warnings:#?}");
        }
    }
}
