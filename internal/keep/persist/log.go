package persist

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

// log is the current log of a directory, named by its manifest. After an error the disk's state is unknown:
// it must be left by a new generation with a snapshot.
type log struct {
	dir      disk.Dir
	manifest manifest
	w        *writer
	payload  []byte
}

// begin continues with a new log after the manifest's.
func begin(dir disk.Dir, l loaded) (*log, error) {
	g := &log{dir: dir, manifest: l.manifest}
	if n := len(l.manifest.logs); n > 0 { // a crash could take what was read
		if err := dir.SyncFile(logName(l.manifest.logs[n-1].number)); err != nil {
			return nil, err
		}
	}
	if err := g.open(l.next); err != nil {
		return nil, err
	}
	return g, g.tidy(nil)
}

func (g *log) open(next frame) error {
	if err := g.create(next); err != nil {
		return err
	}
	return g.manifest.write(g.dir)
}

func (g *log) create(next frame) error {
	name := logName(next.generation)
	if err := removeIfThere(g.dir, name); err != nil { // unnamed by any manifest
		return err
	}
	w, err := createFile(g.dir, name, kindLog, next.generation, next.sequence)
	if err != nil {
		return err
	}
	g.w, g.manifest.logs = w, append(g.manifest.logs, fileEntry{next.generation, next.sequence, -1})
	return errors.Join(w.sync(), g.dir.SyncDir())
}

func (g *log) bytes() (n int64) {
	for _, l := range g.manifest.logs {
		n += max(l.bytes, 0)
	}
	return n + g.w.bytes
}

// add appends records in frames and returns their number.
func (g *log) add(clockNs int64, p *pacer, each func(visit func(p changes.Piece) error) error) (records int, err error) {
	f := framer{w: g.w, clockNs: clockNs, payload: g.payload[:0], most: logPayloadBytes, behind: g.w.sync, pacer: p}
	err = cmp.Or(each(f.addPiece), f.end())
	g.payload = f.payload[:0]
	return f.records, err
}

type framer struct {
	w       *writer
	clockNs int64
	payload []byte
	most    int          // of a payload, unless one record is longer
	behind  func() error // called after each frame but the last
	pacer   *pacer
	records int
	err     error
}

func (f *framer) add(c store.Change) {
	if f.makeRoom(); f.err != nil {
		return
	}
	f.payload = changes.Append(f.payload, f.clockNs, &c)
	if f.records++; f.records%paceRecords == 0 {
		f.pacer.pace()
	}
}

// addPiece adds records that are encoded already.
func (f *framer) addPiece(p changes.Piece) error {
	if f.makeRoom(); f.err != nil {
		return f.err
	}
	f.payload = append(f.payload, p.Records...)
	f.records += p.Count
	f.pacer.pace()
	return nil
}

// makeRoom writes a full payload.
func (f *framer) makeRoom() {
	if f.err != nil || len(f.payload) < f.most {
		return
	}
	if f.flush(); f.err == nil {
		f.err = f.behind()
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

// A snapshot's frames are short, to yield processor and disk between them and to be read in parallel. A log's
// are long: none begins before the previous one is on disk, as a crash that keeps only the second would look
// like damage.
const (
	snapshotPayloadBytes = 256 << 10
	logPayloadBytes      = 2 << 20
)

// rotate continues with another log. This one must be synced.
func (g *log) rotate() error {
	old := &g.manifest.logs[len(g.manifest.logs)-1]
	old.bytes = g.w.bytes
	if err := g.w.file.Close(); err != nil {
		return err
	}
	return g.open(frame{generation: old.number + 1, sequence: g.w.next.sequence})
}

func (g *log) number() uint64 { return g.w.next.generation }

// replaceBy names a snapshot, begun after the log of its number, in the manifest, and drops everything
// earlier.
func (g *log) replaceBy(number uint64, bytes int64) error {
	m := manifest{snapshot: fileEntry{number: number, bytes: bytes}, beside: g.manifest.beside}
	for _, l := range g.manifest.logs {
		if l.number >= number {
			m.logs = append(m.logs, l)
		}
	}
	g.manifest = m
	return m.write(g.dir)
}

// tidy removes files outside the manifest, and sets damaged ones aside. A recovery may have ended before
// that: then all files may be damaged.
func (g *log) tidy(damaged []string) error {
	recovered, err := isThere(g.dir, recoveryName)
	if err != nil {
		return err
	}
	err = tidy(g.dir, func(name string) error {
		if slices.Contains(damaged, name) || recovered && damaged == nil && name != newManifestName {
			return disk.SetAside(g.dir, name)
		}
		return g.dir.Remove(name)
	}, &g.manifest)
	if err == nil && recovered {
		err = endRecovery(g.dir)
	}
	return err
}

// tidy removes files that no manifest names.
func tidy(dir disk.Dir, remove func(name string) error, manifests ...*manifest) error {
	keep := map[string]bool{manifestName: true, recoveryName: true}
	for _, m := range manifests {
		for _, name := range m.names() {
			keep[name] = true
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

// syncBytes of a snapshot are synced at a time, so that a log's sync never waits for much of it.
const syncBytes = 8 << 20

// writeSnapshot writes a snapshot of all that each visits, and returns its length. It ends early with ctx.
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
	there, err := isThere(dir, name)
	if err != nil || !there {
		return err
	}
	return dir.Remove(name)
}

func isThere(dir disk.Dir, name string) (bool, error) {
	names, err := dir.List()
	return slices.Contains(names, name), err
}

const (
	paceRecords = 64 // records between two clock readings
	yieldEvery  = 100 * time.Microsecond
	restEvery   = time.Millisecond
	// mostRest bounds a rest beside a slow disk.
	mostRest = 20 * time.Millisecond
)

// pacer yields the processor during long work; nil does not.
type pacer struct {
	yield func()
	// hurry is nil to only yield. Work without hurry rests as long as it works.
	hurry           *atomic.Bool
	yielded, rested time.Time
}

func newPacer(yield func(), hurry *atomic.Bool) *pacer {
	now := time.Now()
	return &pacer{yield, hurry, now, now}
}

func (p *pacer) pace() {
	if p == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.yielded) < yieldEvery {
		return
	}
	p.yield()
	if worked := now.Sub(p.rested); p.hurry != nil && !p.hurry.Load() && worked >= restEvery {
		time.Sleep(min(worked, mostRest))
		p.rested = time.Now()
	}
	p.yielded = time.Now()
}
