/* Forks while other threads start, end, resolve names, allocate, and the sender shakes hands.
 *
 * Each child sends one span and sees it off. Says "stuck: PID" of one that does not, and leaves it running.
 */
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tidegate_sender.h"

static tidegate_sender *sender;
static volatile int stop;

static tidegate_text text(const char *string) {
    tidegate_text text = {string, strlen(string)};
    return text;
}

static void *nothing(void *argument) {
    return argument;
}

static void *threads(void *argument) {
    while (!stop) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return argument;
}

static void *names(void *argument) {
    while (!stop) {
        struct addrinfo *found;
        if (getaddrinfo("localhost", "1", NULL, &found) == 0)
            freeaddrinfo(found);
    }
    return argument;
}

static void *memory(void *argument) {
    for (size_t size = 1; !stop; size = size * 3 % 1000003)
        free(malloc(size));
    return argument;
}

/* Logs go to a peer behind TLS that closes each connection. */
static void *handshakes(void *argument) {
    while (!stop) {
        tidegate_log log;
        memset(&log, 0, sizeof log);
        log.size = sizeof log;
        log.body = text("noise");
        tidegate_sender_log(sender, &log);
        tidegate_sender_flush(sender, 1000, NULL);
    }
    return argument;
}

static int child(int number) {
    tidegate_span span;
    memset(&span, 0, sizeof span);
    span.size = sizeof span;
    span.name = text("forked");
    memset(span.trace_id, 7, sizeof span.trace_id);
    memcpy(span.span_id, &number, sizeof number);
    span.span_id[7] = 1;
    if (tidegate_sender_span(sender, &span) != TIDEGATE_OK)
        return 1;
    return tidegate_sender_flush(sender, 50000, NULL) == TIDEGATE_OK ? 0 : 2;
}

/* Less than the child asks for, so that it is still there. */
static int wait_for(pid_t process) {
    for (int rounds = 0; rounds < 40000; rounds++) {
        int status = -1;
        struct timespec pause = {0, 1000000};
        if (waitpid(process, &status, WNOHANG) == process)
            return status;
        nanosleep(&pause, NULL);
    }
    printf("stuck: %d\n", (int)process);
    fflush(stdout);
    _exit(3);
}

int main(int count, char **arguments) {
    void *(*noise[])(void *) = {threads, threads, names, memory, handshakes};
    pthread_t running[5];
    char error[512];
    int forks = count > 1 ? atoi(arguments[1]) : 0;

    sender = tidegate_sender_new(text(""), text("forks"), error, sizeof error);
    if (sender == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    for (int thread = 0; thread < 5; thread++)
        if (pthread_create(&running[thread], NULL, noise[thread], NULL) != 0)
            return 1;
    for (int number = 1; number <= forks; number++) {
        pid_t process = fork();
        if (process == -1) {
            perror("fork");
            return 1;
        }
        if (process == 0)
            _exit(child(number));
        int status = wait_for(process);
        if (status != 0) {
            fprintf(stderr, "child %d ended with %d\n", number, status);
            return 1;
        }
    }
    stop = 1;
    for (int thread = 0; thread < 5; thread++)
        pthread_join(running[thread], NULL);
    tidegate_sender_free(sender);
    return 0;
}
