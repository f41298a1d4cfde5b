package commands_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// hangingDisk is a directory that hangs on demand.
type hangingDisk struct {
	*disktest.Dir
	mu   sync.Mutex    // guards hung
	hung chan struct{} // nil unless hanging; closed to go on
}

func newHangingDisk() *hangingDisk {
	d := &hangingDisk{Dir: disktest.New()}
	d.Before = func(disktest.Op, string) error {
		d.mu.Lock()
		hung := d.hung
		d.mu.Unlock()
		if hung != nil {
			<-hung
		}
		return nil
	}
	return d
}

func (d *hangingDisk) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hung = make(chan struct{})
}

func (d *hangingDisk) goOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.hung)
	d.hung = nil
}

const replyTimeout = 5 * time.Second

// confirming makes each reply wait for a disk for up to replyTimeout.
func confirming(t *testing.T, d *hangingDisk) (*commandstest.Harness, *persist.Keeper) {
	var k *persist.Keeper
	r := commandstest.New(func(c *commands.Config) {
		c.Now = func() int64 { return time.Now().UnixNano() }
		k = persist.New(persist.Config{
			Dir: d, Store: c.Store.(*shard.Store), Now: c.Now, Timeout: replyTimeout,
			Log: slog.New(slog.DiscardHandler),
		})
		c.Keeper = k
	})
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	go func() { ended <- k.Run(ctx, func() { close(ready) }) }()
	<-ready
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.Engine.EndBackground()
	})
	return r, k
}

// unconfirmed is the error in place of a reply.
const unconfirmed = "-MISCONF the disk has not taken the change within --fsync-timeout: " +
	"the call may have been charged, and a crash would forget it. " +
	"Check INFO persistence and the log before you repeat it\r\n"

// frozen is the error of a refused change.
const frozen = "-MISCONF the data directory cannot be written, " +
	"and replies wait for it (--fsync-interval=0): nothing was changed. " +
	"Calls that change nothing answer. Check INFO persistence and the log; it is tried again all the time\r\n"

// unconfirmedCase is an input and its replies while the disk hangs: ! is unconfirmed, and ? is frozen, for
// commands executed after the first replies, or after FLUSHDB or CLIENT REPLY OFF.
type unconfirmedCase struct{ name, in, want string }

func unconfirmedCases() []unconfirmedCase {
	const throttle, denied = "CL.THROTTLE k 99 1 60\r\n", "CL.THROTTLE full 0 1 100000\r\n"
	const limited = "*5\r\n:1\r\n:1\r\n:0\r\n:100000\r\n:100000\r\n"
	return []unconfirmedCase{
		{"a call", throttle, "!"},
		{"a pipeline", "PING\r\n" + throttle + "PING\r\n" + throttle + throttle + denied + throttle + "PING\r\n", commandstest.Pong + "!" + commandstest.Pong + "!!" + limited + "!" + commandstest.Pong},
		{"several commands", throttle + "CL.FIXEDWINDOW w 2 60\r\nCL.SLIDINGWINDOW s 2 60\r\nRL.THROTTLE k 99 1 60\r\n", "!!!!"},
		{"errors", throttle + "CL.THROTTLE k x 1 60\r\n" + throttle + "CL.FIXEDWINDOW k 2 60\r\nNOSUCH\r\n",
			"!-Cell error: Store error: Couldn't parse as integer: x\r\n!-WRONGTYPE Operation against a key holding the wrong kind of value\r\n-ERR unknown command 'NOSUCH', with args beginning with: \r\n"},
		{"units that are given back", "CL.THROTTLE full 0 1 100000 -1\r\nCL.REFUND full 0 1 100000\r\n", "!!"},
		{"deletions", "DEL full\r\nFLUSHDB\r\nFLUSHALL\r\n", "!??"},
		{"several keys", "CL.MTHROTTLE 2 a 9 1 60 1 b 9 1 60 1\r\n", "!"},
		{"a turn", "CL.BTHROTTLE k 99 1 60 1 10\r\n", "!"},
		{"a reservation", "CL.RESERVE k 99 1 60 1 100\r\nCL.CONCURRENCY ACQUIRE c 5 1000\r\n", "!!"},
		{"a transaction", "PING\r\nMULTI\r\n" + throttle + "PING\r\n" + throttle + "EXEC\r\nPING\r\n", commandstest.Pong + "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n!" + commandstest.Pong},
		{"a transaction that reads", throttle + "MULTI\r\n" + denied + "EXEC\r\n", "!+OK\r\n+QUEUED\r\n*1\r\n" + limited},
		{"a script of one call", resptest.Encode("EVAL", "return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))", "1", "k", "99", "1", "60"), "!"},
		{"a script", resptest.Encode("EVAL", "return {redis.call('CL.THROTTLE', KEYS[1], 99, 1, 60)[1] + 0, 'two', {}}", "1", "k") + "PING\r\n", "!" + commandstest.Pong},
		{"a script in a transaction", "MULTI\r\n" + resptest.Encode("EVAL", "return redis.call('CL.THROTTLE', KEYS[1], 99, 1, 60)[1] + 0", "1", "k") + "EXEC\r\n", "+OK\r\n+QUEUED\r\n!"},
		{"a script that reads", throttle + resptest.Encode("EVAL", "return redis.call('EXISTS', KEYS[1]) + 5", "1", "full"), "!:6\r\n"},
		{"what is skipped", throttle + "CLIENT REPLY SKIP\r\n" + throttle + throttle + "CLIENT REPLY SKIP\r\nDEL k\r\nPING\r\n", "!!" + commandstest.Pong},
		{"what is muted", throttle + "CLIENT REPLY OFF\r\n" + throttle + "DEL k\r\nCLIENT REPLY ON\r\n" + throttle, "!+OK\r\n?"},
		{"what ends the connection", throttle + "QUIT\r\n", "!+OK\r\n"},
		{"what is no command", throttle + "*1\r\n+x\r\n", "!-ERR Protocol error: expected '$', got '+'\r\n"},
		{"many", strings.Repeat("CL.THROTTLE k 9999 1 60\r\n", 1000) + "PING\r\n", strings.Repeat("!", 1000) + commandstest.Pong},
	}
}

