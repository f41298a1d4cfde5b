package rls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/reply"
)

func equalJSON(t testing.TB, a, b any) bool {
	t.Helper()
	one, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(one, other)
}

const token = "0123456789abcdef"

// TestUsers: rights hold, and errors have gRPC's codes.
func TestUsers(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 10})
	if _, err := h.Config.Users.Load("", "user default on nopass ~* +@all\nuser envoy on nopass ~rls:* +cl.quota\nuser other on nopass ~o:* +cl.quota"); err != nil {
		t.Fatal(err)
	}
	if err := h.tokens.Set([]byte(token + " envoy\n" + strings.Repeat("f", 16) + " other\n")); err != nil {
		t.Fatal(err)
	}
	request := requestOf(t, "d a=1!5/MINUTE")
	for _, tt := range []struct {
		token, refuse string
		want          codes.Code // 0 for none
	}{
		{"", "", 0},
		{token, "", 0},
		{token, "protected", 0},
		{"", "protected", codes.PermissionDenied},
		{strings.Repeat("f", 16), "", codes.PermissionDenied},
		{"wrong", "", codes.Unauthenticated},
	} {
		h.refuse = tt.refuse
		if _, err := h.ask(t, request, tt.token); status.Code(err) != tt.want {
			t.Errorf("%+v: got %v", tt, err)
		}
	}
	if _, err := call(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Basic x"), h.client, request); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
	if counts := h.door.Stats.Counts(); counts.Of(door.Allowed) != 3 || counts.Of(door.Refused) != 4 {
		t.Errorf("%d allowed, %d refused", counts.Of(door.Allowed), counts.Of(door.Refused))
	}
}

func TestCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want codes.Code
	}{
		{reply.Error("LOADING x"), codes.Unavailable},
		{reply.Error("READONLY x"), codes.Unavailable},
		{reply.Error("NOREPLICAS x"), codes.Unavailable},
		{reply.Error("STOREDOWN x"), codes.Unavailable},
		{reply.Error("MISCONF x"), codes.Unavailable},
		{reply.Error("OOM x"), codes.ResourceExhausted},
		{reply.Error("NOAUTH x"), codes.Unauthenticated},
		{reply.Error("NOPERM x"), codes.PermissionDenied},
		{reply.Error("WRONGTYPE x"), codes.FailedPrecondition},
		{reply.Error("ERR x"), codes.InvalidArgument},
		{reply.Error("OTHER x"), codes.Unknown},
		{door.ErrFull, codes.ResourceExhausted},
		{door.ErrToken, codes.Unauthenticated},
		{&door.RefusedError{Reason: "x"}, codes.PermissionDenied},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
		{errors.New("x"), codes.Unknown},
	} {
		if got := codeOf(tt.err); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}

// TestLoading: requests fail until the state is loaded, and the health says so.
func TestLoading(t *testing.T) {
	ready := errors.New("loading")
	h := open(t, Config{Ready: func() error { return ready }}, server.Limits{MaxClients: 10}, func(c *commands.Config) {
		c.Keeper = persist.New(persist.Config{Dir: disktest.New(), Store: c.Store.(persist.Store), Now: c.Now, Log: slog.New(slog.DiscardHandler)})
	})
	if _, err := h.ask(t, requestOf(t, "d a=1!1/MINUTE"), ""); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	health := func(service string) string {
		body := append([]byte{0, 0, 0, 0, byte(2 + len(service)), 0x0a, byte(len(service))}, service...)
		return h.post(t, "/grpc.health.v1.Health/Check", "application/grpc", body)
	}
	if got := health(ServiceName); got != "200 0 \x00\x00\x00\x00\x02\x08\x02" {
		t.Errorf("not ready: %q", got)
	}
	ready = nil
	if got := health(""); got != "200 0 \x00\x00\x00\x00\x02\x08\x01" {
		t.Errorf("ready: %q", got)
	}
	if got := health("x"); !strings.HasPrefix(got, "200 5 ") {
		t.Errorf("unknown service: %q", got)
	}
}

