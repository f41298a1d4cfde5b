// Package control serves answers that are always the same, as cellserver's doors would give them, under
// the same bounds: what they cost is what HTTP and gRPC cost alone. It also gives cellserver limits over
// xDS. It has no state.
package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The controls' names.
const (
	HTTP     = "http"
	FastHTTP = "fasthttp"
	GRPC     = "grpc"
)

// Bounds of cellserver's doors:
const (
	maxConns       = 12_000
	maxStreams     = 250
	maxHeaderBytes = 16 << 10
	bufferBytes    = 4 << 10 // of a connection that is read, or written

	requestTimeout = 10 * time.Second
	answerTimeout  = 60 * time.Second
	idleTimeout    = 3 * time.Minute
)

// server serves a listener until it is stopped.
type server interface {
	Serve(l net.Listener) error
	stop()
}

// Serve serves a control on a port of loopback, which it writes to stdout, until ctx is done.
func Serve(ctx context.Context, name string, stdout io.Writer) error {
	newServer, ok := map[string]func() server{HTTP: newHTTP, FastHTTP: newFastHTTP, GRPC: newGRPC, XDS: newXDS}[name]
	if !ok {
		return fmt.Errorf("control: unknown %q; choose %s, %s, %s or %s", name, HTTP, FastHTTP, GRPC, XDS)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	if _, err := fmt.Fprintln(stdout, l.Addr().(*net.TCPAddr).Port); err != nil {
		return errors.Join(err, l.Close())
	}
	s := newServer()
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop()
	})()
	err = s.Serve(l)
	if ctx.Err() != nil { // servers differ in what they return then
		<-stopped
		return nil
	}
	return fmt.Errorf("control: %w", err)
}

// Main serves a control until SIGTERM, and exits. It makes a program of a test's binary.
func Main(name string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := Serve(ctx, name, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
