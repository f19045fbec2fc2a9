import co.elastic.clients.elasticsearch.ElasticsearchClient;
import co.elastic.clients.elasticsearch._helpers.bulk.BulkIngester;
import co.elastic.clients.elasticsearch._helpers.bulk.BulkListener;
import co.elastic.clients.elasticsearch.core.BulkRequest;
import co.elastic.clients.elasticsearch.core.BulkResponse;
import co.elastic.clients.elasticsearch.core.bulk.BulkOperation;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Sends numbered documents with the BulkIngester of Elasticsearch's client for Java, and again those of a request that
 * failed.
 *
 * <p>Usage: java Bulk URL INDEX COUNT own|made
 *
 * <p>With `own` each document has an `_id` of its own, with `made` it has none. Says on standard error when it sends
 * again for the first time; prints the version that the other end says it has, and how often it did.
 */
final class Bulk {
  public static void main(String[] args) throws Exception {
    String index = args[1];
    int count = Integer.parseInt(args[2]);
    boolean own = args[3].equals("own");
    var again = new LinkedBlockingQueue<BulkOperation>();
    var taken = new AtomicInteger();
    var failed = new AtomicInteger();
    try (var client = ElasticsearchClient.of(builder -> builder.host(args[0]))) {
      String version = client.info().version().number();
      var listener = new BulkListener<Void>() {
        @Override
        public void beforeBulk(long id, BulkRequest request, List<Void> contexts) {}

        @Override
        public void afterBulk(long id, BulkRequest request, List<Void> contexts, BulkResponse response) {
          if (response.errors() || response.items().size() != request.operations().size()) {
            System.err.println("an item failed: " + response);
            System.exit(1);
          }
          taken.addAndGet(response.items().size());
        }

        @Override
        public void afterBulk(long id, BulkRequest request, List<Void> contexts, Throwable failure) {
          if (failed.incrementAndGet() == 1) System.err.println("again after " + failure);
          again.addAll(request.operations());
        }
      };
      try (var ingester = BulkIngester.<Void>of(builder -> builder
          .client(client).maxOperations(100).maxConcurrentRequests(2).flushInterval(200, TimeUnit.MILLISECONDS)
          .listener(listener))) {
        for (int number = 0; number < count; number++) {
          var document = Map.of(
              "@timestamp", 1700000000000L + number, "n", number, "message", "é \"" + number + "\"\n");
          String id = "own-" + number;
          ingester.add(own
              ? BulkOperation.of(op -> op.index(index1 -> index1.index(index).id(id).document(document)))
              : BulkOperation.of(op -> op.create(create -> create.index(index).document(document))));
        }
        for (int waits = 0; taken.get() < count; ) {
          BulkOperation operation = again.poll(100, TimeUnit.MILLISECONDS);
          if (operation != null) ingester.add(operation);
          else if (++waits == 2000) throw new IllegalStateException(taken + " of " + count + " were taken");
        }
      }
      System.out.println(version + " " + failed);
    }
  }
}
