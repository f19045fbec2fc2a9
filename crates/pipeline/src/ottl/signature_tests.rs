//! The functions have the parameters of the Collector's: names, order, types, and which are optional.
//!
//! `testdata/ottl_signatures.txt` is the list of stable signatures of `pkg/ottl` v1.3.1 (`ottlfuncs/testdata`).

use super::check::{self, Scope};
use super::components;
use super::literals::Literals;
use super::signature::Type;
use crate::functions;

const SIGNATURES: &str = include_str!("../../testdata/ottl_signatures.txt");

/// Whether `name` is a function of `pkg/ottl`, not of a component.
pub(super) fn is_standard(name: &str) -> bool {
    SIGNATURES.lines().any(|line| line.split('(').next() == Some(name))
}

#[test]
fn functions_of_the_collector_are_here_or_refused_with_a_reason() {
    for name in SIGNATURES.lines().filter_map(|line| line.split('(').next()) {
        if functions::find(name).is_some() {
            continue;
        }
        let text = format!("set(span.name, {name}())");
        let found = check::statements(&[text], Scope::ALL, &mut Literals::default()).unwrap_err();
        let refused = found.iter().any(|one| one.fault.message.contains("is not supported: "));
        assert!(refused, "{name}: {found:?}");
    }
}

/// The functions that the transform, filter and routing components of contrib v0.164.1 add, and those of `pkg/ottl/xottl` and
/// `contexts/xprofile`.
const OF_COMPONENTS: [&str; 35] = [
    "IsRootSpan",
    "ParseCEF",
    "ParseCLF",
    "ParseELF",
    "ParseLEEF",
    "set_semconv_span_name",
    "HasAttrKeyOnDatapoint",
    "HasAttrOnDatapoint",
    "convert_gauge_to_sum",
    "convert_sum_to_gauge",
    "scale_metric",
    "merge_histogram_buckets",
    "convert_summary_count_val_to_sum",
    "convert_summary_quantile_val_to_gauge",
    "convert_summary_sum_val_to_sum",
    "copy_metric",
    "extract_avg_metric",
    "extract_count_metric",
    "extract_percentile_metric",
    "extract_sum_metric",
    "aggregate_on_attribute_value",
    "aggregate_on_attributes",
    "convert_exponential_histogram_to_histogram",
    "route",
    "ProfileID",
    "All",
    "Any",
    "Filter",
    "Find",
    "MapEach",
    "MapKeys",
    "Reduce",
    "When",
    // The names of their parameters follow Go's rules.
    "URL",
    "UserAgent",
];

#[test]
fn each_function_of_the_collector_is_here_or_on_the_page_of_differences() {
    let page = include_str!("../../../../docs/pipelines.md");
    let (_, differences) = page.split_once("## Differences from the Collector").unwrap();
    let standard = SIGNATURES.lines().filter_map(|line| line.split('(').next());
    for name in standard.chain(OF_COMPONENTS) {
        let is_here = functions::find(name).is_some();
        let mentions = differences.matches(&format!("`{name}`")).count();
        assert_ne!(is_here, components::refused(name).is_some(), "{name}");
        // `Any` and the like are named as what they are: lambda expressions.
        let is_lambda = components::refused(name).is_some_and(|reason| reason.contains("lambda"));
        assert!(is_here || is_lambda || mentions == 1, "{name} is refused, and on the page {mentions} times");
    }
}

#[test]
fn signatures_are_those_of_the_collector() {
    let mut differences = Vec::new();
    for line in SIGNATURES.lines() {
        let (name, parameters) = line.split_once('(').unwrap();
        let Some(function) = functions::find(name) else { continue };
        let theirs: Vec<_> = split(parameters.strip_suffix(')').unwrap()).map(parameter).collect();
        let ours: Vec<_> = function
            .parameters
            .iter()
            .map(|parameter| {
                (parameter.name.replace('_', "").to_lowercase(), parameter.accepts, parameter.optional)
            })
            .collect();
        let same = |(ours, theirs): (&(String, Type, bool), &(String, Type, bool))| {
            // Arguments that are compiled have to be literals.
            let compiled = ours.1 == Type::LiteralText && theirs.1 == Type::Text;
            // The Collector's refuses what is no list when it runs.
            let list = name == "Sort" && ours.1 == Type::List && theirs.1 == Type::Any;
            ours.0 == theirs.0 && ours.2 == theirs.2 && (ours.1 == theirs.1 || compiled || list)
        };
        if ours.len() != theirs.len() || !ours.iter().zip(&theirs).all(same) {
            differences.push(format!("{name}:\n  here  {ours:?}\n  there {theirs:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The parts between commas outside brackets.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = list.split(move |letter| {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

fn parameter(text: &str) -> (String, Type, bool) {
    let (name, go) = text.split_once(' ').unwrap();
    let inner = go.strip_prefix("ottl.Optional[").and_then(|inner| inner.strip_suffix(']'));
    let kind = inner.unwrap_or(go).replace("[interface {}]", "").replace("ottl.", "");
    let accepts = match kind.as_str() {
        "StringGetter" => Type::Text,
        "StringLikeGetter" => Type::TextLike,
        "IntGetter" => Type::Int,
        "IntLikeGetter" => Type::IntLike,
        "FloatGetter" => Type::Double,
        "FloatLikeGetter" => Type::DoubleLike,
        "BoolGetter" => Type::Bool,
        "BoolLikeGetter" => Type::BoolLike,
        "ByteSliceLikeGetter" => Type::BytesLike,
        "PMapGetter" => Type::Map,
        "PMapGetSetter" => Type::MapTarget,
        "PSliceGetter" => Type::List,
        "TimeGetter" => Type::Time,
        "DurationGetter" => Type::Duration,
        "GetSetter" | "Setter" | "PSliceGetSetter" => Type::Target,
        "Getter" => Type::Any,
        "FunctionGetter" => Type::Function,
        "string" => Type::LiteralText,
        "float64" => Type::LiteralDouble,
        "int64" => Type::LiteralInt,
        "bool" => Type::LiteralBool,
        "[]string" => Type::LiteralTexts,
        "[]StringGetter" => Type::Texts,
        "[]Getter" => Type::Values,
        list if list.contains("SliceGetter") && list.contains("StringLikeGetter") => Type::Elements,
        list if list.contains("SliceGetter") => Type::TextElements,
        other => panic!("{other}"),
    };
    (name.to_lowercase(), accepts, inner.is_some())
}
