package rls

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/server"
)

// part is a field with bytes.
func part(number protowire.Number, b string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), b))
}

// TestDecode: what a message would become is bounded before it is decoded.
func TestDecode(t *testing.T) {
	const unknown, domain = 9, "\x0a\x01d"
	entry := part(1, part(1, "a")+part(2, "1"))
	limit := part(2, "\x08\x01\x10\x01"+part(3, "\x08\x02"))
	for _, tt := range []struct {
		name, message string
		want          error
	}{
		{"most descriptors", domain + strings.Repeat(part(2, entry), maxDescriptors), nil},
		{"too many descriptors", domain + strings.Repeat(part(2, entry), maxDescriptors+1), errTooMany},
		{"most entries", domain + part(2, strings.Repeat(entry, maxEntries)), nil},
		{"too many entries", domain + part(2, strings.Repeat(entry, maxEntries+1)), errManyEntries},
		{"too many entries together", domain + strings.Repeat(part(2, strings.Repeat(entry, 2)), maxEntries/2+1), errManyEntries},
		{"empty entries", part(2, strings.Repeat("\x0a\x00", 125_000)), errManyEntries},
		{"empty descriptors", strings.Repeat("\x12\x00", 125_000), errTooMany},
		{"a key again and again", part(2, part(1, strings.Repeat(part(1, "a"), maxFields))), errManyFields},
		{"a limit again and again", part(2, strings.Repeat(part(2, ""), maxFields)), errManyFields},
		{"a multiplier again and again", part(2, part(2, strings.Repeat(part(3, ""), maxFields))), errManyFields},
		{"hits again and again", part(2, part(3, strings.Repeat("\x08\x01", maxFields))), errManyFields},
		{"unknown fields", domain + strings.Repeat("\x48\x01", maxFields), errManyFields},
		{"an unknown field", domain + part(2, entry+limit+part(unknown, "x")) + part(unknown, "\xff"), nil},
		{"a group", "\x4b\x4c", errMalformed},
		{"half a field", "\x0a\x05d", errMalformed},
		{"a field of no kind", "\x0f", errMalformed},
		{"text as a number", "\x08\x01", nil},
	} {
		r, err := message(tt.message).decode()
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if err == nil && len(r.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s: unknown fields are kept", tt.name)
		}
	}
	attack := message(part(2, strings.Repeat("\x0a\x00", 125_000)))
	if n := testing.AllocsPerRun(10, func() { _, _ = attack.decode() }); n > 2 {
		t.Errorf("%v allocations to refuse a message", n)
	}
}

// TestMostFields: what a message of the most descriptors and entries has is well below the bound of fields.
func TestMostFields(t *testing.T) {
	d := part(1, part(1, "a")+part(2, "1")) + part(2, "\x08\x01\x10\x01"+part(3, "\x08\x02")) + part(3, "\x08\x01") + "\x20\x01"
	p := parts{}
	if err := p.count([]byte(part(1, "d")+strings.Repeat(part(2, d), maxDescriptors)+"\x18\x01"), request); err != nil || 2*p.fields > maxFields {
		t.Errorf("%d fields, %v", p.fields, err)
	}
}

// TestNotUTF8: what is not UTF-8 is counted as the bytes that it is.
func TestNotUTF8(t *testing.T) {
	h := open(t, Config{Metadata: true, Rules: rulesOf(t, `
domain: d
descriptors:
- {key: a, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 1}}
`)}, server.Limits{MaxClients: 10})
	for _, s := range []step{
		{"d a=\xff\xfe", "OK: OK 0/1 MINUTE 40"},
		{"d a=\xff\xfe", "OVER_LIMIT: OVER_LIMIT 0/1 MINUTE 40"},
		{"d a=\xfe\xff", "OK: OK 0/1 MINUTE 40"},
		{"d \xff=1!1/MINUTE", "OK: OK 0/1 MINUTE 40"},
		{"\xff a=1!1/MINUTE", "OK: OK 0"}, // there is no such domain
	} {
		h.expect(t, s.request, s.want)
	}
	r, err := h.ask(t, requestOf(t, "\xff a=x\xffy"), "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"domain": "\ufffd", "descriptors": []any{map[string]any{"entries": []any{"a=x\ufffdy"}}}}
	if got := r.DynamicMetadata.AsMap(); !equalJSON(t, got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	rows := strings.Join(h.rows(), "\n")
	if want := "d|a_\ufffd 3 2 2 1 0\nd|\ufffd_1 1 1 1 0 0"; rows != want {
		t.Errorf("got %q, want %q", rows, want)
	}
}

// TestStrangers: a caller without a token or certificate that is needed learns only that.
func TestStrangers(t *testing.T) {
	loading := false
	h := open(t, Config{Loading: func() bool { return loading }}, server.Limits{MaxClients: 10})
	if _, err := h.Config.Users.Load("", "user default on >pw ~* +@all\nuser envoy on nopass ~rls:* +cl.quota"); err != nil {
		t.Fatal(err)
	}
	if err := h.tokens.Set([]byte(token + " envoy\n")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"d a=1", "d", "d a=1!1/UNKNOWN", "d a=1!1/MINUTE"} {
		if _, err := h.ask(t, requestOf(t, text), ""); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "authorization") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if _, err := h.ask(t, requestOf(t, "d a=1"), token); err != nil {
		t.Errorf("with a token: %v", err)
	}
	loading = true
	if _, err := h.ask(t, &rlspb.RateLimitRequest{}, token); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "LOADING") {
		t.Errorf("while loading: %v", err)
	}
	if _, err := h.ask(t, &rlspb.RateLimitRequest{}, ""); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a stranger while loading: %v", err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+procedure, http.NoBody)
	r.Header.Set("Content-Type", "application/grpc")
	response, err := h.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", response.Status)
	}
}

// TestDecodesInTurn: the calls of a connection are decoded one after another, and those of all connections
// beside few others.
func TestDecodesInTurn(t *testing.T) {
	var now, most atomic.Int64
	h := open(t, Config{Rules: func() *envoyconfig.Rules { // is asked while a call is decoded
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			continue
		}
		for range 100 {
			runtime.Gosched()
		}
		return nil
	}}, server.Limits{MaxClients: 100})
	if _, err := h.ask(t, requestOf(t, "d a=1"), ""); err != nil { // connects
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() { _, _ = h.ask(t, requestOf(t, "d a=1"), "") })
	}
	all.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d of one connection at once", n)
	}
	for range 4 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			other := h.dial(t)
			defer func() { _ = other.Close() }()
			if _, err := call(t.Context(), other, requestOf(t, "d a=1")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := most.Load(); n > int64(runtime.GOMAXPROCS(0)) {
		t.Errorf("%d at once", n)
	}
}
