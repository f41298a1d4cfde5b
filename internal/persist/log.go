package persist

import (
	"errors"

	"cellserver/internal/persist/disk"
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
	if err := g.open(l.next); err != nil {
		return nil, err
	}
	return g, g.tidy()
}

// open makes a log, and then has the manifest name it.
func (g *log) open(next frame) error {
	name := logName(next.generation)
	if err := removeIfThere(g.dir, name); err != nil { // which no manifest named
		return err
	}
	w, err := createFile(g.dir, name, kindLog, next.generation, next.sequence)
	if err != nil {
		return err
	}
	g.w, g.manifest.logs = w, append(g.manifest.logs, fileEntry{next.generation, next.sequence, -1})
	if err := errors.Join(w.file.Sync(), g.dir.SyncDir()); err != nil {
		return err
	}
	return g.manifest.write(g.dir)
}

// add appends changes to the log, in frames.
func (g *log) add(clockNs int64, each func(visit func(c store.Change))) (err error) {
	g.payload = g.payload[:0]
	each(func(c store.Change) {
		if err == nil && len(g.payload) >= payloadBytes {
			err = g.w.write(clockNs, g.payload)
			g.payload = g.payload[:0]
		}
		g.payload = appendChange(g.payload, clockNs, c)
	})
	if err == nil && len(g.payload) > 0 {
		err = g.w.write(clockNs, g.payload)
	}
	return err
}

// payloadBytes is how long a payload becomes, but for one long key.
const payloadBytes = 256 << 10

func appendChange(buf []byte, nowNs int64, c store.Change) []byte {
	switch {
	case c.Flushed:
		return appendFlushed(buf)
	case c.TATNs <= nowNs:
		return appendGone(buf, c.Key)
	}
	return appendState(buf, c.Key, c.TATNs)
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
	if err := m.write(g.dir); err != nil {
		return err
	}
	g.manifest = m
	return g.tidy()
}

// tidy removes the files that the manifest does not name.
func (g *log) tidy() error {
	keep := map[string]bool{manifestName: true, snapshotName(g.manifest.snapshot.number): true}
	for _, l := range g.manifest.logs {
		keep[logName(l.number)] = true
	}
	names, err := g.dir.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if isOurs(name) && !keep[name] {
			if err := g.dir.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeSnapshot writes what each tells into a snapshot, and returns how long that is.
func writeSnapshot(dir disk.Dir, number uint64, clockNs int64, each func(visit func(c store.Change))) (bytes int64, err error) {
	name := snapshotName(number)
	if err := removeIfThere(dir, name); err != nil {
		return 0, err
	}
	w, err := createFile(dir, name, kindSnapshot, number, 0)
	if err != nil {
		return 0, err
	}
	g := log{w: w}
	err = g.add(clockNs, each)
	if err == nil {
		err = w.file.Sync()
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
