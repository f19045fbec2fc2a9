//! Calls: finds the function, and fits arguments to its parameters.

use super::super::components;
use super::super::diagnostic::Fault;
use super::super::field::Context;
use super::super::program::{Argument, Call, Expression};
use super::super::signature::{Signature, Type};
use super::super::suggest;
use super::super::syntax::{ArgumentTree, CallTree, Name, ValueTree};
use super::Checker;
use crate::functions;
use crate::regex::Regexes;
use crate::value::Value;

/// Whether the function `name` may be called in `context`.
pub(super) fn exists_in(context: Context, name: &str) -> bool {
    components::contexts(name).is_none_or(|contexts| contexts.contains(&context))
}

impl Checker<'_> {
    /// The function `name`, if it exists in this context.
    pub(super) fn function(&mut self, name: &Name) -> Option<&'static Signature> {
        let found = functions::find(&name.text);
        if found.is_some() && !exists_in(self.context, &name.text) {
            let message = format!("`{}` does not exist in the context `{}`", name.text, self.context.name());
            let contexts = components::contexts(&name.text).unwrap_or_default().iter();
            let contexts: Vec<_> = contexts.map(|context| format!("`{}`", context.name())).collect();
            let help = format!("it exists in {}", contexts.join(" and "));
            self.error(Fault::new(name.range.clone(), message).help(help));
            return None;
        }
        if found.is_none() {
            let message = format!("there is no function `{}`", name.text);
            let fault = Fault::new(name.range.clone(), message);
            let editor = name.text.starts_with(|first: char| first.is_ascii_lowercase());
            let near = if editor { suggest::editor(&name.text) } else { suggest::converter(&name.text) };
            let fault = match (components::refused(&name.text), near) {
                (Some(reason), _) => {
                    let message = format!("the function `{}` is not supported: {reason}", name.text);
                    Fault::new(name.range.clone(), message)
                }
                (None, Some(near)) => fault.help(format!("did you mean `{near}`?")),
                (None, None) => fault,
            };
            self.error(fault);
        }
        found
    }

    /// A call without the keys behind it.
    pub(super) fn call(&mut self, tree: &CallTree) -> Option<Call> {
        let Some(function) = self.function(&tree.name) else {
            // Errors inside are worth knowing at the same time.
            for argument in &tree.arguments {
                self.argument_of_unknown(&argument.value);
            }
            return None;
        };
        let fitted = self.fit(function, tree)?;
        let errors = self.errors.len();
        let mut arguments = Vec::new();
        for (position, argument) in fitted.iter().enumerate() {
            let compiled = match (function.parameters.get(position), argument) {
                (Some(parameter), Some(value)) => self.argument(function, *parameter, value),
                _ => Some(Argument::Absent),
            };
            arguments.push(compiled.unwrap_or(Argument::Absent));
        }
        if self.errors.len() > errors {
            return None;
        }
        self.prepare(function, &fitted, &mut arguments)?;
        Some(Call { function, arguments: arguments.into() })
    }

    /// The argument of each parameter.
    fn fit<'t>(&mut self, function: &Signature, tree: &'t CallTree) -> Option<Vec<Option<&'t ValueTree>>> {
        let errors = self.errors.len();
        let mut fitted: Vec<Option<&ValueTree>> = vec![None; function.parameters.len()];
        let mut named = false;
        for (position, argument) in tree.arguments.iter().enumerate() {
            named |= argument.name.is_some();
            let Some(slot) = self.slot(function, position, argument, named) else { continue };
            match fitted.get_mut(slot) {
                Some(free @ None) => *free = Some(&argument.value),
                Some(Some(_)) => {
                    let parameter = function.parameters.get(slot).map_or("", |parameter| parameter.name);
                    let message =
                        format!("`{}` has two values for its parameter `{parameter}`", function.name);
                    self.error(Fault::new(argument.value.range.clone(), message));
                }
                None => {}
            }
        }
        let missing = function.parameters.iter().zip(&fitted);
        let missing: Vec<_> = missing
            .filter(|(parameter, argument)| !parameter.optional && argument.is_none())
            .map(|(parameter, _)| format!("`{}`", parameter.name))
            .collect();
        if !missing.is_empty() && self.errors.len() == errors {
            let message = format!("`{}` needs a value for {}", function.name, missing.join(" and "));
            self.error(Fault::new(tree.range.clone(), message).help(usage(function)));
        }
        (self.errors.len() == errors).then_some(fitted)
    }

    /// The position of the parameter that an argument is for.
    fn slot(
        &mut self,
        function: &Signature,
        at: usize,
        argument: &ArgumentTree,
        named: bool,
    ) -> Option<usize> {
        let Some(name) = &argument.name else {
            if named {
                let message = "an argument without a name stands behind one with a name";
                self.error(Fault::new(argument.value.range.clone(), message).help(usage(function)));
                return None;
            }
            if at >= function.parameters.len() {
                let most = function.parameters.len();
                let plural = if most == 1 { "" } else { "s" };
                let message = format!("`{}` takes at most {most} argument{plural}", function.name);
                self.error(Fault::new(argument.value.range.clone(), message).help(usage(function)));
                return None;
            }
            return Some(at);
        };
        let same = |parameter: &str| camel(parameter) == camel(&name.text);
        let found = function.parameters.iter().position(|parameter| same(parameter.name));
        if found.is_none() {
            let message = format!("`{}` has no parameter `{}`", function.name, name.text);
            let names = function.parameters.iter().map(|parameter| parameter.name);
            let help = match suggest::nearest(&name.text, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => usage(function),
            };
            self.error(Fault::new(name.range.clone(), message).help(help));
        }
        found
    }

    /// Compiles literals: regular expressions, formats, names of modes.
    fn prepare(
        &mut self,
        function: &'static Signature,
        trees: &[Option<&ValueTree>],
        arguments: &mut [Argument],
    ) -> Option<()> {
        let errors = self.errors.len();
        for (position, (argument, tree)) in arguments.iter_mut().zip(trees).enumerate() {
            let Some(tree) = tree else { continue };
            if let Argument::Value(Expression::Literal(Value::Text(slice))) = argument {
                // The lexer made it of UTF-8.
                let literal = String::from_utf8_lossy(self.literals.get(*slice)).into_owned();
                match (function.prepare)(position, &literal, &mut self.literals.regexes) {
                    None => {}
                    Some(Ok(prepared)) => *argument = Argument::Prepared(prepared),
                    Some(Err(reason)) => self.error(Fault::new(tree.range.clone(), reason)),
                }
            } else if matches!(argument, Argument::Value(_)) && compiles(function, position) {
                let parameter = function.parameters.get(position).map_or("", |parameter| parameter.name);
                let message = format!("the {parameter} of `{}` has to be a string literal", function.name);
                let help = "it is compiled when the configuration is read";
                self.error(Fault::new(tree.range.clone(), message).help(help));
            }
        }
        if self.errors.len() > errors {
            return None;
        }
        match self.literals.complete(function, arguments) {
            Ok(()) => Some(()),
            Err((position, reason)) => {
                let range = trees.get(position).copied().flatten().map_or(0..0, |tree| tree.range.clone());
                self.error(Fault::new(range, reason));
                None
            }
        }
    }
}

/// Whether the function compiles the text of the parameter at `position`.
fn compiles(function: &Signature, position: usize) -> bool {
    let text = function.parameters.get(position).is_some_and(|parameter| parameter.accepts == Type::Text);
    text && (function.prepare)(position, "a", &mut Regexes::default()).is_some()
}

/// `delete_key(target, key)`.
fn usage(function: &Signature) -> String {
    let names = function.parameters.iter().map(|parameter| match parameter.optional {
        true => format!("[{}]", parameter.name),
        false => parameter.name.to_owned(),
    });
    format!("its parameters: {}({})", function.name, names.collect::<Vec<_>>().join(", "))
}

/// `replacement_format` and `replacementFormat` name the same parameter.
fn camel(name: &str) -> String {
    let mut camel = String::new();
    let mut capital = true;
    for letter in name.chars() {
        match letter {
            '_' => capital = true,
            _ if capital => {
                camel.push(letter.to_ascii_uppercase());
                // After a digit, too.
                capital = letter.is_ascii_digit();
            }
            _ => {
                camel.push(letter);
                capital = letter.is_ascii_digit();
            }
        }
    }
    camel
}
