package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	expirySilence = 5 * time.Second
	memorySlop    = 64 << 20
)

// TestMillionKeysExpire fills the store with keys that live for one second. Afterwards only one client sends PING. It
// must not notice the expiry, and memory soon returns to its initial size.
func TestMillionKeysExpire(t *testing.T) {
	t.Parallel()
	if testing.Short() || isRace() {
		t.Skip("takes some seconds, and measures")
	}
	const keys = 1_000_000
	w := &expiryTimes{ours: startServer(t), redis: startRedis(t)}
	w.before = w.ours.rss(t)
	load := newKeyLoad(t, w.ours, keys)
	start := time.Now()
	load.run(t)
	t.Logf("loaded %d keys in %s, %.0f are left; resident: %d MiB before, %d MiB full",
		keys, time.Since(start), w.ours.metric(t, "cellserver_keys"), w.before>>20, w.ours.rss(t)>>20)

	w.watch(t)
	after := w.ours.rss(t)
	t.Logf("then DBSIZE 0 in %s, nothing left to sweep in %s, memory within %d MiB in %s; %d MiB in the end",
		w.empty, w.swept, memorySlop>>21, w.small, after>>20)
	t.Logf("PING: ours %s; redis-server %s", w.ourPings.summary(), w.redisPings.summary())
	if w.empty == 0 || w.swept == 0 {
		t.Errorf("the keys were not gone within %s: seen DBSIZE 0 after %s, nothing left to sweep after %s", expirySilence, w.empty, w.swept)
	}
	if after > w.before+memorySlop {
		t.Errorf("resident memory was %d MiB, and after %s it is %d MiB", w.before>>20, expirySilence, after>>20)
	}
	if most := max(5*w.redisPings.percentile(99), 20*time.Millisecond); w.ourPings.percentile(99) > most {
		t.Errorf("the 99th percentile of PING is %s, want at most %s", w.ourPings.percentile(99), most)
	}
}

// expiryTimes records when effects of the expiry were first seen.
type expiryTimes struct {
	ours, redis          *process
	before               int           // resident bytes
	empty, swept, small  time.Duration // when first seen; 0 if never
	ourPings, redisPings pingTimes
}

func (w *expiryTimes) watch(t *testing.T) {
	watcher, ours, redis := w.ours.dial(t), w.ours.dial(t), w.redis.dial(t)
	start, lastScrape := time.Now(), time.Duration(0)
	for since := time.Duration(0); since < expirySilence; since = time.Since(start) {
		w.ourPings.ping(t, ours)
		w.redisPings.ping(t, redis)
		if w.empty == 0 && dbSizeOf(t, watcher) == 0 {
			w.empty = since
		}
		if w.small == 0 && w.ours.rss(t) < w.before+memorySlop/2 {
			w.small = since
		}
		if w.swept == 0 && since > lastScrape+250*time.Millisecond { // a scrape is too expensive to repeat it all the time
			lastScrape = since
			if w.ours.metric(t, "cellserver_keys") == 0 {
				w.swept = since
			}
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// keyLoad creates keys that live for one second, over several connections.
type keyLoad struct {
	conns    []net.Conn
	commands [][]byte // of each connection
	reply    []byte   // to each command
	each     int      // commands of each connection
}

func newKeyLoad(t *testing.T, p *process, keys int) *keyLoad {
	const conns = 4
	load := &keyLoad{each: keys / conns, reply: []byte("*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1\r\n")}
	for c := range conns {
		load.conns = append(load.conns, p.dial(t))
		var commands []byte
		for i := range load.each {
			commands = appendCommand(commands, "CL.THROTTLE", fmt.Sprintf("key:%d:%d", c, i), "0", "1", "1")
		}
		load.commands = append(load.commands, commands)
	}
	return load
}

// run sends all commands and reads all replies.
func (load *keyLoad) run(t *testing.T) {
	t.Helper()
	want := bytes.Repeat(load.reply, load.each)
	var wg sync.WaitGroup
	for c, nc := range load.conns {
		wg.Go(func() {
			if _, err := nc.Write(load.commands[c]); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			got := make([]byte, len(want))
			if n, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("connection %d got %d bytes of replies, %v, or others than %q", c, n, err, load.reply)
			}
		})
	}
	wg.Wait()
	load.commands = nil
}

func dbSizeOf(t *testing.T, nc net.Conn) int {
	t.Helper()
	if _, err := io.WriteString(nc, "DBSIZE\r\n"); err != nil {
		t.Fatal(err)
	}
	var reply [32]byte
	n, err := nc.Read(reply[:])
	if err != nil {
		t.Fatal(err)
	}
	size, err := strconv.Atoi(strings.Trim(string(reply[:n]), ":\r\n"))
	if err != nil {
		t.Fatalf("DBSIZE got %q", reply[:n])
	}
	return size
}

// pingTimes holds the duration of each PING.
type pingTimes []time.Duration

func (p *pingTimes) ping(t *testing.T, nc net.Conn) {
	t.Helper()
	start := time.Now()
	exchange(t, nc, "PING\r\n", "+PONG\r\n")
	*p = append(*p, time.Since(start))
}

func (p pingTimes) percentile(n int) time.Duration {
	sorted := slices.Sorted(slices.Values(p))
	return sorted[len(sorted)*n/100]
}

func (p pingTimes) summary() string {
	return fmt.Sprintf("%d times, p50 %s, p99 %s, max %s", len(p), p.percentile(50), p.percentile(99), slices.Max(p))
}
