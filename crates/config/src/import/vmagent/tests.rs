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

/// The one sink of a command line with three URLs that begins like this.
fn sharded(flags: &str) -> String {
    let urls = "-remoteWrite.url=http://a:1/w,http://b:1/w -remoteWrite.url=http://c:1/w";
    vmagent(&arguments(&format!("{urls} {flags}")), &no_file).unwrap().configuration
}

#[test]
fn series_are_spread_by_one_sink() {
    let all = sharded("-remoteWrite.shardByURL -remoteWrite.queues=8");
    assert!(all.contains("endpoints: ['http://a:1/w', 'http://b:1/w', 'http://c:1/w']"), "{all}");
    assert!(all.contains("shard_by: all") && !all.contains("max_in_flight:"), "{all}");
    let labels = sharded("-remoteWrite.shardByURL=true -remoteWrite.shardByURL.labels=job,instance");
    assert!(labels.contains("shard_by: [job, instance]"), "{labels}");
    let without = sharded(
        "-remoteWrite.shardByURL -remoteWrite.shardByURL.ignoreLabels=le -remoteWrite.shardByURLReplicas=2",
    );
    assert!(without.contains("without: [le]") && without.contains("replicas: 2"), "{without}");
    let quota = sharded("-remoteWrite.shardByURL -remoteWrite.maxDiskUsagePerURL=1GiB");
    assert!(quota.contains("quota: 1GiB") && quota.contains("total_quota: 3GiB"), "{quota}");
    for configuration in [all, labels, without, quota] {
        assert!(!configuration.contains("upstream-1"));
        crate::parse("imported", &configuration, &|_| None).unwrap();
    }
}

/// Without the switch the other flags say nothing, as in vmagent.
#[test]
fn without_the_switch_each_url_has_all_series() {
    for flags in ["-remoteWrite.shardByURL=false", "-remoteWrite.shardByURLReplicas=2"] {
        let each = sharded(flags);
        assert!(each.contains("upstream-3") && !each.contains("shard_by:"), "{each}");
    }
}

#[test]
fn what_one_sink_cannot_do_is_named() {
    let replicas = sharded("-remoteWrite.shardByURL -remoteWrite.shardByURLReplicas=5");
    assert!(replicas.contains("replicas: 3") && replicas.contains("3 were chosen, of 3 URLs"), "{replicas}");
    let differ = sharded("-remoteWrite.shardByURL -remoteWrite.sendTimeout=1m,2m,1m");
    assert!(
        differ.contains("those of http://b:1/w are others") && !differ.contains("of http://c"),
        "{differ}"
    );
    let line = "-remoteWrite.url=http://a,http://b -remoteWrite.shardByURL -remoteWrite.shardByURL.labels=a \
                -remoteWrite.shardByURL.ignoreLabels=b";
    let error = vmagent(&arguments(line), &no_file).unwrap_err().to_string();
    assert!(error.contains("exclude each other"), "{error}");
}

/// The rules of a URL are those of its own file; a label is no replacement with groups.
#[test]
fn a_single_file_of_rules_is_for_the_first_url() {
    let line = "-remoteWrite.url=http://a:1/w -remoteWrite.url=http://b:1/w -remoteWrite.urlRelabelConfig=rules.yml \
                -remoteWrite.label=cost=$5";
    let read = |_: &str| Ok("- action: drop\n  source_labels: [a]\n".to_owned());
    let converted = vmagent(&arguments(line), &read).unwrap().configuration;
    let (first, second) = converted.split_once("upstream-2").unwrap();
    assert!(first.contains("action: drop") && !second.contains("action: drop"), "{converted}");
    // Read back it is `$$5`, which stands for `$5` in a replacement.
    assert!(second.contains("replacement: $$$5\n"), "{converted}");
}
