// Package expect is what the programs in Go ask the server, and compare its answers with. Its functions are for any
// goroutine.
package expect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Script is what clients send that have no command of their own for CL.THROTTLE.
const Script = "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"

// DaySeconds is a period so long that nothing leaks while a check runs.
const DaySeconds = 86400

// Fresh wants the answer to 15 30 60 for a key that was not there.
func Fresh(reply []int64, err error) error { return Reply(reply, err, 0, 16, 15, -1, 2) }

// Reply wants a reply of five integers that begins with these.
func Reply(reply []int64, err error, values ...int64) error {
	if err != nil {
		return err
	}
	if len(reply) != 5 || !slices.Equal(reply[:len(values)], values) {
		return fmt.Errorf("reply %d, want %d", reply, values)
	}
	return nil
}

// Pipelined wants the replies to 100 calls of 49 1 DaySeconds: the first 50 pass.
func Pipelined(reply func(i int) ([]int64, error)) error {
	for i := range 100 {
		values, err := reply(i)
		if err := Reply(values, err, int64(min(i/50, 1)), 50, int64(max(49-i, 0))); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// Transacted wants the replies to three calls of 1 1 DaySeconds: the first two pass.
func Transacted(reply func(i int) ([]int64, error)) error {
	for i, want := range [][]int64{{0, 2, 1}, {0, 2, 0}, {1, 2, 0}} {
		values, err := reply(i)
		if err := Reply(values, err, want...); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// Pooled has eight workers make 100 calls each of 99 1 DaySeconds on one key, and wants 100 of them to pass.
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
		return fmt.Errorf("%d calls passed, want 100", n)
	}
	return nil
}

// Refused wants an error that says this.
func Refused(err error, text string) error {
	if err == nil {
		return fmt.Errorf("no error, want one with %q", text)
	}
	if !strings.Contains(err.Error(), text) {
		return fmt.Errorf("want an error with %q: %w", text, err)
	}
	return nil
}