// TestUnconfirmed: while a disk hangs, each reply to a change becomes an error in its place, in time, and all
// others stay; later commands are answered after them, and each change happens once.
func TestUnconfirmed(t *testing.T) {
	for _, tt := range unconfirmedCases() {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newHangingDisk()
				r, k := confirming(t, d)
				s := r.Session()
				commandstest.Say(t, r.Session(), "CL.THROTTLE full 0 1 100000\r\n")
				d.hang()
				began := time.Now()
				got, left, status := commandstest.Converse(t, s, tt.in)
				if want := strings.NewReplacer("!", unconfirmed, "?", frozen).Replace(tt.want); got != want {
					t.Errorf("got %.2000q\nwant %.2000q", got, want)
				}
				if took := time.Since(began); took < replyTimeout || took > 2*replyTimeout {
					t.Errorf("it took %v", took)
				}
				d.goOn()
				synced := make(chan struct{})
				k.Sync(func() { close(synced) })
				<-synced
				if status == peer.Close {
					return
				}
				if left != "" || status != peer.NeedInput {
					t.Errorf("status %d, left %.200q", status, left)
				}
				want := commandstest.Pong + "*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:60\r\n"
				commandstest.Expect(t, s, "PING\r\nCL.THROTTLE new 9 1 60\r\n", want)
			})
		})
	}
}

// TestUnconfirmedIsCharged: an unconfirmed change is made once, and is later on the disk.
func TestUnconfirmedIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHangingDisk()
		r, k := confirming(t, d)
		s, other := r.Session(), r.Session()
		d.hang()
		commandstest.Expect(t, s, "CL.THROTTLE k 9 1 60\r\n", unconfirmed)
		// No change is made that could not be confirmed.
		commandstest.Expect(t, other, "CL.THROTTLE k 9 1 60\r\nEXISTS k\r\n", frozen+":1\r\n")
		info := commandstest.Say(t, other, "INFO persistence\r\n")
		if !strings.Contains(info, "cell_disk_status:err\r\n") ||
			!strings.Contains(info, "cell_waiting_replies:0\r\n") {
			t.Errorf("INFO says %q", info)
		}
		info = commandstest.Say(t, other, "INFO errorstats\r\n")
		if !strings.Contains(info, "errorstat_MISCONF:count=2\r\n") {
			t.Errorf("INFO says %q", info)
		}
		d.goOn()
		synctest.Wait()
		const look, charged = "CL.THROTTLE k 9 1 60 0\r\n", "*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:55\r\n"
		commandstest.Expect(t, other, look, charged)
		if st := k.Status(); st.Fault != nil || k.Gate().Refusal() != nil {
			t.Errorf("the status is %+v", st)
		}
		kept := shard.New()
		if _, err := persist.ReadDir(t.Context(), d.Kill(), kept, time.Now().UnixNano()); err != nil {
			t.Fatal(err)
		}
		again := commandstest.New(func(c *commands.Config) { c.Store, c.Now = kept, r.Config.Now }).Session()
		if commandstest.Say(t, again, look) != charged {
			t.Error("the disk has another state")
		}
	})
}

// TestEveryWriteIsAnsweredInTime: no command that may change something waits longer than its bound.
func TestEveryWriteIsAnsweredInTime(t *testing.T) {
	eachCall(func(c *catalog.Command, call []string) {
		if c.Flags&(catalog.FlagWrite|catalog.FlagScript) == 0 && !c.Batches {
			return
		}
		for _, in := range []string{resptest.Encode(call...), "MULTI\r\n" + resptest.Encode(call...) + "EXEC\r\n"} {
			synctest.Test(t, func(t *testing.T) {
				d := newHangingDisk()
				r, _ := confirming(t, d)
				d.hang()
				defer d.goOn()
				began := time.Now()
				got, left, status := commandstest.Converse(t, r.Session(), in)
				if took := time.Since(began); took > 2*replyTimeout || status != peer.NeedInput ||
					left != "" {
					t.Errorf("%.200q: %q, status %d, after %v", in, got, status, took)
				}
				got = strings.TrimPrefix(got, "+OK\r\n+QUEUED\r\n")
				if took := time.Since(began); took < replyTimeout && got == unconfirmed ||
					took >= replyTimeout && got[0] != '-' {
					t.Errorf("%.200q: %q after %v", in, got, took)
				}
			})
		}
	})
}
