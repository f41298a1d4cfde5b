package wire

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// TestMillionKeysExpire fills the store with keys that live for a second, and expects the initial state
// afterwards, with only a PING now and then. Times are for the log only.
func TestMillionKeysExpire(t *testing.T) {
	t.Parallel()
	if racetest.OmitsLong() {
		t.Skip("takes some seconds, and many under the race detector")
	}
	const keys, memorySlop = 1_000_000, 64 << 20
	p := harness.StartServer(t)
	tables, resident := p.Metric(t, "cellserver_table_bytes"), p.RSS(t)
	start := time.Now()
	load(t, p, keys)
	t.Logf("loaded %d keys in %s, %.0f are left; resident: %d MiB before, %d MiB full",
		keys, time.Since(start), p.Metric(t, "cellserver_keys"), resident>>20, p.RSS(t)>>20)

	start = time.Now()
	stopPings, watcher := startPings(t, p), p.Dial(t)
	p.Eventually(t, "show no keys", func() bool { return harness.Reply(t, watcher, "DBSIZE") == ":0" })
	empty := time.Since(start)
	p.Eventually(t, "remove all entries", func() bool { return p.Metric(t, "cellserver_keys") == 0 })
	swept := time.Since(start)
	if n := p.Metric(t, "cellserver_expired_keys_total"); n != keys {
		t.Errorf("%.0f keys are said to have expired, want %d", n, keys)
	}
	if n := p.Metric(t, "cellserver_table_bytes"); n != tables {
		t.Errorf("the tables took %.0f bytes before, and take %.0f in the end", tables, n)
	}
	p.Eventually(t, "give its memory back", func() bool { return p.RSS(t) <= resident+memorySlop })
	t.Logf("then DBSIZE 0 in %s, nothing left to sweep in %s, memory back in %s; meanwhile another client had %s",
		empty, swept, time.Since(start), stopPings())
}

// load makes keys that live for a second, over several connections.
func load(t *testing.T, p *harness.Process, keys int) {
	t.Helper()
	const conns, reply = 4, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n"
	want := bytes.Repeat([]byte(reply), keys/conns)
	var wg sync.WaitGroup
	for c := range conns {
		nc := p.Dial(t)
		var commands []byte
		for i := range keys / conns {
			commands = resptest.Append(commands, "CL.THROTTLE", fmt.Sprintf("key:%d:%d", c, i), "0", "1", "1")
		}
		wg.Go(func() {
			if _, err := nc.Write(commands); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			got := make([]byte, len(want))
			if n, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("connection %d got %d bytes of replies, %v, or others than %q", c, n, err, reply)
			}
		})
	}
	wg.Wait()
}
