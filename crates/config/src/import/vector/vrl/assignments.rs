//! Assignments of VRL.

use super::access_logs;
use super::statements::Translator;
use super::syntax::{Call, Expression, Target};
use super::{Segment, Translation};
use crate::import::vector::vocabulary::{Place, PlaceKind, refuse_negative_index, whole, within};

const TIME_IN_VARIABLE: &str = "variables are no times: assign it to the field";

impl Translator<'_> {
    pub(super) fn assignment(
        &mut self,
        targets: &[Target],
        operator: &str,
        value: &Expression,
    ) -> Translation<()> {
        let Some(target) = targets.first() else { return Err("it has no target".to_owned()) };
        match (operator, targets.get(1)) {
            ("=", None) => self.assign(target, value),
            ("=", Some(Target::Variable(error, path))) if path.is_empty() => {
                self.out.handles_errors = true;
                if !self.conditions.is_empty() && self.errors.contains_key(error) {
                    return Err(format!("`{error}` has another meaning behind a condition"));
                }
                let mut rendered = self.attempted(value)?;
                if is_time(value) {
                    rendered = format!("UnixNano({rendered})");
                }
                // A variable that is new tells by its absence that there was an error.
                if let Target::Variable(name, path) = target {
                    if is_time(value) {
                        return Err(TIME_IN_VARIABLE.to_owned());
                    }
                    let variable = self.variable(name, path);
                    if !self.out.lines.iter().any(|line| line.text.contains(&variable)) {
                        self.emit(&format!("set({variable}, {rendered})"));
                        self.errors.insert(error.clone(), variable);
                        return Ok(());
                    }
                }
                let temporary = self.temporary();
                self.emit(&format!("set({temporary}, {rendered})"));
                self.errors.insert(error.clone(), temporary.clone());
                let stored = if is_time(value) { format!("Unix(0, {temporary})") } else { temporary.clone() };
                self.store(target, &stored, Some(&format!("{temporary} != nil")))
            }
            ("=", Some(Target::Nothing)) => {
                self.out.handles_errors = true;
                self.assign(target, value)
            }
            ("|=", None) => match target {
                Target::Path(path) if path.is_empty() => self.merge_into_event(value),
                target => {
                    let path = self.target_path(target)?;
                    let value = self.value(value)?;
                    self.emit(&format!("merge_maps({path}, {value}, \"upsert\")"));
                    Ok(())
                }
            },
            ("??=", None) => {
                self.out.handles_errors = true;
                self.assign(target, value)
            }
            _ => Err("this assignment has no counterpart".to_owned()),
        }
    }

    fn target_path(&mut self, target: &Target) -> Translation<String> {
        match target {
            Target::Path(path) => self.out.vocabulary.place(path).map(|place| place.path),
            Target::Variable(name, path) => Ok(self.variable(name, path)),
            Target::Nothing => Err("it has no target".to_owned()),
        }
    }

    fn assign(&mut self, target: &Target, value: &Expression) -> Translation<()> {
        let value = value.bare();
        if let Target::Path(path) = target
            && path.is_empty()
            && self.out.vocabulary.attributes() == "log.attributes"
        {
            return self.assign_event(value);
        }
        if let Target::Nothing = target {
            return Ok(());
        }
        let own = self.target_path(target).unwrap_or_default();
        match value {
            // A renamed field.
            Expression::Call(call) if call.name == "del" && call.path.is_empty() => {
                let Some(Expression::Path(path)) = call.argument(0, "target") else {
                    return Err("`del` takes the path of a field".to_owned());
                };
                let (source, present) = self.present(path)?;
                if source == own {
                    return Ok(());
                }
                self.store(target, &source, Some(&present))?;
                self.delete(path)
            }
            Expression::Path(path) => {
                let (source, present) = self.present(path)?;
                // Where there is no value, the target has none, either.
                if source != own
                    && let Target::Path(target) = target
                {
                    self.delete_where(target, &format!("not ({present})"));
                }
                self.store(target, &source, Some(&present))
            }
            Expression::Variable(name, path) => {
                refuse_negative_index(path)?;
                let containers = self.containers.len();
                let source = self.variable(name, path);
                let present = self.guarded(containers, &format!("{source} != nil"));
                self.store(target, &source, Some(&present))
            }
            // A failure leaves the field as it was.
            Expression::Binary("??", attempt, fallback)
                if self.probe(fallback).is_some_and(|fallback| fallback == own) =>
            {
                self.out.handles_errors = true;
                self.assign(target, attempt)
            }
            Expression::Binary("||", first, fallback)
                if self.probe(first).is_some_and(|first| first == own) =>
            {
                let fallback = self.value(fallback)?;
                self.store(target, &fallback, Some(&format!("{own} == nil or {own} == false")))
            }
            Expression::Call(call) if self.edits_in_place(call, &own) => self.edit_in_place(call, &own),
            _ => {
                let rendered = self.value(value)?;
                self.store_typed(target, &rendered, is_time(value), is_constant(value))
            }
        }
    }

    /// Removes a field under a condition, if it is one of the record's attributes.
    fn delete_where(&mut self, path: &[Segment], condition: &str) {
        let Ok(place) = self.out.vocabulary.place(path) else { return };
        if place.kind == PlaceKind::Other && place.path.starts_with("log.attributes[") {
            let outer = self.conditions.len();
            self.conditions.push(condition.to_owned());
            // A path of a list is left as it is.
            let _ = self.delete(path);
            self.conditions.truncate(outer);
        }
    }

    /// Stores what is neither constant nor known to be a time.
    fn store(&mut self, target: &Target, value: &str, condition: Option<&str>) -> Translation<()> {
        match condition {
            Some(condition) => {
                let outer = self.conditions.len();
                self.conditions.push(condition.to_owned());
                let result = self.store_typed(target, value, is_rendered_time(value), false);
                self.conditions.truncate(outer);
                result
            }
            None => self.store_typed(target, value, false, false),
        }
    }

    fn store_typed(
        &mut self,
        target: &Target,
        value: &str,
        is_time: bool,
        is_constant: bool,
    ) -> Translation<()> {
        let path = match target {
            Target::Path(path) => path,
            Target::Variable(..) if is_time => return Err(TIME_IN_VARIABLE.to_owned()),
            Target::Variable(name, path) => {
                refuse_negative_index(path)?;
                let place = self.variable(name, path);
                self.emit(&format!("set({place}, {value})"));
                return Ok(());
            }
            Target::Nothing => return Ok(()),
        };
        let merged = self.out.vocabulary.merged_key(path);
        let place = self.writable(path, is_time, is_constant)?;
        if let Some(key) = merged.filter(|_| place.path != within("log.attributes", path).path) {
            // The field that a parser found gives way to the value, if there is one.
            let copy = self.temporary();
            let is_stored_as_time = is_time && place.kind == PlaceKind::Time;
            if is_stored_as_time {
                self.emit(&format!("set({copy}, UnixNano({value}))"));
            } else if is_time {
                self.emit(&format!("set({copy}, FormatTime({value}, \"%Y-%m-%dT%H:%M:%S.%sZ\"))"));
            } else {
                self.emit(&format!("set({copy}, {value})"));
            }
            let present = format!("{copy} != nil");
            let stored = if is_stored_as_time { format!("Unix(0, {copy})") } else { copy };
            self.emit_where(&format!("set({}, {stored})", place.path), Some(&present));
            self.emit_where(&format!("delete_key(log.attributes, {})", self.literal(&key)), Some(&present));
            return Ok(());
        }
        if is_time && place.kind != PlaceKind::Time {
            // An attribute is no time: it is the text that Vector writes.
            let text = format!("FormatTime({value}, \"%Y-%m-%dT%H:%M:%S.%sZ\")");
            self.emit(&format!("set({}, {text})", place.path));
            return Ok(());
        }
        self.emit(&format!("set({}, {value})", place.path));
        Ok(())
    }

    /// The place for a new value of a field.
    fn writable(&mut self, path: &[Segment], is_time: bool, is_constant: bool) -> Translation<Place> {
        let is_timestamp = matches!(path, [Segment::Field(name)] if name == "timestamp");
        let place = match self.out.vocabulary.place(path) {
            Ok(place) => place,
            // A field of its own, whatever a source would have called so.
            Err(_) if matches!(path, [Segment::Field(name)] if name == "source_type") => {
                within("log.attributes", path)
            }
            Err(reason) => return Err(reason),
        };
        match place.kind {
            _ if is_timestamp && is_time => Ok(whole("log.time", PlaceKind::Time)),
            PlaceKind::Time => {
                self.note(
                    "it became an attribute: only `now()` and parsed times become the time of a record",
                );
                Ok(within("log.attributes", path))
            }
            PlaceKind::Resource if !(is_constant && self.conditions.is_empty()) => {
                let message = format!(
                    "`{}` became an attribute of the record: records of a resource share those of the resource",
                    place.path
                );
                self.note(message);
                let moved = self.out.vocabulary.move_to_record(path);
                moved.ok_or_else(|| "the field has no counterpart".to_owned())
            }
            PlaceKind::Event => Err("an event with other fields has no counterpart here".to_owned()),
            _ => Ok(place),
        }
    }

    /// `. = …`
    fn assign_event(&mut self, value: &Expression) -> Translation<()> {
        if !self.conditions.is_empty()
            && !matches!(value, Expression::Call(call) if call.name.starts_with("merge"))
        {
            return Err("an event that is replaced under a condition has two sets of fields".to_owned());
        }
        match value {
            value if value.is_event() => Ok(()),
            Expression::Binary("??", attempt, fallback) if fallback.is_event() => {
                self.out.handles_errors = true;
                self.assign_event(attempt.bare())
            }
            Expression::Call(Call { name, .. }) if name == "merge" => {
                let Expression::Call(call) = value else { return Ok(()) };
                match (call.argument(0, "to"), call.argument(1, "from")) {
                    (Some(to), Some(from)) if to.is_event() => {
                        if matches!(call.argument(2, "deep"), Some(Expression::Boolean(true))) {
                            self.note("members of the same name are replaced, not merged");
                        }
                        self.merge_into_event(from)
                    }
                    _ => Err("only `merge(., …)` has a counterpart for the event".to_owned()),
                }
            }
            Expression::Call(call)
                if call.name == "flatten"
                    && call.arguments.len() == 1
                    && call.argument(0, "value").is_some_and(Expression::is_event) =>
            {
                self.emit("flatten(log.attributes)");
                Ok(())
            }
            Expression::Call(call) if access_logs::pattern(call).is_some() => self.access_log(call, true),
            _ => {
                let mut fields = self.value(value)?;
                if !fields.starts_with("log.cache[") {
                    let copy = self.temporary();
                    self.emit(&format!("set({copy}, {fields})"));
                    fields = copy;
                }
                self.replace_event(&fields);
                Ok(())
            }
        }
    }

    /// `. |= …`
    fn merge_into_event(&mut self, value: &Expression) -> Translation<()> {
        let value = value.bare();
        if let Expression::Call(call) = value
            && access_logs::pattern(call).is_some()
        {
            return self.access_log(call, false);
        }
        if let Expression::Binary("??", attempt, fallback) = value
            && matches!(fallback.bare(), Expression::Map(members) if members.is_empty())
        {
            self.out.handles_errors = true;
            return self.merge_into_event(attempt);
        }
        let rendered = self.value(value)?;
        let condition = matches!(value, Expression::Path(_) | Expression::Variable(..))
            .then(|| format!("{rendered} != nil"));
        self.emit_where(&format!("merge_maps(log.attributes, {rendered}, \"upsert\")"), condition.as_deref());
        self.out.vocabulary.is_merged = true;
        self.take_message();
        Ok(())
    }

    /// Puts a map of the cache in the place of the event, if it is there.
    fn replace_event(&mut self, fields: &str) {
        let outer = self.conditions.len();
        let present = format!("{fields} != nil");
        if !self.conditions.contains(&present) {
            self.conditions.push(present);
        }
        self.emit(&format!("set(log.attributes, {fields})"));
        self.out.vocabulary.is_replaced = true;
        self.out.vocabulary.is_merged = false;
        self.out.vocabulary.moved.clear();
        // What is no map fails above, and leaves the event.
        self.conditions.truncate(outer);
        self.conditions.retain(|condition| *condition != format!("{fields} != nil"));
        self.conditions.push(format!("IsMap({fields})"));
        // The event was the line, which must not stay where the program took fields out of it.
        self.emit_where("set(log.body, nil)", Some("log.attributes[\"message\"] == nil"));
        self.take_message();
    }

    /// A member `message` of an event is the body of the record.
    fn take_message(&mut self) {
        let present = "log.attributes[\"message\"] != nil";
        self.emit_where("set(log.body, log.attributes[\"message\"])", Some(present));
        self.emit("delete_key(log.attributes, \"message\")");
    }

    /// An access log as the event, or merged into it.
    fn access_log(&mut self, call: &Call, replaces: bool) -> Translation<()> {
        let (pattern, format) =
            access_logs::pattern(call).ok_or_else(|| "the format is not known".to_owned())?;
        let line = call.argument(0, "value").ok_or_else(|| "there is nothing to parse".to_owned())?;
        let line = self.value(line.bare())?;
        let pattern = self.literal(pattern);
        let extraction = format!("ExtractPatterns({line}, {pattern})");
        let parsed = self.extracted(call, &extraction, Some((&line, &pattern)));
        if replaces {
            self.replace_event(&parsed);
        } else {
            self.emit(&format!("merge_maps(log.attributes, {parsed}, \"upsert\")"));
            self.out.vocabulary.is_merged = true;
            self.take_message();
        }
        for number in ["status", "size"] {
            let field = format!("log.attributes[\"{number}\"]");
            self.emit_where(&format!("set({field}, Int({field}))"), Some(&format!("{field} != nil")));
        }
        let time = "log.attributes[\"timestamp\"]";
        let present = format!("{time} != nil");
        self.emit_where(&format!("set(log.time, Time({time}, \"{format}\"))"), Some(&present));
        self.emit("delete_key(log.attributes, \"timestamp\")");
        self.note("fields that are `-` in the line stay, as `-`; `parse: apache` or `parse: nginx` of the source names them by conventions");
        Ok(())
    }
}

/// Whether a value in OTTL is a time.
fn is_rendered_time(value: &str) -> bool {
    value == "log.time" || value.starts_with("Unix(0, ")
}

/// Whether a value is what a function for times gives.
pub(super) fn is_time_call(value: &Expression) -> bool {
    matches!(value.bare(), Expression::Call(call)
        if matches!(call.name.as_str(), "now" | "parse_timestamp" | "from_unix_timestamp"))
}

/// Whether a value is a time.
pub(super) fn is_time(value: &Expression) -> bool {
    match value.bare() {
        Expression::Call(_) => is_time_call(value),
        Expression::Binary("??" | "||", first, second) => is_time(first) && is_time(second),
        _ => false,
    }
}

/// Whether a value is the same for all records.
fn is_constant(value: &Expression) -> bool {
    match value {
        Expression::Text(_) => value.as_text().is_some(),
        Expression::Number(_) | Expression::Boolean(_) | Expression::Reference(_) => true,
        Expression::Call(call) => matches!(call.name.as_str(), "get_env_var"),
        Expression::Binary("??", first, second) => is_constant(first) && is_constant(second),
        _ => false,
    }
}
