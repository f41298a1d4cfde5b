package session

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/execute"
	"cellserver/internal/shard"
	"cellserver/internal/wire/peer"
)

// slowDisk is a directory that blocks writes on demand.
type slowDisk struct {
	*disktest.Dir
	mu    sync.Mutex // held to block writes
	fails bool       // guarded by mu
}

func (d *slowDisk) before(op disktest.Op, _ string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails && op != disktest.Remove {
		return errors.New("input/output error")
	}
	return nil
}

// newKeptHarness returns a harness whose store is on a disk, with replies that wait for it.
func newKeptHarness(t *testing.T) (*harness, *slowDisk, *persist.Keeper) {
	d := &slowDisk{Dir: disktest.New()}
	d.Before = d.before
	var k *persist.Keeper
	r := newHarness(t, func(c *execute.Config) {
		began := time.Now()
		c.Now = func() int64 { return t0 + int64(time.Since(began)) }
		k = persist.New(persist.Config{Dir: d, Store: c.Store.(*shard.Store), Now: c.Now, Log: slog.New(slog.DiscardHandler)})
		c.Keeper = k
	})
	return r, d, k
}

func run(t *testing.T, k *persist.Keeper) {
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- k.Run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-ready
}

func TestLoading(t *testing.T) {
	r, _, k := newKeptHarness(t)
	c := r.session()
	loading := "-LOADING cellserver is loading the dataset in memory\r\n"
	if got := c.say(t, throttled("a", "1")+"DEL a\r\nPING\r\nMULTI\r\nDEL a\r\nEXEC\r\n"); !strings.HasPrefix(got, loading+loading+loading+"+OK\r\n"+loading+"-EXECABORT") {
		t.Errorf("got %q", got)
	}
	run(t, k)
	c.expect(t, throttled("a", "1"), allowedOnce)
}

const allowedOnce = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"

func throttled(key, quantity string) string {
	return "CL.THROTTLE " + key + " 15 30 60 " + quantity + "\r\n"
}

// TestRepliesWaitForTheDisk: replies to changes wait for the disk; others do not.
func TestRepliesWaitForTheDisk(t *testing.T) {
	r, d, k := newKeptHarness(t)
	run(t, k)
	for name, in := range map[string]string{
		"a call":                   throttled("a", "1"),
		"a pipeline":               "PING\r\n" + throttled("b", "1") + "PING\r\n",
		"a deletion":               throttled("c", "1") + "DEL c\r\n",
		"EXEC":                     "MULTI\r\n" + throttled("d", "1") + "EXEC\r\n",
		"a script":                 "EVAL \"return redis.call('CL.THROTTLE', KEYS[1], 15, 30, 60, 1)[1] + 0\" 1 e\r\n",
		"a script of one call":     "EVAL \"return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))\" 1 f 15 30 60 1\r\n",
		"a refund":                 throttled("g", "2") + throttled("g", "-1"),
		"in front of a command":    throttled("h", "1") + "TEST.WAIT x\r\n",
		"a batch with a denial":    throttled("i", "17") + throttled("i", "1"),
		"what ends the connection": throttled("j", "1") + "*1\r\n+x\r\n",
		"EXEC with a script":       "MULTI\r\nEVAL \"return redis.call('CL.THROTTLE', KEYS[1], 15, 30, 60, 1)[1] + 0\" 1 k\r\nEXEC\r\n",
		"several commands":         throttled("n", "1") + "CL.FIXEDWINDOW o 2 60\r\nRL.THROTTLE n 15 30 60\r\n",
		"a denial that counts":     "CL.FIXEDWINDOW p 1 60 2 COUNTDENIED\r\n",
		"units that are returned":  throttled("q", "2") + "CL.REFUND q 15 30 60\r\n",
		"replies that were muted":  "CLIENT REPLY SKIP\r\n" + throttled("l", "1") + throttled("l", "1"),
	} {
		c := r.session()
		d.mu.Lock()
		got, left, status := c.feed(in)
		for range 3 { // background work also wakes the session
			if status == peer.Waiting && strings.Contains(name, "script") {
				select {
				case <-c.woken:
				case <-time.After(50 * time.Millisecond):
				}
				var more string
				more, left, status = c.feed(left)
				got += more
			}
		}
		if strings.TrimPrefix(got, "+OK\r\n+QUEUED\r\n") != "" || status != peer.Waiting {
			t.Errorf("%s: replied %q, status %d", name, got, status)
		}
		d.mu.Unlock()
		r.gate.pass(1)
		for status == peer.Waiting {
			<-c.woken
			var more string
			more, left, status = c.feed(left)
			got += more
		}
		if !strings.Contains(got, "\r\n") || left != "" && status != peer.Close || strings.Contains(name, "ends") != (status == peer.Close) {
			t.Errorf("%s: then replied %q, status %d, left %q", name, got, status, left)
		}
		c.Close()
	}
	c := r.session()
	c.say(t, throttled("m", "16")+"CL.SLIDINGWINDOW r 2 60 2\r\n")
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, in := range map[string]string{
		"a denial": throttled("m", "5"), "a full window": "CL.SLIDINGWINDOW r 2 60\r\n", "another kind": "CL.SLIDINGWINDOW m 2 60\r\n", "a look": throttled("m", "0"), "no key": "PING\r\n",
		"EXEC of looks": "MULTI\r\n" + throttled("m", "0") + "EXEC\r\n",
	} {
		if got, _, status := c.feed(in); got == "" || status != peer.NeedInput {
			t.Errorf("%s: replied %q, status %d", name, got, status)
		}
	}
}

