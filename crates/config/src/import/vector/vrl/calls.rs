//! Functions of VRL that are values.

use super::Translation;
use super::conditions::{escaped, is_condition};
use super::statements::Translator;
use super::syntax::{Call, Expression};
use crate::import::references;
use crate::import::vector::vocabulary::{refuse_negative_index, within};

/// Functions of one argument with the same meaning.
const SAME: [(&str, &str); 23] = [
    ("parse_json", "ParseJSON"),
    ("parse_logfmt", "ParseKeyValue"),
    ("parse_url", "URL"),
    ("parse_cef", "ParseCEF"),
    ("upcase", "ToUpperCase"),
    ("downcase", "ToLowerCase"),
    ("snakecase", "ToSnakeCase"),
    ("camelcase", "ToCamelCase"),
    ("to_string", "String"),
    ("to_int", "Int"),
    ("to_float", "Double"),
    ("encode_json", "String"),
    ("length", "Len"),
    ("strlen", "Len"),
    ("md5", "MD5"),
    ("sha1", "SHA1"),
    ("encode_base64", "Base64Encode"),
    ("now", "Now"),
    ("uuid_v4", "UUID"),
    ("uuid_v7", "UUIDv7"),
    ("object", ""),
    ("array", ""),
    ("string", ""),
];

/// Why a function of nearly the same meaning is none here.
fn difference(name: &str) -> Option<&'static str> {
    match name {
        "encode_json" => Some("`String` writes a text without quotes"),
        "parse_url" => Some("`URL` names the parts by conventions, such as `url.domain`"),
        "camelcase" => Some("`ToCamelCase` begins with a capital letter"),
        "strlen" => Some("`Len` counts the bytes of a text, not its characters"),
        _ => None,
    }
}

/// The result of a conversion of an absent value.
pub(super) fn default_of(conversion: &str) -> Option<&'static str> {
    match conversion {
        "to_int" => Some("0"),
        "to_float" => Some("0.0"),
        "to_string" => Some("\"\""),
        _ => None,
    }
}

