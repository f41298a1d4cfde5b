package persist

import (
	"context"
	"errors"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

// log is the log that is being written, in a directory whose manifest names it. After an error nobody knows what is on the
// disk: then it must be left, by begin with a snapshot.
type log struct {
	dir      disk.Dir
	manifest manifest
	w        *writer
	payload  []byte
}

// begin goes on with a new log, behind those of the manifest.
func begin(dir disk.Dir, l loaded) (*log, error) {
	g := &log{dir: dir, manifest: l.manifest}
	if n := len(l.manifest.logs); n > 0 { // or a crash could take what was read of it
		if err := dir.SyncFile(logName(l.manifest.logs[n-1].number)); err != nil {
			return nil, err
		}
	}
	if err := g.open(l.next); err != nil {
		return nil, err
	}
	return g, g.tidy(dir.Remove)
}

// beginAnew makes a log that no manifest names, until replaceBy is given a snapshot that was begun after it.
func beginAnew(dir disk.Dir, next frame) (*log, error) {
	g := &log{dir: dir}
	return g, g.create(next)
}

// open makes a log, and then has the manifest name it.
func (g *log) open(next frame) error {
	if err := g.create(next); err != nil {
		return err
	}
	return g.manifest.write(g.dir)
}

func (g *log) create(next frame) error {
	name := logName(next.generation)
	if err := removeIfThere(g.dir, name); err != nil { // which no manifest named
		return err
	}
	w, err := createFile(g.dir, name, kindLog, next.generation, next.sequence)
	if err != nil {
		return err
	}
	g.w, g.manifest.logs = w, append(g.manifest.logs, fileEntry{next.generation, next.sequence, -1})
	return errors.Join(w.sync(), g.dir.SyncDir())
}

// bytes returns how long the logs of the manifest are.
func (g *log) bytes() (n int64) {
	for _, l := range g.manifest.logs {
		n += max(l.bytes, 0)
	}
	return n + g.w.bytes
}

// add appends changes to the log, in frames, and returns how many.
func (g *log) add(clockNs int64, p *pacer, each func(visit func(c store.Change))) (records int, err error) {
	f := framer{w: g.w, clockNs: clockNs, payload: g.payload[:0], most: logPayloadBytes, behind: g.w.sync, pacer: p}
	each(f.add)
	err = f.end()
	g.payload = f.payload[:0]
	return f.records, err
}

// framer collects changes into frames of a file.
type framer struct {
	w       *writer
	clockNs int64
	payload []byte
	most    int          // bytes of a payload, but for one long record
	behind  func() error // is called behind each frame but the last
	pacer   *pacer
	records int
	err     error
}

func (f *framer) add(c store.Change) {
	if f.err != nil {
		return
	}
	if len(f.payload) >= f.most {
		if f.flush(); f.err == nil {
			f.err = f.behind()
		}
	}
	f.payload = appendChange(f.payload, f.clockNs, c)
	if f.records++; f.records%paceRecords == 0 {
		f.pacer.pace()
	}
}

func (f *framer) flush() {
	f.err = f.w.write(f.clockNs, f.payload)
	f.payload = f.payload[:0]
}

func (f *framer) end() error {
	if f.err == nil && len(f.payload) > 0 {
		f.flush()
	}
	return f.err
}

// A snapshot's frames are short, so that others have the processor and the disk between them, and as they are read on several
// goroutines. A log's are long: none is begun before the one in front of it is on the disk, for a crash could keep the second
// and lose the first, which looks like damage.
const (
	snapshotPayloadBytes = 256 << 10
	logPayloadBytes      = 2 << 20
)

func appendChange(buf []byte, nowNs int64, c store.Change) []byte {
	switch {
	case c.Flushed:
		return appendFlushed(buf)
	case c.State.ExpiresNs <= nowNs:
		return appendGone(buf, c.Key)
	}
	return appendState(buf, c.Key, &c.State)
}

// rotate goes on with another log, so that this one ends. It must have been synced.
func (g *log) rotate() error {
	old := &g.manifest.logs[len(g.manifest.logs)-1]
	old.bytes = g.w.bytes
	if err := g.w.file.Close(); err != nil {
		return err
	}
	return g.open(frame{generation: old.number + 1, sequence: g.w.next.sequence})
}

// number returns the log's.
func (g *log) number() uint64 { return g.w.next.generation }

// replaceBy has the manifest name a snapshot, which was begun after the log of its number, and forgets what was before.
func (g *log) replaceBy(number uint64, bytes int64) error {
	m := manifest{snapshot: fileEntry{number: number, bytes: bytes}}
	for _, l := range g.manifest.logs {
		if l.number >= number {
			m.logs = append(m.logs, l)
		}
	}
	g.manifest = m
	return m.write(g.dir)
}

// tidy removes the files that the manifest does not name, or does with them what is done instead.
func (g *log) tidy(remove func(name string) error) error { return tidy(g.dir, remove, &g.manifest) }

// tidy removes the files that none of the manifests names.
func tidy(dir disk.Dir, remove func(name string) error, manifests ...*manifest) error {
	keep := map[string]bool{manifestName: true}
	for _, m := range manifests {
		keep[snapshotName(m.snapshot.number)] = true
		for _, l := range m.logs {
			keep[logName(l.number)] = true
		}
	}
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if isOurs(name) && !keep[name] {
			err = errors.Join(err, remove(name))
		}
	}
	return err
}

// syncBytes is how much of a snapshot is written at most before it is brought to the disk, so that a log's sync never waits
// for much of it.
const syncBytes = 8 << 20

// writeSnapshot writes what each tells into a snapshot, and returns how long that is. It ends early when ctx does.
func writeSnapshot(ctx context.Context, dir disk.Dir, number uint64, clockNs int64, p *pacer,
	each func(ctx context.Context, visit func(c store.Change))) (bytes int64, err error) {
	name := snapshotName(number)
	if err := removeIfThere(dir, name); err != nil {
		return 0, err
	}
	w, err := createFile(dir, name, kindSnapshot, number, 0)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	synced := int64(0)
	f := framer{w: w, clockNs: clockNs, most: snapshotPayloadBytes, pacer: p, behind: func() error {
		if w.bytes < synced+syncBytes {
			return nil
		}
		synced = w.bytes
		return w.sync()
	}}
	each(ctx, func(c store.Change) {
		if f.add(c); f.err != nil {
			cancel()
		}
	})
	if err = f.end(); err == nil {
		err = errors.Join(ctx.Err(), w.sync())
	}
	if err := errors.Join(err, w.file.Close()); err != nil {
		return 0, err
	}
	return w.bytes, dir.SyncDir()
}

func removeIfThere(dir disk.Dir, name string) error {
	names, err := dir.List()
	if err != nil {
		return err
	}
	for _, n := range names {
		if n == name {
			return dir.Remove(name)
		}
	}
	return nil
}
