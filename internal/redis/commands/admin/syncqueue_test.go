package admin

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestSyncQueue: callers during a sync wait for the next one; cancelled callers are forgotten.
func TestSyncQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q syncQueue
		var syncs []func()
		toDisk := func(done func()) { syncs = append(syncs, done) }
		finished := ""
		wait := func(name string) (leave func()) {
			ctx, cancel := context.WithCancel(t.Context())
			q.wait(ctx, toDisk, func() { finished += name })
			return cancel
		}
		wait("a")
		for _, name := range []string{"b", "c"} {
			wait(name)()
		}
		wait("d")
		leaves := wait("e")
		synctest.Wait()
		if len(syncs) != 1 || len(q.now) != 1 || len(q.next) != 2 {
			t.Fatalf("%d syncs, %d wait for the first and %d for the next", len(syncs), len(q.now), len(q.next))
		}
		if syncs[0](); finished != "a" || len(syncs) != 2 {
			t.Fatalf("finished %q behind the first, %d syncs", finished, len(syncs))
		}
		leaves()
		synctest.Wait()
		if syncs[1](); finished != "ad" || len(syncs) != 2 || q.syncing || len(q.now)+len(q.next) != 0 {
			t.Fatalf("finished %q behind the second, %d syncs, %+v", finished, len(syncs), &q)
		}
		wait("f")
		if syncs[2](); finished != "adf" {
			t.Errorf("finished %q behind the third", finished)
		}
	})
}
