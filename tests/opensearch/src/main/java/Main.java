import org.codelibs.opensearch.runner.OpenSearchRunner;

/** One node of OpenSearch on loopback: PORT FOLDER [SETTING=VALUE ...]. It runs until it is killed. */
public class Main {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        OpenSearchRunner runner = new OpenSearchRunner();
        // Without it ports above 9299 are taken for unavailable.
        runner.setMaxHttpPort(port + 50);
        runner.onBuild((number, settings) -> {
            settings.put("discovery.type", "single-node");
            settings.put("network.host", "127.0.0.1");
            settings.put("cluster.routing.allocation.disk.threshold_enabled", "false");
            settings.putNull("discovery.seed_hosts");
            for (int at = 2; at < arguments.length; at++) {
                String[] setting = arguments[at].split("=", 2);
                settings.put(setting[0], setting[1]);
            }
        });
        runner.build(OpenSearchRunner.newConfigs()
            .clusterName("tidegate").numOfNode(1).basePath(arguments[1]).baseHttpPort(port - 1));
        runner.ensureYellow();
        System.out.println("ready");
        Thread.sleep(Long.MAX_VALUE);
    }
}
