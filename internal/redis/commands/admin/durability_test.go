package admin_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// disk is a directory in memory whose snapshots or syncs of logs can block or fail.
type disk struct {
	*disktest.Dir
	block atomic.Pointer[chan struct{}] // closed to go on
	fail  atomic.Bool
}

// newDisk returns a disk on which an operation on files of a kind may block or fail.
func newDisk(op disktest.Op, kind string) *disk {
	d := &disk{Dir: disktest.New()}
	d.Before = func(o disktest.Op, name string) error {
		if o != op || !strings.HasPrefix(name, kind) {
			return nil
		}
		if block := d.block.Load(); block != nil {
			<-*block
		}
		if d.fail.Load() {
			return errors.New("no\r\nspace")
		}
		return nil
	}
	return d
}

// stop blocks the operation until goOn is called.
func (d *disk) stop() (goOn func()) {
	block := make(chan struct{})
	d.block.Store(&block)
	return func() {
		d.block.Store(nil)
		close(block)
	}
}

const (
	throttle = "CL.THROTTLE k 4 1 10\r\n"
	progress = "-ERR Background save already in progress\r\n"
)

// begin feeds a call that must wait.
func begin(t *testing.T, s *commandstest.Client, call string) {
	t.Helper()
	if replies, _, status := commandstest.Feed(t, s, call); status != peer.Waiting || replies != "" {
		t.Fatalf("%q: got %q, status %d", call, replies, status)
	}
}

// end returns the reply to the call that waits.
func end(t *testing.T, s *commandstest.Client) (replies string, status peer.Status) {
	t.Helper()
	<-s.Conn.Woken
	replies, _, status = commandstest.Converse(t, s, "")
	return replies, status
}

// expectFields compares fields of INFO persistence.
func expectFields(t *testing.T, s *commandstest.Client, fields map[string]string) {
	t.Helper()
	for name, want := range fields {
		if got := field(t, s, "persistence", name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestSaveWhileSaving: one snapshot is written at a time, and one scheduled after it.
func TestSaveWhileSaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(disktest.Sync, "snapshot")
		r := commandstest.New(commandstest.Keeping(t, d, time.Second))
		saves, s := r.Session(), r.Session()
		commandstest.Say(t, s, throttle)
		goOn := d.stop()
		begin(t, saves, "SAVE\r\n")
		synctest.Wait()
		r.Clock.Advance(3 * commandstest.Sec)
		for _, tt := range []struct{ call, want string }{
			{"SAVE", progress},
			{"BGSAVE", progress},
			{"BGREWRITEAOF", "-ERR Background append only file rewriting already in progress\r\n"},
			{"BGSAVE SCHEDULE", "+Background saving scheduled\r\n"},
			{"BGSAVE schedule", "+Background saving scheduled\r\n"},
			{"LASTSAVE", ":1700000000\r\n"},
			{throttle + "WAITAOF 1 0 0", resptest.Ints(0, 5, 3, -1, 17) + resptest.Ints(1, 0)}, // the log goes on
		} {
			commandstest.Expect(t, s, tt.call+"\r\n", tt.want)
		}
		expectFields(t, s, map[string]string{
			"rdb_bgsave_in_progress": "1", "aof_rewrite_in_progress": "1", "aof_rewrite_scheduled": "1", "rdb_current_bgsave_time_sec": "3",
			"aof_current_rewrite_time_sec": "3", "rdb_last_bgsave_time_sec": "-1", "rdb_saves": "0", "rdb_changes_since_last_save": "1",
		})
		goOn()
		if got, _ := end(t, saves); got != "+OK\r\n" {
			t.Errorf("SAVE: got %q", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		expectFields(t, s, map[string]string{
			"rdb_bgsave_in_progress": "0", "aof_rewrite_scheduled": "0", "rdb_current_bgsave_time_sec": "-1", "rdb_last_bgsave_status": "ok",
			"rdb_last_save_time": "1700000003", "rdb_saves": "2", "aof_rewrites": "2", "rdb_changes_since_last_save": "0",
		})
	})
}

// TestSaveFails gives the reason, and without a snapshot only a forced shutdown ends the server.
func TestSaveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(disktest.Write, "snapshot")
		shutDowns := 0
		r := commandstest.New(commandstest.Keeping(t, d, time.Second), func(c *commands.Config) { c.Shutdown = func() { shutDowns++ } })
		s := r.Session()
		commandstest.Say(t, s, throttle)
		d.fail.Store(true)
		commandstest.ExpectLike(t, s, "SAVE\r\n", "-ERR the snapshot failed: …no\\r\\nspace\r\n")
		if got := field(t, s, "persistence", "rdb_last_bgsave_status") + field(t, s, "persistence", "aof_last_bgrewrite_status"); got != "errerr" {
			t.Errorf("the status is %q", got)
		}
		if got := commandstest.Say(t, s, "SHUTDOWN SAVE\r\nPING\r\n"); got != "-ERR Errors trying to SHUTDOWN. Check logs.\r\n"+commandstest.Pong || shutDowns != 0 {
			t.Errorf("SHUTDOWN SAVE: got %q, %d shutdowns", got, shutDowns)
		}
		if !strings.Contains(r.Log.String(), "the snapshot for a client's SHUTDOWN SAVE failed") {
			t.Errorf("the log is %q", r.Log.String())
		}
		if got, _, status := commandstest.Converse(t, s, "SHUTDOWN SAVE FORCE\r\n"); got != "" || status != peer.Close || shutDowns != 1 {
			t.Errorf("SHUTDOWN SAVE FORCE: got %q, status %d, %d shutdowns", got, status, shutDowns)
		}
		d.fail.Store(false)
		s = r.Session()
		if got := commandstest.Say(t, s, "SAVE\r\n") + field(t, s, "persistence", "rdb_last_bgsave_status"); got != "+OK\r\nok" {
			t.Errorf("SAVE where there is space: got %q", got)
		}
	})
}