impl Translator<'_> {
    /// The value of a call.
    pub(super) fn call(&mut self, call: &Call) -> Translation<String> {
        refuse_negative_index(&call.path)?;
        let value = self.whole_call(call)?;
        if call.path.is_empty() {
            return Ok(value);
        }
        if value.starts_with("log.cache[") {
            return Ok(within(&value, &call.path).path);
        }
        let result = self.temporary();
        self.emit(&format!("set({result}, {value})"));
        self.conditions.push(format!("{result} != nil"));
        Ok(within(&result, &call.path).path)
    }

    fn whole_call(&mut self, call: &Call) -> Translation<String> {
        let name = call.name.as_str();
        if let Some((_, ours)) = SAME.into_iter().find(|(theirs, _)| *theirs == name) {
            if name == "now" || name.starts_with("uuid") {
                return Ok(format!("{ours}()"));
            }
            if !call.has_only(1, &["value"]) {
                return Err(format!("the options of `{name}` have no counterpart"));
            }
            if name == "parse_logfmt" {
                self.note(super::parsers::WORDS_ALONE);
            }
            if let Some(reason) = difference(name) {
                return Err(reason.to_owned());
            }
            if !self.is_lone
                && let Some(default) = default_of(name)
            {
                return self.converted(call, ours, default);
            }
            return self.one(call, ours);
        }
        if is_condition(name) {
            let condition = self.condition(&Expression::Call(call.clone()))?;
            let result = self.temporary();
            if matches!(name, "is_empty" | "includes") {
                // Of what is no list, the condition fails: there is no result.
                self.emit_where(&format!("set({result}, true)"), Some(&condition));
                self.emit_where(&format!("set({result}, false)"), Some(&format!("not ({condition})")));
                self.conditions.push(format!("{result} != nil"));
            } else {
                self.emit(&format!("set({result}, false)"));
                self.emit_where(&format!("set({result}, true)"), Some(&condition));
            }
            return Ok(result);
        }
        match name {
            "int" | "float" | "bool" | "timestamp" => self.one(call, ""),
            "del" => match call.argument(0, "target") {
                Some(Expression::Path(path)) => {
                    let (source, present) = self.present(path)?;
                    let result = self.temporary();
                    self.emit_where(&format!("set({result}, {source})"), Some(&present));
                    self.delete(path)?;
                    Ok(result)
                }
                _ => Err("`del` takes the path of a field".to_owned()),
            },
            "to_bool" => self.boolean(call),
            "values" => Err("`Values` has them in the order in which they stand".to_owned()),
            // In the order of the keys.
            "keys" => Ok(format!("Sort({})", self.one(call, "Keys")?)),
            "sha2" => match call.argument(1, "variant").and_then(|variant| variant.as_text()).as_deref() {
                Some("SHA-256") => self.one(call, "SHA256"),
                Some("SHA-512") => self.one(call, "SHA512"),
                _ => Err("of `sha2`, SHA-256 and SHA-512 have counterparts".to_owned()),
            },
            "decode_base64" => Ok(format!("Decode({}, \"base64\")", self.first(call)?)),
            "strip_whitespace" => Ok(format!("Trim({}, \" \\t\\n\\r\")", self.first(call)?)),
            "parse_regex" => self.parse_regex(call),
            "parse_grok" => self.parse_grok(call),
            "parse_key_value" => self.parse_key_value(call),
            "parse_timestamp" => self.timestamp(call, "Time"),
            "format_timestamp" => self.timestamp(call, "FormatTime"),
            "to_unix_timestamp" => self.unix_timestamp(call),
            "from_unix_timestamp" => self.time_of_unix_timestamp(call),
            "get_env_var" => self.environment(call, None),
            "get_hostname" => Ok("resource.attributes[\"host.name\"]".to_owned()),
            "replace" | "redact" => self.replaced(call),
            "split" => self.split(call),
            "join" => self.join(call),
            "slice" => self.slice(call),
            "parse_int" => match call.argument(1, "base") {
                Some(base) => {
                    let (value, base) = (self.first(call)?, self.value(base)?);
                    Ok(format!("ParseInt({value}, {base})"))
                }
                // A prefix names the base.
                None => Ok(format!("ParseInt({}, 0)", self.first(call)?)),
            },
            "merge" => self.merged(call),
            "parse_syslog" => Err("the source `syslog` parses syslog".to_owned()),
            "parse_apache_log" | "parse_nginx_log" | "parse_common_log" | "parse_klog" => {
                Err("set `parse` of the source, or assign it to the event".to_owned())
            }
            "get_enrichment_table_record" | "find_enrichment_table_records" => {
                Err("there are no enrichment tables".to_owned())
            }
            "get_secret" => Err("secrets are environment variables here".to_owned()),
            _ => Err(format!("`{name}` has no counterpart")),
        }
    }

    pub(super) fn first(&mut self, call: &Call) -> Translation<String> {
        let value = call.argument(0, "value");
        let value = value.ok_or_else(|| format!("`{}` has no argument", call.name))?;
        self.value(value.bare())
    }

    /// A call with the first argument alone; without a function the argument is what is meant.
    fn one(&mut self, call: &Call, function: &str) -> Translation<String> {
        let value = self.first(call)?;
        Ok(if function.is_empty() { value } else { format!("{function}({value})") })
    }

    /// A conversion, which has a value for an absent one in VRL.
    fn converted(&mut self, call: &Call, function: &str, default: &str) -> Translation<String> {
        let value = self.first(call)?;
        let result = self.temporary();
        if function == "String" {
            // Of maps and lists, `to_string` makes no text.
            let has_none = format!("IsMap({value}) or IsList({value})");
            self.emit_where(&format!("set({result}, String({value}))"), Some(&format!("not ({has_none})")));
            if call.aborts {
                // A statement that fails where the conversion does, for `on_error`.
                self.emit_where(&format!("set({result}, ParseJSON(\"no text\"))"), Some(&has_none));
            }
        } else {
            self.emit(&format!("set({result}, {function}({value}))"));
        }
        self.emit_where(&format!("set({result}, {default})"), Some(&format!("{value} == nil")));
        self.conditions.push(format!("{result} != nil"));
        Ok(result)
    }

    /// `to_bool`, which takes more words for texts than `Bool` does.
    fn boolean(&mut self, call: &Call) -> Translation<String> {
        if !call.has_only(1, &["value"]) {
            return Err("the options of `to_bool` have no counterpart".to_owned());
        }
        let value = self.first(call)?;
        let result = self.temporary();
        let text = |pattern: &str| format!("IsString({value}) and IsMatch({value}, \"{pattern}\")");
        let cases = [
            ("true", text("(?i)^(true|t|yes|y)$$")),
            ("true", text("^[+-]?0*[1-9][0-9]*$$")),
            ("false", text("(?i)^(false|f|no|n|[+-]?0+)$$")),
            ("false", format!("{value} == nil")),
        ];
        for (word, condition) in cases {
            self.emit_where(&format!("set({result}, {word})"), Some(&condition));
        }
        // It fails where `to_bool` does.
        self.emit_where(&format!("set({result}, Bool({value}))"), Some(&format!("{result} == nil")));
        self.conditions.push(format!("{result} != nil"));
        Ok(result)
    }

    fn timestamp(&mut self, call: &Call, function: &str) -> Translation<String> {
        let value = if function == "Time" { self.first(call)? } else { self.time(call)? };
        let format = call.argument(1, "format").and_then(|format| format.as_text());
        let format = format.ok_or_else(|| "the format of a time has to be a literal".to_owned())?;
        if format.contains("%j") || format.contains("%s") {
            return Err("days of the year and Unix times in formats have no counterpart".to_owned());
        }
        let format = layout(&format, function == "Time")?;
        let zone = match call.argument(2, "timezone") {
            Some(zone) if function == "Time" => format!(", {}", self.value(zone)?),
            Some(_) => return Err("times are formatted in UTC".to_owned()),
            None => String::new(),
        };
        Ok(format!("{function}({value}, {}{zone})", self.literal(&format)))
    }

    /// The first argument as a time: fields and variables hold the text of one, as it is written into them.
    fn time(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        let is_time = ["log.time", "Time(", "Now(", "Unix("].iter().any(|time| value.starts_with(time));
        Ok(if is_time { value } else { format!("Time({value}, \"%Y-%m-%dT%H:%M:%SZ\")") })
    }

    fn unix_timestamp(&mut self, call: &Call) -> Translation<String> {
        let value = self.time(call)?;
        let unit = call.argument(1, "unit").and_then(|unit| unit.as_text());
        let function = match unit.as_deref() {
            None | Some("seconds") => "UnixSeconds",
            Some("milliseconds") => "UnixMilli",
            Some("microseconds") => "UnixMicro",
            Some("nanoseconds") => "UnixNano",
            Some(_) => return Err("the unit is not known".to_owned()),
        };
        Ok(format!("{function}({value})"))
    }

    fn time_of_unix_timestamp(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        let unit = call.argument(1, "unit").and_then(|unit| unit.as_text());
        match unit.as_deref() {
            None | Some("seconds") => Ok(format!("Unix({value})")),
            _ => Err("of `from_unix_timestamp`, seconds have a counterpart".to_owned()),
        }
    }

    /// A variable of the environment, which is replaced when the configuration is read.
    pub(super) fn environment(&mut self, call: &Call, default: Option<&str>) -> Translation<String> {
        let name = call.argument(0, "name").and_then(|name| name.as_text());
        let name = name.ok_or_else(|| "the name of a variable has to be a literal".to_owned())?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_plain = default.is_none_or(|default| !default.contains(['$', '}', '"', '\\']));
        if !is_name || !is_plain {
            return Err("the name or the default of the variable cannot be written here".to_owned());
        }
        Ok(match default {
            Some(default) if !default.is_empty() => format!("\"${{{name}:-{default}}}\""),
            _ => format!("\"${{{name}}}\""),
        })
    }

    /// Whether a call changes the field that its value is assigned to.
    pub(super) fn edits_in_place(&mut self, call: &Call, target: &str) -> bool {
        matches!(call.name.as_str(), "replace" | "redact" | "push" | "append" | "flatten" | "merge")
            && call.path.is_empty()
            && (call.argument(0, "value").or_else(|| call.argument(0, "to")))
                .is_some_and(|value| self.probe(value.bare()).is_some_and(|value| value == target))
    }

    pub(super) fn edit_in_place(&mut self, call: &Call, target: &str) -> Translation<()> {
        match call.name.as_str() {
            "flatten" if call.arguments.len() == 1 => self.emit(&format!("flatten({target})")),
            "push" => {
                let item = call.argument(1, "item").ok_or_else(|| "`push` has two arguments".to_owned())?;
                let item = self.value(item)?;
                self.emit(&format!("append({target}, {item})"));
            }
            "append" => {
                let items =
                    call.argument(1, "items").ok_or_else(|| "`append` has two arguments".to_owned())?;
                let items = self.value(items)?;
                self.emit(&format!("append({target}, values = {items})"));
            }
            "merge" => {
                let from = call.argument(1, "from").ok_or_else(|| "`merge` has two arguments".to_owned())?;
                let from = self.value(from)?;
                self.emit(&format!("merge_maps({target}, {from}, \"upsert\")"));
            }
            _ => self.replacements(call, target)?,
        }
        Ok(())
    }

    fn replaced(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        let result = self.temporary();
        self.emit(&format!("set({result}, {value})"));
        self.replacements(call, &result)?;
        Ok(result)
    }

    fn replacements(&mut self, call: &Call, target: &str) -> Translation<()> {
        if call.name == "redact" {
            let Some(Expression::List(filters)) = call.argument(1, "filters") else {
                return Err("the filters of `redact` have to be a list of literals".to_owned());
            };
            if !call.has_only(2, &["value", "filters"]) {
                return Err("the redactor cannot be chosen: a step `redact` has masks".to_owned());
            }
            for filter in filters {
                let pattern = match (filter, filter.as_text().as_deref()) {
                    (Expression::Regex(pattern), _) => self.literal(pattern),
                    (_, Some("us_social_security_number")) => self.literal(r"\d{3}-?\d{2}-?\d{4}"),
                    _ => return Err("this filter of `redact` has no counterpart".to_owned()),
                };
                // Also inside of objects and lists.
                self.emit(&format!("redact({target}, \"[REDACTED]\", {pattern})"));
            }
            return Ok(());
        }
        if call.argument(3, "count").is_some() {
            return Err("all matches are replaced: `count` has no counterpart".to_owned());
        }
        let is_literal = !matches!(call.argument(1, "pattern"), Some(Expression::Regex(_)));
        let pattern = match call.argument(1, "pattern") {
            Some(Expression::Regex(pattern)) => pattern.clone(),
            Some(other) => match other.as_text() {
                Some(text) => escaped(&text),
                None => return Err("the pattern of `replace` has to be a literal".to_owned()),
            },
            None => return Err("`replace` has three arguments".to_owned()),
        };
        let with = call.argument(2, "with").and_then(|with| with.as_text());
        let with = with.ok_or_else(|| "the replacement has to be a literal".to_owned())?;
        // A dollar sign begins the name of a group, but not behind a plain text.
        let with = if is_literal && with.contains('$') {
            return Err("a dollar sign in the replacement of a text has no counterpart".to_owned());
        } else {
            self.literal(&with)
        };
        self.emit(&format!("replace_pattern({target}, {}, {with})", self.literal(&pattern)));
        Ok(())
    }

    fn split(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        let pattern = call.argument(1, "pattern").and_then(|pattern| pattern.as_text());
        match pattern.filter(|_| call.has_only(2, &["value", "pattern"])) {
            Some(pattern) => Ok(format!("Split({value}, {})", self.literal(&pattern))),
            None => Err("the pattern of `split` has to be a text, without a limit".to_owned()),
        }
    }

    fn join(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        let separator = match call.argument(1, "separator") {
            Some(separator) => self.value(separator)?,
            None => "\"\"".to_owned(),
        };
        Ok(format!("Concat({value}, {separator})"))
    }

    fn slice(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        let number = |expression: Option<&Expression>| match expression {
            Some(Expression::Number(number)) => number.parse::<u64>().ok(),
            _ => None,
        };
        match (number(call.argument(1, "start")), number(call.argument(2, "end"))) {
            // The end of a shorter text is its own.
            (Some(start), Some(end)) if end >= start => {
                let result = self.temporary();
                let whole = format!("Len({value}) >= {end}");
                self.emit_where(
                    &format!("set({result}, Substring({value}, {start}, {}))", end - start),
                    Some(&whole),
                );
                let shorter = format!("Len({value}) < {end} and Len({value}) >= {start}");
                let rest = format!("Substring({value}, {start}, Len({value}) - {start})");
                self.emit_where(&format!("set({result}, {rest})"), Some(&shorter));
                self.conditions.push(format!("{result} != nil"));
                Ok(result)
            }
            _ => Err("`slice` needs a start and an end that are not negative".to_owned()),
        }
    }

    fn merged(&mut self, call: &Call) -> Translation<String> {
        let (to, from) = (call.argument(0, "to"), call.argument(1, "from"));
        let (Some(to), Some(from)) = (to, from) else {
            return Err("`merge` has two arguments".to_owned());
        };
        if call.argument(2, "deep").is_some() {
            return Err("members of the same name would be replaced, not merged".to_owned());
        }
        let (to, from) = (self.value(to.bare())?, self.value(from.bare())?);
        let result = self.temporary();
        self.emit(&format!("set({result}, {to})"));
        self.emit(&format!("merge_maps({result}, {from}, \"upsert\")"));
        Ok(result)
    }
}

/// A format of times as OTTL has it. A fraction of a second is read without being named.
fn layout(format: &str, is_read: bool) -> Translation<String> {
    let fraction = if is_read { "" } else { ".%L" };
    let whole = format
        .replace("%+", &format!("%Y-%m-%dT%H:%M:%S{fraction}%z"))
        .replace("%:z", "%j")
        .replace("%.3f", ".%L")
        .replace("%3f", "%L")
        .replace("%.6f", ".%f")
        .replace("%6f", "%f")
        .replace("%.9f", ".%s")
        .replace("%.f", ".%f");
    let whole = if is_read {
        whole.replace("%S.%f", "%S").replace("%S.%L", "%S").replace("%S.%s", "%S")
    } else {
        whole
    };
    let mut rest = whole.as_str();
    while let Some((_, behind)) = rest.split_once('%') {
        let directive = behind.chars().next().unwrap_or('%');
        if !"YmdHMSzjbBaAyIpehfLsDTFRZ%".contains(directive) {
            return Err(format!("the format `%{directive}` has no counterpart"));
        }
        rest = behind.get(directive.len_utf8()..).unwrap_or_default();
    }
    Ok(references::vector(&whole).0)
}
