use super::*;

fn arguments(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn no_file(_path: &str) -> Result<String, String> {
    Err("there is none".to_owned())
}

#[test]
fn a_command_line_has_to_send_somewhere() {
    let error = vmagent(&arguments("-httpListenAddr=:8429"), &no_file).unwrap_err().to_string();
    assert!(error.contains("-remoteWrite.url"), "{error}");
}

#[test]
fn a_misspelt_flag_is_an_error_with_the_right_one() {
    let error = vmagent(&arguments("-remoteWrite.urlRelabelConf=x"), &no_file).unwrap_err().to_string();
    assert!(error.contains("did you mean `-remoteWrite.urlRelabelConfig`"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let line = "-remoteWrite.url=http://a/api/v1/write -remoteWrite.relabelConfig=rules.yml";
    let error = vmagent(&arguments(line), &no_file).unwrap_err().to_string();
    assert!(error.contains("rules.yml") && error.contains("there is none"), "{error}");
}

/// A mistake in a file is told with the file's name and the place.
#[test]
fn a_mistake_in_the_rules_has_its_place() {
    let line = "-remoteWrite.url=http://a/api/v1/write -remoteWrite.relabelConfig rules.yml";
    let read = |_: &str| Ok("- action: dorp\n  source_labels: [a]\n".to_owned());
    let error = vmagent(&arguments(line), &read).unwrap_err().to_string();
    assert!(error.contains("rules.yml:1") && error.contains("did you mean `drop`"), "{error}");
}