// TestShutdownSave waits for a running snapshot, writes its own, then shuts down.
func TestShutdownSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(disktest.Sync, "snapshot")
		var shutDowns atomic.Int64
		r := commandstest.New(commandstest.Keeping(t, d, time.Second), func(c *commands.Config) { c.Shutdown = func() { shutDowns.Add(1) } })
		s, gone, other := r.Session(), r.Session(), r.Session()
		goOn := d.stop()
		commandstest.Say(t, other, throttle+"BGSAVE\r\n")
		begin(t, s, "SHUTDOWN SAVE\r\n")
		begin(t, gone, "SHUTDOWN SAVE\r\n")
		gone.HungUp(peer.Reset)
		gone.Close()
		time.Sleep(time.Minute)
		if shutDowns.Load() != 0 {
			t.Error("it has shut down without a snapshot")
		}
		goOn()
		if got, status := end(t, s); got != "" || status != peer.Close || shutDowns.Load() != 1 {
			t.Errorf("got %q, status %d, %d shutdowns", got, status, shutDowns.Load())
		}
		time.Sleep(time.Minute)
		if got := field(t, other, "persistence", "rdb_saves"); got != "2" || shutDowns.Load() != 1 {
			t.Errorf("%s snapshots, %d shutdowns", got, shutDowns.Load())
		}
	})
}

// TestShutdownSaveOfNothing: without a directory it takes FORCE; a loading server has nothing to save.
func TestShutdownSaveOfNothing(t *testing.T) {
	loading := func(c *commands.Config) {
		c.Keeper = persist.New(persist.Config{Dir: disktest.New(), Store: c.Store.(persist.Store), Now: c.Now, Log: slog.New(slog.DiscardHandler)})
	}
	memoryOnly := func(*commands.Config) {}
	for _, tt := range []struct {
		config func(*commands.Config)
		call   string
	}{{memoryOnly, "SHUTDOWN SAVE FORCE"}, {memoryOnly, "SHUTDOWN"}, {memoryOnly, "SHUTDOWN NOSAVE"}, {loading, "SHUTDOWN SAVE"}} {
		shutDowns := 0
		r := commandstest.New(tt.config, func(c *commands.Config) { c.Shutdown = func() { shutDowns++ } })
		if got, _, status := commandstest.Converse(t, r.Session(), tt.call+"\r\n"); got != "" || status != peer.Close || shutDowns != 1 {
			t.Errorf("%s: got %q, status %d, %d shutdowns", tt.call, got, status, shutDowns)
		}
	}
	r := commandstest.New(loading)
	s := r.Session()
	r.Clock.Advance(2 * commandstest.Sec)
	commandstest.Expect(t, s, "SAVE\r\nWAITAOF 0 0 0\r\nLASTSAVE\r\n",
		strings.Repeat("-LOADING cellserver is loading the dataset in memory\r\n", 2)+":1700000000\r\n")
	if got := field(t, s, "persistence", "loading") + " " + field(t, s, "persistence", "loading_start_time"); got != "1 1700000000" {
		t.Errorf("loading and its start: got %s", got)
	}
}

