package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// The bounds of again, which hang a part on no server.
const (
	attempts   = 10_000
	pollPeriod = 20 * time.Millisecond
	pollLimit  = time.Minute
)

// handler answers what a middleware lets through.
func handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
}

// request returns the status of a middleware's answer and its headers. The status is "panic" if it panics.
func request(ctx context.Context, h http.Handler) (status string, headers http.Header) {
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil {
			status = "panic"
		}
	}()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
	return strconv.Itoa(w.Code), w.Header()
}

// requests returns a line for each of n answers of a middleware: its status and these of its headers.
func requests(ctx context.Context, h http.Handler, n int, names ...string) (saw []string) {
	for range n {
		status, headers := request(ctx, h)
		words := []string{status}
		for _, name := range names {
			if value := headers.Get(name); value != "" {
				words = append(words, name+" "+value)
			}
		}
		saw = append(saw, strings.Join(words, ", "))
	}
	return saw
}

// allowedBy returns a function that reports whether a middleware lets a request through.
func allowedBy(ctx context.Context, h http.Handler) func() (bool, error) {
	return func() (bool, error) {
		switch status, _ := request(ctx, h); status {
		case "200":
			return true, nil
		case "429":
			return false, nil
		default:
			return false, fmt.Errorf("status %s", status)
		}
	}
}

// again makes calls until one is limited, and then until one is allowed: the window has passed.
func again(allowed func() (bool, error)) ([]string, error) {
	limited := false
	for range attempts {
		ok, err := allowed()
		if err != nil {
			return nil, err
		}
		if limited = !ok; limited {
			break
		}
	}
	if !limited {
		return nil, errors.New("no call is limited")
	}
	for end := time.Now().Add(pollLimit); time.Now().Before(end); time.Sleep(pollPeriod) {
		if ok, err := allowed(); ok || err != nil {
			return []string{"limited", "allowed after the window"}, err
		}
	}
	return []string{"limited"}, errors.New("no call is allowed after the window")
}

// calls returns a line for each of n calls.
func calls(n int, call func() (string, error)) (saw []string, err error) {
	for range n {
		text, err := call()
		if err != nil {
			return saw, err
		}
		saw = append(saw, text)
	}
	return saw, nil
}

// within says whether a time is after now and no later than the bound.
func within(name string, d, most time.Duration) string {
	if d > 0 && d <= most {
		return fmt.Sprintf("%s within %s", name, most)
	}
	return fmt.Sprintf("%s %s", name, d)
}

func word(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "limited"
}

// failing returns what a middleware answers when its server is gone.
func failing(ctx context.Context, h http.Handler) []string {
	status, _ := request(ctx, h)
	return []string{status}
}
