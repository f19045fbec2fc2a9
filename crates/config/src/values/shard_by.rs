//! The labels that place a series.

use serde_json::{Value as Json, json};

use super::fixture::json_of;
use crate::reader::Reader;
use crate::setting::{PlainValue, ScalarShape, Setting, Shape};
use crate::yaml::Node;

/// The labels that place a series on one of several receivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardBy {
    /// `all`: all labels.
    All,
    /// A list: these labels.
    Labels(Vec<String>),
    /// `{without: […]}`: all labels but these.
    Without(Vec<String>),
}

impl ShardBy {
    fn of(json: &Json) -> Option<ShardBy> {
        match json {
            Json::String(word) if word == "all" => Some(ShardBy::All),
            Json::Object(entries) if entries.len() == 1 => {
                names(entries.get("without")?).map(ShardBy::Without)
            }
            list => names(list).map(ShardBy::Labels),
        }
    }
}

/// A list of label names, from 1 to 64.
fn names(json: &Json) -> Option<Vec<String>> {
    const MOST: usize = 64;
    let list = json.as_array().filter(|list| (1..=MOST).contains(&list.len()))?;
    list.iter().map(|name| name.as_str().filter(|name| !name.is_empty()).map(ToOwned::to_owned)).collect()
}

impl Setting for ShardBy {
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<ShardBy> {
        let found = ShardBy::of(&json_of(node)?);
        if found.is_none() {
            let help = "write `all`, a list of labels such as `[job, instance]`, or `{without: [le]}`";
            reader.refuse_shown(&node.at, "this does not say which labels place a series", help);
        }
        found
    }

    fn shape() -> Shape {
        Shape::Scalar(ScalarShape {
            what: "labels",
            example: "all",
            notation: "`all` labels, a list of labels (`[job, instance]`), or all but some (`{without: [le]}`).",
            choices: Vec::new(),
            schema: || {
                let names = json!({
                    "type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 64,
                });
                let without = json!({
                    "type": "object", "properties": {"without": names.clone()}, "required": ["without"],
                    "additionalProperties": false,
                });
                json!({"anyOf": [{"const": "all"}, names, without]})
            },
        })
    }

    fn plain(&self) -> PlainValue {
        match self {
            ShardBy::All => PlainValue::Text("all".to_owned()),
            ShardBy::Labels(names) => PlainValue::List(names.clone()),
            ShardBy::Without(names) => {
                PlainValue::Map(vec![("without".to_owned(), PlainValue::List(names.clone()))])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_all_some_or_all_but_some() {
        let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        assert_eq!(ShardBy::of(&json!("all")), Some(ShardBy::All));
        assert_eq!(ShardBy::of(&json!(["a", "b"])), Some(ShardBy::Labels(texts(&["a", "b"]))));
        assert_eq!(ShardBy::of(&json!({"without": ["le"]})), Some(ShardBy::Without(texts(&["le"]))));
        for wrong in
            [json!("some"), json!([]), json!([1]), json!([""]), json!({"with": ["a"]}), json!({}), json!(7)]
        {
            assert_eq!(ShardBy::of(&wrong), None, "{wrong}");
        }
    }
}
