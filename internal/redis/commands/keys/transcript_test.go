package keys_test

import (
	"net"
	"os"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/redistest"
	"cellserver/internal/test/resptest"
)

func TestTranscripts(t *testing.T) { commandstest.PlayTranscripts(t) }

// TestValuesAsRedis plays the transcript of values to a redis-server: it has the same replies, but for HELLO.
func TestValuesAsRedis(t *testing.T) {
	text, err := os.ReadFile("testdata/transcripts/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	redis, err := net.Dial("unix", redistest.Start(t).Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	s := commandstest.New().Session()
	for line := range strings.Lines(string(text)) {
		call, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		call = strings.TrimSuffix(call, "\n") + "\r\n"
		if _, err := redis.Write([]byte(call)); err != nil {
			t.Fatal(err)
		}
		theirs := readReply(t, redis)
		if ours := commandstest.Say(t, s, call); ours != theirs && !strings.HasPrefix(call, "HELLO") {
			t.Errorf("%q: got %q, and %q from redis-server", call, ours, theirs)
		}
	}
}

func readReply(t *testing.T, nc net.Conn) (reply string) {
	t.Helper()
	for buf := make([]byte, 4096); ; {
		n, err := nc.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		reply += string(buf[:n])
		if _, rest, err := resptest.Parse(reply); err == nil && rest == "" {
			return reply
		}
	}
}
