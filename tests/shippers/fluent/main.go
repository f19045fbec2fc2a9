// Sends numbered records with Fluentd's logger for Go, each as a message of its own with an acknowledgement.
//
// client NETWORK ADDRESS FIRST COUNT: posts FIRST to FIRST+COUNT-1, and prints each number once it is acknowledged.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/fluent/fluent-logger-golang/fluent"
)

func main() {
	network, address := os.Args[1], os.Args[2]
	first, _ := strconv.Atoi(os.Args[3])
	count, _ := strconv.Atoi(os.Args[4])
	config := fluent.Config{
		FluentNetwork: network, RequestAck: true, SubSecondPrecision: true, Timeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, RetryWait: 50, MaxRetry: 200, MaxRetryWait: 500,
	}
	if network == "unix" {
		config.FluentSocketPath = address
	} else {
		host, port, err := net.SplitHostPort(address)
		fail(err)
		config.FluentHost = host
		config.FluentPort, err = strconv.Atoi(port)
		fail(err)
	}
	logger, err := fluent.New(config)
	fail(err)
	for number := first; number < first+count; number++ {
		record := map[string]interface{}{
			"message": fmt.Sprintf("record %d", number),
			"number":  number,
			"nested":  map[string]interface{}{"list": []interface{}{1, "two", 3.5, nil}},
		}
		at := time.Unix(1700000000, int64(number))
		fail(logger.PostWithTime("go.app", at, record))
		fmt.Println(number)
	}
	fail(logger.Close())
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
