// Sends bodies that are refused while they are still being sent, with and without a length, and prints the status of each
// answer.
//
// Usage: go HOST:PORT BYTES PATH CONTENT-TYPE ...
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	length, err := strconv.Atoi(os.Args[2])
	check(err)
	body := bytes.Repeat([]byte("x"), length)
	for at := 3; at+1 < len(os.Args); at += 2 {
		var statuses []string
		for _, reader := range []io.Reader{bytes.NewReader(body), io.MultiReader(bytes.NewReader(body))} {
			// Several, since what is at stake is a race.
			for range 5 {
				if seeker, ok := reader.(io.Seeker); ok {
					_, err := seeker.Seek(0, io.SeekStart)
					check(err)
				} else {
					reader = io.MultiReader(bytes.NewReader(body))
				}
				answer, err := http.Post("http://"+os.Args[1]+os.Args[at], os.Args[at+1], reader)
				check(err)
				_, err = io.Copy(io.Discard, answer.Body)
				check(err)
				check(answer.Body.Close())
				statuses = append(statuses, strconv.Itoa(answer.StatusCode))
			}
		}
		slices.Sort(statuses)
		fmt.Println(os.Args[at], strings.Join(slices.Compact(statuses), " "))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
