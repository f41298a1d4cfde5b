package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"sprint":                    "unknown command",
		"run --fast":                "unknown flag",
		"run now":                   "unknown argument",
		"run --quick --only hot":    "mutually exclusive",
		"run --only cold":           "choose from",
		"run --rounds -1":           "above 0",
		"run --readme README.md":    "requires -o",
		"load --addr 6380":          "host:port",
		"load --command= -n 1":      "empty",
		"report --from /nowhere/it": "",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		var usage usageError
		if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &usage) != (want != "") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"", "--help", "run --help", "load --help", "report --help"} {
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(args), &out, io.Discard)
		if (err != nil && !errors.Is(err, pflag.ErrHelp)) || !strings.Contains(out.String(), "Usage:") {
			t.Errorf("%q: %v: %s", args, err, out.String())
		}
	}
}

func TestLoad(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go pong(l)
	var out bytes.Buffer
	args := []string{"load", "--addr", l.Addr().String(), "--command", "PING", "-n", "100", "-c", "2", "-P", "5"}
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"command       PING\n", "requests      100\n", "p99.9 ", "ns of CPU time a request"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %s", want, out.String())
		}
	}
	out.Reset()
	if err := run(t.Context(), append(args, "--rate", "10000"), &out, io.Discard); err != nil || !strings.Contains(out.String(), "sent late") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// pong answers every PING with PONG.
func pong(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			buf := make([]byte, 4096)
			for {
				n, err := c.Read(buf)
				if err != nil {
					return
				}
				if _, err := io.WriteString(c, strings.Repeat("+PONG\r\n", strings.Count(string(buf[:n]), "PING"))); err != nil {
					return
				}
			}
		}()
	}
}

func TestInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"run", "--quick"}, io.Discard, io.Discard); err == nil {
		t.Error("it ran")
	}
}
