package wire

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

const pieceValueBytes = 64 << 10

// longReplies are commands whose replies are 400 values of 64 KiB.
func longReplies() map[string]string {
	const gets = 400
	return map[string]string{
		"EXEC":     "MULTI\r\n" + strings.Repeat("GET v\r\n", gets) + "EXEC\r\n",
		"pipeline": strings.Repeat("GET v\r\n", gets),
		"MGET":     "MGET" + strings.Repeat(" v", gets) + "\r\n",
	}
}

// TestOthersAreServedDuringLongReplies: a client that does not read its 26 MB holds up nobody, and then gets
// all of them, in order. TestLongRepliesComeInTurns covers the size of a turn.
func TestOthersAreServedDuringLongReplies(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		value := strings.Repeat("x", pieceValueBytes)
		other := p.Dial(t)
		harness.Exchange(t, other, resptest.Encode("SET", "v", value), "+OK\r\n")
		want := resptest.Encode("SET", "v", value)
		want = want[strings.LastIndex(want, "$"):]
		for name, in := range longReplies() {
			nc := p.Dial(t)
			harness.Send(t, nc, in+"PING\r\n")
			first := make([]byte, 1)
			if _, err := io.ReadFull(nc, first); err != nil { // its reply has begun
				t.Fatal(err)
			}
			harness.Exchange(t, other, strings.Repeat("PING\r\n", 1000), strings.Repeat("+PONG\r\n", 1000))
			got := string(first) + harness.ReadTo(t, nc, "+PONG\r\n")
			head := map[string]string{"EXEC": "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 400) + "*400\r\n", "MGET": "*400\r\n"}[name]
			if whole := head + strings.Repeat(want, 400) + "+PONG\r\n"; got != whole {
				t.Errorf("%s: got %d bytes, want %d: %.60q", name, len(got), len(whole), got)
			}
		}
	})
}

// TestTooLongTransactionLeavesNothing is not executed, instead of half executed.
func TestTooLongTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--max-output-bytes", "1048576")
		nc := p.Dial(t)
		harness.Exchange(t, nc, resptest.Encode("SET", "v", strings.Repeat("x", pieceValueBytes)), "+OK\r\n")
		got := harness.SayTo(t, nc, "MULTI\r\nSET a 1\r\n"+strings.Repeat("GET v\r\n", 400)+"SET b 1\r\nEXEC\r\nPING\r\n", "+PONG\r\n")
		if !strings.Contains(got, "-EXECABORT ") || !strings.Contains(got, "--max-output-bytes") {
			t.Errorf("EXEC got %.200q", got[max(0, len(got)-200):])
		}
		harness.Exchange(t, nc, "EXISTS a b\r\n", ":0\r\n")
	})
}

// TestRefusedJSONIsNotReadToItsEnd: the answer is about the first fault, so what follows, no JSON, was not
// looked at.
func TestRefusedJSONIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--http-addr", "127.0.0.1:0")
	for _, tt := range []struct{ name, begin, each, want string }{
		{"many checks", `{"checks":[`, "1,", "1 to 32 objects"},
		{"empty objects", `{"checks":[`, "{},", "1 to 32 objects"},
		{"nested arrays", `{"checks":`, "[", "nested too deeply"},
		{"an unknown field", `{`, `"f":1,`, "unknown field"},
		{"an unknown field of a check", `{"checks":[{`, `"f":1,`, "unknown field"},
	} {
		const bodyBytes, noJSON = 64 << 10, "}}]x"
		body := tt.begin + strings.Repeat(tt.each, (bodyBytes-len(tt.begin)-len(noJSON))/len(tt.each)) + noJSON
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.HTTP+"/v1/check", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest || !bytes.Contains(text, []byte(tt.want)) {
			t.Errorf("%s: %d %s", tt.name, response.StatusCode, text)
		}
	}
}
