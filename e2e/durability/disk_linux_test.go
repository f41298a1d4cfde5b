package durability

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
)

// mountSmallDisk mounts a file system of a size such as 1m.
func mountSmallDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+size); err != nil {
		processtest.SkipWithout(t, "the right to mount a small disk")
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// badDisk is a directory that fails writes for a while.
type badDisk struct {
	dir       string
	fail, end func(t *testing.T, p *harness.Process)
}

// badDisks are a full disk and a limit of file sizes.
func badDisks() map[string]func(t *testing.T) badDisk {
	return map[string]func(t *testing.T) badDisk{
		"no space": func(t *testing.T) badDisk {
			dir := mountSmallDisk(t, "1m")
			ballast := filepath.Join(dir, "ballast")
			return badDisk{
				dir: dir,
				fail: func(t *testing.T, _ *harness.Process) {
					t.Helper()
					if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
						t.Fatalf("the disk is not full: %v", err)
					}
				},
				end: func(t *testing.T, _ *harness.Process) {
					t.Helper()
					if err := os.Remove(ballast); err != nil {
						t.Fatal(err)
					}
				},
			}
		},
		"file size limit": func(t *testing.T) badDisk {
			return badDisk{
				dir:  t.TempDir(),
				fail: func(t *testing.T, p *harness.Process) { limitFileSize(t, p, 0) },
				end:  func(t *testing.T, p *harness.Process) { limitFileSize(t, p, unix.RLIM_INFINITY) },
			}
		},
	}
}

func limitFileSize(t *testing.T, p *harness.Process, bytes uint64) {
	t.Helper()
	if p == nil {
		return // its limit ended with it
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(p.Cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = min(bytes, limit.Max)
	if err := unix.Prlimit(p.Cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// TestBadDiskWithInterval: decisions go on, the fault is reported, and everything is kept once there is
// space.
func TestBadDiskWithInterval(t *testing.T) {
	t.Parallel()
	for name, disk := range badDisks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := disk(t)
			p := harness.StartKeeping(t, disk.dir, "--fsync-interval", "50ms")
			harness.Charge(t, p, "before", "both")
			harness.SyncAll(t, p)
			during := harness.ManyKeys("during")
			for range 2 { // faults
				disk.fail(t, p)
				harness.Charge(t, p, append(during, "both")...)
				p.AwaitFault(t, 1)
				harness.Charge(t, p, append(during, "both")...)
				harness.Exchange(t, p.Dial(t), "WAITAOF 1 0 100\r\n", "*2\r\n:0\r\n:0\r\n")
				info := harness.SayTo(t, p.Dial(t), "INFO persistence\r\nPING\r\n", "+PONG\r\n")
				if !strings.Contains(info, "aof_last_write_status:err\r\n") {
					t.Errorf("INFO says %q", info)
				}
				p.Logged(t, "what changes is not kept")
				disk.end(t, p)
				p.AwaitFault(t, 0)
			}
			p.Logged(t, "what changes is kept again")
			harness.Charge(t, p, "after")
			harness.SyncAll(t, p)
			p.Stop(t, syscall.SIGKILL)
			p = harness.StartKeeping(t, disk.dir)
			harness.Units(t, p, 1, "before", "after")
			harness.Units(t, p, 4, during...)
			harness.Units(t, p, 5, "both")
		})
	}
}

// TestBadDiskWithoutInterval: changes are refused and not done, and reads answered, until there is space.
func TestBadDiskWithoutInterval(t *testing.T) {
	t.Parallel()
	for name, disk := range badDisks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := disk(t)
			p := harness.StartKeeping(t, disk.dir, "--fsync-interval", "0", "--fsync-timeout", "1h")
			harness.Charge(t, p, "before", "deleted")
			nc := p.Dial(t)
			harness.SayTo(t, nc, "CL.THROTTLE full 0 1 100000\r\n", ":100000\r\n")
			harness.Exchange(t, nc, "INCR counter\r\nSET text x\r\n", ":1\r\n+OK\r\n")
			disk.fail(t, p)
			// The first are done, and answered once they are kept.
			first := make(chan error, 1)
			held := harness.ManyKeys("held")
			go func() { first <- killtest.Charge(t.Context(), p.Addr, held...) }()
			p.AwaitFault(t, 1)
			for range 3 {
				if err := killtest.Charge(t.Context(), p.Addr, "during"); err == nil || !strings.HasPrefix(err.Error(), "MISCONF ") {
					t.Errorf("a call that would be kept: %v", err)
				}
				harness.Exchange(t, nc, "CL.THROTTLE full 0 1 100000\r\n", "*5\r\n:1\r\n:1\r\n:0\r\n:")
				harness.ReadTo(t, nc, "\r\n")
				for _, refused := range []string{"DEL deleted", "FLUSHALL", "INCR counter", "INCR new", "SET text y EX 60", "GETDEL text", "MSET a 1 b 2", "SET text y IFNE x", "DELEX deleted", "DELEX deleted IFNE x", "DELIFEQ text x", "MSETEX 1 text y EX 60", "MSETNX new 1", "GETSET text y", "EVAL \"return redis.call('DEL', KEYS[1])\" 1 deleted"} {
					if got := harness.SayTo(t, nc, refused+"\r\n", "\r\n"); !strings.Contains(got, "MISCONF ") {
						t.Errorf("%s: %q", refused, got)
					}
				}
				harness.Exchange(t, nc, "MGET counter text new\r\nEXISTS deleted before\r\nMULTI\r\nEXISTS before\r\nEXEC\r\n",
					"*3\r\n$1\r\n1\r\n$1\r\nx\r\n$-1\r\n:2\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n")
				harness.Units(t, p, 1, "before")
				harness.Units(t, p, 0, "during")
			}
			disk.end(t, p)
			p.AwaitFault(t, 0)
			if err, ok := patience.Receive(first); err != nil || !ok {
				t.Errorf("the calls that could not be kept at once: %v, answered %t", err, ok)
			}
			harness.Charge(t, p, "after")
			p.Stop(t, syscall.SIGKILL)
			p = harness.StartKeeping(t, disk.dir)
			harness.Units(t, p, 1, append(held, "before", "after", "deleted")...)
			harness.Units(t, p, 0, "during")
		})
	}
}

