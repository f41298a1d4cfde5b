package persist

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
)

// replace replaces the states by one of another key.
func (l *life) replace(name string) {
	by := &life{store: l.store.Beside()}
	by.charge(name)
	l.store.Replace(by.store)
	l.Renew()
}

// TestRenewIsAtOnce: replaced states are on the disk without any time between, and until then no start relies
// on it.
func TestRenewIsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, told := disktest.New(), 0
		l := beginLife(dir, func(c *Config) { c.Stands = func() { told++ } })
		l.charge("old")
		time.Sleep(10 * time.Second)
		before, told0, beganNs := l.Status(), told, nowNs()
		if before.Renewing || before.Generation != 1 || told == 0 {
			t.Errorf("at first: %+v, told %d times", before, told)
		}
		looked := make(chan struct{})
		dir.Before = func(op disktest.Op, name string) error {
			if op == disktest.Sync && strings.HasPrefix(name, "snapshot-") {
				<-looked
			}
			return nil
		}
		l.replace("new")
		if !l.Status().Renewing {
			t.Error("it says that the directory has the states")
		}
		close(looked)
		synctest.Wait()
		after := l.Status()
		if after.Renewing || after.Generation <= before.Generation || told == told0 || nowNs() != beganNs {
			t.Errorf("then: %+v, told %d times, after %s", after, told-told0, time.Duration(nowNs()-beganNs))
		}
		next := beginLife(dir.Kill(), nil)
		if next.tat("old") != 0 || next.tat("new") == 0 {
			t.Error("a start finds other states")
		}
		if found := next.Found(); found.Generation != after.Generation || found.Sequence != after.Sequence {
			t.Errorf("a start finds %+v, and the files are %+v", found, after)
		}
		endAll(t, l, next)
	})
}

// TestSnapshotOfEarlierStates: a snapshot that began before the states were replaced does not stand for them.
func TestSnapshotOfEarlierStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, nil)
		l.charge("old")
		dir.Before = func(op disktest.Op, name string) error {
			if op == disktest.Sync && strings.HasPrefix(name, "snapshot-") {
				time.Sleep(10 * time.Second)
			}
			return nil
		}
		if err := l.Save(func(error) {}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		l.replace("new")
		time.Sleep(9 * time.Second) // the first snapshot is written, and the second is not
		if !l.Status().Renewing {
			t.Error("it says that the directory has the states")
		}
		if time.Sleep(10 * time.Second); l.Status().Renewing {
			t.Error("it does not say that the directory has the states")
		}
		next := beginLife(dir.Kill(), nil)
		if next.tat("old") != 0 || next.tat("new") == 0 {
			t.Error("a start finds other states")
		}
		endAll(t, l, next)
	})
}

// TestRenewAtTheEnd: an end waits for the states that were replaced just before.
func TestRenewAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, nil)
		l.charge("old")
		time.Sleep(2 * time.Second)
		l.replace("new")
		l.stop()
		if err := <-l.ended; err != nil {
			t.Fatal(err)
		}
		next := beginLife(dir, nil)
		if next.tat("old") != 0 || next.tat("new") == 0 {
			t.Error("a start finds other states")
		}
		endAll(t, next)
	})
}

// TestFoundDamage: what is read beside damage stands for no files.
func TestFoundDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, nil)
		l.charge("a", "b")
		endAll(t, l)
		dir.Contents("log-00000001")[3] ^= 1
		next := beginLife(dir, func(c *Config) { c.Repair = true })
		if found := next.Found(); found != (Found{}) {
			t.Errorf("it has found %+v", found)
		}
		if synctest.Wait(); next.Status().Renewing {
			t.Error("the files are not written anew")
		}
		endAll(t, next)
	})
}
