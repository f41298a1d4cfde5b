package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

// loaded is a directory's contents and the end of its log.
type loaded struct {
	manifest manifest
	next     frame    // of a new log: number, first sequence and latest time
	tail     Tail     // of the last log
	damage   []error  // skipped, if permitted
	damaged  []string // all files, after damage
}

type loader struct {
	dir    disk.Dir
	repair bool // skips damage
	skips  bool // reads a damaged directory
	// visit gets each frame in an order in which they can be applied.
	visit func(payload []byte) error
	loaded
}

// load reads the whole directory; it may be empty.
func (l *loader) load() error {
	l.next = frame{generation: 1, sequence: 1}
	if l.repair {
		sound := loader{dir: l.dir, visit: changes.Check}
		if err := sound.load(); errors.Is(err, ErrDamaged) || errors.Is(err, changes.ErrFormat) {
			l.damage, l.skips = append(l.damage, err), true
			return l.readAll()
		}
	}
	var err error
	l.manifest, err = readManifest(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return isEmpty(l.dir)
	}
	if err != nil {
		return err
	}
	files := l.manifest.files()
	for i, f := range files {
		if i > 0 && files[i-1].kind == kindLog && f.sequence != l.next.sequence {
			return fmt.Errorf("%w: %s ends before %s begins", ErrDamaged, logName(f.number-1), f.name)
		}
		if err := l.read(f); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads all files without a manifest, in an order in which the highest number wins.
func (l *loader) readAll() error {
	names, err := l.dir.List()
	if err != nil {
		return err
	}
	l.damaged = names
	var files []dataFile
	for _, name := range names {
		var number uint64
		if n, _ := fmt.Sscanf(name, "snapshot-%d", &number); n == 1 && name == snapshotName(number) {
			files = append(files, dataFile{name, kindSnapshot, &fileEntry{number: number, bytes: -1}})
		} else if n, _ := fmt.Sscanf(name, "log-%d", &number); n == 1 && name == logName(number) {
			files = append(files, dataFile{name, kindLog, &fileEntry{number: number, bytes: -1}})
		}
	}
	// a snapshot begins after the log of its number, and before its contents
	slices.SortFunc(files, func(a, b dataFile) int {
		return cmp.Or(cmp.Compare(a.number, b.number), -cmp.Compare(a.kind, b.kind))
	})
	for _, f := range files {
		if err := l.read(f); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) read(f dataFile) error {
	file, err := l.dir.Open(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no %s", ErrDamaged, f.name)
	}
	if err != nil {
		return err
	}
	next, err := l.readFile(f, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	l.next.generation, l.next.clockNs = f.number+1, max(l.next.clockNs, next.clockNs)
	if f.kind == kindLog {
		l.next.sequence = max(l.next.sequence, next.sequence)
	}
	return nil
}

func (l *loader) readFile(f dataFile, file disk.Reader) (next frame, err error) {
	visit := func(_ frame, payload []byte) error { return l.visit(payload) }
	from := frame{generation: f.number, sequence: f.sequence}
	if l.skips {
		next, damage, err := recoverFile(file, f.kind, from, func(_ frame, payload []byte) error {
			if err := changes.Check(payload); err != nil {
				l.damage = append(l.damage, fmt.Errorf("%s: %w", f.name, err))
				return nil
			}
			return l.visit(payload)
		})
		for _, d := range damage {
			l.damage = append(l.damage, fmt.Errorf("%s: %w", f.name, d))
		}
		return next, err
	}
	valid, next, err := readFile(file, f.kind, from, visit)
	switch {
	case err != nil:
	case f.bytes < 0:
		l.tail, err = tailOf(f.name, file, valid, next)
	case valid != f.bytes:
		err = fmt.Errorf("%w: %d bytes can be read, and there should be %d", ErrDamaged, valid, f.bytes)
	}
	f.bytes = valid
	return next, err
}

// findBeside looks for the files that the manifest names beside. With repair, a missing one is skipped.
func (l *loader) findBeside() error {
	missing, err := missingBeside(l.dir)
	for _, name := range missing {
		if err = errMissing(name); !l.repair {
			break
		}
		l.damage, err = append(l.damage, err), nil
	}
	return err
}

// isEmpty returns an error if there are files whose order only a manifest tells. A crash before the first
// manifest leaves only a first log.
func isEmpty(dir disk.Dir) error {
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if isOurs(name) && name != newManifestName && name != logName(1) {
			return fmt.Errorf("%w: there is %s, and no %s", ErrDamaged, name, manifestName)
		}
	}
	return nil
}

func isOurs(name string) bool {
	return strings.HasPrefix(name, "log-") || strings.HasPrefix(name, "snapshot-") || strings.HasPrefix(name, manifestName)
}

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
	var together changes.Together
	for p := range queue {
		if err := together.Read(p.payload, restore); err != nil {
			failed := err // on the heap, unlike err
			r.failed.Store(&failed)
		}
		if p.readers.Add(-1) == 0 {
			r.pieces.Put(p)
		}
	}
}

// addUntil returns a function that adds a piece, and fails once ctx is done.
func (r *restorer) addUntil(ctx context.Context) func(payload []byte) error {
	return func(payload []byte) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p := r.pieces.Get().(*piece)
		p.payload = append(p.payload[:0], payload...)
		p.readers.Store(int32(len(r.queues)))
		for _, queue := range r.queues {
			queue <- p
		}
		return r.err()
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
