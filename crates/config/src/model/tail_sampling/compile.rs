//! Policies as the engine has them: tests of spans, and votes over what traces fulfil.

use tidegate_pipeline::{MAX_SPAN_TESTS, SpanTest};
use tidegate_trace_sampling::{MAX_RATES, NamedPolicy, Policies, Policy};

use super::policies::{PolicyDetails, PolicyType, SpanStatus, SubPolicy, TailPolicy};
use super::{CompositePolicy, TailSampling};
use crate::setting::Sequence;
use crate::values::Text;

/// The sampling of a sink as it is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredSampling {
    /// How long a trace waits, in milliseconds.
    pub wait_ms: u64,
    /// How long it waits behind its root.
    pub after_root_ms: Option<u64>,
    /// The most traces that wait.
    pub max_traces: u32,
    /// The decisions that are remembered.
    pub max_decisions: u32,
    /// The policies.
    pub policies: Vec<NamedPolicy>,
    /// The tests of spans that they ask.
    pub tests: Vec<SpanTest>,
    /// For each condition or pattern of the tests where it is written, below `policies`.
    pub(crate) texts: Vec<Vec<String>>,
}

/// Something wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyProblem {
    /// The settings below `policies` down to the one at fault.
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
    pub(crate) help: String,
}

impl TailSampling {
    /// The policies as the engine has them.
    ///
    /// # Errors
    /// Everything that is wrong with them, but for conditions and patterns.
    pub(crate) fn configured(&self) -> Result<ConfiguredSampling, Vec<PolicyProblem>> {
        let mut compiler = Compiler::default();
        let mut policies: Vec<NamedPolicy> = Vec::new();
        for (number, policy) in self.policies.iter().enumerate() {
            let at = vec![number.to_string()];
            if policies.iter().any(|known| known.name == policy.name) {
                let message = format!("there are two policies `{}`", policy.name);
                compiler.problem(&at, "name", message, "give each a name of its own");
            }
            let compiled = compiler.policy(&at, policy).unwrap_or(Policy::Always);
            policies.push(NamedPolicy { name: policy.name.clone(), policy: compiled });
        }
        if policies.is_empty() {
            compiler.problem(&[], "", "there is no policy, so nothing is kept".to_owned(), "add one");
        }
        if compiler.tests.len() > MAX_SPAN_TESTS {
            let message = format!("these policies test spans in {} ways", compiler.tests.len());
            let help = format!("{MAX_SPAN_TESTS} are possible; join some, as `values` of one policy, say");
            compiler.problem(&[], "", message, &help);
        }
        if Policies::new(policies.iter().map(|policy| &policy.policy)).is_none() {
            let message = "these policies have too many rates".to_owned();
            let help = format!("{MAX_RATES} are possible; each policy in a `composite` has one");
            compiler.problem(&[], "", message, &help);
        }
        let Compiler { tests, texts, problems } = compiler;
        if !problems.is_empty() {
            return Err(problems);
        }
        let milliseconds =
            |time: crate::values::Duration| u64::try_from(time.get().as_millis()).unwrap_or(u64::MAX);
        Ok(ConfiguredSampling {
            wait_ms: milliseconds(self.wait),
            after_root_ms: self.after_root.map(milliseconds),
            max_traces: self.max_traces,
            max_decisions: self.decisions(),
            policies,
            tests,
            texts,
        })
    }
}

#[derive(Default)]
struct Compiler {
    tests: Vec<SpanTest>,
    texts: Vec<Vec<String>>,
    problems: Vec<PolicyProblem>,
}

impl Compiler {
    fn problem(&mut self, at: &[String], setting: &str, message: String, help: &str) {
        let setting = Some(setting).filter(|setting| !setting.is_empty());
        let path = at.iter().cloned().chain(setting.map(str::to_owned)).collect();
        self.problems.push(PolicyProblem { path, message, help: help.to_owned() });
    }

