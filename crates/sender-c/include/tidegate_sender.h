/* tidegate sender: spans, logs and metrics from C, to any OTLP or Elastic APM endpoint.
 *
 * - All memory is taken by tidegate_sender_new. No other call allocates, waits for the network, or takes a lock
 *   that the sending thread could hold, but for tidegate_sender_flush and tidegate_sender_shutdown, which wait.
 * - All buffers are the caller's, are read during the call only, and need no terminating zero.
 * - Nothing is ever called back.
 * - All functions but tidegate_sender_free may be called from any thread at any time, also after fork().
 *
 * Link with -ltidegate_sender_c. Spans and logs are described by structures that begin with their own size, so
 * that a later version can add members: set `size` to sizeof the structure, and everything else to zero first.
 */
#ifndef TIDEGATE_SENDER_H
#define TIDEGATE_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tidegate_sender tidegate_sender;

/* Text, as many bytes of UTF-8. Bytes that are not UTF-8 end it early. NULL with a length of 0 is empty. */
typedef struct tidegate_text {
    const char *bytes;
    size_t len;
} tidegate_text;

enum tidegate_result {
    TIDEGATE_OK = 0,
    TIDEGATE_FULL = 1,      /* the ring is full of what is more valuable */
    TIDEGATE_TOO_LARGE = 2, /* larger than one event may be */
    TIDEGATE_SHUT_DOWN = 3, /* after shutdown, or disabled by the environment */
    TIDEGATE_LEFT = 4,      /* time was up before everything was sent */
    TIDEGATE_WRONG = 5      /* a pointer is NULL that must not be, or a number is none of the known */
};

enum tidegate_value_kind {
    TIDEGATE_EMPTY = 0,
    TIDEGATE_STRING = 1,
    TIDEGATE_BOOL = 2,
    TIDEGATE_INT = 3,
    TIDEGATE_DOUBLE = 4,
    TIDEGATE_BYTES = 5
};

typedef struct tidegate_attribute {
    tidegate_text key;
    uint32_t kind;      /* of enum tidegate_value_kind: which of the following counts */
    bool boolean;
    int64_t integer;
    double number;
    tidegate_text text; /* strings and bytes */
} tidegate_attribute;

typedef struct tidegate_span {
    size_t size;
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t parent_id[8]; /* all zero: a root */
    bool parent_is_remote;
    uint8_t flags;        /* W3C: 1 is sampled */
    uint32_t kind;        /* as in OTLP: 0 and 1 internal, 2 server, 3 client, 4 producer, 5 consumer */
    uint32_t status;      /* as in OTLP: 0 unset, 1 ok, 2 error */
    tidegate_text name;
    tidegate_text status_message;
    uint64_t start_unix_nano;
    uint64_t end_unix_nano;
    const tidegate_attribute *attributes;
    size_t attribute_count;
} tidegate_span;

typedef struct tidegate_log {
    size_t size;
    uint64_t time_unix_nano;
    uint32_t severity;    /* as in OTLP: 1 trace, 5 debug, 9 info, 13 warn, 17 error, 21 fatal */
    tidegate_text body;
    tidegate_text event_name;
    uint8_t trace_id[16]; /* all zero: in no span */
    uint8_t span_id[8];
    uint8_t flags;
    const tidegate_attribute *attributes;
    size_t attribute_count;
} tidegate_log;

/* One number. A sum is monotonic and cumulative. */
typedef struct tidegate_metric {
    size_t size;
    tidegate_text name;
    tidegate_text unit;
    tidegate_text description;
    bool is_sum;
    bool is_integer;
    double number;
    int64_t integer;
    uint64_t start_unix_nano;
    uint64_t time_unix_nano;
    const tidegate_attribute *attributes;
    size_t attribute_count;
} tidegate_metric;

/* Counters; enqueued == sent + dropped + queued when nobody is in the middle of a call. */
typedef struct tidegate_stats {
    size_t size;
    uint64_t enqueued;
    uint64_t sent;
    uint64_t dropped;
    uint64_t queued;
    uint64_t queued_bytes;
    uint64_t ring_bytes;
    uint64_t requests;
    uint64_t retries;
    uint64_t wire_bytes;
    uint64_t memory_bytes; /* all that the sender takes, now and at any time */
} tidegate_stats;

/* Starts a sender as the environment says (OTEL_EXPORTER_OTLP_*, ELASTIC_APM_*) and, where they are not empty,
 * the arguments. NULL if that is not possible; then the reason is in `error` (up to `error_len` bytes, always
 * with a terminating zero if there is room for one). Otherwise `error` has what of the environment was taken
 * differently than it was meant, or is empty. `error` may be NULL. */
tidegate_sender *tidegate_sender_new(tidegate_text endpoint, tidegate_text service_name, char *error,
                                     size_t error_len);

int tidegate_sender_span(tidegate_sender *sender, const tidegate_span *span);
int tidegate_sender_log(tidegate_sender *sender, const tidegate_log *log);
int tidegate_sender_metric(tidegate_sender *sender, const tidegate_metric *metric);

/* Fills in new identities. Not for secrets. */
void tidegate_new_trace_id(uint8_t trace_id[16]);
void tidegate_new_span_id(uint8_t span_id[8]);

/* Waits until everything taken so far is sent, for so long at most. `left` (may be NULL) gets the number of
 * events that are not. */
int tidegate_sender_flush(tidegate_sender *sender, uint64_t timeout_ms, uint64_t *left);

/* The same, and ends the sending thread. What is left is dropped, and counted. */
int tidegate_sender_shutdown(tidegate_sender *sender, uint64_t timeout_ms, uint64_t *left);

/* Fills in as many counters as `stats->size` has room for. */
int tidegate_sender_stats(tidegate_sender *sender, tidegate_stats *stats);

/* Gives the sender back, once, when no other call is under way. Does not wait: shut it down before. */
void tidegate_sender_free(tidegate_sender *sender);

#ifdef __cplusplus
}
#endif

#endif
