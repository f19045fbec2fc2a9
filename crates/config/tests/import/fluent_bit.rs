//! Configurations of Fluent Bit: faults that are not to come back.

use super::beside;
use tidegate_config::{Imported, fluent_bit, parse};

fn import(text: &str) -> Result<Imported, String> {
    fluent_bit("f.conf", text, &beside).map_err(|errors| errors.to_string())
}

/// The settings of a conversion that our own reader accepts, without comments.
fn accepted(text: &str) -> String {
    let imported = import(text).unwrap_or_else(|errors| panic!("{errors}"));
    let text = &imported.configuration;
    if let Err(errors) = parse("printed", text, &|_| Some("value".to_owned())) {
        panic!("{errors}\n{text}");
    }
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

fn contains(configuration: &str, texts: &[&str]) {
    for text in texts {
        assert!(configuration.contains(text), "{text} in\n{configuration}");
    }
}

/// A tail with the tag `app`, these filters and an output for everything.
fn with_filters(filters: &str) -> String {
    format!(
        "[INPUT]\n Name tail\n Path /a.log\n Tag app\n{filters}[OUTPUT]\n Name opentelemetry\n Match *\n Host c\n"
    )
}

/// A rule looks only at the records that its filter takes, and only where no rule before it has matched.
#[test]
fn rules_take_what_their_filter_takes() {
    let text = "[INPUT]\n Name forward\n[FILTER]\n Name rewrite_tag\n Match app.*\n Rule $level ^error$ err true\n Rule $level ^e other false\n\
                [OUTPUT]\n Name loki\n Alias err\n Match err\n[OUTPUT]\n Name loki\n Alias other\n Match other\n[OUTPUT]\n Name loki\n Alias db\n Match db.*\n";
    let configuration = accepted(text);
    let of_app = r#"IsMatch(log.attributes["fluent.tag"], "^app\\..*$")"#;
    let error = format!(r#"({of_app}) and IsMatch(log.attributes["level"], "^error$")"#);
    contains(&configuration, &[&error, &format!("not ({error})"), "body_keys: [log, message, msg, MESSAGE]"]);
    let db = configuration.split("  db:\n").nth(1).unwrap();
    contains(db, &[r#"IsMatch(log.attributes["fluent.tag"], "^db\\..*$") and not (("#]);
}

/// Filters that a rewritten record would pass in Fluent Bit, but not here, are a mistake.
#[test]
fn a_filter_in_front_of_the_rule_for_its_tag_is_refused() {
    let text = with_filters(
        "[FILTER]\n Name modify\n Match err\n Remove password\n[FILTER]\n Name rewrite_tag\n Match app\n Rule $level ^e err false\n",
    );
    let errors = import(&text).unwrap_err();
    contains(&errors, &["would pass the filter `modify` (line 6) only before", "move the filter `modify`"]);
    let everywhere = text.replace("Match err", "Match *");
    assert!(import(&everywhere).is_ok(), "{:?}", import(&everywhere));
}

/// A rule for a part that a parser finds is named and refused, for it looks at records before that.
#[test]
fn a_rule_behind_a_parser_is_refused() {
    let text = with_filters("[FILTER]\n Name rewrite_tag\n Match app\n Rule $level ^e err false\n[FILTER]\n Name modify\n Match err\n Set a b\n")
        .replace(" Tag app\n", " Tag app\n Parser json\n");
    let imported = import(&text).unwrap();
    let named =
        |note: &tidegate_config::Note| note.message.contains("to be corrected") && note.line == Some(9);
    assert!(imported.notes.iter().any(named), "{:?}", imported.notes);
    assert!(parse("printed", &imported.configuration, &|_| None).is_err(), "{}", imported.configuration);
}

/// Steps know the rules that a record met when it was received, whatever steps before them have changed.
#[test]
fn rules_are_evaluated_before_steps() {
    let text = with_filters(
        "[FILTER]\n Name rewrite_tag\n Match app\n Rule $level ^e err false\n[FILTER]\n Name record_modifier\n Match err\n Allowlist_key level\n\
         [FILTER]\n Name modify\n Match err\n Set level x\n[FILTER]\n Name modify\n Match err\n Remove password\n",
    );
    let configuration = accepted(&text);
    let expected = [
        r#"set(log.attributes["fluent.rule.1"], true) where"#,
        r#"when: log.attributes["fluent.rule.1"] == true"#,
        r#"keep_keys(log.attributes, ["fluent.rule.1", "level"])"#,
        r#"delete_matching_keys(log.attributes, "^fluent\\.rule\\.[0-9]+$")"#,
    ];
    contains(&configuration, &expected);
}

/// The text that was parsed is gone, so what is removed from its parts is nowhere else.
#[test]
fn a_parsed_text_does_not_stay() {
    let parser = "[FILTER]\n Name parser\n Match *\n Key_Name log\n Parser json\n";
    let removed = r#"set(log.body, nil) where IsMap(log.cache["parsed"])"#;
    let others = r#"keep_matching_keys(log.attributes, "^fluent\\.") where"#;
    contains(&accepted(&with_filters(parser)), &[removed, others]);
    let kept = accepted(&with_filters(&format!("{parser} Preserve_Key On\n Reserve_Data On\n")));
    assert!(!kept.contains(removed) && !kept.contains(others), "{kept}");
    let tail = with_filters("").replace(" Tag app\n", " Tag app\n Parser json\n");
    let configuration = accepted(&tail);
    contains(&configuration, &[removed]);
    assert!(!configuration.contains("parse: json"), "{configuration}");
    let own = "[PARSER]\n Name nginx\n Format regex\n Regex ^(?<mine>a)\n[PARSER]\n Name own\n Format json\n Time_Key t\n Time_Format %s\n Types n:integer\n";
    let nginx = format!("{own}{}", tail.replace("Parser json", "Parser nginx"));
    contains(&accepted(&nginx), &["(?<mine>a)"]);
    let own = format!("{own}{}", tail.replace("Parser json", "Parser own"));
    contains(
        &accepted(&own),
        &[r#"Unix(Int(log.cache["parsed"]["t"]))"#, r#"Int(log.cache["parsed"]["n"])"#],
    );
}

/// Patterns of keys reach the body and the stream, too.
#[test]
fn patterns_remove_keys_wherever_they_are() {
    let filter =
        |rule: &str| accepted(&with_filters(&format!("[FILTER]\n Name modify\n Match *\n {rule}\n")));
    contains(
        &filter("Remove_regex ^(log|stream)$"),
        &["set(log.body, nil)", r#"delete_key(log.attributes, "log.iostream")"#],
    );
    contains(&filter("Remove_wildcard lo*"), &["set(log.body, nil)"]);
    assert!(!filter("Remove_regex ^secret").contains("log.body"));
    contains(&filter("Condition A_key_matches ^log$\n Set a b"), &["or log.body != nil"]);
    let allowlist =
        accepted(&with_filters("[FILTER]\n Name record_modifier\n Match *\n Allowlist_key level\n"));
    contains(&allowlist, &[r#"keep_keys(log.attributes, ["level"])"#, "set(log.body, nil)"]);
}

/// A key that a source has elsewhere is looked for there, or named and refused.
#[test]
fn keys_of_sources_are_where_the_source_has_them() {
    let filter = "[FILTER]\n Name modify\n Match *\n Remove _CMDLINE\n Remove _HOSTNAME\n";
    let journal = with_filters(filter).replace("Name tail\n Path /a.log", "Name systemd");
    let expected = [
        r#"delete_key(log.attributes, "process.command_line")"#,
        r#"delete_key(resource.attributes, "host.name")"#,
    ];
    contains(&accepted(&journal), &expected);
    let nginx = with_filters("[FILTER]\n Name grep\n Match *\n Regex remote ^10\n")
        .replace(" Tag app\n", " Tag app\n Parser nginx\n");
    let imported = import(&nginx).unwrap();
    let named =
        |note: &tidegate_config::Note| note.message.contains("to be corrected") && note.line == Some(9);
    assert!(imported.notes.iter().any(named), "{:?}", imported.notes);
    assert!(parse("printed", &imported.configuration, &|_| None).is_err(), "{}", imported.configuration);
}

/// The first `regex` decides, and quotes belong to the pattern.
#[test]
fn rules_of_grep_are_those_that_fluent_bit_looks_at() {
    let text =
        with_filters("[FILTER]\n Name grep\n Match *\n Exclude a \"x y\"\n Regex b ^1\n Exclude c ^2\n");
    let imported = import(&text).unwrap();
    assert!(
        imported.notes.iter().any(|note| note.line == Some(10) && note.message.contains("first `regex`"))
    );
    let configuration = accepted(&text);
    contains(&configuration, &[r#""\"x y\"""#, r#"not IsMatch(log.attributes["b"], "^1")"#]);
    assert!(!configuration.contains(r#"["c"]"#), "{configuration}");
}

/// Files that cannot be read and tags that cannot be told apart are mistakes.
#[test]
fn what_cannot_be_converted_is_refused() {
    let errors = import(&format!("@INCLUDE conf.d/*.conf\n{}", with_filters(""))).unwrap_err();
    contains(&errors, &["patterns are not expanded", "name each file"]);
    let inputs = "[INPUT]\n Name syslog\n Mode tcp\n Tag a\n[INPUT]\n Name syslog\n Mode udp\n Tag b\n[OUTPUT]\n Name loki\n Match ";
    contains(&import(&format!("{inputs}a\n")).unwrap_err(), &["share the source `syslog`"]);
    assert!(import(&format!("{inputs}*\n")).is_ok());
}

/// Patterns of tags and of lines keep their meaning.
#[test]
fn patterns_of_tags_ask_for_the_path_of_a_container() {
    let text = |matches: &str| {
        format!(
            "[INPUT]\n Name tail\n Path /var/log/containers/*.log\n Tag kube.*\n[FILTER]\n Name kubernetes\n Match kube.*\n[OUTPUT]\n Name loki\n {matches}\n"
        )
    };
    for (matches, regex) in [
        ("Match *_payments_*", r#""^.*_payments_.*$""#),
        ("Match kube.*nginx*", r#""^kube\\..*nginx.*$""#),
        (r"Match_Regex kube\.var\.log\.containers\.api", r#""kube\\.var\\.log\\.containers\\.api""#),
    ] {
        let configuration = accepted(&text(matches));
        let concat = r#"IsMatch(Concat(["kube.var.log.containers.", resource.attributes["k8s.pod.name"]"#;
        contains(&configuration, &[concat, regex]);
    }
    let notes = import(&text("Match *")).unwrap().notes;
    assert!(notes.iter().any(|note| note.message.contains("without `K8S-Logging.Exclude On`")), "{notes:?}");
    let yaml = "multiline_parsers:\n  - { name: m, type: regex, rules: [{ state: start_state, regex: '/^\"a\" b/', next_state: c }] }\n\
                pipeline:\n  inputs:\n    - { name: tail, path: /a.log, multiline.parser: m, tag: 'a.<pod>', tag_regex: '(?<pod>x)' }\n  outputs:\n    - name: null\n      match: 'a.b'\n";
    contains(&accepted(yaml), &["start_pattern: ^\"a\" b", "type: blackhole"]);
}

/// Settings of outputs that are not followed are named.
#[test]
fn settings_of_outputs_are_named_where_they_differ() {
    let noted = |output: &str, part: &str| {
        let text = format!("[INPUT]\n Name tail\n Path /a.log\n[OUTPUT]\n Match *\n{output}");
        let notes = import(&text).unwrap().notes;
        assert!(notes.iter().any(|note| note.message.contains(part) && !note.is_needless()), "{notes:?}");
    };
    noted(" Name opentelemetry\n logs_uri /a/v1/logs\n", "traces and metrics go to paths");
    noted(" Name es\n Write_Operation upsert\n", "documents are created");
    noted(" Name es\n Time_Key time\n", "the time is `@timestamp`");
    noted(" Name es\n Logstash_Format On\n Logstash_Prefix a\n Logstash_Prefix_Key b\n", "the prefix `a`");
    let text = with_filters("").replace("Match *", "Match_Regex (?=a)");
    let notes = import(&text).unwrap().notes;
    assert!(notes.iter().any(|note| note.message.contains("to be corrected")), "{notes:?}");
}

/// Many inputs or steps do not keep the importer busy.
#[test]
fn many_inputs_and_steps_are_converted_soon() {
    let inputs = "[INPUT]\n Name tail\n Path /a.log\n Tag a\n".repeat(1_000);
    let filters = "[FILTER]\n Name modify\n Match *\n Set a b\n".repeat(1_000);
    let output = "[OUTPUT]\n Name loki\n Match *\n";
    contains(&import(&format!("{inputs}{output}")).unwrap().configuration, &["a-1000:"]);
    let one = "[INPUT]\n Name tail\n Path /a.log\n";
    contains(&import(&format!("{one}{filters}{output}")).unwrap().configuration, &["name: modify-1000"]);
    let properties: String = (0..20_000).map(|number| format!(" unknown_{number} x\n")).collect();
    assert!(import(&format!("{one}{properties}{output}")).unwrap().notes.len() > 20_000);
    contains(&import(&format!("{inputs}{filters}{output}")).unwrap_err(), &["split the configuration"]);
}