// TestWaitAOF waits for the disk, up to its timeout.
func TestWaitAOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(disktest.Sync, "log")
		r := commandstest.New(commandstest.Keeping(t, d, time.Second))
		short, patient, second, gone := r.Session(), r.Session(), r.Session(), r.Session()
		goOn := d.stop()
		commandstest.Say(t, short, throttle+"CONFIG SET slowlog-max-len 9 slowlog-log-slower-than 1000\r\n")
		begin(t, short, "WAITAOF 1 0 1500\r\n")
		synctest.Wait()
		begin(t, patient, "WAITAOF 1 0 0\r\n")
		begin(t, second, "WAITAOF 1 9 60000\r\n")
		second.HungUp(peer.HalfClosed) // it still reads
		begin(t, gone, "WAITAOF 1 0 0\r\n")
		gone.HungUp(peer.Reset)
		gone.Close()
		began := time.Now()
		if got, _ := end(t, short); got != resptest.Ints(0, 0) || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("got %q after %s", got, time.Since(began))
		}
		synctest.Wait()
		if len(patient.Conn.Woken)+len(second.Conn.Woken) != 0 {
			t.Error("others were told of what is not on the disk")
		}
		goOn()
		for _, s := range []*commandstest.Client{patient, second} {
			if got, _ := end(t, s); got != resptest.Ints(1, 0) {
				t.Errorf("got %q", got)
			}
		}
		commandstest.Expect(t, short, "SLOWLOG LEN\r\n", ":0\r\n")
	})
}

// TestFault shows a fault's reason, and its end.
func TestFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(disktest.Sync, "log")
		r := commandstest.New(commandstest.Keeping(t, d, time.Second))
		s := r.Session()
		d.fail.Store(true)
		r.Clock.Advance(5 * commandstest.Sec)
		commandstest.Expect(t, s, throttle+"WAITAOF 1 0 2000\r\n",
			resptest.Ints(0, 5, 4, -1, 10)+resptest.Ints(0, 0))
		expectFields(t, s, map[string]string{
			"aof_last_write_status": "err", "rdb_last_bgsave_status": "err", "cell_disk_status": "err", "cell_disk_faults": "1", "cell_disk_fault_since": "1700000005",
			"cell_disk_fault": "no\\r\\nspace",
		})
		d.fail.Store(false)
		r.Clock.Advance(60 * commandstest.Sec)
		commandstest.Expect(t, s, "WAITAOF 1 0 0\r\n", resptest.Ints(1, 0))
		commandstest.ExpectLike(t, s, "INFO persistence\r\n",
			"…cell_disk_status:ok\r\ncell_disk_faults:1\r\ncell_log_generation:…")
	})
}

// TestWaitAOFBeforeEachReply does not wait: with that interval every reply follows its sync.
func TestWaitAOFBeforeEachReply(t *testing.T) {
	r := commandstest.New(commandstest.Keeping(t, disktest.New(), 0))
	want := resptest.Ints(0, 5, 4, -1, 10) + resptest.Ints(1, 0) + resptest.Ints(1, 0) + "+OK\r\n+QUEUED\r\n*1\r\n" + resptest.Ints(1, 0)
	commandstest.Expect(t, r.Session(), throttle+"WAITAOF 0 0 0\r\nWAITAOF 1 0 0\r\nMULTI\r\nWAITAOF 1 0 0\r\nEXEC\r\n",
		want)
}
