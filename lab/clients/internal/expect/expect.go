// Package expect has the calls that the Go programs make and the replies that they expect. Its functions are
// safe for concurrent use.
package expect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Script stands in for CL.THROTTLE in clients without such a command.
const Script = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"

// DaySeconds is a period so long that no unit leaks during a check.
const DaySeconds = 86400

// Fresh expects the reply to 15 30 60 for a new key.
func Fresh(reply []int64, err error) error { return Reply(reply, err, 0, 16, 15, -1, 2) }

// Reply expects a reply of five integers that begins with these.
func Reply(reply []int64, err error, values ...int64) error {
	if err != nil {
		return err
	}
	if len(reply) != 5 || !slices.Equal(reply[:len(values)], values) {
		return fmt.Errorf("reply %d, want %d", reply, values)
	}
	return nil
}

// Pipelined expects the replies to 100 calls of 49 1 DaySeconds: the first 50 are allowed.
func Pipelined(reply func(i int) ([]int64, error)) error {
	for i := range 100 {
		values, err := reply(i)
		if err := Reply(values, err, int64(min(i/50, 1)), 50, int64(max(49-i, 0))); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// Transacted expects the replies to three calls of 1 1 DaySeconds: the first two are allowed.
func Transacted(reply func(i int) ([]int64, error)) error {
	for i, want := range [][]int64{{0, 2, 1}, {0, 2, 0}, {1, 2, 0}} {
		values, err := reply(i)
		if err := Reply(values, err, want...); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

const mostReads = 10_000

// Follows changes a counter, and expects read to return its value, at the latest when Redis has told the
// client. An error that says what to turn off is as good.
func Follows(incr, read func() (int64, error), setting string) error {
	for range 3 {
		want, err := incr()
		if err != nil {
			return err
		}
		got, err := read()
		for tries := 1; err == nil && got != want && tries < mostReads; tries++ {
			got, err = read()
		}
		if err != nil {
			return Refused(err, setting)
		}
		if got != want {
			return fmt.Errorf("%d reads of %d, want %d", mostReads, got, want)
		}
	}
	return nil
}

// Pooled has eight workers make 100 calls each of 99 1 DaySeconds on one key, and expects 100 to be allowed.
func Pooled(work func(call func(reply []int64, err error) error) error) error {
	var passed atomic.Int64
	var workers sync.WaitGroup
	failures := make([]error, 8)
	for i := range failures {
		workers.Go(func() {
			failures[i] = work(func(reply []int64, err error) error {
				if err == nil {
					passed.Add(1 - reply[0])
				}
				return err
			})
		})
	}
	workers.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if n := passed.Load(); n != 100 {
		return fmt.Errorf("%d calls were allowed, want 100", n)
	}
	return nil
}

// Refused expects an error that contains this text.
func Refused(err error, text string) error {
	if err == nil {
		return fmt.Errorf("no error, want one with %q", text)
	}
	if !strings.Contains(err.Error(), text) {
		return fmt.Errorf("want an error with %q: %w", text, err)
	}
	return nil
}
