package clients

import (
	"os"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

// TestTraefiksLimiter: docs/LIBRARIES.md has what the script of Traefik's own limiter is answered. It
// begins with HGETALL and goes on with HSET, as this one does.
func TestTraefiksLimiter(t *testing.T) {
	const script = "local was = redis.call('hgetall', KEYS[1]) redis.call('hset', KEYS[1], 'last', ARGV[4], 'tokens', 2) return {'true', '0', '2'}"
	p := harness.StartServer(t)
	got := replay(t, p.Dial(t), 1<<20, resptest.Encode("EVAL", script, "1", "rate:limit@file:127.0.0.1", "0.000001", "3", "2", "1785000000000000", "500000"))[0]
	text, _, found := strings.Cut(got.Text, " script: ")
	if got.Kind != '-' || !found {
		t.Fatalf("got %+v", got)
	}
	page, err := os.ReadFile("../../docs/LIBRARIES.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+text+"\n") {
		t.Errorf("docs/LIBRARIES.md does not say %q", text)
	}
}
