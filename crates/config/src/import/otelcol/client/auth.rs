//! Authentication extensions: the headers that they add.

use super::{Client, header};
use crate::error::quote;
use crate::import::group::{FileReader, Group, Text};
use crate::import::otelcol::components::Section;
use crate::import::otelcol::{Collector, settings, type_of};

impl Collector<'_> {
    /// The headers of an authentication extension.
    pub(super) fn auth(
        &mut self,
        group: &mut Group<'_>,
        client: &mut Client,
        reader: &mut FileReader<'_, '_>,
    ) {
        let Some(mut auth) = group.group("auth", reader) else { return };
        let name = auth.text("authenticator", reader);
        let path = auth.path_of("authenticator");
        auth.finish(reader);
        let Some(name) = name else { return };
        let Some(entry) = self.components.find(Section::Extensions, &name.value) else {
            self.components.refuse(Section::Extensions, &name, reader);
            return;
        };
        let Some(mut extension) = settings(entry, "extensions", reader) else { return };
        match type_of(&entry.key) {
            "bearertokenauth" => bearer(&mut extension, client, reader),
            "basicauth" => basic(&mut extension, client, reader),
            "headers_setter" => self.headers_setter(&mut extension, client, reader),
            _ => {
                extension.take_all();
                let message =
                    "left out: tidegate cannot fetch tokens or sign requests; headers with fixed values work";
                reader.note(&name.at, &path, message);
            }
        }
        extension.finish(reader);
    }

    fn headers_setter(
        &mut self,
        extension: &mut Group<'_>,
        client: &mut Client,
        reader: &mut FileReader<'_, '_>,
    ) {
        let path = extension.path_of("headers");
        for item in extension.items("headers", reader) {
            let Some(mut rule) = reader.group(item, &path) else { continue };
            let key = rule.text("key", reader);
            let value = rule.text("value", reader);
            let context = rule.text("from_context", reader);
            let action = rule.text("action", reader);
            rule.lacks(
                &[
                    ("from_attribute", "left out: headers cannot be made of authentication data"),
                    ("default_value", "left out: set `tenants.default` for requests without the header"),
                    ("value_file", "write `${file:PATH}` as the value of the header"),
                ],
                reader,
            );
            rule.finish(reader);
            let Some(key) = key else { continue };
            match (value, context) {
                _ if action.is_some_and(|action| action.value == "delete") => {
                    reader.note(&key.at, &path, "not needed: no header of a client is forwarded");
                }
                (Some(value), _) => header(client, &key.value, &value, &path, reader),
                (None, Some(context)) => self.tenant(client, &key, &context, &path, reader),
                (None, None) => {}
            }
        }
    }

    /// A header that is forwarded from clients names the tenant.
    fn tenant(
        &mut self,
        client: &mut Client,
        key: &Text,
        context: &Text,
        path: &str,
        reader: &mut FileReader<'_, '_>,
    ) {
        let source = context.value.strip_prefix("metadata.").unwrap_or(&context.value);
        if self.tenant_header.as_deref().is_none_or(|header| header.eq_ignore_ascii_case(source)) {
            self.tenant_header = Some(source.to_owned());
            self.out.group("tenants").set("header", source);
            client.settings.set("tenant_header", key.value.as_str());
            let message = format!(
                "the header {} of clients names their tenant now (`tenants.header`), which a request has to have; with \
                 `tenants.default` it may be absent",
                quote(source)
            );
            reader.note(&key.at, path, message);
        } else {
            reader.note(&key.at, path, "left out: only one header can be forwarded, that of the tenant");
        }
    }
}

fn bearer(extension: &mut Group<'_>, client: &mut Client, reader: &mut FileReader<'_, '_>) {
    let scheme = extension.text("scheme", reader).map_or_else(|| "Bearer".to_owned(), |text| text.value);
    let name = extension.text("header", reader).map_or_else(|| "authorization".to_owned(), |text| text.value);
    let token = extension.text("token", reader);
    let file = extension.text("filename", reader);
    extension.lacks(&[("tokens", "left out: a client sends one token")], reader);
    let (secret, given) = match (token, file) {
        (_, Some(file)) => (format!("${{file:{}}}", file.value), file),
        (Some(token), None) => (token.value.clone(), token),
        (None, None) => return,
    };
    let value = Text { value: format!("{scheme} {secret}").trim().to_owned(), ..given };
    header(client, &name, &value, &extension.path, reader);
}

fn basic(extension: &mut Group<'_>, client: &mut Client, reader: &mut FileReader<'_, '_>) {
    let Some(mut auth) = extension.group("client_auth", reader) else { return };
    let user = auth.text("username", reader);
    let password = auth.text("password", reader);
    auth.lacks(
        &[
            ("username_file", "left out: write `${file:PATH}` where the user name is needed"),
            ("password_file", "left out: write `${file:PATH}` where the password is needed"),
        ],
        reader,
    );
    auth.finish(reader);
    extension.lacks(&[("htpasswd", "left out: a client does not use it")], reader);
    let (Some(user), Some(password)) = (user, password) else { return };
    client.user = Some((user.value, password.value));
}
