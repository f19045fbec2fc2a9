//! Functions of VRL that parse texts.

use super::Translation;
use super::statements::Translator;
use super::syntax::{Call, Expression};

pub(super) const WORDS_ALONE: &str =
    "a line with a word that has no value is not parsed; in Vector such a word is `true`";

impl Translator<'_> {
    /// The names that a parser found, in the cache. Where the text has none of them it is absent, as the parser of VRL
    /// fails there, and the rest of the statement does not apply. `pattern` tells whether a text has them; without one, no
    /// names tell that it has not.
    pub(super) fn extracted(
        &mut self,
        call: &Call,
        extraction: &str,
        pattern: Option<(&str, &str)>,
    ) -> String {
        let result = self.temporary();
        match pattern {
            Some((value, pattern)) => {
                let matches = format!("IsMatch({value}, {pattern})");
                self.emit_where(&format!("set({result}, {extraction})"), Some(&matches));
            }
            None => {
                self.emit(&format!("set({result}, {extraction})"));
                let is_empty = format!("{result} != nil and Len({result}) == 0");
                self.emit_where(&format!("set({result}, nil)"), Some(&is_empty));
            }
        }
        if call.aborts {
            // A statement that fails where the parser does, for `on_error`.
            self.emit_where(
                &format!("set({result}, ParseJSON(\"no match\"))"),
                Some(&format!("{result} == nil")),
            );
        }
        self.conditions.push(format!("{result} != nil"));
        result
    }

    pub(super) fn parse_regex(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        match call.argument(1, "pattern") {
            Some(Expression::Regex(pattern)) if call.has_only(2, &["value", "pattern"]) => {
                if !pattern.contains("(?P<") && !pattern.contains("(?<") {
                    return Err("`ExtractPatterns` needs groups with names".to_owned());
                }
                let pattern = self.literal(pattern);
                let extraction = format!("ExtractPatterns({value}, {pattern})");
                Ok(self.extracted(call, &extraction, Some((&value, &pattern))))
            }
            _ => Err("the pattern of `parse_regex` has to be a literal, without options".to_owned()),
        }
    }

    pub(super) fn parse_grok(&mut self, call: &Call) -> Translation<String> {
        let value = self.first(call)?;
        let pattern = call.argument(1, "pattern").and_then(|pattern| pattern.as_text());
        let pattern = pattern.ok_or_else(|| "the pattern of `parse_grok` has to be a literal".to_owned())?;
        let extraction = format!("ExtractGrokPatterns({value}, {}, true)", self.literal(&pattern));
        Ok(self.extracted(call, &extraction, None))
    }

    pub(super) fn parse_key_value(&mut self, call: &Call) -> Translation<String> {
        if !call.has_only(3, &["value", "key_value_delimiter", "field_delimiter"]) {
            return Err("the options of `parse_key_value` have no counterpart".to_owned());
        }
        self.note(WORDS_ALONE);
        let value = self.first(call)?;
        let delimiters = (call.argument(1, "key_value_delimiter"), call.argument(2, "field_delimiter"));
        if delimiters == (None, None) {
            return Ok(format!("ParseKeyValue({value})"));
        }
        let mut rendered = Vec::new();
        for (delimiter, default) in [(delimiters.0, "="), (delimiters.1, " ")] {
            rendered.push(match delimiter {
                Some(delimiter) => self.value(delimiter)?,
                None => format!("\"{default}\""),
            });
        }
        Ok(format!("ParseKeyValue({value}, {})", rendered.join(", ")))
    }
}
