package xds_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds"
	"cellserver/internal/edge/xds/xdspb"
)

// TestAnswersThatEndTheStream are too long, or cannot be told apart from others. The rules stay.
func TestAnswersThatEndTheStream(t *testing.T) {
	long := answer(t, "2", domain(strings.Repeat("d", 4<<20), 1))
	many := answer(t, "2")
	for range 500_001 {
		many.Resources = append(many.Resources, &anypb.Any{})
	}
	longVersion, longNonce := answer(t, strings.Repeat("v", 1025)), answer(t, "2")
	longNonce.Nonce = strings.Repeat("n", 1025)
	for name, tt := range map[string]struct {
		answer *xdspb.DiscoveryResponse
		want   string
	}{
		"bytes":     {long, "ResourceExhausted: grpc: received message larger than max ("},
		"resources": {many, "the answer has more than 500000 messages"},
		"a version": {longVersion, "the answer's version or nonce has more than 1024 bytes"},
		"a nonce":   {longNonce, "the answer's version or nonce has more than 1024 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := serve(t, nil)
				c := run(t, server.configOf())
				s := <-server.streams
				s.next()
				s.send(t, answer(t, "1", domain("a", 1)))
				s.next()
				time.Sleep(time.Second)
				_ = s.SendMsg(tt.answer) // an error if the stream ends before all of it is there
				s = <-server.streams
				s.want(t, request{"1", "", ""})
				if !strings.Contains(c.log.String(), tt.want) {
					t.Errorf("the log is %s", c.log)
				}
				c.wantLimits(t, map[string]uint32{"a": 1})
			})
		})
	}
}

// nested returns the message within itself, in the field of that number, depth times.
func nested(number protowire.Number, depth int) (b []byte) {
	for range depth {
		b = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	return b
}

// TestResourcesWithManyMessages: they are counted before they are decoded, which would take a hundred times
// the bytes that came.
func TestResourcesWithManyMessages(t *testing.T) {
	inDescriptor := func(b []byte) []byte { return protowire.AppendBytes([]byte{3<<3 | 2}, b) }
	const room = 4<<20 - 1<<10
	for name, b := range map[string][]byte{
		"descriptors": bytes.Repeat([]byte{3<<3 | 2, 0}, room/2),
		"replaces":    inDescriptor(protowire.AppendBytes([]byte{3<<3 | 2}, bytes.Repeat([]byte{5<<3 | 2, 0}, room/2-10))),
		"metadata": inDescriptor(protowire.AppendBytes([]byte{8<<3 | 2}, protowire.AppendBytes([]byte{1<<3 | 2},
			protowire.AppendBytes([]byte{2<<3 | 2}, protowire.AppendBytes([]byte{6<<3 | 2}, bytes.Repeat([]byte{1<<3 | 2, 0}, room/2-20)))))),
		"levels": inDescriptor(nested(4, 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := serve(t, nil)
				c := run(t, server.configOf())
				s := <-server.streams
				s.next()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				s.send(t, &xdspb.DiscoveryResponse{VersionInfo: "x", TypeUrl: xds.TypeURL, Resources: []*anypb.Any{{TypeUrl: xds.TypeURL, Value: b}}})
				got := of(s.next())
				runtime.ReadMemStats(&after)
				if !strings.Contains(got.refusal, "more than 500000 messages, or deeper than 128 levels") {
					t.Errorf("got %.300s", got.refusal)
				}
				if grown := after.TotalAlloc - before.TotalAlloc; grown > 100<<20 {
					t.Errorf("allocated %d bytes", grown)
				}
				if c.Status().Loaded {
					t.Error("it is taken")
				}
			})
		})
	}
}

// TestMostDescriptors: as many as files may have, and not one more.
func TestMostDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		all := domain("a", 1)
		for i := range 100_000 - 1 {
			all.Descriptors = append(all.Descriptors, &configpb.RateLimitDescriptor{
				Key: "k", Value: strconv.Itoa(i), RateLimit: &configpb.RateLimitPolicy{Unit: configpb.RateLimitUnit_HOUR, RequestsPerUnit: 1},
			})
		}
		s.send(t, answer(t, "1", all))
		s.want(t, request{"1", "nonce-1", ""})
		all.Descriptors = append(all.Descriptors, &configpb.RateLimitDescriptor{Key: "one more"})
		time.Sleep(time.Second)
		s.send(t, answer(t, "2", all))
		if got := of(s.next()); !strings.Contains(got.refusal, "more than 100000 descriptors") {
			t.Errorf("got %+v", got)
		}
		if n := c.Rules().Count(); n != 100_000 {
			t.Errorf("%d rules", n)
		}
	})
}