// post returns the status, gRPC's status and the body.
func (h *house) post(t testing.TB, path, contentType string, body []byte) string {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Te", "trailers")
	response, err := h.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, _ := io.ReadAll(response.Body)
	status := response.Header.Get("Grpc-Status") + response.Trailer.Get("Grpc-Status")
	return response.Status[:3] + " " + status + " " + string(got)
}

// TestOthers: only gRPC is served, and large messages are refused.
func TestOthers(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 10})
	for _, tt := range []struct{ path, contentType, body, want string }{
		{procedure, "application/json", "{}", "415 "},
		{procedure, "application/proto", "", "415 "},
		{procedure, "application/grpc-web+proto", "\x00\x00\x00\x00\x00", "415 "},
		{procedure, "application/grpc+json", "\x00\x00\x00\x00\x00", "200 3 "},
		{procedure, "text/plain", "", "415 "},
		{procedure, "application/grpc", "\x00\x00\x00\x00\x00", "200 3 "},
		{procedure, "application/grpc", "\x00\x00\x00\x00\x01x", "200 3 "},
		{procedure, "application/grpc", "\x00\x00\x04\x00\x01" + strings.Repeat("\x00", 1+4<<16), "200 8 "},
		{"/x.Y/Z", "application/grpc", "\x00\x00\x00\x00\x00", "200 12 "},
		{"/grpc.health.v1.Health/List", "application/grpc", "\x00\x00\x00\x00\x00", "200 12 "},
	} {
		if got := h.post(t, tt.path, tt.contentType, []byte(tt.body)); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s: got %.80q, want %q", tt.path, tt.contentType, got, tt.want)
		}
	}
}

// TestBodyOfHTTP1: the body of a client without HTTP/2 is not awaited, so the answer closes the connection.
func TestBodyOfHTTP1(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 10})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Post(h.url+procedure, "application/grpc", strings.NewReader("\x00\x00\x00\x00\x00"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnsupportedMediaType || !response.Close {
		t.Errorf("%s, closes %t", response.Status, response.Close)
	}
}

// TestFullServer: a connection too many is told so, and ends, so that its client comes again.
func TestFullServer(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 0})
	if _, err := h.ask(t, requestOf(t, "d a=1"), ""); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	h.server.SetLimits(server.Limits{MaxClients: 1})
	if _, err := h.ask(t, requestOf(t, "d a=1"), ""); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}

// TestPanic: a panic is contained.
func TestPanic(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 10})
	h.service.Metrics.counts = nil
	if _, err := h.ask(t, requestOf(t, "d a=1!1/MINUTE"), ""); status.Code(err) != codes.Internal {
		t.Error(err)
	}
}

// TestDeadline: the client's deadline reaches the handler.
func TestDeadline(t *testing.T) {
	h := open(t, Config{}, server.Limits{MaxClients: 10})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := call(ctx, h.client, requestOf(t, "d a=1"))
	if status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
}

// FuzzRequest: whatever a message has, it is answered or refused.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{"d a=1", "d a=1,b=2#3!4/MINUTE*5 c=d +6", "rl foo=bar"} {
		b, err := proto.Marshal(requestOf(f, text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	s := New(Config{Calendars: commandstest.New().Engine.Config.NamedLimits.Calendars(), Rules: rulesOf(f, "domain: rl\ndescriptors: [{key: foo, value: 'b*', share_threshold: true, rate_limit: {unit: day, requests_per_unit: 3}}]\n")})
	f.Fuzz(func(t *testing.T, m []byte) {
		r, err := message(m).decode()
		var p *plan
		if err == nil {
			p, err = s.plan(r)
		}
		if err != nil {
			if codeOf(err) != codes.InvalidArgument {
				t.Errorf("got %v", err)
			}
			return
		}
		for i := range p.applied {
			if a := &p.applied[i]; a.what == asked {
				key := p.calls[0].Key
				if !bytes.HasPrefix(key, []byte("rls:")) || len(key) > maxKeyBytes+100 {
					t.Errorf("got key %.100q", key)
				}
				p.calls = p.calls[1:]
			}
		}
		if got := s.respond(p, commandstest.T0); len(got.Statuses) != len(p.request.Descriptors) {
			t.Errorf("got %d statuses", len(got.Statuses))
		}
	})
}