    /// The details of a policy of type `kind`, which stand under its name.
    fn details<'d, T>(
        &mut self,
        at: &[String],
        (name, kind): (&str, PolicyType),
        details: Option<&'d T>,
    ) -> Option<&'d T> {
        if details.is_none() {
            let message = format!("the policy `{name}` is of type `{kind}` and has no `{kind}`");
            self.problem(at, "type", message, &format!("add `{kind}:` with its details"));
        }
        details
    }

    fn policy(&mut self, at: &[String], policy: &TailPolicy) -> Option<Policy> {
        let TailPolicy { name, r#type, and, not, drop, composite, details } = policy;
        let of = (name.as_str(), *r#type);
        match r#type {
            PolicyType::And => {
                let and = self.details(at, of, and.as_ref())?;
                Some(Policy::And(self.all(&below(at, ["and", "and_sub_policy"]), &and.and_sub_policy)))
            }
            PolicyType::Drop => {
                let drop = self.details(at, of, drop.as_ref())?;
                Some(Policy::Drop(self.all(&below(at, ["drop", "drop_sub_policy"]), &drop.drop_sub_policy)))
            }
            PolicyType::Not => {
                let SubPolicy { name, r#type, details } = &self.details(at, of, not.as_ref())?.not_sub_policy;
                let at = below(at, ["not", "not_sub_policy"]);
                let not = self.simple(&at, (name, *r#type), details)?;
                Some(Policy::Not(Box::new(not)))
            }
            PolicyType::Composite => {
                let composite = self.details(at, of, composite.as_ref())?;
                self.composite(&below(at, ["composite"]), composite)
            }
            _ => self.simple(at, of, details),
        }
    }

    fn all(&mut self, at: &[String], policies: &Sequence<SubPolicy>) -> Vec<Policy> {
        let mut all = Vec::new();
        for (number, SubPolicy { name, r#type, details }) in policies.iter().enumerate() {
            all.extend(self.simple(&below(at, [number.to_string().as_str()]), (name, *r#type), details));
        }
        if policies.is_empty() {
            self.problem(at, "", "this list of policies is empty".to_owned(), "add one");
        }
        all
    }

    fn composite(&mut self, at: &[String], composite: &CompositePolicy) -> Option<Policy> {
        let CompositePolicy {
            max_total_spans_per_second: most,
            policy_order,
            composite_sub_policy: policies,
            rate_allocation,
        } = composite;
        let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
        if let Some(order) = policy_order
            && !order.iter().map(Text::as_str).eq(names.iter().copied())
        {
            let message = "`policy_order` has another order than `composite_sub_policy`".to_owned();
            let help = "the Collector asks policies in the order of `composite_sub_policy`: write both alike";
            self.problem(at, "policy_order", message, help);
        }
        for (number, allocated) in rate_allocation.iter().enumerate() {
            if !names.contains(&allocated.policy.as_str()) {
                let message = format!("there is no policy `{}` in this `composite`", allocated.policy);
                let at = below(at, ["rate_allocation", number.to_string().as_str()]);
                self.problem(&at, "policy", message, "name one of `composite_sub_policy`");
            }
        }
        let mut compiled = Vec::new();
        for (number, policy) in policies.iter().enumerate() {
            let at = below(at, ["composite_sub_policy", number.to_string().as_str()]);
            let of = (policy.name.as_str(), policy.r#type);
            let own = match policy.r#type {
                PolicyType::And => {
                    let and = self.details(&at, of, policy.and.as_ref());
                    and.map(|and| {
                        Policy::And(self.all(&below(&at, ["and", "and_sub_policy"]), &and.and_sub_policy))
                    })
                }
                _ => self.simple(&at, of, &policy.details),
            };
            // The last entry counts, as in the Collector's map.
            let allocated = rate_allocation.iter().rfind(|allocated| allocated.policy == policy.name);
            let part = match allocated.map(|allocated| allocated.percent) {
                None => 0.0,
                Some(0) => f64::from(*most) / policies.len() as f64,
                Some(percent) => f64::from(percent) / 100.0 * f64::from(*most),
            };
            compiled.extend(own.map(|own| (part as u64, own)));
        }
        Some(Policy::Composite { most: u64::from(*most), policies: compiled })
    }

    /// A policy that has no others in it.
    fn simple(&mut self, at: &[String], of: (&str, PolicyType), details: &PolicyDetails) -> Option<Policy> {
        let (name, kind) = of;
        match kind {
            PolicyType::AlwaysSample => Some(Policy::Always),
            PolicyType::TraceFlags => Some(self.test(SpanTest::TraceFlags, false)),
            PolicyType::Latency => {
                let latency = self.details(at, of, details.latency.as_ref())?;
                Some(Policy::Latency {
                    threshold_ms: latency.threshold_ms.into(),
                    upper_threshold_ms: latency.upper_threshold_ms.into(),
                })
            }
            PolicyType::NumericAttribute => {
                let numeric = self.details(at, of, details.numeric_attribute.as_ref())?;
                if numeric.min_value.is_none() && numeric.max_value.is_none() {
                    let message = format!("the policy `{name}` has no `min_value` and no `max_value`");
                    self.problem(at, "numeric_attribute", message, "set at least one of them");
                }
                let test = SpanTest::NumericAttribute {
                    key: numeric.key.clone(),
                    min: numeric.min_value.map_or(i64::MIN, |value| value.get()),
                    max: numeric.max_value.map_or(i64::MAX, |value| value.get()),
                };
                Some(self.test(test, numeric.invert_match))
            }
            PolicyType::Probabilistic => {
                let probabilistic = self.details(at, of, details.probabilistic.as_ref())?;
                Some(Policy::Probabilistic {
                    salt: probabilistic.hash_salt.clone().unwrap_or_default(),
                    percentage: probabilistic.sampling_percentage.get(),
                })
            }
            PolicyType::StatusCode => {
                let status = self.details(at, of, details.status_code.as_ref())?;
                let codes = status.status_codes.iter().map(|status| match status {
                    SpanStatus::Unset => 0,
                    SpanStatus::Ok => 1,
                    SpanStatus::Error => 2,
                });
                let test = SpanTest::StatusCode(codes.collect());
                Some(self.test(test, false))
            }
            PolicyType::StringAttribute => {
                let string = self.details(at, of, details.string_attribute.as_ref())?;
                let are_patterns = string.enabled_regex_matching;
                if are_patterns {
                    let values = (0..string.values.len())
                        .map(|value| below(at, ["string_attribute", "values", value.to_string().as_str()]));
                    self.texts.extend(values);
                }
                let test = SpanTest::StringAttribute {
                    key: string.key.clone(),
                    values: written(&string.values),
                    are_patterns,
                };
                Some(self.test(test, string.invert_match))
            }
            PolicyType::RateLimiting => {
                let rate = self.details(at, of, details.rate_limiting.as_ref())?;
                Some(Policy::RateLimiting { spans_per_second: rate.spans_per_second.into() })
            }
            PolicyType::SpanCount => {
                let count = self.details(at, of, details.span_count.as_ref())?;
                Some(Policy::SpanCount { min: count.min_spans.into(), max: count.max_spans.into() })
            }
            PolicyType::TraceState => {
                let state = self.details(at, of, details.trace_state.as_ref())?;
                let (key, values) = (state.key.clone(), written(&state.values));
                Some(self.test(SpanTest::TraceState { key, values }, false))
            }
            PolicyType::BooleanAttribute => {
                let boolean = self.details(at, of, details.boolean_attribute.as_ref())?;
                let test = SpanTest::BooleanAttribute { key: boolean.key.clone(), value: boolean.value };
                Some(self.test(test, boolean.invert_match))
            }
            PolicyType::OttlCondition => {
                let condition = self.details(at, of, details.ottl_condition.as_ref())?;
                let texts = |texts: &Option<Sequence<Text>>| texts.as_ref().map(written).unwrap_or_default();
                let (span, span_event) = (texts(&condition.span), texts(&condition.spanevent));
                if span.is_empty() && span_event.is_empty() {
                    let message = format!("the policy `{name}` has no condition");
                    self.problem(at, "ottl_condition", message, "add one to `span` or `spanevent`");
                }
                for (setting, count) in [("span", span.len()), ("spanevent", span_event.len())] {
                    let items = (0..count)
                        .map(|item| below(at, ["ottl_condition", setting, item.to_string().as_str()]));
                    self.texts.extend(items);
                }
                Some(self.test(SpanTest::Condition { span, span_event }, false))
            }
            PolicyType::And | PolicyType::Not | PolicyType::Drop | PolicyType::Composite => {
                let message = format!("the policy `{name}` of type `{kind}` cannot be in another one");
                let help = "as in the Collector, only an `and` may be in a `composite`";
                self.problem(at, "type", message, help);
                None
            }
        }
    }

    /// A policy that asks whether a span fulfils a test.
    fn test(&mut self, test: SpanTest, invert: bool) -> Policy {
        self.tests.push(test);
        Policy::Test { number: self.tests.len() - 1, invert }
    }
}

fn written(texts: &Sequence<Text>) -> Vec<String> {
    texts.iter().map(|text| text.as_str().to_owned()).collect()
}

fn below<const N: usize>(path: &[String], more: [&str; N]) -> Vec<String> {
    path.iter().cloned().chain(more.map(str::to_owned)).collect()
}