// TestKillsOnBadDisk: after a kill on a disk that fails at times, confirmed changes are kept and refused ones
// are not done.
func TestKillsOnBadDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	for name, disk := range badDisks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.OneAtATime(t)
			disk, random := disk(t), randtest.New(t)
			chargers := make([]charger, 8)
			for round := range 4 {
				p := harness.StartKeeping(t, disk.dir, "--fsync-interval", "0", "--fsync-timeout", "1h")
				var all sync.WaitGroup
				for i := range chargers {
					c := &chargers[i]
					c.key = fmt.Sprintf("key:%0500d", i)
					c.check(t, p)
					all.Go(func() { c.run(t, p) })
				}
				for range 4 {
					sleepUpTo(150*time.Millisecond, random)
					disk.fail(t, p)
					sleepUpTo(150*time.Millisecond, random)
					disk.end(t, p)
				}
				if round%2 == 0 {
					disk.fail(t, p)
				}
				sleepUpTo(150*time.Millisecond, random)
				p.Stop(t, syscall.SIGKILL)
				all.Wait()
				if round%2 == 0 {
					disk.end(t, nil)
				}
			}
			p := harness.StartKeeping(t, disk.dir)
			for i := range chargers {
				chargers[i].check(t, p)
			}
		})
	}
}

// charger charges units to its own key, one at a time.
type charger struct {
	key               string
	confirmed, unsure int64
}

// run charges until the server ends.
func (c *charger) run(t *testing.T, p *harness.Process) {
	for {
		switch err := killtest.Charge(t.Context(), p.Addr, c.key); {
		case err == nil:
			c.confirmed++
		case strings.HasPrefix(err.Error(), "MISCONF "):
			// and not done
		default:
			c.unsure = 1
			return
		}
	}
}

func (c *charger) check(t *testing.T, p *harness.Process) {
	t.Helper()
	got, err := killtest.Charged(t.Context(), p.Addr, c.key)
	if err != nil || got[0] < c.confirmed || got[0] > c.confirmed+c.unsure {
		t.Errorf("%d units, of %d confirmed and %d unsure: %v", got, c.confirmed, c.unsure, err)
		return
	}
	c.confirmed, c.unsure = got[0], 0
}

// TestStartOnFullDisk: with an interval a server starts, and keeps all once there is space.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	disk := badDisks()["no space"](t)
	p := harness.StartKeeping(t, disk.dir)
	harness.Charge(t, p, "before")
	p.Stop(t, syscall.SIGTERM)
	disk.fail(t, p)
	p = harness.StartKeeping(t, disk.dir)
	p.AwaitFault(t, 1)
	harness.Units(t, p, 1, "before")
	harness.Charge(t, p, "during")
	disk.end(t, p)
	p.AwaitFault(t, 0)
	harness.SyncAll(t, p)
	p.Stop(t, syscall.SIGKILL)
	harness.Units(t, harness.StartKeeping(t, disk.dir), 1, "before", "during")
}

// TestReadOnlyDisk: a start on a disk that cannot be written to is refused by one line.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := mountSmallDisk(t, "1m")
	p := harness.StartKeeping(t, dir)
	harness.Charge(t, p, "k")
	p.Stop(t, syscall.SIGTERM)
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(unix.MS_RDONLY)
	if code, said := harness.RefusedStart(t, "--data-dir", dir); code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, dir) {
		t.Errorf("%d, %q", code, said)
	}
	remount(0)
	harness.Units(t, harness.StartKeeping(t, dir), 1, "k")
}

// TestVolumeIsUnmounted: a volume that is taken away, and one that is mounted in its place, are each written
// as a whole.
func TestVolumeIsUnmounted(t *testing.T) {
	t.Parallel()
	dir := mountSmallDisk(t, "1m")
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	harness.Charge(t, p, "before")
	mended := func(faults float64) {
		t.Helper()
		p.Eventually(t, "notice it, and mend it", func() bool {
			return p.Metric(t, "cellserver_persistence_disk_faults_total") == faults &&
				p.Metric(t, "cellserver_persistence_disk_fault") == 0
		})
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	mended(1)
	harness.Charge(t, p, "below")
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size=1m"); err != nil {
		t.Fatal(err)
	}
	mended(2)
	harness.Charge(t, p, "after")
	p.Stop(t, syscall.SIGKILL)
	harness.Units(t, harness.StartKeeping(t, dir), 1, "before", "below", "after")
}