// TestMisconf: while the disk fails, changes are refused and reads answered.
func TestMisconf(t *testing.T) {
	r, d, k := newKeptHarness(t)
	run(t, k)
	c, other := r.session(), r.session()
	r.define(t, "login")
	r.defineAs(t, namedlimit.Definition{Name: "trial", Shadow: true})
	c.say(t, throttled("a", "16")+"CL.CHECK login a 5\r\nCL.CHECK trial a 5\r\n")
	d.mu.Lock()
	d.fails = true
	d.mu.Unlock()
	other.wait(t, throttled("b", "1"))
	for k.Gate().Refusal() == nil {
		time.Sleep(time.Millisecond)
	}
	for name, in := range map[string]string{
		"a call": throttled("c", "1"), "a named limit": "CL.CHECK login c\r\n", "a window": "CL.FIXEDWINDOW c 2 60\r\n", "units that are returned": "CL.REFUND a 15 30 60\r\n", "a deletion": "DEL a\r\n", "all": "FLUSHALL\r\n", "a refund": throttled("a", "-1"),
		"a refund of nothing": throttled("g", "-1"), "units that are returned to nothing": "CL.REFUND g 15 30 60\r\n",
		"a refund in a script": "EVAL \"return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))\" 1 g 15 30 60 -1\r\n",
		"a script of one call": "EVAL \"return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))\" 1 f 15 30 60 1\r\n",
		"a script":             "EVAL \"return redis.call('CL.THROTTLE', KEYS[1], 15, 30, 60, 1)[1] + 0\" 1 e\r\n",
	} {
		if got := c.say(t, in); !strings.HasPrefix(got, "-MISCONF the data directory") {
			t.Errorf("%s: replied %q", name, got)
		}
	}
	if got := c.say(t, "MULTI\r\n"+throttled("c", "1")+"EXEC\r\n"); !strings.HasPrefix(got, "+OK\r\n+QUEUED\r\n*1\r\n-MISCONF") {
		t.Errorf("EXEC: replied %q", got)
	}
	for name, in := range map[string]string{
		"a denial": throttled("a", "5"), "a look": throttled("c", "0"),
		"a named limit's denial": "CL.CHECK login a\r\n", "what it would deny": "CL.CHECK trial a\r\n",
	} {
		if got := c.say(t, in); !strings.HasPrefix(got, "*5\r\n") {
			t.Errorf("%s: replied %q", name, got)
		}
	}
	d.mu.Lock()
	d.fails = false
	d.mu.Unlock()
	if <-other.woken; true {
		if got, _, _ := other.feed(""); got != allowedOnce {
			t.Errorf("what waited is replied %q", got)
		}
	}
	c.expect(t, throttled("c", "1"), allowedOnce)
}

// TestRepliesDoNotWaitForLater: a reply does not wait for the changes of later commands.
func TestRepliesDoNotWaitForLater(t *testing.T) {
	r, d, k := newKeptHarness(t)
	run(t, k)
	c := r.session()
	d.mu.Lock()
	if got, _, status := c.feed(throttled("a", "1")); got != "" || status != peer.Waiting {
		t.Errorf("replied %q, status %d", got, status)
	}
	d.mu.Unlock()
	<-c.woken
	d.mu.Lock()
	defer d.mu.Unlock()
	if got, _, status := c.feed(throttled("a", "1")); got != allowedOnce || status != peer.Waiting {
		t.Errorf("replied %q, status %d", got, status)
	}
}

// TestAClientThatIsGoneDoesNotWait for a hanging disk, and frees its place.
func TestAClientThatIsGoneDoesNotWait(t *testing.T) {
	r, d, k := newKeptHarness(t)
	run(t, k)
	c := r.session()
	d.mu.Lock()
	defer d.mu.Unlock()
	c.wait(t, throttled("a", "1"))
	c.HungUp(peer.HalfClosed)
	c.wait(t, "")
	c.HungUp(peer.Reset)
	select {
	case <-c.woken:
	default:
		t.Error("it is not woken")
	}
	if _, _, status := c.feed(""); status != peer.NeedInput {
		t.Errorf("gone: status %d", status)
	}
}
