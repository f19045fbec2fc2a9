import co.elastic.apm.api.ElasticApm;
import co.elastic.apm.api.Outcome;
import co.elastic.apm.api.Span;
import co.elastic.apm.api.Transaction;
import java.util.StringJoiner;

/** Sends events with Elastic's agent for Java, and prints what it sent as one JSON object. */
public class App {
    public static void main(String[] arguments) throws Exception {
        Transaction transaction = ElasticApm.startTransaction();
        transaction.setName("GET /item/{id}").setType("request").setResult("HTTP 2xx").setOutcome(Outcome.SUCCESS);
        transaction.setLabel("region", "eu").setLabel("ok", true).setLabel("count", 3);
        transaction.setUser("7", "bob@example.org", "bob", "example");
        transaction.addCustomContext("cart", "two");
        StringJoiner spans = new StringJoiner("\",\"", "[\"", "\"]");
        for (int number = 0; number < 3; number++) {
            Span span = transaction.startSpan("db", "postgresql", "query");
            span.setName("SELECT t" + number).setLabel("number", number);
            span.setDestinationAddress("db", 5432);
            spans.add(span.getId());
            span.end();
        }
        transaction.captureException(new IllegalStateException("boom"));
        String said = "{\"service\":\"shop-java\",\"trace_id\":\"" + transaction.getTraceId() + "\",\"transaction_id\":\""
            + transaction.getId() + "\",\"spans\":" + spans + "}";
        transaction.end();
        Thread.sleep(4000);
        System.out.println(said);
    }
}