// TestRefusalsAreShort, whatever names there are and however many mistakes.
func TestRefusalsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		wrong := &configpb.RateLimitConfig{Name: strings.Repeat("名", 100_000), Domain: strings.Repeat("d", 1<<20)}
		for range 50_000 {
			wrong.Descriptors = append(wrong.Descriptors, &configpb.RateLimitDescriptor{Key: "line\nline"})
		}
		s.send(t, answer(t, "x", wrong))
		got := of(s.next())
		if n := len(got.refusal); n > 4<<10 || n < 1000 || strings.Contains(got.refusal, "\n") {
			t.Errorf("%d bytes: %.300q", n, got.refusal)
		}
		if n := len(c.log.String()); n > 10<<10 {
			t.Errorf("%d bytes in the log", n)
		}
	})
}

// TestServerThatTalksAlone sends without waiting for requests: ten answers a second are read.
func TestServerThatTalksAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		began := time.Now()
		for i := range 1000 {
			if s.SendMsg(answer(t, strconv.Itoa(i), domain("a", 1))) != nil {
				t.Fatal("the stream has ended")
			}
		}
		for range 1000 {
			s.next()
		}
		if took := time.Since(began); took != 999*100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if st := c.Status(); st.Accepted != 1000 || st.Version != "999" {
			t.Errorf("%+v", st)
		}
	})
}

// slowReading takes a minute for each answer, as the log of what was read does.
type slowReading struct{}

func (slowReading) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("limits for Envoy read")) {
		time.Sleep(time.Minute)
	}
	return len(line), nil
}

// TestAnswersThatTakeLong have a tenth of the time, whoever sends them.
func TestAnswersThatTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		config := server.configOf()
		config.Log = slog.New(slog.NewTextHandler(slowReading{}, nil))
		c := run(t, config)
		s := <-server.streams
		s.next()
		for i := range 5 {
			s.send(t, answer(t, strconv.Itoa(i), domain("a", 1)))
		}
		s.next()
		began := time.Now()
		for range 4 {
			s.next()
		}
		if took := time.Since(began); took != 4*10*time.Minute {
			t.Errorf("it took %s", took)
		}
		c.stop()
	})
}

// TestServersText: it may be long, and have several lines.
func TestServersText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		s.end <- status.Error(codes.PermissionDenied, "no\n"+strings.Repeat("é", 2000))
		synctest.Wait()
		if got := c.Status().Failure; len(got) > 512 || !strings.HasPrefix(got, "PermissionDenied: no éé") || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	})
}

// TestLongHeaders: a server that keeps to the bound it is told ends the stream itself.
func TestLongHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		s.send(t, answer(t, "1", domain("a", 1)))
		s.next()
		s.SetTrailer(metadata.Pairs("long", strings.Repeat("x", 64<<10)))
		s.end <- nil
		synctest.Wait()
		if got := c.Status().Failure; !strings.HasPrefix(got, "Internal: ") {
			t.Errorf("the stream ended by %q", got)
		}
		s = <-server.streams
		s.want(t, request{"1", "", ""})
		c.wantLimits(t, map[string]uint32{"a": 1})
	})
}

// TestServerThatHangs takes connections, and says nothing: not in HTTP/2, then not about limits.
func TestServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := newNetwork()
		server := server{network: hangs}
		c := run(t, server.configOf())
		held := 0
		for range 3 {
			conn := <-hangs.conns
			held++
			go func() { // reads, and answers nothing
				b := make([]byte, 1<<10)
				for {
					if _, err := conn.Read(b); err != nil {
						_ = conn.Close()
						return
					}
				}
			}()
		}
		if st := c.Status(); st.Connected || held != 3 || st.Failure == "" || c.logged("there are none yet") < 2 || c.logged("stay in use") > 0 {
			t.Errorf("%+v: %s", st, c.log)
		}
		c.stop()
		_ = hangs.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		time.Sleep(24 * time.Hour)
		if st := c.Status(); !st.Connected || st.Loaded || server.tries() != 1 {
			t.Errorf("%+v, %d connections", st, server.tries())
		}
		c.stop() // at once
	})
}
