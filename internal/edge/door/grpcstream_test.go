package door_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	"cellserver/internal/test/patience"
)

const streams = "/t/Streams" // of grpcHouse, for anybody

// streamUntil sends each byte of a message by itself, then a dot once the door ends. Of "!" it sends nothing,
// and "panic" panics.
func streamUntil(open *atomic.Int64) func(*door.Call, []byte, func([]byte) error) error {
	return func(c *door.Call, message []byte, send func([]byte) error) error {
		switch string(message) {
		case "panic":
			panic("a test")
		case "!":
			return errors.New("refused")
		}
		open.Add(1)
		defer open.Add(-1)
		for i := range message {
			if err := send(message[i : i+1]); err != nil {
				return err
			}
		}
		select {
		case <-c.Done():
			return c.Err()
		case <-c.Ending():
			return send([]byte("."))
		}
	}
}

// follow opens a stream.
func follow(ctx context.Context, t *testing.T, client *grpc.ClientConn, message string) grpc.ClientStream {
	t.Helper()
	s, err := client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, streams)
	if err == nil {
		err = s.SendMsg(message)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// heard returns the next answer, or the error.
func heard(s grpc.ClientStream) string {
	var answer string
	if err := s.RecvMsg(&answer); err != nil {
		return status.Code(err).String()
	}
	return answer
}

// TestStreams: a stream has many answers, ends with its caller and with the door, and leaves its place.
func TestStreams(t *testing.T) {
	h := openGRPC(t, server.Limits{MaxClients: 1000})
	client := h.newCaller(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if got := heard(follow(ctx, t, client, "!")); got != codes.PermissionDenied.String() {
		t.Errorf("an error: %s", got)
	}
	if got := heard(follow(ctx, t, client, "panic")); got != codes.Internal.String() {
		t.Errorf("a panic: %s", got)
	}
	const ofHost = 32
	open := func(ctx context.Context) (all []grpc.ClientStream) {
		for range ofHost {
			var s grpc.ClientStream
			until(t, "a place is free", func() bool {
				s = follow(ctx, t, client, "ab")
				return heard(s) == "a"
			})
			if got := heard(s); got != "b" {
				t.Fatalf("got %s", got)
			}
			all = append(all, s)
		}
		return all
	}
	open(ctx)
	for range 3 {
		if got := heard(follow(t.Context(), t, client, "ab")); got != codes.Unimplemented.String() {
			t.Errorf("one too many: %s", got)
		}
	}
	if got := say(t.Context(), client, ofUsers, "a"); got != "a" {
		t.Errorf("another call beside them: %s", got)
	}
	cancel()
	again := open(t.Context())
	ending, ended := patience.Context(context.Background())
	defer ended()
	h.door.Shutdown(ending)
	if ending.Err() != nil {
		t.Error("the door has waited for them in vain")
	}
	for _, s := range again {
		if got := heard(s); got != "." && !strings.HasPrefix(got, codes.Unavailable.String()) {
			t.Errorf("as the door ends: %s", got)
		}
	}
}
