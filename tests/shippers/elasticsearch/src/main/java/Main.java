import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.transport.Netty4Plugin;

/**
 * A node of Elasticsearch itself, of the parts that are published: no data streams, no licences.
 *
 * <p>Usage: java Main PORT FOLDER [NAME=VALUE ...]
 */
final class Main {
  /** The constructor that takes plugins is for heirs. */
  private static final class Plain extends Node {
    Plain(Settings settings, Path config) {
      super(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), config, () -> "node"),
          List.of(Netty4Plugin.class), false);
    }
  }

  public static void main(String[] args) throws Exception {
    var config = Files.createDirectories(Path.of(args[1], "config"));
    var settings = Settings.builder()
        .put("path.home", args[1]).put("network.host", "127.0.0.1").put("http.port", args[0]).put("transport.port", "0")
        .put("discovery.type", "single-node").put("transport.type", "netty4").put("http.type", "netty4")
        .put("cluster.routing.allocation.disk.threshold_enabled", false);
    for (int at = 2; at < args.length; at++) {
      var pair = args[at].split("=", 2);
      settings.put(pair[0], pair[1]);
    }
    new Plain(settings.build(), config).start();
    Thread.currentThread().join();
  }
}
