package transact

import (
	"context"
	"hash/maphash"
	"slices"

	"cellserver/internal/store"
)

// lanes serialize this server's clients that change the same remote keys: concurrent attempts would mostly
// conflict. Several keys share a lane.
type lanes struct {
	seed maphash.Seed
	all  [512]chan struct{} // capacity one
}

func newLanes() *lanes {
	l := &lanes{seed: maphash.MakeSeed()}
	for i := range l.all {
		l.all[i] = make(chan struct{}, 1)
	}
	return l
}

// enter acquires the lanes of keys in order, to avoid deadlocks. It returns false if ctx ends first.
func (l *lanes) enter(ctx context.Context, keys []store.Key) (leave func(), ok bool) {
	mine := make([]int, len(keys))
	for i := range keys {
		mine[i] = int(maphash.Bytes(l.seed, keys[i].Name) % uint64(len(l.all)))
	}
	slices.Sort(mine)
	mine = slices.Compact(mine)
	for n, at := range mine {
		select {
		case l.all[at] <- struct{}{}:
		case <-ctx.Done():
			l.leave(mine[:n])
			return nil, false
		}
	}
	return func() { l.leave(mine) }, true
}

func (l *lanes) leave(mine []int) {
	for _, at := range mine {
		<-l.all[at]
	}
}
