package persist

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/store"
)

func (k *Keeper) restore(ctx context.Context) (loaded, error) {
	if err := checkNow(k.config.Now()); err != nil {
		return loaded{}, err
	}
	bytes := k.bytesToLoad()
	k.update(func(st *store.Durability) { st.LoadBytes = bytes })
	r := newRestorer(k.config.Store, k.config.Now())
	add := r.addUntil(ctx)
	l := loader{dir: k.config.Dir, repair: k.config.Repair, visit: func(payload []byte) error {
		k.loaded.Add(int64(frameHeaderBytes + len(payload)))
		return add(payload)
	}}
	err := errors.Join(l.load(), r.end())
	if err == nil {
		err = l.findBeside()
	}
	newer := (*NewerError)(nil)
	switch {
	case errors.As(err, &newer):
		return l.loaded, newer.Advise()
	case errors.Is(err, ErrDamaged) || errors.Is(err, changes.ErrFormat):
		return l.loaded, fmt.Errorf("%w; `cellserver check DIR` tells more, and --data-recover starts with what can be read and keeps the files aside", err)
	case err != nil:
		return l.loaded, err
	}
	if len(l.damage) == 0 {
		k.locked(func() { k.found = Found{l.next.generation - 1, l.next.sequence} })
	}
	for _, d := range l.damage {
		k.config.Log.Warn("passed over damage in the data directory", "error", d)
	}
	if t := l.tail; t.Bytes > 0 {
		k.config.Log.Warn("the end of the log is dropped: "+t.String(), "file", t.File, "from_byte", t.At, "bytes", t.Bytes)
	}
	return l.loaded, nil
}

// bytesToLoad returns the length of the manifest's files, as far as known.
func (k *Keeper) bytesToLoad() (n int64) {
	m, err := readManifest(k.config.Dir)
	if err != nil {
		return 0
	}
	n = max(m.snapshot.bytes, 0)
	for _, l := range m.logs {
		f, err := k.config.Dir.Open(logName(l.number))
		if err != nil {
			continue
		}
		n += f.Size()
		_ = f.Close() // nothing was written
	}
	return n
}

// restorer applies records in order, with a goroutine for each part of the store.
type restorer struct {
	queues []chan *piece
	pieces sync.Pool
	failed atomic.Pointer[error]
	wg     sync.WaitGroup
}

// piece is a payload shared by all goroutines.
type piece struct {
	payload []byte
	readers atomic.Int32
}

const (
	maxRestorers = 16
	queuedPieces = 4
)

func newRestorer(s store.Tracker, nowNs int64) *restorer {
	r := &restorer{queues: make([]chan *piece, min(runtime.GOMAXPROCS(0), maxRestorers))}
	r.pieces.New = func() any { return new(piece) }
	for part := range r.queues {
		queue := make(chan *piece, queuedPieces)
		r.queues[part] = queue
		r.wg.Go(func() {
			r.work(queue, func(changes []store.Change) { s.Restore(nowNs, part, len(r.queues), changes) })
		})
	}
	return r
}

func (r *restorer) work(queue <-chan *piece, restore func(changes []store.Change)) {
	for p := range queue {
		if err := changes.ReadTogether(p.payload, restore); err != nil {
			r.failed.Store(&err)
		}
		if p.readers.Add(-1) == 0 {
			r.pieces.Put(p)
		}
	}
}

func (r *restorer) add(payload []byte) error {
	p := r.pieces.Get().(*piece)
	p.payload = append(p.payload[:0], payload...)
	p.readers.Store(int32(len(r.queues)))
	for _, queue := range r.queues {
		queue <- p
	}
	return r.err()
}

// addUntil returns add, which fails once ctx is done.
func (r *restorer) addUntil(ctx context.Context) func(payload []byte) error {
	return func(payload []byte) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return r.add(payload)
	}
}

func (r *restorer) end() error {
	for _, queue := range r.queues {
		close(queue)
	}
	r.wg.Wait()
	return r.err()
}

func (r *restorer) err() error {
	if err := r.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (k *Keeper) ready(l loaded) {
	var held store.Stats
	k.config.Store.UpdateStats(&held)
	keys, tookNs := held.Keys, k.config.Now()-k.Status().LoadBeganNs
	k.update(func(st *store.Durability) {
		st.Loading, st.LoadTookNs, st.LoadedKeys = false, tookNs, int64(keys)
		st.SnapshotBytes = l.manifest.snapshot.bytes
	})
	k.loading.Store(false)
	k.config.Gate.EndLoading()
	if l.next.generation > 1 {
		k.config.Log.Info("loaded the data directory", "keys", keys, "took", time.Duration(tookNs).Round(time.Millisecond))
	}
}
