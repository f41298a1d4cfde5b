// Command failover calls the leader of a pair through go-redis, which follows Sentinel. See
// lab/clients/README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/lab/clients/internal/report"
)

func open(sentinels []string, name, password string) *redis.Client {
	// sentinel: begin
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		SentinelAddrs: sentinels, // []string{"10.0.0.1:26379", "10.0.0.2:26379", "10.0.0.3:26379"}
		MasterName:    name,      // "mymaster"
		Password:      password,
		MaxRetries:    -1,
	})
	// sentinel: end
	return client
}

func main() {
	interval, err := strconv.Atoi(os.Getenv("INTERVAL_MS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-redis: INTERVAL_MS:", err)
		os.Exit(1)
	}
	client := open(strings.Split(os.Getenv("SENTINELS"), ","), os.Getenv("NAME"), os.Getenv("PASSWORD"))
	defer func() { _ = client.Close() }()
	keys := make(chan string)
	go func() {
		defer close(keys)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			keys <- lines.Text()
		}
	}()
	follow(client, keys, time.Duration(interval)*time.Millisecond)
}

// section counts the calls since the last line of standard input.
type section struct {
	report.Section
	last time.Time // of a success
}

func follow(client *redis.Client, keys <-chan string, interval time.Duration) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	s := section{last: time.Now()}
	s.begin(<-keys)
	for {
		select {
		case key, more := <-keys:
			if !more {
				return
			}
			s.end()
			s.begin(key)
		case <-ticks.C:
			s.call(client)
		}
	}
}

func (s *section) begin(key string) {
	s.Section = report.Section{
		Library: "go-redis", Version: report.ModuleVersion("github.com/redis/go-redis/v9"),
		Key: key, Errors: map[string]int{},
	}
}

func (s *section) end() {
	s.SinceMs = milliseconds(time.Since(s.last))
	s.LongestMs = max(s.LongestMs, s.SinceMs)
	_ = json.NewEncoder(os.Stdout).Encode(s.Section)
}

func (s *section) call(client *redis.Client) {
	ctx := context.Background()
	allowed := true
	var err error
	if os.Getenv("CALL") == "incr" {
		err = client.Incr(ctx, s.Key).Err()
	} else {
		var reply []int64
		// A burst of 200,000 and five hours a unit: practically nothing leaks.
		reply, err = client.Do(ctx, "CL.THROTTLE", s.Key, 199_999, 1, 18_000).Int64Slice()
		allowed = err == nil && reply[0] == 0
	}
	if err != nil {
		s.failed(err)
		return
	}
	s.OK++
	if allowed {
		s.Allowed++
	}
	s.LongestMs = max(s.LongestMs, milliseconds(time.Since(s.last)))
	s.last = time.Now()
}

// failed counts a call by what is known of it: refused and unsent calls were not charged.
func (s *section) failed(err error) {
	text := err.Error()
	var dial *net.OpError
	switch code, _, _ := strings.Cut(text, " "); {
	case code == "READONLY" || code == "LOADING" || code == "MASTERDOWN" || code == "NOREPLICAS":
		s.Refused++
	case errors.As(err, &dial) && dial.Op == "dial" || strings.HasPrefix(text, "redis: all sentinels"):
		s.Unsent++
	default:
		s.Unknown++
	}
	s.Errors[text[:min(len(text), 100)]]++
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
