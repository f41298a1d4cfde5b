package transact

import (
	"context"
	"hash/maphash"
	"slices"

	"cellserver/internal/store"
)

// lanes have those who change the same keys on other machines do so one after the other, as far as they are clients of this server:
// all at once, each would find that another was quicker, and most of what they do would be in vain. A lane is shared by many keys.
type lanes struct {
	seed maphash.Seed
	all  [512]chan struct{} // each holds one
}

func newLanes() *lanes {
	l := &lanes{seed: maphash.MakeSeed()}
	for i := range l.all {
		l.all[i] = make(chan struct{}, 1)
	}
	return l
}

// enter waits for the lanes of keys, in their order, so that no two wait for each other. It is false if ctx ends before.
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
