/* A worker that reports what it does: a span for each job, a log record when one fails, a count of jobs.
 *
 *   cc examples/worker.c $(pkg-config --cflags --libs tidegate-sender) -o worker
 *   OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 ./worker
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tidegate_sender.h"

static tidegate_text text(const char *string) {
    tidegate_text text = {string, strlen(string)};
    return text;
}

static uint64_t now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(void) {
    char error[512];
    tidegate_sender *sender = tidegate_sender_new(text(""), text("worker"), error, sizeof error);
    if (sender == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    if (error[0] != '\0') {
        fprintf(stderr, "warning: %s\n", error);
    }

    for (int64_t job = 0; job < 100; job++) {
        tidegate_attribute attributes[2];
        memset(attributes, 0, sizeof attributes);
        attributes[0].key = text("job.id");
        attributes[0].kind = TIDEGATE_INT;
        attributes[0].integer = job;
        attributes[1].key = text("job.queue");
        attributes[1].kind = TIDEGATE_STRING;
        attributes[1].text = text("mail");

        tidegate_span span;
        memset(&span, 0, sizeof span);
        span.size = sizeof span;
        span.name = text("job");
        span.kind = 5;
        span.flags = 1;
        tidegate_new_trace_id(span.trace_id);
        tidegate_new_span_id(span.span_id);
        span.attributes = attributes;
        span.attribute_count = 2;
        span.start_unix_nano = now();
        /* The job itself would be done here. */
        span.end_unix_nano = now();

        if (job % 10 == 9) {
            span.status = 2;
            span.status_message = text("no such address");
            tidegate_log log;
            memset(&log, 0, sizeof log);
            log.size = sizeof log;
            log.time_unix_nano = now();
            log.severity = 17;
            log.body = text("job failed");
            memcpy(log.trace_id, span.trace_id, sizeof log.trace_id);
            memcpy(log.span_id, span.span_id, sizeof log.span_id);
            tidegate_sender_log(sender, &log);
        }
        if (tidegate_sender_span(sender, &span) != TIDEGATE_OK) {
            fprintf(stderr, "job %d is not reported\n", (int)job);
        }
    }

    tidegate_metric jobs;
    memset(&jobs, 0, sizeof jobs);
    jobs.size = sizeof jobs;
    jobs.name = text("jobs");
    jobs.unit = text("{job}");
    jobs.is_sum = true;
    jobs.is_integer = true;
    jobs.integer = 100;
    jobs.time_unix_nano = now();
    tidegate_sender_metric(sender, &jobs);

    uint64_t left = 0;
    int result = tidegate_sender_shutdown(sender, 10000, &left);
    tidegate_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.size = sizeof stats;
    tidegate_sender_stats(sender, &stats);
    printf("%d events sent, %d dropped, %d left, in %d bytes of memory\n", (int)stats.sent, (int)stats.dropped,
           (int)left, (int)stats.memory_bytes);
    tidegate_sender_free(sender);
    return result == TIDEGATE_OK ? 0 : 1;
}
